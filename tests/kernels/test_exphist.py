"""The exponential histogram's kernels against their twin, each other, their bound; their bytes."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config

from streamgauge import kernels
from streamgauge.kernels.bitpack import COMPLETE, IMPOSSIBLE, TRUNCATED
from streamgauge.sketches.exphistgrid import ExpHistGrid
from streamgauge.sketches.merging import Drift, Placed
from tests.kernels.bits import Bits
from tests.kernels.drive import CELLS, SEEDS, admitted, insert, insert_into_twin, stretched
from tests.kernels.twin_exphist import TwinHistogram, TwinHistograms

# plain Python takes a thousand times as long
MOST, HEAVY = (300, 3) if config.DISABLE_JIT else (4000, 1000)


def buckets(grid, cutoff):
    """Each cell's live buckets as the twin gives them."""
    offsets, ends, sizes, _ = grid.segments(cutoff)
    pairs = list(zip(ends.tolist(), sizes.tolist(), strict=True))
    return [pairs[begin:end] for begin, end in itertools.pairwise(offsets)]


def assert_stored_alike(grid, twin, now):
    """Live buckets and, at every level of the grid, how many there are in all."""
    cutoff = now - grid.window
    assert grid.counts.tolist() == [each.count for each in twin.cells]
    assert buckets(grid, cutoff) == [each.buckets(cutoff) for each in twin.cells]
    filled = grid._filled.reshape(len(twin.cells), grid.levels).tolist()
    for held, each in zip(filled, twin.cells, strict=True):
        lengths = [*map(len, each.levels)] + [0] * grid.levels
        assert held == lengths[: grid.levels]
        top = max((level for level, number in enumerate(held) if number), default=0)
        fewest = [grid.k] + [-(-grid.k // 2)] * top
        assert all(number >= least for number, least in zip(held[:top], fewest, strict=False))


@given(stretched(1500), st.booleans(), st.sampled_from([1, CELLS]), st.data())
def test_the_kernels_store_and_answer_what_their_twin_does(program, weighted, cells, data):
    """All kernels, whatever the batches: buckets, the fewest a level holds, every answer.

    Seen to catch: live buckets dropped from the top level, a grown level that starts empty, a base
    that moves too far, joined buckets dated by the older, h + 1 buckets at level 0, a change told
    late.
    """
    window = program.window
    grid, twin = ExpHistGrid(cells, program.kept, window), None
    twin = TwinHistograms(cells, program.kept, window)
    last = data.draw(st.integers(1, window))
    unused = np.zeros(cells, np.int64)
    assert grid.next_change(0) is None
    first = None
    for batch in program.batches():
        insert(grid, batch, weighted=weighted)
        insert_into_twin(twin, batch)
        now, first = int(batch.ticks[-1]), int(batch.ticks[0]) if first is None else first
        assert_stored_alike(grid, twin, now)
        stored = [tick for each in twin.cells for tick, _ in each.buckets(now - window)]
        edge = data.draw(st.sampled_from(stored)) + data.draw(st.sampled_from([-1, 0, 1]))
        for cutoff in {now - window, now - last, now, max(now - window, edge)}:
            spans = [each.span(cutoff) for each in twin.cells]
            if cutoff < first:
                spans = [(each.count, each.count) for each in twin.cells]
            low, high, value = grid.follow(cutoff, unused, unused)
            assert list(zip(low, high, strict=True)) == spans
            assert value.tolist() == [(least + most) / 2 for least, most in spans]
            later = [each.buckets(cutoff)[-1:] for each in twin.cells]
            ends = [tick for oldest in later for tick, _ in oldest]
            soonest = first if cutoff < first else min(ends, default=None)
            assert grid.next_change(cutoff) == soonest
            starts = grid.segments(cutoff).starts
            assert np.all(starts == first if cutoff < first else starts <= cutoff)


def alike(grids, now):
    """Equal to every question: what is written of them."""
    return len({(grid.state(now), grid.counts.tobytes(), grid.pack(now)) for grid in grids}) == 1


@given(stretched(3000), st.sampled_from([1, HEAVY]))
def test_weights_runs_and_single_arrivals_are_one_and_the_same(program, times_as_heavy):
    """`insert_row`, `extend`, `update` and `update_weighted`.

    Seen to catch: live buckets of weights dropped, joined buckets dated by the older, a growing
    grid that starts its batch again.
    """
    runs, weighted_run, single, weighted = grids = [
        ExpHistGrid(1, program.kept, program.window) for _ in range(4)
    ]
    for _, ticks, light in program.batches():
        weights = light * times_as_heavy
        words, ones = np.zeros(ticks.size, np.uint64), np.zeros(weights.sum(), np.uint64)
        runs.insert_run(admitted(ticks.repeat(weights)))
        weighted_run.insert_run(admitted(ticks, weights))
        single.insert(SEEDS[:1], ones, admitted(ticks.repeat(weights)))
        weighted.insert(SEEDS[:1], words, admitted(ticks, weights))
        assert alike(grids, int(ticks[-1]))


@given(stretched(1000), st.sampled_from([1, 50]))
def test_arrivals_at_consecutive_ticks_are_one_event(program, times_as_heavy):
    """Step 1: an event of weight c at t is c events at t - c + 1 .. t.

    Seen to catch: a step that is not doubled, a run that keeps its begin, `first` at the newest
    arrival.
    """
    single, run, cells = grids = [ExpHistGrid(1, program.kept, program.window) for _ in range(3)]
    before = 0
    for batch in program.batches():
        weights = batch.weights * times_as_heavy
        ticks = batch.ticks + before + np.cumsum(weights)
        before += int(weights.sum())
        each = np.arange(weights.sum()) - np.repeat(np.cumsum(weights) - 1, weights)
        single.insert_run(admitted(ticks.repeat(weights) + each))
        run.insert_run(admitted(ticks, weights, step=1))
        words = np.zeros(ticks.size, np.uint64)
        cells.insert(SEEDS[:1], words, admitted(ticks, weights, step=1))
        assert alike(grids, int(ticks[-1]))


def test_the_largest_weights_are_as_many_arrivals():
    """Seen to catch: levels that are judged by an event's newest arrival."""
    grids = [ExpHistGrid(1, 2, 100) for _ in range(2)]
    many = (1 << 52) + 12345
    for weight in (1, many, 7):
        grids[0].insert_run(admitted(np.array([5]), np.array([weight])))
    grids[1].insert_run(admitted(np.array([5, 5, 5, 5]), np.array([many, 3, 2, 3])))
    assert alike(grids, 5)
    assert grids[0].levels == 52
    low, high, _ = grids[0].spans(np.zeros(1, np.int64), np.array([4]))
    assert (low, high) == (many + 8, many + 8)
    # in a window of arrivals all but the last 100 have expired: levels are as many as those need
    for weight, tick in ((many, many), (7, many + 7)):
        grids[0] = ExpHistGrid(1, 2, 100)
        grids[0].insert_run(admitted(np.array([tick]), np.array([weight]), step=1))
        assert grids[0].levels <= 8


@given(stretched(500), st.data())
def test_cells_that_are_extended_are_as_if_they_had_been_fed(program, data):
    """Each cell its own arrivals, into empty cells and into full ones.

    Seen to catch: a growing grid that starts its cell again.
    """
    window = program.window
    grid, fed = (
        ExpHistGrid(3, program.kept, window),
        [ExpHistGrid(1, program.kept, window) for _ in range(3)],
    )
    for batch in program.batches():
        now = int(batch.ticks[-1])
        _, ticks, weights = (column[batch.ticks > now - window] for column in batch)
        shares = [slice(0, data.draw(st.integers(0, ticks.size))) for _ in fed]
        ends = np.cumsum([share.stop for share in shares])
        begins = ends - [share.stop for share in shares]
        columns = (
            np.concatenate([column[share] for share in shares]) for column in (ticks, weights)
        )
        grid.extend(Placed(begins, ends, *columns, Drift()), now)
        for each, share in zip(fed, shares, strict=True):
            each.insert_run(admitted(ticks[share], weights[share]))
        if grid.first is not None:
            found = [each.segments(now - window) for each in fed]
            assert buckets(grid, now - window) == [
                list(zip(each.ends, each.sizes, strict=True)) for each in found
            ]


@pytest.mark.parametrize("k", [2, 3, 4, 7, 10, 20, 100])
@pytest.mark.parametrize("window", [5, 64, 1000, MOST])
def test_the_error_is_below_its_bound_for_every_suffix(k, window):
    """Every count up to MOST, one arrival a tick, every range: within truth / k, by both guesses.

    The middle's error is below truth / k, the half bucket's at most (truth - 1) / k.

    Seen to catch: h + 1 buckets at level 0, `low` one too low, `high` without half a bucket,
    "nothing has expired" taken for "nothing straddles".
    """
    grid = ExpHistGrid(1, k, window)
    worst = 0.0
    for count in range(1, MOST + 1):
        grid.insert_run(admitted(np.array([count])))
        truth = np.arange(1, min(count, window) + 1)
        low, high, _ = grid.spans(np.zeros_like(truth), count - truth)
        assert np.all((low <= truth) & (truth <= high))
        assert np.all(abs(low + high - 2 * truth) * k < 2 * truth)
        halves = np.where(low == high, 2 * high, high + low - 1)
        assert np.all(abs(halves - 2 * truth) * k <= 2 * (truth - 1))
        worst = max(worst, np.max(abs(halves - 2 * truth) / 2 / truth))
    if window > 20 * k:
        assert worst > 0.8 / (k + k % 2), "a bound this loose would hide a wrong one"


def spelled(twin, now):
    """The bytes as the head of exphistbits.py describes them."""
    bits = Bits()
    live = [cell.buckets(now - cell.window) for cell in twin.cells]
    reach = max([1, *(size.bit_length() for found in live for _, size in found)])
    for cell, found in zip(twin.cells, live, strict=True):
        bits.put(cell.count.bit_length(), 6)
        bits.put(cell.count, cell.count.bit_length())
        bits.put(len(found), sum(map(len, cell.levels[:reach])).bit_length())
        ticks = [tick for tick, _ in found]
        bits.put_blocks([newer - tick for newer, tick in zip([now, *ticks], ticks, strict=False)])
    return reach, bits.written()


def unpacked(grid, levels, data):
    """A grid filled from bytes at the clock `window + 1`, and the status."""
    copy = ExpHistGrid(grid.counts.size, grid.k, grid.window)
    copy._own(levels, *copy._allocate(levels))
    copy.first = 1
    data = np.frombuffer(data, np.uint8)
    status = kernels.exphistbits.unpack(data, *copy._arrays(), grid.window, grid.window + 1)
    return copy, status


@given(stretched(1500), st.sampled_from([1, CELLS]), st.data())
def test_the_bytes_are_as_described_and_hold_all_that_can_be_asked(program, cells, data):
    """Seen to catch: expired stamps written, a level too many written."""
    window = program.window
    grid, twin = (
        ExpHistGrid(cells, program.kept, window),
        TwinHistograms(cells, program.kept, window),
    )
    for batch in program.batches():
        insert(grid, batch, weighted=True)
        insert_into_twin(twin, batch)
        now = int(batch.ticks[-1]) + data.draw(st.sampled_from([0, 0, 1, window - 1, window]))
        packed = grid.pack(now)
        levels = grid.state(now).levels
        assert (levels, packed) == spelled(twin, now)

        copy, status = unpacked(grid, levels, packed)
        assert status == COMPLETE
        assert copy.pack(window + 1) == packed
        later = now - data.draw(st.integers(0, window))
        earlier = now - window - 1  # what the clock of the copy is behind
        assert buckets(copy, later - earlier) == [
            [(tick - earlier, size) for tick, size in found] for found in buckets(grid, later)
        ]


@given(stretched(200), st.data())
def test_damaged_bytes_are_noticed_or_are_other_histograms(program, data):
    """Shorter, longer, or with changed bits: never out of bounds, never another status.

    Seen to catch: bits left over.
    """
    grid = ExpHistGrid(CELLS, program.kept, program.window)
    now = 0
    for batch in program.batches():
        insert(grid, batch, weighted=True)
        now = int(batch.ticks[-1])
    packed, levels = grid.pack(now), grid.state(now).levels
    cut = data.draw(st.integers(0, len(packed) - 1))
    assert unpacked(grid, levels, packed[:cut])[1] == TRUNCATED
    assert unpacked(grid, levels, packed + b"\0")[1] == IMPOSSIBLE
    damaged = bytearray(packed)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(packed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    copy, status = unpacked(grid, levels, damaged)
    assert status in {COMPLETE, TRUNCATED, IMPOSSIBLE}
    if status == COMPLETE:
        clock = program.window + 1
        again, status = unpacked(grid, copy.state(clock).levels, copy.pack(clock))
        assert status == COMPLETE
        assert again.pack(clock) == copy.pack(clock)
        assert np.array_equal(again.counts, copy.counts)


@pytest.mark.parametrize(("live", "expected"), [(2, COMPLETE), (3, IMPOSSIBLE)])
def test_two_arrivals_are_not_three_buckets(live, expected):
    """Seen to catch: as many live buckets as are claimed."""
    bits = Bits()
    for value, width in ((2, 6), (2, 2), (live, 2)):
        bits.put(value, width)
    bits.put_blocks([0] * live)
    assert unpacked(ExpHistGrid(1, 2, 100), 1, bits.written())[1] == expected


@pytest.mark.parametrize("k", [2, 3, 10])
def test_how_many_buckets_a_level_was_given_has_a_formula(k):
    """The one at the head of exphist.py. Seen to catch: ceil(k / 2) rounded down."""
    twin = TwinHistogram(k, 10**6)
    for count in range(1, 1000):
        twin.arrive(count)
        given = [max(0, (count - k - -(-k // 2) * (2**level - 2)) >> level) for level in range(12)]
        given[0] = count
        held = [given[level] - 2 * given[level + 1] for level in range(11)]
        assert held[: len(twin.levels)] == [*map(len, twin.levels)]
        assert not any(held[len(twin.levels) :])
