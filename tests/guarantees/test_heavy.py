"""HeavyHitterSketch: low <= truth <= high and high - low <= epsilon N, certain, at every moment."""

import functools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamgauge as sg
from streamgauge import HeavyHitterSketch, NotMergeable
from streamgauge.sim.exact import ExactWindow
from streamgauge.traces.families import FAMILIES, edge_ranges
from tests import arrivals
from tests.guarantees.campaigns import ATTACKS, assert_parts_known, in_trees

WINDOW = 40
SIZE = 300
FAMILY = [name for name in FAMILIES if name != "F13 churn"]


def moments(ticks, window):
    """(clock, arrivals so far) after every arrival and at every tick without one, to the end."""
    arrived = 0
    for tick in range(int(ticks[0]), int(ticks[-1]) + window + 2):
        if arrived == ticks.size or ticks[arrived] > tick:
            yield tick, arrived
        while arrived < ticks.size and ticks[arrived] == tick:
            arrived += 1
            yield tick, arrived


def assert_all_known(sketch, names, truth, cutoff):
    """Every item, one that never came, and the total."""
    found = sketch._range(cutoff)
    asked = np.append(names, names.max() + 1).astype(np.uint64)
    low, high = found.of(asked)
    truth = np.append(truth, 0)
    total = int(truth.sum())
    assert np.all((low <= truth) & (truth <= high))
    assert np.all(high - low <= sketch.epsilon * total)
    assert found.total_low <= total <= found.total_high
    assert found.total_high - found.total_low <= sketch.epsilon / 2 * total


def assert_every_range(stream, weights, epsilon, window):
    """All items in all ranges 1 .. window after every arrival and every silent tick."""
    items, ticks = stream.items, stream.ticks
    names, codes = np.unique(items, return_inverse=True)
    summed = np.zeros((items.size + 1, names.size), np.int64)
    summed[np.arange(1, items.size + 1), codes] = weights
    summed = summed.cumsum(axis=0)
    sketch = HeavyHitterSketch(window=window, epsilon=epsilon)
    before = 0
    for now, arrived in moments(ticks, window):
        part = slice(before, arrived)
        sketch.update(items[part], ticks[part], weights[part])
        sketch.advance(now)
        before = arrived
        edges = np.append(ticks[:arrived], now)  # where what is in range changes
        for cutoff in range(now - window, now):
            if cutoff == now - window or cutoff in edges or cutoff + 1 in edges:
                out = np.searchsorted(ticks[:arrived], cutoff, "right")
                assert_all_known(sketch, names, summed[arrived] - summed[out], cutoff)
    assert sketch.total() == (0, 0, 0, 1)
    assert sketch.estimate(int(items[-1])) == (0, 0, 0, 1)
    return sketch


@pytest.mark.parametrize("epsilon", [0.9, 0.3])
@pytest.mark.parametrize("weighted", [False, True], ids=["ones", "weights"])
@pytest.mark.parametrize("family", FAMILY)
def test_every_range_at_every_moment(family, weighted, epsilon):
    """All items, after every arrival and silent tick.

    Seen to catch: losses told to one level only, rests then taken for none, 0.8 / epsilon rests
    kept, losses left out of the upper ends.
    """
    stream = FAMILIES[family](WINDOW, SIZE, 1)
    stream = stream._replace(items=stream.items[:SIZE], ticks=stream.ticks[:SIZE])
    rng = np.random.default_rng(2)
    weights = rng.choice([0, 1, 2, 50, 10**6], SIZE) if weighted else np.ones(SIZE, np.int64)
    assert_every_range(stream, weights[: stream.items.size], epsilon, WINDOW)


@pytest.mark.parametrize(
    ("attack", "epsilon"),
    [*((attack, e) for attack in ("residues", "hiding") for e in (0.9, 0.3)), ("fading", 0.9)],
)
def test_streams_made_to_spoil_it(attack, epsilon):
    """Tables full of rests before the range; an item in small pieces among a flood of others.

    Seen to catch: levels chosen by their blocks only (fading).
    """
    stream = ATTACKS[attack](np.random.default_rng(3), 60, 500, epsilon)
    assert_every_range(stream, np.ones(stream.items.size, np.int64), epsilon, 60)


