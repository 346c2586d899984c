"""The wave kernels against their twin, against each other and against their bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config

from streamgauge import kernels
from streamgauge.sketches.wavegrid import WaveGrid
from tests.kernels.drive import (
    CELLS,
    SEEDS,
    admitted,
    brackets,
    insert,
    insert_into_twin,
    stretched,
)
from tests.kernels.twin import TwinGrid


def assert_stored_alike(grid, twin, now):
    """Ranks, ticks and levels; of a rank that left the window only that it did is compared."""
    rings = grid._stamps.reshape(grid.counts.size, grid.levels, -1)
    for cell, each in enumerate(twin.cells):
        assert (grid.counts[cell], grid.levels) == (each.count, each.top + 1)
        for level, rank, tick in each.stored():
            place = rank >> level if level == each.top else rank >> (level + 1)
            stamp = int(rings[cell, level, place % rings.shape[2]])
            if tick > now - grid.window:
                assert grid._base + stamp == tick
            else:
                assert stamp == 0 or grid._base + stamp <= now - grid.window


@given(stretched(1500), st.booleans(), st.sampled_from([1, CELLS]), st.data())
def test_the_kernels_store_and_answer_what_their_twin_does(program, weighted, cells, data):
    """All kernels, whatever the batches: stored ranks, levels, brackets, and those followed.

    Seen to catch: the oldest live rank is pushed out without growth; a weight is written as the
    newest rank of each level alone; growth takes odd ranks for even ones; an expired stamp answers;
    a level answers with one rank less than it keeps; stamps are moved with their base by a tick too
    few.
    """
    window = program.window
    grid, twin = WaveGrid(cells, program.kept, window), TwinGrid(cells, program.kept, window)
    expired, live = np.zeros(cells, np.int64), np.zeros(cells, np.int64)
    last = data.draw(st.integers(1, window))
    followed = program.program.arrivals().ticks[:1].sum()
    for batch in program.batches():
        insert(grid, batch, weighted=weighted)
        insert_into_twin(twin, batch)
        now = int(batch.ticks[-1])
        assert_stored_alike(grid, twin, now)
        stored = [tick for each in twin.cells for _, _, tick in each.stored()]
        edge = data.draw(st.sampled_from(stored)) + data.draw(st.sampled_from([-1, 0, 1]))
        for cutoff in {now - window, now - last, now, max(now - window, edge)}:
            assert brackets(grid, cutoff) == [each.bracket(cutoff) for each in twin.cells]
        for cutoff in (now - last, now - last + data.draw(st.integers(0, last))):
            followed = max(cutoff, followed)
            relative = max(followed - grid._base, 0)
            kernels.wave.follow(*grid._arrays(), relative, expired, live)
            assert list(zip(expired, live, strict=True)) == brackets(grid, followed)


def alike(grids, now):
    """Equal to every question: counts, levels, and what pack writes of the stamps."""
    return len({(grid.levels, grid.counts.tobytes(), grid.pack(now)) for grid in grids}) == 1


@given(stretched(3000), st.sampled_from([1, 1000]))
def test_weights_runs_and_single_arrivals_are_one_and_the_same(program, times_as_heavy):
    """`add_weighted`, `first_loss` with `add_run`, `update_weighted` and `update`.

    Seen to catch: the oldest live rank is pushed out without growth; a run grows one arrival too
    late; a weight is written as the newest rank of each level alone.
    """
    runs, weighted_run, single, weighted = grids = [
        WaveGrid(1, program.kept, program.window) for _ in range(4)
    ]
    for _, ticks, light in program.batches():
        weights = light * times_as_heavy
        words, ones = np.zeros(ticks.size, np.uint64), np.zeros(weights.sum(), np.uint64)
        runs.insert_run(admitted(ticks.repeat(weights)))
        weighted_run.insert_run(admitted(ticks, weights))
        single.insert(SEEDS[:1], ones, admitted(ticks.repeat(weights)))
        weighted.insert(SEEDS[:1], words, admitted(ticks, weights))
        assert alike(grids, int(ticks[-1]))


@pytest.mark.parametrize("tick", [5, 500])
def test_the_largest_weights_are_as_many_arrivals(tick):
    """Together with the first arrival, and after it has left the window.

    Seen to catch: a weight does not grow the wave by what it pushes out itself; a weight is cut off
    at 32 bits.
    """
    grids = [WaveGrid(1, 2, 100) for _ in range(2)]
    many = (1 << 52) + 12345
    for now, weight in ((5, 1), (tick, many), (tick, 7)):
        grids[0].insert_run(admitted(np.array([now]), np.array([weight])))
    grids[1].insert_run(admitted(np.array([5, tick, tick, tick]), np.array([1, 2, many, 5])))
    assert alike(grids, tick)
    assert grids[0].levels == 52
    assert brackets(grids[0], tick - 1) == [(0, 1 << 50)]


MOST = 300 if config.DISABLE_JIT else 4000


@pytest.mark.parametrize("kept", [2, 3, 4, 6, 11, 51])
@pytest.mark.parametrize("window", [5, 64, 1000, MOST])
def test_the_error_is_below_its_bound_for_every_suffix(kept, window):
    """Every count up to MOST, one arrival a tick, every range: |middle - truth| < truth / (2R - 1).

    Seen to catch: growth takes odd ranks for even ones; an expired stamp answers; a level answers
    with one rank less than it keeps; the newest tick is not in the range; the lower end is one too
    low.
    """
    grid = WaveGrid(1, kept, window)
    worst = 0.0
    for count in range(1, MOST + 1):
        grid.insert_run(admitted(np.array([count])))
        truth = np.arange(1, min(count, window) + 1)
        low, high, _ = grid.spans(np.zeros_like(truth), count - truth)
        assert np.all((low <= truth) & (truth <= high))
        doubled = abs(low + high - 2 * truth)
        assert np.all(doubled * (2 * kept - 1) < 2 * truth)
        worst = max(worst, np.max(doubled / 2 / truth))
    if window > 20 * kept:
        assert worst > 0.8 / (2 * kept - 1), "a bound this loose would hide a wrong one"
