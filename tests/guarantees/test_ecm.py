"""EcmSketch: what is certain at every moment, what is probable over seeds, and both together.

Trials have a seed of their own and one question, declared before it: see tests/statistics.py.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import EcmSketch, Frequency, SelfJoin, Total, seeds
from streamgauge.sim.exact import ExactWindow
from streamgauge.sketches import ecm
from streamgauge.traces.families import FAMILIES, zipf
from tests import arrivals
from tests.statistics import assert_failures_fit

WINDOW = 100


def new(seed=1, **changed):
    given = {"window": WINDOW, "epsilon": 0.3, "delta": 0.3, "seed": seed}
    return EcmSketch(**(given | changed))


def assert_certain(sketch, exact, items, last, now):
    """What holds for every seed: all but the probable lower ends."""
    found = ecm.frequencies([sketch], items, last, now)
    truth = exact.frequencies(last, now)
    truth = np.array([truth.get(item, 0) for item in items])
    assert found.confidence == 1 - sketch.delta
    assert np.all(found.high >= truth)
    assert np.all(found.value >= (1 - sketch.epsilon) * truth)
    assert np.all((found.low >= 0) & (found.low <= found.value) & (found.value <= found.high))

    total = sketch.total(last, now)
    assert total.low <= exact.total(last, now) <= total.high
    assert abs(total.value - exact.total(last, now)) <= sketch.epsilon * exact.total(last, now)
    assert total.confidence == 1
    assert np.all(found.high <= total.high)

    join = sketch.self_join(last, now)
    assert join.high >= exact.self_join(last, now)
    assert total.low <= join.low <= join.value <= join.high


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "F13 churn"])
def test_what_is_certain_holds_for_all_items_at_all_times(family):
    """After every arrival and at silent ticks until all has expired.

    Seen to catch: an expired stamp answers; an event just a range old is in the range; the first
    arrival is in the range when it has just left; the upper end is that of the guesses.
    """
    items, ticks, _ = FAMILIES[family](WINDOW, 250, 1)
    sketch, exact = new(), ExactWindow(WINDOW)
    every = np.unique(items)
    rng = np.random.default_rng(1)
    for event, tick in enumerate(ticks.tolist()):
        sketch.update(items[event : event + 1], [tick])
        exact.update(items[event : event + 1], [tick])
        following = int(ticks[event + 1]) if event + 1 < ticks.size else tick + WINDOW + 2
        for now in {tick, following - 1} if following > tick else {tick}:
            for last in (1, int(rng.integers(1, WINDOW + 1)), WINDOW):
                assert_certain(sketch, exact, every, last, now)
    assert sketch.total(now=following - 1).high == sketch.self_join(now=following - 1).high == 0


@given(arrivals.programs(max_size=1000), st.data())
def test_what_is_certain_holds_for_weights_batches_and_cuts(program, data):
    """At the end of every batch and later, for some items and one that never came.

    Seen to catch: an expired stamp answers; an event just a range old is in the range; the upper
    end is that of the guesses.
    """
    sketch, exact = new(window=program.window), ExactWindow(program.window)
    for items, ticks, weights in arrivals.cut(program.seed, *program.arrivals()):
        sketch.update(items, ticks, weights)
        exact.update(items, ticks, weights)
        if sketch.now is not None:
            now = sketch.now + data.draw(st.sampled_from([0, 1, program.window]))
            last = data.draw(st.integers(1, program.window))
            asked = np.unique(np.append(items[:20], [12345]))
            assert_certain(sketch, exact, asked, last, now)


def misses(truth, found, epsilon_total):
    """Whether a probable promise failed: the lower end, and the distance to the value."""
    return np.array([found.low > truth, abs(found.value - truth) > epsilon_total])


@pytest.mark.parametrize("exponent", [0.8, 1.2, 2.0])
@pytest.mark.parametrize(("delta", "trials"), [(0.05, 400), (0.3, 400)])
def test_an_item_is_found_within_its_interval(exponent, delta, trials):
    """One item of F2 for each seed, some frequent, some rare, some absent; part of the window.

    Seen to catch: the share of collisions is forgotten.
    """
    failures = np.zeros(2, int)
    for trial in range(trials):
        items, ticks, _ = zipf(WINDOW, 400, trial, exponent)
        sketch, exact = new(seed=trial, epsilon=0.1, delta=delta), ExactWindow(WINDOW)
        sketch.update(items, ticks)
        exact.update(items, ticks)
        item, last = (trial % 20) ** 2, WINDOW // (1 + trial % 3)
        truth = exact.frequency(item, last)
        failures += misses(truth, sketch.estimate(item, last), 0.1 * exact.total(last))
    for count in failures.tolist():
        assert_failures_fit(delta, count, trials)


@pytest.mark.parametrize("others", [1, 2, 5, 9, 11, 15, 30, 60, 200])
def test_the_stream_that_fails_most_often_fails_as_rarely_as_promised(others):
    """One row, and others of equal weight, of which one, two or k must collide to spoil it.

    Markov's inequality is nearly tight here: with 10 others, of which each alone exceeds the share
    s = e / width, the lower end fails for 3 seeds in 10, and delta is 1 / e.

    Seen to catch: the share of collisions is forgotten; collisions are taken at their mean; the
    rows are too narrow by a factor of e.
    """
    delta, trials = math.exp(-1), 1000
    items, weights = seeds.expand(1, others + 1), np.full(others + 1, 10_000 // others)
    weights[0] = 100
    failures = np.zeros(2, int)
    for trial in range(trials):
        sketch = new(seed=trial, epsilon=0.1, delta=delta)
        sketch.update(items, np.ones_like(weights), weights)
        assert sketch.depth == 1
        failures += misses(100, sketch.estimate(items[0]), 0.1 * weights.sum())
    for count in failures.tolist():
        assert_failures_fit(delta, count, trials)


@pytest.mark.parametrize("exponent", [0.8, 1.2, 2.0])
def test_a_self_join_is_at_least_its_lower_end(exponent):
    """Seen to catch: the collisions of a self-join are forgotten."""
    delta, trials, failures = 0.3, 400, 0
    for trial in range(trials):
        items, ticks, _ = zipf(WINDOW, 400, trial, exponent)
        sketch, exact = new(seed=trial, epsilon=0.1, delta=delta), ExactWindow(WINDOW)
        sketch.update(items, ticks)
        exact.update(items, ticks)
        last = WINDOW // (1 + trial % 3)
        failures += sketch.self_join(last).low > exact.self_join(last)
    assert_failures_fit(delta, failures, trials)


@pytest.mark.parametrize("others", [1, 2, 4, 8, 30])
def test_the_self_join_that_fails_most_often_fails_as_rarely_as_promised(others):
    """One row and items of equal weight, of which few pairs must collide to spoil it.

    Seen to catch: collisions are taken at their mean; the collisions of a self-join are forgotten.
    """
    delta, trials, failures = math.exp(-1), 1000, 0
    items, ones = seeds.expand(1, others + 1), np.ones(others + 1, int)
    for trial in range(trials):
        sketch = new(seed=trial, epsilon=0.3, delta=delta)
        sketch.update(items, ones, 100 * ones)
        failures += sketch.self_join().low > items.size * 100**2
    assert_failures_fit(delta, failures, trials)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_rows_in_which_all_may_collide_keep_their_promise(width):
    """Two items of one weight, which share a cell for one seed in `width`.

    Seen to catch: a share of more than all is taken for a little less.
    """
    delta, trials, failures = math.exp(-1), 400, np.zeros(2, int)
    given = {"window": WINDOW, "depth": 1, "width": width, "epsilon_window": 0.1}
    for trial in range(trials):
        sketch = EcmSketch.from_sizes(**given, seed=trial)
        sketch.update([1, 2], [1, 1], [5, 5])
        failures += [sketch.estimate(1).low > 5, sketch.self_join().low > 50]
    for count in failures.tolist():
        assert_failures_fit(delta, count, trials)


@pytest.mark.parametrize("weight", [2**26 + 1, 2**27 + 1, 2**40 + 1, 3**31])
@pytest.mark.parametrize("items", [1, 7])
def test_squares_beyond_float64_are_still_below_the_upper_end(weight, items):
    """Seen to catch: a square is rounded to the nearest float."""
    sketch, exact = new(epsilon=0.01, delta=0.01), ExactWindow(WINDOW)
    for target in (sketch, exact):
        target.update(list(range(items)), [1] * items, [weight] * items)
    assert int(sketch.self_join().high) >= exact.self_join()


def test_no_low_end_is_above_its_high_end():
    """Everything in one item: the share of collisions cancels, but for rounding."""
    for weight in range(1, 3000):
        sketch = new()
        sketch.update([1], [1], [weight])
        value, low, high, _ = sketch.estimate(1)
        assert low <= value <= high == weight
        value, low, high, _ = sketch.self_join()
        assert low <= value <= high == weight**2


def spread(sketches, rng, items, ticks, weights=None):
    """Each event goes to one of the sites."""
    site = rng.integers(0, len(sketches), items.size)
    for number, sketch in enumerate(sketches):
        mine = site == number
        sketch.update(items[mine], ticks[mine], None if weights is None else weights[mine])


@given(arrivals.programs(max_size=600), st.integers(1, 4), st.data())
def test_several_sites_answer_for_the_union_of_their_streams(program, sites, data):
    """What is certain, at the sites' greatest clock and later, though their clocks differ.

    Seen to catch: an event just a range old is in the range; the clock of several sketches is that
    of the first; the cells of several sketches are those of the first; the total of several
    sketches is that of the first.
    """
    items, ticks, weights = program.arrivals()
    if ticks.size == 0:
        return
    sketches, exact = (
        [new(window=program.window) for _ in range(sites)],
        ExactWindow(program.window),
    )
    spread(sketches, np.random.default_rng(program.seed), items, ticks, weights)
    exact.update(items, ticks, weights)
    last = data.draw(st.integers(1, program.window))
    for now in (None, exact.now + data.draw(st.integers(0, program.window))):
        total, join = Total(last).answer(sketches, now), SelfJoin(last).answer(sketches, now)
        assert total.low <= exact.total(last, now) <= total.high
        assert abs(total.value - exact.total(last, now)) <= 0.3 * exact.total(last, now)
        assert total.low <= join.low <= join.value <= join.high
        assert join.high >= exact.self_join(last, now)
        for item in np.unique(items)[:5].tolist():
            value, low, high, confidence = Frequency(item, last).answer(sketches, now)
            assert low <= value <= high
            assert value >= 0.7 * exact.frequency(item, last, now)
            assert high >= exact.frequency(item, last, now)
            assert confidence == 1 - 0.3


@pytest.mark.parametrize("exponent", [0.8, 1.2, 2.0])
def test_several_sites_keep_the_interval_of_one(exponent):
    """Three sites, one item for each seed.

    Seen to catch: the share of collisions is forgotten; the collisions of a self-join are
    forgotten.
    """
    delta, trials, failures = 0.3, 300, np.zeros(3, int)
    for trial in range(trials):
        items, ticks, _ = zipf(WINDOW, 400, trial, exponent)
        sketches = [new(seed=trial, epsilon=0.1, delta=delta) for _ in range(3)]
        exact = ExactWindow(WINDOW)
        spread(sketches, np.random.default_rng(trial), items, ticks)
        exact.update(items, ticks)
        item, last = (trial % 20) ** 2, WINDOW // (1 + trial % 3)
        found, truth = Frequency(item, last).answer(sketches), exact.frequency(item, last)
        failures[:2] += misses(truth, found, 0.1 * exact.total(last))
        failures[2] += SelfJoin(last).answer(sketches).low > exact.self_join(last)
    for count in failures.tolist():
        assert_failures_fit(delta, count, trials)


def product(one, other, last, now):
    """The exact inner product of two windows."""
    counts = other.frequencies(last, now)
    return sum(n * counts.get(item, 0) for item, n in one.frequencies(last, now).items())


def paired(trial, exponent, **changed):
    """Two sketches alike and the exact windows of their streams, the second of other items too."""
    given = {"window": WINDOW, "epsilon": 0.1, "delta": 0.3, "seed": trial} | changed
    sketches = [EcmSketch.for_inner_product(**given) for _ in range(2)]
    windows = [ExactWindow(WINDOW) for _ in range(2)]
    for number, pair in enumerate(zip(sketches, windows, strict=True)):
        items, ticks, _ = zipf(WINDOW, 400, 2 * trial + number, exponent)
        for target in pair:
            target.update(items * (1 + number * (trial % 2)), ticks)
    return sketches, windows


@pytest.mark.parametrize("exponent", [0.8, 1.2, 2.0])
def test_an_inner_product_is_found_within_its_interval(exponent):
    """`high` for every seed, `low` and the distance to the value for all but delta of them.

    Seen to catch: a product takes the upper ends of one side only.
    """
    delta, trials, failures = 0.3, 400, np.zeros(2, int)
    for trial in range(trials):
        (one, other), exact = paired(trial, exponent)
        last = WINDOW // (1 + trial % 3)
        now = max(one.now, other.now) + trial % 5
        truth = product(*exact, last, now)
        found = one.inner_product(other, last, now)
        assert found == other.inner_product(one, last, now)
        assert truth <= found.high
        assert found.low <= found.value
        assert found.confidence == 1 - delta
        largest = exact[0].total(last, now) * exact[1].total(last, now)
        failures += misses(truth, found, 0.1 * largest)
    for count in failures.tolist():
        assert_failures_fit(delta, count, trials)


def test_a_product_with_itself_is_the_self_join():
    (one, _), _ = paired(1, 1.2)
    product, join = one.inner_product(one), one.self_join()
    assert (product.value, product.high) == (join.value, join.high)
    assert product.low <= join.low


def test_sums_beyond_float64_are_still_enclosed():
    """Three sites near 2**53 arrivals each: the sum is no float64, its neighbours are the ends."""
    sketches = [new() for _ in range(3)]
    for sketch in sketches:
        sketch.update([1], [1], [2**53 - 1])
    truth = 3 * (2**53 - 1)
    for found in (Total().answer(sketches), Frequency(1).answer(sketches)):
        assert int(found.high) >= truth
    assert int(Total().answer(sketches).low) <= truth
