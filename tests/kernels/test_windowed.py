"""The windowed count-min sketches against the listings of their paper, at every tick."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamgauge as sg
from streamgauge import ProportionalWindowSketch, SimpleWindowSketch, SplitterWindowSketch
from tests import arrivals
from tests.kernels import twin_windowed as twin

SIZES = {"epsilon": 0.6, "delta": 0.3, "seed": 3}  # 2 rows of 5 cells
ROWS, WIDTH = 2, 5


class Drawn(NamedTuple):
    """A stream of so few ticks that every one of them can be looked at."""

    window: int
    seed: int
    size: int
    together: float  # how many arrivals share a tick
    heaviest: int
    steady: bool
    counts_arrivals: bool

    def arrivals(self):
        rng = np.random.default_rng(self.seed)
        gaps = rng.random(self.size) > self.together
        gaps = gaps + (rng.random(self.size) < 0.02) * rng.integers(0, 2 * self.window, self.size)
        items = rng.zipf(1.5, self.size) % 9
        if not self.steady:
            items += 7 * (np.arange(self.size) // (self.window // 2 + 1))
        weights = rng.integers(1 if self.heaviest == 1 else 0, self.heaviest + 1, self.size)
        return arrivals.Arrivals(items, np.cumsum(gaps) - self.window, weights)


drawn = st.builds(
    Drawn,
    window=st.sampled_from([1, 2, 7, 30, 100]),
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 300),
    together=st.sampled_from([0, 0.5, 0.95]),
    heaviest=st.sampled_from([1, 1, 4, 30]),
    steady=st.booleans(),
    counts_arrivals=st.booleans(),
)


def assert_follows(program, sketch, listing):
    """The same matrix after every batch and at every silent tick, and two windows beyond."""
    now = None
    for batch in arrivals.cut(program.seed, *program.arrivals()):
        items, ticks, weights = batch
        if program.counts_arrivals:
            sketch.update(items, None, weights)
            items = items.repeat(weights)
            ticks, weights = (now or 0) + 1 + np.arange(items.size), np.ones_like(items)
        else:
            sketch.update(items, ticks, weights)
        columns = (sketch_cells(sketch, items) - WIDTH * np.arange(ROWS)[:, None]).T.tolist()
        for cells, tick, weight in zip(columns, ticks.tolist(), weights.tolist(), strict=True):
            for each in range(tick if now is None else now + 1, tick + 1):
                listing.tick(each)
            now = tick
            for _ in range(weight):
                listing.sample(cells)
        assert_close(sketch.values(), listing)
        if isinstance(listing, twin.Splitter):
            assert_same_queues(sketch, listing)
    if now is None or program.counts_arrivals:
        return
    for later in range(now + 1, now + 2 * program.window + 2):
        listing.tick(later)
        assert_close(sketch.values(later), listing)
        if later % 7 == 0:
            sketch.advance(later)


def sketch_cells(sketch, items):
    frame = sketch._stretches.frame if hasattr(sketch, "_stretches") else sketch._frame
    return frame.cells(items)


def assert_close(values, listing):
    expected = np.array([[float(cell) for cell in row] for row in listing.count])
    assert np.all(np.abs(values - expected) <= 1e-9 * np.maximum(1, expected))


def assert_same_queues(sketch, listing):
    lengths = [len(queue) for queues in listing.queues for queue in queues]
    assert sketch._lengths().tolist() == lengths
    assert sketch.subcells == sum(lengths)
    assert sketch.splits == sum(max(length - 2, 0) for length in lengths)


def window_of(program):
    return sg.arrivals(program.window) if program.counts_arrivals else program.window


@pytest.mark.parametrize(
    ("kind", "listing"),
    [(SimpleWindowSketch, twin.Simple), (ProportionalWindowSketch, twin.Proportional)],
)
@given(program=drawn)
def test_simple_and_proportional_are_their_listings(kind, listing, program):
    """Against the port of the listing, at every tick.

    Seen to catch: a stretch counts one tick less as over; after two stretches of silence only one
    is forgotten; a weight on both sides of a boundary is counted on one side, or on both.
    """
    sketch = kind(window=window_of(program), **SIZES)
    assert_follows(program, sketch, listing(ROWS, WIDTH, program.window))


@given(
    program=drawn,
    mu=st.sampled_from([0.9, 1.0, 1.2, 1.5, 3]),
    tau=st.sampled_from([0.01, 0.1, 0.5, 1]),
)
def test_splitter_is_its_listing(program, mu, tau):
    """Values to 1e-9, and as many sub-cells in every cell.

    Seen to catch: a sub-cell goes one tick late; the oldest is not brought up to date before it is
    changed, or only where it is the only one; its rate is that of one tick less; the silence before
    the newest is not the older one's; ERROR is one-sided; a merged sub-cell keeps its last tick;
    a renewed one its count; the one before is not remembered; the arrivals of a weight come at one
    tick; n leaves out the arrival itself; n is the window in ticks.

    """
    sketch = SplitterWindowSketch(window=window_of(program), mu=mu, tau=tau, **SIZES)
    listing = twin.Splitter(ROWS, WIDTH, program.window, mu, tau, program.counts_arrivals)
    assert_follows(program, sketch, listing)
