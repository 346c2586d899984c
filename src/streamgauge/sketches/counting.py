"""What scalar counters do alike: each is a door, a grid of one cell and a promise of its own."""

from typing import Any

import numpy as np

from streamgauge.estimate import Estimate
from streamgauge.sketches.door import Door, require_room
from streamgauge.sketches.exphistgrid import ExpHistGrid
from streamgauge.sketches.merging import Segment
from streamgauge.sketches.randomizedgrid import RandomizedGrid
from streamgauge.sketches.spans import Spans
from streamgauge.sketches.wavegrid import WaveGrid

Grid = WaveGrid | ExpHistGrid | RandomizedGrid


def update(door: Door, grid: Grid, times: Any, weights: Any) -> None:
    """Record one event at each of `times`, or `weights[i]` events at once."""
    admitted = door.admit(door.ticks(times, 0, weights), weights)
    require_room(int(grid.counts[0]), admitted)
    grid.insert_run(admitted)
    door.enter(admitted)


def span(door: Door, grid: Grid, last: Any, now: Any) -> Spans:
    """What is known of the number of events in `(now - last, now]`."""
    cutoff, _ = door.range(last, now)
    return grid.spans(np.zeros(1, np.int64), np.array([cutoff]))


def estimate(door: Door, grid: Grid, last: Any, now: Any, confidence: float) -> Estimate:
    """How many events there were in `(now - last, now]`; exact answers are certain."""
    low, high, value = (float(end[0]) for end in span(door, grid, last, now))
    return Estimate(value, low, high, 1.0 if low == high else confidence)


def segments(door: Door, grid: WaveGrid | ExpHistGrid, last: Any, now: Any) -> list[Segment]:
    """What is known of the events in `(now - last, now]`, newest first; times are ticks."""
    cutoff, _ = door.range(last, now)
    return grid.segments(cutoff).listed(cutoff)


def next_change(door: Door, grid: Grid, last: Any) -> int | None:
    """The next tick at which an answer for this `last` may differ without events; None: never."""
    cutoff, now = door.range(last, None)
    change = grid.next_change(cutoff)
    return None if change is None else change + now - cutoff
