"""How many bytes an ECM-sketch of a full window has on the wire and in memory.

The stream of the paper's Table 3 in kind: as many events a second as the World Cup 98 logs, over
as long a window, of as many items; from a Zipf distribution, because the logs cannot be had.
"""

from typing import NamedTuple

import numpy as np

from benches import stream, tables
from benches.stream import PER_TICK, Stream
from streamgauge import EcmSketch

SEED = 3
WINDOW = 2_000_000
ITEMS, EXPONENT = 90_000, 1.1
EARLY = 20_000_000  # events after which the sketches are looked at for the first time
GOALS = {0.15: 7000}


class Size(NamedTuple):
    """One sketch after so many events. An entry is an arrival whose tick the bytes hold."""

    name: str
    sizes: str
    events: int
    bytes: int
    goal: str
    entries: int
    bytes_an_entry: float
    memory: int


def measure(scale: float) -> tables.Table:
    """All rows; `scale` shrinks the window and the events alike."""
    window = max(1, round(scale * WINDOW))
    drawn = stream.ranks(max(1, round(scale * 8_000_000)), ITEMS, EXPONENT, SEED)
    pool = stream.integers(ITEMS, SEED)[drawn]
    rows = []
    for epsilon in (0.15, 0.1, 0.05, 0.01):
        sketch = EcmSketch(window=window, epsilon=epsilon, delta=epsilon, seed=SEED)
        events = Stream()
        for end in (round(scale * EARLY) // PER_TICK, window):
            events.fill(sketch.update, pool, end - events.events // PER_TICK)
            rows.append(_sized(sketch, events.events))
    about = {
        "seed": str(SEED),
        "trace": stream.described(pool, ITEMS, EXPONENT),
        "window": f"{window} ticks",
    }
    return tables.Table(rows, about)


def _sized(sketch: EcmSketch, events: int) -> Size:
    data = sketch.to_bytes()
    # what comes out of the bytes has a stamp for each entry in them and zeros elsewhere
    entries = int(np.count_nonzero(EcmSketch.from_bytes(data)._held.cells._stamps))
    goal = GOALS.get(sketch.epsilon) if events >= sketch.window * PER_TICK else None
    return Size(
        f"EcmSketch epsilon = delta = {sketch.epsilon}",
        f"{sketch.depth} x {sketch.width}",
        events,
        len(data),
        f"at most {goal}" if goal else "",
        entries,
        len(data) / max(1, entries),
        sketch.nbytes,
    )


if __name__ == "__main__":
    tables.command("size", measure)