@given(arrivals.programs(), st.data())
@settings(max_examples=50)
def test_any_stream_in_batches_against_the_oracle(program, data):
    """All that can be asked, in ranges at the edges of arrivals and in between, now and later.

    Seen to catch: heavy hitters held against the high of the total.
    """
    epsilon = max(program.epsilon, 0.05)
    sketch = HeavyHitterSketch(window=program.window, epsilon=epsilon)
    exact = ExactWindow(program.window)
    for items, ticks, weights in arrivals.cut(program.seed, *program.arrivals()):
        sketch.update(items, ticks, weights)
        exact.update(items, ticks, weights)
        if sketch.now is None:
            continue
        now = sketch.now + data.draw(st.sampled_from([0, 0, 1, program.window // 2]))
        middle = data.draw(st.integers(1, program.window))
        for last in {1, middle, program.window, *edge_ranges(ticks[-2:], program.window, now)}:
            counts = exact.frequencies(last, now)
            assert_parts_known(sketch, counts, last, now)
            assert_questions(sketch, counts, last, now)


def assert_questions(sketch, counts, last, now):
    """Heavy hitters, the first k, and the sum of squares."""
    total = sum(counts.values())
    squares = sum(count * count for count in counts.values())
    join = sketch.self_join(last, now)
    assert join.low <= squares <= join.high
    assert join.high - join.low <= 2 * sketch.epsilon * (1 + sketch.epsilon / 2) * total**2
    phi = 1.0001 * sketch.epsilon * sketch._spread
    if phi < 1:
        found = sketch.heavy_hitters(phi, last, now)
        names = {each.item for each in found}
        assert {item for item, count in counts.items() if count >= phi * total} <= names
        for item, estimate in found:
            assert estimate.low <= counts.get(item, 0) <= estimate.high
            assert estimate.high >= phi * sketch.total(last, now).low
        values = [each.estimate.value for each in found]
        assert values == sorted(values, reverse=True)
    for k in (1, 3):
        ranked = sorted(counts.values(), reverse=True)
        top = sketch.top(k, last, now)
        assert len(top) <= k
        for item, _, certain in top:
            assert not certain or counts[item] >= ranked[min(k, len(ranked)) - 1]


@pytest.mark.parametrize("epsilon", [0.3, 0.05])
@pytest.mark.parametrize("sites", [2, 3, 7, 16])
def test_merged_in_any_tree(sites, epsilon):
    """Trees of depth 1 to 4 over 2 .. 16 sites answer alike, each interval as narrow as one's.

    Seen to catch: bounds of one part only, flattened without widening.
    """
    rng = np.random.default_rng(sites)
    window = 300
    stream = FAMILIES["F8 drift"](window, 6000, sites)
    weights = rng.choice([1, 2, 1000], stream.items.size)
    site = rng.integers(0, sites, stream.items.size)
    parts = [HeavyHitterSketch(window=window, epsilon=epsilon) for _ in range(sites)]
    exact = ExactWindow(window)
    for begin in range(0, stream.items.size, 1000):
        batch = slice(begin, begin + 1000)
        columns = (stream.items[batch], stream.ticks[batch], weights[batch])
        exact.update(*columns)
        for at, part in enumerate(parts):
            part.update(*(column[site[batch] == at] for column in columns))
        trees = [in_trees(HeavyHitterSketch, parts, depth) for depth in (1, 2, 3, 4)]
        flat = trees[0].flatten()
        now = int(columns[1][-1])
        for last in (1, 17, window // 3, window):
            counts = exact.frequencies(last, now)
            asked = [*list(counts), -1]
            said = [tree.estimate(asked, last, now) for tree in trees]
            assert all(each == said[0] for each in said[1:])
            assert trees[0].estimate(-1, last, now) == said[0][-1]
            for sketch in (trees[-1], flat):
                assert_parts_known(sketch, counts, last, now)
                assert_questions(sketch, counts, last, now)


def test_a_flattened_sketch_lives_on():
    """What comes after flattening is counted as ever; the width goes back when a window has passed.

    Seen to catch: the flattened part is not in the bytes.
    """
    window = 300
    stream = FAMILIES["F2 zipf 1.2"](window, 9000, 1)
    sites = [HeavyHitterSketch(window=window, epsilon=0.1) for _ in range(3)]
    exact = ExactWindow(window)
    for at, site in enumerate(sites):
        site.update(stream.items[at:4500:3], stream.ticks[at:4500:3])
    exact.update(stream.items[:4500], stream.ticks[:4500])
    flat = HeavyHitterSketch.merge(sites).flatten()
    assert flat.parts == 1
    assert flat.epsilon > 0.4
    for begin in range(4500, 9000, 500):
        part = slice(begin, begin + 500)
        flat.update(stream.items[part], stream.ticks[part])
        exact.update(stream.items[part], stream.ticks[part])
        flat = HeavyHitterSketch.from_bytes(flat.to_bytes())
        for last in (1, 50, 200, window):
            assert_parts_known(flat, exact.frequencies(last), last, flat.now)
    assert flat.epsilon == 0.1
    again = HeavyHitterSketch.merge([flat, sites[0]])
    assert again.parts == 1, "the other site's events have expired"


def test_what_was_flattened_is_not_flattened_again():
    sites = [HeavyHitterSketch(window=10, epsilon=0.9) for _ in range(3)]
    for at, site in enumerate(sites):
        site.update(np.arange(100) % 7, np.full(100, 5 + at))
    flat = HeavyHitterSketch.merge(sites[:2]).flatten()
    with pytest.raises(NotMergeable, match="flattened before"):
        HeavyHitterSketch.merge([flat, sites[2]]).flatten()


@given(arrivals.programs(max_size=1500), st.integers(1, 10**6))
@settings(max_examples=20)
def test_inner_products(program, seed):
    """Of two streams, at the greater clock.

    Seen to catch: upper ends given to the items of the least.
    """
    items, ticks, weights = program.arrivals()
    sides = np.random.default_rng(seed).integers(0, 2, items.size).astype(bool)
    epsilon = max(program.epsilon, 0.05)
    sketches, exacts = [], []
    for side in (sides, ~sides):
        sketch, exact = (
            HeavyHitterSketch(window=program.window, epsilon=epsilon),
            ExactWindow(program.window),
        )
        sketch.update(items[side], ticks[side], weights[side])
        exact.update(items[side], ticks[side], weights[side])
        sketches.append(sketch)
        exacts.append(exact)
    clocks = [sketch.now for sketch in sketches if sketch.now is not None]
    if not clocks:
        return
    for last in (1, 1 + program.window // 2, program.window):
        one, other = (exact.frequencies(last, max(clocks)) for exact in exacts)
        truth = sum(count * other.get(item, 0) for item, count in one.items())
        found = sketches[0].inner_product(sketches[1], last)
        assert found.low <= truth <= found.high
        product = sum(one.values()) * sum(other.values())
        assert found.high - found.low <= 2 * epsilon * (1 + epsilon / 2) * product
        assert sketches[1].inner_product(sketches[0], last) == found


@pytest.mark.parametrize("epsilon", [0.5, 0.1])
def test_windows_that_count_arrivals(epsilon):
    """The last n arrivals, whatever n."""
    rng = np.random.default_rng(1)
    items = rng.zipf(1.3, 3000) % 50
    sketch = HeavyHitterSketch(window=sg.arrivals(1000), epsilon=epsilon)
    for begin in range(0, 3000, 37):
        sketch.update(items[begin : begin + 37])
        now = sketch.now
        for last in (1, 20, 333, 1000):
            names, counts = np.unique(items[max(0, now - last) : now], return_counts=True)
            truth = dict(zip(names.tolist(), counts.tolist(), strict=True))
            assert_parts_known(sketch, truth, last, now)


def test_items_of_which_nothing_is_stored_count():
    """An item whose every arrival was lost is more frequent than one that is known.

    Seen to catch: top and products ignore those without a name.
    """
    items, ticks, _ = ATTACKS["fading"](np.random.default_rng(1), 60, 500, 0.9)
    sketch = HeavyHitterSketch(window=60, epsilon=0.9)
    sketch.update(items, ticks)
    for later in range(100):
        sketch.update([-later], [60])
        counts = Counter([*items.tolist(), *range(0, -later - 1, -1)])
        assert_questions(sketch, counts, 60, 60)
    sketch.update([5000] * 90, [60] * 90)
    assert sketch.top(1)[0].item == 5000
    assert_questions(sketch, counts + Counter([5000] * 90), 60, 60)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 0.1, 0.02])
@pytest.mark.parametrize("family", FAMILY)
def test_long_streams(family, epsilon):
    """Every hundredth moment of 50 000 arrivals, ranges at the edges of arrivals."""
    window = 5000
    stream = FAMILIES[family](window, 50_000, 3)
    sketch, exact = HeavyHitterSketch(window=window, epsilon=epsilon), ExactWindow(window)
    for begin in range(0, stream.items.size, 100):
        part = slice(begin, begin + 100)
        sketch.update(stream.items[part], stream.ticks[part])
        exact.update(stream.items[part], stream.ticks[part])
        for last in edge_ranges(stream.ticks[begin : begin + 100 : 50], window, exact.now)[:4]:
            assert_parts_known(sketch, exact.frequencies(last), last, exact.now)


def test_least_phi_is_named():
    sketch = HeavyHitterSketch(window=10, epsilon=0.1)
    refuse = functools.partial(pytest.raises, ValueError)
    with refuse(match=r"^phi must exceed the share that an item can have without being known"):
        sketch.heavy_hitters(0.105)
    assert sketch.heavy_hitters(0.1051) == []
    for phi in (0, 1, 2.5, True, "a", float("nan")):
        with refuse(match=r"^phi must"):
            sketch.heavy_hitters(phi)
    for k in (0, -1, 1.5, True, "a"):
        with refuse(match=r"^k must be a positive integer"):
            sketch.top(k)
