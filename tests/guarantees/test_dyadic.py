"""DyadicEcmSketch: certain ends at every moment, probable ones over seeds.

Trials have a seed of their own and one question, declared before it: see tests/statistics.py.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import DyadicEcmSketch
from streamgauge.sim.exact import ExactWindow
from streamgauge.sketches.stack import Stacked
from streamgauge.traces.families import FAMILIES
from tests import arrivals
from tests.statistics import assert_failures_fit

WINDOW = 100


def new(**changed):
    given = {"bits": 3, "window": WINDOW, "epsilon": 0.5, "delta": 0.3, "seed": 1}
    return DyadicEcmSketch(**(given | changed))


def stacked(sketch):
    """How many buckets have given up their lists."""
    buckets = [bucket for stream in sketch._streams for bucket in stream.buckets]
    return sum(isinstance(bucket.payload, Stacked) for bucket in buckets)


def ranks(exact, bits, last, now):
    """ranks[x]: the events of items below x."""
    found = exact.frequencies(last, now)
    counts = np.bincount(list(found), list(found.values()), 1 << bits)
    return np.append(0, np.cumsum(counts)).astype(int)


def assert_certain(sketch, below, ranges, last, now):
    """What holds for every seed; where the answer says that it is certain, its lower end too."""
    total = sketch.total(last, now)
    truth = below[-1]
    assert total.low <= truth <= total.high
    assert abs(total.value - truth) <= sketch.epsilon / 2 * truth
    assert total.confidence == 1
    for lo, hi in ranges:
        value, low, high, confidence = sketch.range(lo, hi, last, now)
        inside = below[hi + 1] - below[lo]
        assert inside <= high
        assert 0 <= low <= value <= high <= total.high
        if confidence == 1:
            assert low <= inside
            assert abs(value - inside) <= sketch.epsilon / 2 * truth
        else:
            assert confidence == 1 - sketch.delta


def assert_searches(sketch, below, last, now):
    """What is certain of answers that look for items."""
    frequencies, total = np.diff(below), below[-1]
    everything = sketch.total(last, now)
    if not total:
        return
    reported = sketch.heavy_hitters(0.5, last, now)
    for item, found in reported:
        assert found.high >= 0.5 * everything.low
        assert frequencies[item] <= found.high
    assert set(np.flatnonzero(frequencies >= 0.5 * total)) <= {item for item, _ in reported}
    most = sketch.max_frequency(last, now)
    assert frequencies.max() <= most.estimate.high
    if most.estimate.confidence == 1:
        assert most.estimate.low <= frequencies[most.item]
    for q in (0, 0.3, 0.5, 1):
        item, rank = sketch.quantile(q, last, now)
        assert below[item + 1] <= rank.high
        assert below[item] < (q + sketch.epsilon / 2) * total + 1
        if rank.confidence == 1:
            assert rank.low <= below[item + 1]
            assert below[item + 1] >= (q - sketch.epsilon) * total


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "F13 churn"])
def test_what_is_certain_holds_for_all_ranges_at_all_times(family):
    """After every arrival and silent tick, until all has expired; the domain is eight items.

    Seen to catch: the cut bucket is not in `high`; it is whole in the total's `low`; it is
    taken to be inside; so is one that begins at the cutoff; `kept` is halved; a quantile forgets
    what came before; it returns the first item of the half; heavy hitters are asked to reach phi of
    the total's `high`.
    """
    items, ticks, _ = FAMILIES[family](WINDOW, 250, 1)
    rng = np.random.default_rng(1)
    items, weights = items % 8, rng.choice([0, 1, 2, 9, 50], ticks.size)
    sketch, exact = new(), ExactWindow(WINDOW)
    every = [(lo, hi) for lo in range(8) for hi in range(lo, 8)]
    for event, tick in enumerate(ticks.tolist()):
        part = slice(event, event + 1)
        sketch.update(items[part], [tick], weights[part])
        exact.update(items[part], [tick], weights[part])
        following = int(ticks[event + 1]) if event + 1 < ticks.size else tick + WINDOW + 2
        for now in {tick, following - 1} if following > tick else {tick}:
            edge = now - int(rng.choice(ticks[: event + 1]))
            some = rng.choice([1, WINDOW, rng.integers(1, WINDOW + 1), edge, edge, edge])
            last = min(max(1, int(some)), WINDOW)
            below = ranks(exact, 3, last, now)
            assert_certain(sketch, below, every, last, now)
            assert_searches(sketch, below, last, now)
    assert sketch.total(now=following - 1) == (0, 0, 0, 1)


@given(arrivals.programs(), st.sampled_from([0.3, 0.5, 0.9]), st.data())
def test_what_is_certain_holds_for_weights_batches_and_cuts(program, epsilon, data):
    """A domain so large that buckets give up their lists.

    Seen to catch: as above.
    """
    sketch = new(bits=10, window=program.window, epsilon=epsilon, delta=0.6)
    exact = ExactWindow(program.window)
    for items, ticks, weights in arrivals.cut(program.seed, *program.arrivals()):
        sketch.update(items % 1024, ticks, weights)
        exact.update(items % 1024, ticks, weights)
        if sketch.now is None:
            continue
        now = sketch.now + data.draw(st.sampled_from([0, 0, 1, program.window // 2]))
        last = data.draw(st.integers(1, program.window))
        below = ranks(exact, 10, last, now)
        ends = np.sort(np.random.default_rng(ticks.size).integers(0, 1024, (5, 2)))
        assert_certain(sketch, below, [*ends.tolist(), (0, 1023), (1, 1022)], last, now)
        assert_searches(sketch, below, last, now)


TRIALS, EPSILON, BITS = 400, 0.5, 12
SIZE = 8000


def hashed_stream(trial, few, delta):
    """A sketch with stacks, the exact window, and the range of time to ask for.

    Half of the events are of few items; the others keep the large buckets from being lists. None
    of these is cut: what is left out of the lower end for that would hide collisions.
    """
    rng = np.random.default_rng(trial)
    items = rng.integers(0, 1 << BITS, SIZE)
    items[::2] = 700 + 8 * rng.integers(0, few, SIZE // 2)
    ticks = np.sort(rng.integers(1, WINDOW + 1, SIZE))
    sketch = new(bits=BITS, epsilon=EPSILON, delta=delta, seed=trial)
    exact = ExactWindow(WINDOW)
    sketch.update(items, ticks)
    exact.update(items, ticks)
    assert stacked(sketch) > 0
    return sketch, exact, WINDOW


trials = pytest.mark.parametrize(("few", "delta"), [(1, 0.6), (5, 0.6), (30, 0.6), (5, 0.2)])


@trials
def test_a_range_is_found_within_its_interval(few, delta):
    """One range a seed: its lower end, and the distance to its value.

    Seen to catch: noise of one prefix for all that are read.
    """
    failures = np.zeros(2, int)
    for trial in range(TRIALS):
        sketch, exact, last = hashed_stream(trial, few, delta)
        lo, hi = 101, 690
        below = ranks(exact, BITS, last, sketch.now)
        found, truth = sketch.range(lo, hi, last), below[hi + 1] - below[lo]
        failures += [found.low > truth, abs(found.value - truth) > EPSILON * below[-1]]
    for count in failures.tolist():
        assert_failures_fit(delta, count, TRIALS)


@trials
def test_an_item_is_found_within_its_interval(few, delta):
    """One item a seed, as rare as most.

    Seen to catch: a share of a fifth.
    """
    failures = 0
    for trial in range(TRIALS):
        sketch, exact, last = hashed_stream(trial, few, delta)
        failures += sketch.estimate(55, last).low > exact.frequency(55, last)
    assert_failures_fit(delta, failures, TRIALS)


@trials
def test_a_quantile_has_its_rank(few, delta):
    """One quantile a seed: the interval of its rank, and its distance to the rank asked for.

    Seen to catch: a share of a fifth.
    """
    failures = np.zeros(2, int)
    for trial in range(TRIALS):
        sketch, exact, last = hashed_stream(trial, few, delta)
        q = (trial % 20) / 19
        item, rank = sketch.quantile(q, last)
        below = ranks(exact, BITS, last, sketch.now)
        failures += [rank.low > below[item + 1], below[item + 1] < (q - EPSILON) * below[-1]]
    for count in failures.tolist():
        assert_failures_fit(delta, count, TRIALS)


@trials
def test_heavy_items_and_prefixes_have_their_lower_ends_together(few, delta):
    """All lower ends of an answer are one event; that of the largest frequency is another.

    And of the hierarchy that no prefix is left out which is heavy without those reported.

    Seen to catch: no share of collisions is taken off; lower ends are discounted by lower ends; a
    reported prefix does not cover what is below it; only the last child's cover is passed up.
    """
    phi, failures = 0.1, np.zeros(3, int)
    for trial in range(TRIALS):
        sketch, exact, last = hashed_stream(trial, few, delta)
        below = ranks(exact, BITS, last, sketch.now)
        frequencies = np.diff(below)
        heavy = sketch.heavy_hitters(phi, last)
        item, most = sketch.max_frequency(last)
        prefixes = sketch.hierarchical_heavy_hitters(phi, last, step=4)
        failures += [
            any(found.low > frequencies[item] for item, found in heavy),
            most.low > frequencies[item],
            not is_hierarchy(prefixes, below, phi, 4),
        ]
    for count in failures.tolist():
        assert_failures_fit(delta, count, TRIALS)


def is_hierarchy(prefixes, below, phi, step):
    """Whether intervals hold, and what is not reported has less than phi by itself."""
    reported = {(first, length): found for first, length, *found in prefixes}
    bits, total = (below.size - 1).bit_length() - 1, below[-1]
    covered = np.zeros(below.size - 1, bool)  # by the longer prefixes
    frequencies = np.diff(below)
    for level in [*range(0, bits, step), bits]:
        fresh = covered.copy()
        whole = frequencies.reshape(-1, 1 << level).sum(axis=1)
        own = (frequencies * ~covered).reshape(-1, 1 << level).sum(axis=1)
        named = [first >> level for first, length in reported if length == bits - level]
        for prefix in {*named, *np.flatnonzero(own >= phi * total).tolist()}:
            first = prefix << level
            if (first, bits - level) in reported:
                fresh[first : first + (1 << level)] = True
                truths = whole[prefix], own[prefix]
                for found, truth in zip(reported[first, bits - level], truths, strict=True):
                    if not found.low <= truth <= found.high:
                        return False
            else:
                return False
        covered = fresh
    return True


@pytest.mark.parametrize("others", [30, 300])
def test_the_most_frequent_item_may_hide(others):
    """Alone among rare items, while other prefixes are full: `high` covers it all the same.

    Seen to catch: what was passed over is forgotten.
    """
    sketch = new(bits=BITS, epsilon=0.5)
    full = np.repeat(np.arange(0, 3072, 3072 // others), 2)
    sketch.update(np.append(full, 4000), np.ones(full.size + 1, int), [*[9] * full.size, 20])
    item, found = sketch.max_frequency()
    assert (item != 4000, sketch.estimate(item).value, found.confidence) == (True, 18, 1)
    assert found.low <= 18
    assert found.high >= 20


@given(arrivals.programs(max_size=800), st.sampled_from([0.3, 0.7]))
def test_a_hierarchy_of_lists_is_certain(program, phi):
    """Nothing is hashed, so all that is said of prefixes holds.

    Seen to catch: the cut bucket is not in `high`.
    """
    items, ticks, weights = program.arrivals()
    sketch, exact = new(bits=7, window=program.window, epsilon=0.3), ExactWindow(program.window)
    sketch.update(items % 128, ticks, weights)
    exact.update(items % 128, ticks, weights)
    for step in (1, 3, 7):
        if sketch.now is not None and not stacked(sketch):
            prefixes = sketch.hierarchical_heavy_hitters(phi, step=step)
            below = ranks(exact, 7, program.window, sketch.now)
            assert not below[-1] or is_hierarchy(prefixes, below, phi, step)


@given(arrivals.programs(max_size=600), st.integers(1, 4), st.booleans(), st.data())
def test_merged_sketches_answer_for_the_union_of_their_streams(program, parts, pairs, data):
    """However deep the merging, and after further events.

    Seen to catch: the cut bucket is not in `high`; only the first stream is kept.
    """
    items, ticks, weights = program.arrivals()
    items %= 1024
    if not ticks.size:
        return
    rng = np.random.default_rng(program.seed)
    site, later = rng.integers(0, parts, items.size), np.arange(items.size) > 0.8 * items.size
    given = {"bits": 10, "window": program.window, "epsilon": 0.5, "delta": 0.6}
    sketches = [new(**given) for _ in range(parts)]
    for number, sketch in enumerate(sketches):
        mine = (site == number) & ~later
        sketch.update(items[mine], ticks[mine], weights[mine])
    if pairs:
        merged = sketches[0]
        for sketch in sketches[1:]:
            merged = DyadicEcmSketch.merge([merged, sketch.to_bytes()])
    else:
        merged = DyadicEcmSketch.merge(sketches)
    merged.update(items[later], ticks[later], weights[later])
    exact = ExactWindow(program.window)
    exact.update(items, ticks, weights)
    last, now = data.draw(st.integers(1, program.window)), exact.now
    merged.advance(now)
    below = ranks(exact, 10, last, now)
    assert_certain(merged, below, [(0, 500), (17, 900), (0, 1023)], last, now)
    assert_searches(merged, below, last, now)
    assert DyadicEcmSketch.from_bytes(merged.to_bytes()).to_bytes() == merged.to_bytes()
