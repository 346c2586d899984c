"""Writes a generated trace as Parquet.

    python -m streamgauge.traces.generate NAME OUT.parquet [key=value ...]

The keys are the parameters of the trace's function, for example

    python -m streamgauge.traces.generate churn churn.parquet z=1.25 multiset=1

Prints the rows and the digest, which name the trace wherever a number quotes it. The label that
says what a trace stands in for is kept in the file, so nobody takes it for a recorded one.
"""

import difflib
import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from streamgauge.traces.papers import (
    Columns,
    bursty,
    churn,
    ddos,
    shifts,
    stable,
    wc98day,
    wc98week,
)
from streamgauge.traces.workloads import hot_burst, two_hours


class Trace(NamedTuple):
    """A function that generates columns, and what they stand in for."""

    generate: Callable[..., Columns]
    label: str


TRACES = {
    "wc98day": Trace(wc98day, "generated; stands in for one day of the World Cup 98 web logs"),
    "wc98week": Trace(wc98week, "generated; stands in for a week of the World Cup 98 web logs"),
    "stable": Trace(stable, "generated; stands in for World Cup 98 after the window has filled"),
    "bursty": Trace(bursty, "generated; stands in for CAIDA's bursty packet traces"),
    "churn": Trace(churn, "generated; the synthetic streams of Das et al. 2004, section 5.1"),
    "shifts": Trace(shifts, "generated; the synthetic streams of Rivetti et al. 2015, section IV"),
    "ddos": Trace(ddos, "a real access log with a generated attack; Rivetti et al. 2015, figure 8"),
    "hot_burst": Trace(hot_burst, "generated; the demo's traffic, not modelled on any recording"),
    "two_hours": Trace(two_hours, "generated; the Spark bench's traffic, stationary by design"),
}

UNITS = {"wc98day": "s", "wc98week": "s", "hot_burst": "ms", "two_hours": "ms"}  # of ts, if any


def digest(columns: Columns) -> str:
    """SHA-256 over the little-endian bytes of ts, site, item and op, those that are there."""
    sha = hashlib.sha256()
    for name, kind in {"ts": "<i8", "site": "<i2", "item": "<i8", "op": "<i1"}.items():
        if name in columns:
            sha.update(np.ascontiguousarray(columns[name], kind).data)
    return sha.hexdigest()


def made(name: str, options: Iterable[str] = ()) -> Columns:
    """The columns of the trace `name`, with options written key=value."""
    if name not in TRACES:
        raise ValueError(f"there is no trace {name!r}{_instead(name, TRACES)}")
    return TRACES[name].generate(**_parsed(name, options))


def write(name: str, out: Path, options: Iterable[str] = ()) -> str:
    """Generate the trace `name` into the Parquet file `out`; the line that identifies it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    options = list(options)
    columns = made(name, options)
    sha = digest(columns)
    about = {"trace": " ".join([name, *options]), "label": TRACES[name].label, "sha256": sha}
    pq.write_table(pa.table(columns, metadata=about), out, compression="zstd")
    return f"{about['trace']}: {len(columns['ts']):,} rows, sha256 {sha} ({about['label']})"


def _parsed(name: str, options: Iterable[str]) -> dict[str, object]:
    """The options as arguments, each turned into the type that the parameter declares."""
    parameters = inspect.signature(TRACES[name].generate).parameters
    given: dict[str, object] = {}
    for option in options:
        key, equals, text = option.partition("=")
        if not equals:
            raise ValueError(f"an option is written key=value, got {option!r}")
        if key not in parameters:
            raise ValueError(f"{name} has no option {key!r}{_instead(key, parameters)}")
        kind = parameters[key].annotation
        try:
            given[key] = kind(text)
        except ValueError:
            raise ValueError(f"{key} must be {kind.__name__}, got {text!r}") from None
    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in given:
            raise ValueError(f"{name} needs the option {key}=...")
    return given


def _instead(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1)
    return (f"; did you mean {close[0]!r}?" if close else ".") + f" There is: {', '.join(known)}"


def main(arguments: list[str]) -> int:
    """The command; 2 and a sentence on stderr when it cannot be done."""
    if len(arguments) < 2:
        sys.stderr.write(f"{__doc__}\ntraces: {', '.join(TRACES)}\n")
        return 2
    name, out, *options = arguments
    try:
        line = write(name, Path(out), options)
    except (ValueError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
