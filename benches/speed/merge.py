"""What merging costs: 64 serialized sketches into one, beside cell by cell and beside ingesting.

The sites' streams are parts of one, a million events each. Cell by cell means what the scalar class
offers: each cell's 64 waves, each from its bytes, merged by `Wave.merge`.
"""

from time import thread_time

import numpy as np
from numpy.typing import NDArray

from benches import stream, tables
from benches.rounds import Case, take_turns
from streamgauge import EcmSketch, Gathered, Wave

SEED = 11
SITES = 64
EVENTS = 1_000_000
ITEMS, EXPONENT = 100_000, 1.1
EPSILON = 0.05
ROUNDS = 11


def measure(scale: float) -> tables.Table:
    """All rows; `scale` shrinks the streams."""
    events = max(64, round(scale * EVENTS))
    drawn = stream.ranks(4 * events, ITEMS, EXPONENT, SEED)
    pool = stream.integers(ITEMS, SEED)[drawn]
    sketches = [_ingested(pool, site, events).to_bytes() for site in range(SITES)]
    waves = [_waves(pool, site, events) for site in range(SITES)]

    def cell_by_cell() -> None:
        for cell in zip(*waves, strict=True):
            Wave.merge(cell)

    merge, ingest = "EcmSketch.merge of 64 from their bytes", "EcmSketch.update of all their events"
    cells = "Wave.merge of 64 from their bytes, for each cell"
    read = [EcmSketch.from_bytes(data) for data in sketches]
    cases = [
        Case(ingest, lambda: [_ingested(pool, site, events) for site in range(SITES)]),
        Case(cells, cell_by_cell),
        Case(merge, lambda: EcmSketch.merge(sketches), against={cells: 1 / 20, ingest: 1 / 10}),
        Case("EcmSketch.merge of 64 objects", lambda: EcmSketch.merge(read), against={merge: None}),
        Case("Gathered of 64 from their bytes", lambda: Gathered(sketches), against={merge: None}),
    ]
    about = {
        "seed": str(SEED),
        "trace": stream.described(pool, ITEMS, EXPONENT),
        "clock": "seconds that the one thread ran on a core",
        "sketches": f"epsilon = delta = {EPSILON}, {events} events each, all in the window",
    }
    return tables.Table(take_turns(cases, max(1, round(scale * ROUNDS)), clock=thread_time), about)


def _part(pool: NDArray[np.int64], site: int, events: int) -> NDArray[np.int64]:
    begin = site * (pool.size - events) // SITES
    return pool[begin : begin + events]


def _ingested(pool: NDArray[np.int64], site: int, events: int) -> EcmSketch:
    sketch = EcmSketch(window=events, epsilon=EPSILON, delta=EPSILON, seed=SEED)
    sketch.update(_part(pool, site, events), np.arange(events))
    return sketch


def _waves(pool: NDArray[np.int64], site: int, events: int) -> list[bytes]:
    """The cells of a site's sketch, and its total, as waves of their own."""
    sketch = EcmSketch(window=events, epsilon=EPSILON, delta=EPSILON, seed=SEED)
    cells = sketch.cells_of(_part(pool, site, events).view(np.uint64))
    every = np.arange(sketch.depth * sketch.width).reshape(cells.shape[0], -1)
    arrived = [
        np.flatnonzero(row == cell)
        for row, own in zip(cells, every, strict=True)
        for cell in own.tolist()
    ]
    waves = []
    for ticks in (*arrived, np.arange(events)):
        wave = Wave(window=events, epsilon=EPSILON)
        wave.update(ticks)
        waves.append(wave.to_bytes())
    return waves


if __name__ == "__main__":
    tables.command("merge", measure)
