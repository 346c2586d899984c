"""The oracle against the definition, spelled out over lists.

Seen failing: the edge `>= now - last` instead of `>`, weights ignored by total, an expiry one
tick early, leaving arrivals not subtracted by `sliding`, and heads searched from the left.
"""

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.sim import exact
from streamgauge.sim.exact import ExactWindow, sliding, steps
from tests import arrivals


def definition(events, last, now):
    """Frequency of every item with a positive one, from a list of (item, tick, weight)."""
    counts = {}
    for item, tick, weight in events:
        if now - last < tick <= now and weight > 0:
            counts[item] = counts.get(item, 0) + weight
    return counts


def answers(window, last, now):
    return (
        window.frequencies(last, now),
        window.total(last, now),
        window.self_join(last, now),
    )


def expected(events, last, now):
    counts = definition(events, last, now)
    return counts, sum(counts.values()), sum(count**2 for count in counts.values())


@given(arrivals.programs(max_size=300), st.data())
def test_answers_are_the_definition_after_every_batch(program, data):
    window, events = ExactWindow(program.window), []
    for batch in arrivals.cut(program.seed, *program.arrivals()):
        window.update(*batch)
        events += zip(*(column.tolist() for column in batch), strict=True)
        if events:
            now = window.now + data.draw(st.sampled_from([0, 1, program.window]))
            last = data.draw(st.integers(1, program.window))
            assert answers(window, last, now) == expected(events, last, now)


def test_the_range_is_open_at_its_old_end_and_closed_at_its_new_one():
    window = ExactWindow(100)
    window.update(["old", "edge", "in", "new"], [9, 10, 11, 20])
    assert window.frequencies(last=10) == {"in": 1, "new": 1}
    assert window.frequencies(last=11) == {"edge": 1, "in": 1, "new": 1}
    assert window.frequencies(last=1) == {"new": 1}
    assert window.frequencies(last=10, now=29) == {"new": 1}
    assert window.frequencies(last=10, now=30) == {}


def test_an_arrival_leaves_when_it_is_as_old_as_the_window():
    window = ExactWindow(10)
    window.update(["a"], [5])
    window.advance(14)
    assert window.total() == 1
    window.advance(15)
    assert window.total() == 0


def test_ties_weights_and_items_of_any_kind():
    window = ExactWindow(10)
    window.update([("a", 1), b"a", "a", ("a", 1)], [3, 3, 3, 3], [2, 5, 0, 1])
    assert window.frequencies() == {("a", 1): 3, b"a": 5}
    assert window.frequency(("a", 1)) == 3
    assert window.frequency("a") == window.frequency("unseen") == 0
    assert window.total() == 8
    assert window.self_join() == 34


def test_integers_are_the_same_items_from_a_list_and_from_any_array():
    window = ExactWindow(10)
    window.update([7, 2**64 - 1], [1, 1])
    window.update(np.array([7], np.int16), [1])
    window.update(np.array([2**64 - 1], np.uint64), [1])
    assert window.frequencies() == {7: 2, 2**64 - 1: 2}
    assert window.frequency(np.int64(7)) == 2


def test_squares_beyond_64_bits_are_exact():
    window = ExactWindow(10)
    window.update([1], [1], [2**40 + 1])
    assert window.self_join() == (2**40 + 1) ** 2


def test_an_empty_window_answers_zero():
    window = ExactWindow(10)
    window.update([], [])
    assert (window.now, window.total(), window.self_join(), window.frequencies()) == (
        None,
        0,
        0,
        {},
    )


def test_questions_change_nothing():
    window = ExactWindow(10)
    window.update([1, 2], [1, 5])
    window.total(now=100)
    assert window.now == 5
    assert window.total() == 2


@pytest.mark.parametrize(
    "misuse",
    [
        lambda window: window.update([1, 1], [6, 5]),
        lambda window: window.update([1], [4]),
        lambda window: window.update([1], [6], [-1]),
        lambda window: window.update([1, 2], [6]),
        lambda window: window.update([1, 2], [6, 6], [1]),
        lambda window: [window.update([1], [6], [2**61]) for _ in range(2)],
        lambda window: window.advance(4),
        lambda window: window.total(now=4),
        lambda window: window.total(last=0),
        lambda window: window.total(last=11),
        lambda _: ExactWindow(0),
        lambda _: sliding([1], [1], [2, 1], last=1),
        lambda _: sliding([1], [1], [1], last=0),
        lambda _: sliding([1], [1], [1], last=1, weights=[2**31]),
        lambda _: sliding([1, 1], [1, 1], [1], last=1, weights=[2**63 - 1, 2]),
        lambda _: steps([], 1),
        lambda _: steps([1], 0),
    ],
)
def test_misuse_is_refused(misuse):
    window = ExactWindow(10)
    window.update([1], [5])
    with pytest.raises(AssertionError):
        misuse(window)


@given(arrivals.programs(max_size=300), st.data())
def test_sliding_is_the_window_at_every_end(program, data):
    items, ticks, weights = program.arrivals()
    first, final = (int(ticks[0]), int(ticks[-1])) if ticks.size else (0, 0)
    span = st.integers(first - 1, final + program.window + 1)
    ends = sorted(data.draw(st.lists(span, max_size=20)))
    last = data.draw(st.integers(1, program.window))
    events = list(zip(items.tolist(), ticks.tolist(), weights.tolist(), strict=True))
    asked = [0, 1, 12345]

    slid = sliding(items, ticks, ends, last=last, asked=asked, weights=weights)
    for end, total, self_join, frequencies in zip(*slid, strict=True):
        counts, its_total, its_self_join = expected(events, last, end)
        assert (total, self_join) == (its_total, its_self_join)
        assert frequencies.tolist() == [counts.get(item, 0) for item in asked]


def test_sliding_over_text_without_weights():
    slid = sliding(["a", "b", "a"], [1, 2, 11], [10, 11, 12], last=10, asked=["a", "c"])
    assert slid.totals.tolist() == [2, 2, 1]
    assert slid.self_joins.tolist() == [2, 2, 1]
    assert slid.frequencies.tolist() == [[1, 0], [1, 0], [1, 0]]


def test_every_arrival_is_in_as_many_windows_as_the_window_has_steps():
    rng = np.random.default_rng(3)
    ticks = np.sort(rng.integers(1, 7_200, 5_000))
    ends = np.arange(60, 7_200 + 3_600, 60)
    slid = sliding(rng.integers(0, 9, 5_000), ticks, ends, last=3_600)
    assert slid.totals.sum() == 60 * ticks.size


def test_steps_see_every_arrival():
    assert steps([59, 60, 121], 60).tolist() == [60, 120, 180]
    assert steps([60, 120], 60).tolist() == [60, 120]
    assert steps([-61, -60, 1], 60).tolist() == [-60, 0, 60]


def test_examples_in_docstrings():
    assert doctest.testmod(exact).failed == 0
