"""Streams for the kernels' tests, and grids and twins to put them into.

The streams are those of tests/arrivals.py, stretched until int32 is crossed many times.
"""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from streamgauge import kernels, seeds
from streamgauge.sketches.door import Admitted
from tests import arrivals

ROWS, WIDTH = 2, 3
CELLS = ROWS * WIDTH
SEEDS = seeds.expand(5, 3 * ROWS).reshape(ROWS, 3)
MOST_UNITS = 8  # the twin counts in ones


@dataclass(frozen=True)
class Stretched:
    """A program whose window is stretched to about `length`, with jumps of around 2**31 ticks."""

    program: arrivals.Program | arrivals.DrawnProgram
    length: int
    jumps: list[int]
    kept: int
    seed: int

    @property
    def factor(self):
        return max(1, self.length // self.program.window)

    @property
    def window(self):
        return self.program.window * self.factor

    def arrivals(self):
        """The stream, without the events that a door would keep out."""
        items, ticks, weights = self.program.arrivals()
        rng = np.random.default_rng(self.seed)
        start = ticks[:1].sum()
        ticks = start + self.factor * (ticks - start)
        if self.seed % 2:  # else ties stay ties
            ticks = np.sort(ticks + rng.integers(0, self.factor, ticks.size))
        for jump in self.jumps:
            ticks[rng.integers(0, ticks.size + 1) :] += jump
        weights %= MOST_UNITS
        return arrivals.Arrivals(*(column[weights > 0] for column in (items, ticks, weights)))

    def batches(self):
        return (batch for batch in arrivals.cut(self.seed, *self.arrivals()) if batch.ticks.size)


def stretched(max_size=600):
    near_int32 = [2**31 - 2, 2**31 - 1, 2**31, 2**31 + 1, 2**32, 2**40]
    return st.builds(
        Stretched,
        program=arrivals.programs(max_size),
        length=st.sampled_from([1, 2**20, 2**28, 2**30, 2**40]),  # up to 2**30 in int32
        jumps=st.lists(st.sampled_from(near_int32), max_size=4),
        kept=st.sampled_from([2, 3, 4, 5, 8, 11]),
        seed=st.integers(0, 2**32 - 1),
    )


def admitted(ticks, weights=None, step=0):
    return Admitted(ticks, weights, None, None, 0, step)


def insert(grid, batch, *, weighted):
    """A batch into all rows, or into the only cell."""
    items, ticks, weights = batch
    if not weighted:
        items, ticks, weights = items.repeat(weights), ticks.repeat(weights), None
    if grid.counts.size == 1:
        grid.insert_run(admitted(ticks, weights))
    else:
        grid.insert(SEEDS, items.astype(np.uint64), admitted(ticks, weights))


def insert_into_twin(twin, batch):
    for item, tick, weight in zip(*(column.tolist() for column in batch), strict=True):
        columns = np.zeros((ROWS, 1), np.int64)
        if len(twin.cells) > 1:
            kernels.hashing.columns(SEEDS, WIDTH, np.array([item], np.int64).view("u8"), columns)
            columns[:, 0] += WIDTH * np.arange(ROWS)
        twin.arrive(set(columns[:, 0].tolist()), tick, weight)


def brackets(grid, cutoff):
    """The bracket of every cell."""
    cells = np.arange(grid.counts.size)
    expired, live = np.empty_like(cells), np.empty_like(cells)
    cutoffs = np.full(cells.size, max(cutoff - grid._base, 0))
    kernels.wave.brackets(*grid._arrays(), cells, cutoffs, expired, live)
    return list(zip(expired.tolist(), live.tolist(), strict=True))
