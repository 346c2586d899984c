"""Keeps the numbers in the documents equal to those in benches/results.

    .venv/bin/python -m benches.quotes

A quoted number is followed by a comment that says where it stands: the file, the leading cells
of the row, the column.

    13.2<!-- ecm.csv; ECM epsilon 0.1: batches of 100000; datasketches count-min loop; ratio -->

The command rewrites the number with as many decimals as it had. tests/test_benches.py fails
while one differs.
"""

import re
from decimal import Decimal
from pathlib import Path

from benches.tables import RESULTS, ROOT, read

_COMMENT = re.compile(r"<!-- [^>]*\.csv\b[^>]*-->")
_QUOTE = re.compile(r"(\d[\d,]*(?:\.\d+)?)<!-- ([^;>]+\.csv);([^>]+) -->")


def documents() -> list[Path]:
    """The files that may quote."""
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benches/*.md")])


def renewed(text: str, results: Path = RESULTS) -> str:
    """The text with every quoted number as the tables have it now."""
    if len(_COMMENT.findall(text)) != len(_QUOTE.findall(text)):
        stray = _COMMENT.findall(_QUOTE.sub("", text))
        raise ValueError(f"a quote is `number<!-- file.csv; row; column -->`, got {stray}")

    def replaced(match: re.Match[str]) -> str:
        number, table, place = match.groups()
        decimals = len(number.partition(".")[2])
        separator = "," if "," in number else ""
        value = Decimal(_found(results / table, [key.strip() for key in place.split(";")]))
        return f"{value:{separator}.{decimals}f}<!-- {table};{place} -->"

    return _QUOTE.sub(replaced, text)


def _found(table: Path, keys: list[str]) -> str:
    *row, column = keys
    _, rows = read(table)
    values = {found[column] for found in rows if list(found.values())[: len(row)] == row}
    if len(values) != 1:
        raise ValueError(f"{table.name} has {len(values)} values at {'; '.join(keys)}")
    return values.pop()


def main() -> None:
    """Rewrite the documents."""
    for path in documents():
        text = path.read_text()
        if renewed(text) != text:
            path.write_text(renewed(text))
            print(f"renewed {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
