"""The kernels of the randomized wave against their twin, and their coins against chance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config
from scipy.stats import chi2_contingency, chisquare

from streamgauge import kernels, seeds
from streamgauge.sketches.door import Admitted, DoorState
from streamgauge.sketches.randomizedgrid import RandomizedGrid
from streamgauge.wire import WireError
from tests.kernels.drive import CELLS, SEEDS, WIDTH, admitted, insert, stretched
from tests.kernels.randomized_twin import Twin, tossed
from tests.statistics import FALSE_ALARM

COPIES = 3


def medians(grid, cells, cutoffs):
    values, is_exact = np.empty(cells.size), np.empty(cells.size, np.bool_)
    kernels.randomized.medians(
        *grid._rings(), grid._levels, grid.copies, grid.capacity,
        cells, np.maximum(cutoffs - grid._base, 0), values, is_exact,
    )  # fmt: skip
    return values


def insert_into_twins(twins, batch):
    for item, tick, weight in zip(*(column.tolist() for column in batch), strict=True):
        columns = np.zeros((1, 1), np.int64)
        if len(twins) > 1:
            columns = np.zeros((SEEDS.shape[0], 1), np.int64)
            kernels.hashing.columns(SEEDS, WIDTH, np.array([item], np.int64).view("u8"), columns)
            columns[:, 0] += WIDTH * np.arange(SEEDS.shape[0])
        for cell in columns[:, 0].tolist():
            for _ in range(weight):
                twins[cell].arrive(tick)


@given(stretched(500), st.booleans(), st.sampled_from([1, CELLS]), st.integers(0, 2**64 - 1))
def test_the_kernels_answer_what_their_twin_does(program, weighted, cells, coins_seed):
    """Every cell at cutoffs at and beside arrivals, whatever the batches and jumps of the clock.

    Seen to catch: one stamp fewer for each list, rings that overwrite what is in the window, a
    cursor that appends twice or numbers anew after a ring has grown, estimates of half the size,
    rings misplaced by a compaction, a base that moves without its stamps.
    """
    grid = RandomizedGrid(cells, program.kept, COPIES, program.window, coins_seed)
    twins = [Twin(program.kept, COPIES, coins_seed, cell) for cell in range(cells)]
    rng = np.random.default_rng(program.seed)
    seen = []
    every = np.arange(cells)
    for batch in program.batches():
        insert(grid, batch, weighted=weighted)
        insert_into_twins(twins, batch)
        assert grid.counts.tolist() == [twin.count for twin in twins]
        now = int(batch.ticks[-1])
        seen += batch.ticks.tolist()
        edges = rng.choice(seen, 5) + rng.integers(-1, 2, 5)
        for cutoff in (now - program.window, now, *edges[edges >= now - program.window].tolist()):
            found = medians(grid, every, np.full(cells, cutoff))
            assert found.tolist() == [twin.estimate(cutoff) for twin in twins]


@given(stretched(500), st.integers(2, 4))
def test_merged_grids_hold_what_one_would_that_saw_all_with_their_coins(program, parts):
    """Arrivals dealt out to sites; the twin sees each in order of time, with its site's coins.

    Seen to catch: one stamp fewer kept of each list, some of the newest dropped for older ones, a
    union that counts the first part only.
    """
    grids = [RandomizedGrid(1, program.kept, COPIES, program.window, 7 + i) for i in range(parts)]
    twin = Twin(program.kept, COPIES, 7)
    keys = [seeds.expand(7 + i, COPIES).tolist() for i in range(parts)]
    _, ticks, weights = program.arrivals()
    ticks = ticks.repeat(weights)
    sites = np.random.default_rng(program.seed).integers(0, parts, ticks.size)
    numbers = [0] * parts
    for tick, site in zip(ticks.tolist(), sites.tolist(), strict=True):
        numbers[site] += 1
        twin.keys, twin.count = keys[site], numbers[site] - 1
        twin.arrive(tick)
    for site, grid in enumerate(grids):
        grid.insert_run(admitted(ticks[sites == site]))
    if ticks.size == 0:
        return
    now = int(ticks[-1])
    union = RandomizedGrid.merged(grids, now)
    nested = RandomizedGrid.merged([RandomizedGrid.merged(grids[:2], now), *grids[2:]], now)
    assert (union.pack(now), union.state(now)) == (nested.pack(now), nested.state(now))
    assert union.counts.tolist() == [ticks.size]
    for cutoff in (now - program.window, now - program.window // 2, now - 1):
        found = medians(union, np.zeros(1, np.int64), np.array([cutoff]))
        assert found[0] == twin.estimate(cutoff)


@given(stretched(300), st.sampled_from([0, 1]))
def test_weights_are_arrivals_one_by_one_at_their_own_ticks(program, step):
    """With step 1 the arrivals of one event came at consecutive ticks.

    Seen to catch: `step` ignored, the newest arrival taken for the oldest.
    """
    _, ticks, weights = program.arrivals()
    ticks = ticks + step * np.cumsum(weights)  # room for all of them
    ages = np.concatenate([np.arange(weight)[::-1] for weight in weights.tolist()] or [[]])
    each = ticks.repeat(weights) - step * ages.astype(np.int64)
    together, apart = (RandomizedGrid(1, program.kept, COPIES, program.window, 1) for _ in range(2))
    together.insert_run(Admitted(ticks, weights, None, None, 0, step))
    apart.insert_run(admitted(each))
    if each.size:
        now = int(each[-1])
        assert together.pack(now) == apart.pack(now)
        assert together.state(now) == apart.state(now)


@given(stretched(300), st.data())
def test_nothing_changes_before_the_next_change(program, data):
    grid = RandomizedGrid(CELLS, program.kept, COPIES, program.window, 1)
    every = np.arange(CELLS)
    for batch in program.batches():
        insert(grid, batch, weighted=True)
        now = int(batch.ticks[-1])
        cutoff = now - data.draw(st.integers(0, program.window))
        change = grid.next_change(cutoff)
        before = medians(grid, every, np.full(CELLS, cutoff))
        if change is None:
            assert cutoff == now
            continue
        assert cutoff < change <= now
        assert np.array_equal(medians(grid, every, np.full(CELLS, change - 1)), before)


@given(stretched(300))
@settings(max_examples=50)
def test_bytes_become_an_equal_grid_and_damaged_ones_are_noticed(program):
    """Seen to catch: expired stamps written, lists read backwards, a least size too large."""
    grid = RandomizedGrid(CELLS, program.kept, COPIES, program.window, 1)
    rng = np.random.default_rng(program.seed)
    for batch in program.batches():
        insert(grid, batch, weighted=True)
        now = int(batch.ticks[-1])
        door = DoorState(program.window, None, "raise", now, 0)
        packed, state = grid.pack(now), grid.state(now)
        sizes = (CELLS, program.kept, COPIES, 1)
        again = RandomizedGrid.unpack(*sizes, door=door, state=state, data=memoryview(packed))
        assert (again.pack(now), again.state(now)) == (packed, state)
        cutoffs = np.full(CELLS, now - program.window // 2)
        every = np.arange(CELLS)
        assert np.array_equal(medians(again, every, cutoffs), medians(grid, every, cutoffs))
        grid = again
        for damaged in (packed[: rng.integers(len(packed))], packed + b"\0"):
            with pytest.raises(WireError):
                RandomizedGrid.unpack(*sizes, door=door, state=state, data=memoryview(damaged))


def tosses(keys, cell, numbers):
    out = np.empty((len(keys), len(numbers)), np.int64)
    kernels.randomized.tosses(keys, cell, np.asarray(numbers, np.uint64), out)
    return out


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**30), st.integers(1, 2**53))
def test_coins_are_the_formula(seed, cell, number):
    keys = seeds.expand(seed, 2)
    found = tosses(keys, cell, [number])[:, 0].tolist()
    assert found == [tossed(key, cell, number) for key in keys.tolist()]


def test_coins_are_pinned():
    """Sites of different releases are merged only as long as these stay."""
    found = tosses(seeds.expand(7, 3), 5, [1, 2, 3, 2**40, 2**53]).tolist()
    assert found == [[2, 0, 1, 0, 0], [2, 1, 1, 0, 1], [1, 1, 1, 0, 1]]


NUMBERS, MOST = (5000, 6) if config.DISABLE_JIT else (200_000, 12)  # levels with enough arrivals


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("start", [1, 2**40])
def test_a_level_has_each_arrival_with_probability_one_half_to_its_number(seed, start):
    """Seen to catch: hashes that end in three zeros."""
    numbers = np.arange(start, start + NUMBERS)
    for heads in tosses(seeds.expand(seed, 3), seed, numbers):
        expected = numbers.size * np.append(2.0 ** -np.arange(1, MOST + 1), 2.0**-MOST)
        observed = np.bincount(np.minimum(heads, MOST), minlength=MOST + 1)
        assert chisquare(observed, expected).pvalue > FALSE_ALARM


@pytest.mark.parametrize("seed", range(3))
def test_coins_of_copies_cells_and_neighbours_are_independent(seed):
    """Seen to catch: cells that share their coins, numbers that are not mixed."""
    keys, numbers = seeds.expand(seed, 3), np.arange(1, NUMBERS + 1)
    first, second, third = tosses(keys, 0, numbers)
    other_cell = tosses(keys[:1], 1, numbers)[0]
    pairs = [(first, second), (first, third), (second, third), (first, other_cell)]
    pairs += [(first[lag:], first[:-lag]) for lag in (1, 2, 64)]
    for ours, theirs in pairs:
        table = np.zeros((5, 5))
        np.add.at(table, (np.minimum(ours, 4), np.minimum(theirs, 4)), 1)
        assert chi2_contingency(table).pvalue > FALSE_ALARM
