"""The traces of the benches that repeat a paper's figures: generated ones, and real ones if there.

The papers' own logs cannot be had. `wc98day` is generated, shaped like a day of the World Cup 98
logs. The real ones lie beside the project in ../shared/data and are chosen from there because both
are in order of time and have many sites of their own and many events in a window:

    osdf      requests for objects at 33 caches: what wc98 is, an access log, but nearly flat
    flights   departures on 3 399 routes at 229 airports: bursts of equal ticks, mild skew

(The commits to a compiler fill a window of weeks with a few thousand rows, out of order.) Windows
are two hours, five days and 45 days, some 0.7 million events each at the end of a trace. The last
two windows of a trace are used, so that about as many events have expired as are asked about.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benches.tables import ROOT
from streamgauge.traces.generate import digest
from streamgauge.traces.papers import wc98day

DATA = ROOT.parent / "shared" / "data"
REQUESTS = 14_000_000

Ints = NDArray[np.int64]


class Trace(NamedTuple):
    """Items at ticks that do not decrease, at the sites where they came."""

    name: str
    ticks: Ints
    sites: NDArray[np.int16]
    items: Ints
    window: int
    unit: str  # of a tick

    @property
    def now(self) -> int:
        """The tick of the last arrival."""
        return int(self.ticks[-1])

    def __str__(self) -> str:
        """A line for a table's lead that names the rows for good."""
        sha = digest({"ts": self.ticks, "site": self.sites, "item": self.items})
        return (
            f"{self.name}: {self.items.size} events, window {self.window} {self.unit}; "
            f"sha256 of their ts, site and item {sha}"
        )


class _File(NamedTuple):
    """Where a real trace is, how long a tick takes in its unit, and what its items are."""

    name: str
    tick: int
    key: tuple[str, ...]
    window: int
    unit: str


_FILES = {
    "osdf": _File("osdf_caches_2025_08.parquet", 10**6, ("object",), 432_000, "s"),
    "flights": _File(
        "us_flights_2001h1_3m.parquet", 60_000, ("origin", "destination"), 64_800, "min"
    ),
}


@cache
def load(scale: float) -> tuple[list[Trace], str]:
    """All traces there are, of each the last `scale` part, and which had to be left out."""
    traces = [_generated(scale)]
    absent = []
    for name, file in _FILES.items():
        if (DATA / file.name).exists():
            traces.append(_recorded(name, file, scale))
        else:
            absent.append(f"{name}: there is no {file.name} in ../shared/data")
    left_out = "; ".join(absent) or "none"
    if absent:
        print(f"left out: {left_out}")
    return traces, left_out


def about(scale: float) -> dict[str, str]:
    """What a table says of its traces."""
    traces, left_out = load(scale)
    return {"trace": "; ".join(map(str, traces)), "traces left out": left_out}


def _generated(scale: float) -> Trace:
    day = wc98day(requests=max(100, round(scale * REQUESTS)))
    return _last(Trace("wc98day", day["ts"], day["site"], day["item"], 7_200, "s"))


def _recorded(name: str, file: _File, scale: float) -> Trace:
    table = pq.read_table(DATA / file.name, columns=["ts", "site", *file.key])
    rows = max(100, round(scale * table.num_rows))
    table = table.slice(max(0, table.num_rows - rows)).combine_chunks()
    items = np.zeros(table.num_rows, np.int64)
    for column in file.key:
        values = table[column].combine_chunks().dictionary_encode()
        items = items * len(values.dictionary) + values.indices.to_numpy()
    ticks, sites = table["ts"].to_numpy() // file.tick, table["site"].to_numpy()
    return _last(Trace(name, ticks, sites, items, file.window, file.unit))


def _last(trace: Trace) -> Trace:
    """The last two windows of it."""
    inside = trace.ticks > trace.now - 2 * trace.window
    rows = (trace.ticks[inside], trace.sites[inside], trace.items[inside])
    return Trace(trace.name, *rows, trace.window, trace.unit)
