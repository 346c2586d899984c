"""What an update of the windowed count-min sketches costs beside the listings of their paper.

The trace is `shifts` of the paper's section IV with Zipf 1.0; the window holds 50 000 arrivals. All
cases take hashed items, the listings the very words that the sketches hash.
"""

from functools import partial
from time import thread_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benches import listings, stream, tables
from benches.rounds import Case, take_turns
from streamgauge import (
    CountMin,
    PerfectWindowSketch,
    ProportionalWindowSketch,
    SimpleWindowSketch,
    SplitterWindowSketch,
    arrivals,
)
from streamgauge.traces.papers import shifts

SEED = 7
WINDOW = 50_000
ITEMS = 1000
PLACES = 512  # of a cell's queue; at most 298 were seen in use
ROUNDS = 11
BATCH = 100_000

GOALS = {
    0.1: {"SplitterWindowSketch": 15.0, "ProportionalWindowSketch": 6.0},
    0.01: {"SplitterWindowSketch": 100.0, "ProportionalWindowSketch": 30.0},
}


class _Listing:
    """State of a compiled listing, fed like a sketch."""

    def __init__(self, kernel: Any, state: list[NDArray[Any]], sizes: tuple[Any, ...]) -> None:
        self._call = partial(kernel, *state, *sizes)
        self._now = 0

    def update(self, words: NDArray[np.uint64]) -> None:
        self._call(words, self._now)
        self._now += words.size


def _listings(sketch: Any) -> dict[str, _Listing]:
    cells = sketch.sizes.cells
    given = sketch._frame.rows.seeds, sketch.sizes.width, WINDOW
    queues = [np.zeros((cells, PLACES), kind) for kind in (np.int64, np.int64, np.float64)]
    numbers = [np.zeros(cells, kind) for kind in (np.int64, np.int64, np.float64)]
    return {
        "ProportionalWindowSketch": _Listing(
            listings.proportional, [np.zeros(cells), np.zeros(cells)], given
        ),
        "SplitterWindowSketch": _Listing(
            listings.splitter, [*queues, *numbers], (*given, sketch.mu, sketch.tau)
        ),
    }


def measure(scale: float) -> tables.Table:
    """All rows; `scale` shrinks the work, not the window."""
    words = shifts(kind="zipf1", items=ITEMS)["item"].astype(np.uint64)
    rounds = max(1, round(scale * ROUNDS))
    rows, held = [], {}
    for epsilon, goals in GOALS.items():
        sizes = {"epsilon": epsilon, "delta": 2**-4, "seed": SEED}
        windowed: dict[str, Any] = {
            kind.__name__: kind(window=arrivals(WINDOW), **sizes)
            for kind in (
                SimpleWindowSketch,
                ProportionalWindowSketch,
                SplitterWindowSketch,
                PerfectWindowSketch,
            )
        }
        splitter = windowed["SplitterWindowSketch"]
        name = f"{splitter.sizes.depth} x {splitter.sizes.width}"
        cases = []
        for kind, listing in _listings(splitter).items():
            size = max(1, round(scale * (30_000 if epsilon == 0.1 else 5_000)))
            cases.append(_case(f"listing of {kind} {name}", listing, words, size, {}))
        sketches = {"CountMin": CountMin(**sizes)} | windowed
        for kind, sketch in sketches.items():
            against = {f"listing of {kind} {name}": goals[kind]} if kind in goals else {}
            size = max(1, round(scale * 1_000_000))
            cases.append(_case(f"{kind} {name}", sketch, words, size, against))
        rows += take_turns(cases, rounds, clock=thread_time)
        held[name] = f"{splitter.subcells} sub-cells, {splitter.nbytes} bytes"
    about = {
        "seed": str(SEED),
        "trace": stream.described(words.astype(np.int64), ITEMS, 1.0),
        "clock": "seconds that the one thread ran on a core",
        "window": f"{WINDOW} arrivals",
        "splitter": "; ".join(f"{name}: {found}" for name, found in held.items()),
    }
    return tables.Table(rows, about)


def _case(
    name: str, sketch: Any, words: NDArray[np.uint64], size: int, against: dict[str, float | None]
) -> Case:
    """Further events, once the sketch has seen the whole trace."""
    sketch.update(words)
    at = 0

    def run() -> None:
        nonlocal at
        left = size
        while left:
            part = words[at : at + min(left, BATCH)]
            sketch.update(part)
            at = (at + part.size) % words.size
            left -= part.size

    return Case(name, run, unit="M events/s", amount=size / 1e6, against=against)


if __name__ == "__main__":
    tables.command("windowed", measure)
