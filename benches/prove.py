"""The big counts of checked answers: hours, resumable, one CSV a campaign.

    make prove ARGS="--hours 2"      # goes on where the last run stopped

A row is a stretch of seeds and belongs to the state of src/ whose digest it names; seeds already
counted for that state are not run again. A certain promise that fails stops the run with its seed.
"""

import csv
import hashlib
import time
from pathlib import Path

import click

from tests.guarantees.campaigns import CAMPAIGNS, DELTA
from tests.statistics import most_failures

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benches" / "results" / "prove"
COLUMNS = ["source", "first_seed", "seeds", "certain", "probable", "failed", "seconds"]
STRETCH = 60  # seconds between rows


def source_digest() -> str:
    """The state of src/ that a count is about."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def counted(table: Path, source: str) -> list[dict[str, str]]:
    """The rows about this state of the source."""
    if not table.exists():
        return []
    with table.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["source"] == source]


def stretch(name: str, first: int, seconds: float) -> dict[str, object]:
    """Run seeds from `first` on for about so long."""
    started = time.perf_counter()
    sums = [0, 0, 0]
    seed = first
    while seed == first or time.perf_counter() - started < seconds:
        sums = [old + new for old, new in zip(sums, CAMPAIGNS[name](seed), strict=True)]
        seed += 1
    spent = round(time.perf_counter() - started, 1)
    return dict(zip(COLUMNS[1:], [first, seed - first, *sums, spent], strict=True))


def keep(table: Path, row: dict[str, object]) -> None:
    """Add one row to a table that may not be there yet."""
    new = not table.exists()
    table.parent.mkdir(parents=True, exist_ok=True)
    with table.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)


@click.command(help=__doc__)
@click.option("--hours", default=1.0, show_default=True, help="When to stop.")
@click.option("--only", type=click.Choice(list(CAMPAIGNS)), help="One campaign instead of all.")
def main(hours: float, only: str | None) -> None:
    """Take turns between the campaigns until the time is up."""
    source, end = source_digest(), time.monotonic() + 3600 * hours
    names = [only] if only else list(CAMPAIGNS)
    seconds = min(STRETCH, 3600 * hours / len(names))
    while time.monotonic() < end:
        for name in names:
            table = FOLDER / f"{name}.csv"
            first = sum(int(row["seeds"]) for row in counted(table, source))
            keep(table, {"source": source, **stretch(name, first, seconds)})
            rows = counted(table, source)
            certain, probable, failed = (
                sum(int(row[column]) for row in rows) for column in COLUMNS[3:6]
            )
            limit = most_failures(DELTA, probable) if probable else 0
            click.echo(
                f"{name}: {certain:,} certain answers right; of {probable:,} probable ones "
                f"{failed} failed, {limit} would fit"
            )
            if failed > limit:
                raise SystemExit(f"{name}: more failures than delta = {DELTA} allows")


if __name__ == "__main__":
    main()
