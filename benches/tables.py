"""Results as CSV files that say where they come from, and the command that every bench is."""

import argparse
import csv
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benches/results"

# What a result depends on; results themselves and the text around them are not part of it.
_MEASURED = ("src", "benches", "pyproject.toml", "constraints.txt", ":!*.md", ":!benches/results")
_PACKAGES = ("numpy", "numba", "pyarrow")


class Table(NamedTuple):
    """Rows of one kind of NamedTuple, and what else tells one run from another."""

    rows: Sequence[Any]
    about: Mapping[str, str]  # seed, trace and its digest, versions of the peers ...


def write(name: str, table: Table, folder: Path) -> Path:
    """The table as `folder/name.csv`, led by lines that begin with `#`."""
    path = folder / f"{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        for key, value in {**circumstances(), **table.about}.items():
            file.write(f"# {key}: {value}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.rows[0]._fields)
        writer.writerows([_cell(value) for value in row] for row in table.rows)
    return path


def read(path: Path) -> tuple[dict[str, str], list[dict[str, str]]]:
    """The leading lines as a dict, and the rows."""
    lines = path.read_text().splitlines()
    lead = [line for line in lines if line.startswith("# ")]
    about = dict(line[2:].split(": ", 1) for line in lead)
    return about, list(csv.DictReader(lines[len(lead) :]))


def circumstances() -> dict[str, str]:
    """The state of the source, the machine without its name, and the versions."""
    return {
        "commit": _commit(),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()}",
        "load": f"{os.getloadavg()[0]:.1f} running in the last minute",
        "python": platform.python_version(),
        **{package: version(package) for package in _PACKAGES},
    }


def command(name: str, measure: Callable[[float], Table]) -> None:
    """Measure, print the table, and write it unless only a part of the work was done."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="part of the full work, 1 is all")
    parser.add_argument("--folder", type=Path, help="where to write; benches/results at scale 1")
    given = parser.parse_args()
    table = measure(given.scale)
    show(table)
    folder = given.folder or (RESULTS if given.scale == 1 else None)
    if folder:
        print(write(name, table, folder))


def show(table: Table) -> None:
    """Print the rows in columns, for people."""
    cells = [list(table.rows[0]._fields)]
    cells += [[_cell(value) for value in row] for row in table.rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return np.format_float_positional(value, precision=4, fractional=False, trim="-")
    return str(value)


def _commit() -> str:
    commit = _git("rev-parse", "--short=12", "HEAD")
    if not commit:
        return "unknown"
    changed = _git("status", "--porcelain", "--", *_MEASURED)
    files = sorted(line[3:] for line in changed.splitlines())
    return f"{commit}, with changes not committed in {' '.join(files)}" if files else commit


def _git(*arguments: str) -> str:
    """What git prints, nothing where there is no git or no repository."""
    if shutil.which("git") is None:
        return ""
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.stdout.rstrip("\n")


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    found = known.exists() and re.search(r"^model name\s*: (.+)$", known.read_text(), re.MULTILINE)
    return found[1] if found else platform.machine()
