"""Events out of order: the sketch is that of the sorted stream, and nothing is lost."""

import doctest

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import Buffer, EcmSketch, Reorder, arrivals
from streamgauge.sketches import reorder as module


def new(**changed):
    return EcmSketch(**{"window": 100, "epsilon": 0.1, "delta": 0.1, "seed": 7} | changed)


def test_the_example():
    assert doctest.testmod(module).failed == 0


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 300))
def test_a_stream_out_of_order_leaves_the_sketch_that_it_leaves_in_order(seed, lateness, size):
    """However it is cut, while no event is later than `lateness`.

    Seen to catch: events that are less than the lateness old go on.
    """
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, 400, size))
    items, weights = rng.integers(0, 9, size), rng.integers(0, 4, size)
    late = np.argsort(times + rng.integers(0, lateness, size), kind="stable")
    whole, sketch = new(), new()
    whole.update(items, times, weights)
    ordered, begin = Reorder(sketch, lateness), 0
    while begin < size:
        some = late[begin : begin + int(rng.choice([0, 1, 2, 50]))]
        ordered.update(items[some], times[some], weights[some])
        begin += some.size
        came = times[late[:begin]]
        assert len(ordered) == np.count_nonzero(came > came.max(initial=-lateness) - lateness)
    ordered.flush()
    assert len(ordered) == 0
    assert sketch.total() == whole.total()
    assert sketch.estimate(items) == whole.estimate(items)
    assert ordered.hurried == sketch.late_events == 0


def test_what_is_too_late_meets_the_policy_of_the_sketch():
    ordered = Reorder(new(late="drop"), 5)
    ordered.update([1, 2, 3], [10, 30, 24])
    ordered.update([4, 5], [9, 31])
    ordered.flush()
    assert ordered.sketch.late_events == 1
    assert ordered.sketch.arrivals == 4
    strict = Reorder(new(), 5)
    strict.update([1, 2, 3], [10, 30, 24])
    for _ in range(2):
        with pytest.raises(ValueError, match="times must not decrease"):
            strict.update([4], [9])
    assert len(strict) == 1
    strict.flush()
    assert strict.sketch.arrivals == 3


def test_what_waits_is_bounded_and_what_cannot_wait_is_counted():
    ordered = Reorder(new(), 50, most=10)
    ordered.update(np.arange(30), np.arange(30))
    assert (len(ordered), ordered.hurried, ordered.sketch.now) == (10, 20, 19)
    ordered.update([1], [30])
    assert (len(ordered), ordered.hurried) == (10, 21)


@pytest.mark.parametrize("kind", [list, np.array, pa.array, lambda x: np.array(x, object)])
def test_items_of_every_kind_come_through(kind):
    """Text and integers of 64 bits, also from calendars."""
    times = np.array(["2026-01-01T00:00:05", "2026-01-01T00:00:01"], "M8[s]")
    for items in (["b", "a"], [2**63 - 1, 1]):
        sketch = new(window="1 min", tick="1 s")
        ordered = Reorder(sketch, "10 s")
        ordered.update(kind(items), times)
        ordered.update(kind(items[:1]), times[:1] + np.timedelta64(20, "s"))
        assert sketch.estimate(items) == [(1, pytest.approx(0.9, abs=0.1), 1, 0.9)] * 2
    sketch = new()
    wide = Reorder(sketch, 1)
    wide.update(np.array([2**64 - 1, 5], np.uint64), [3, 2])
    wide.update([-7], [2])
    wide.flush()
    assert [found.high for found in sketch.estimate([2**64 - 1, 5, -7])] == [1, 1, 1]


def test_it_takes_single_events_through_a_buffer():
    sketch = new()
    with Buffer(Reorder(sketch, 3)) as buffer:
        for time in (5, 3, 4, 9):
            buffer.update("a", time)
    assert (sketch.now, sketch.total().value, len(buffer.sketch)) == (5, 3, 1)


def test_bad_input_is_refused_before_it_waits():
    ordered = Reorder(new(), 10)
    ordered.update([1], [5])
    for items, times, weights, match in [
        ([1, 2], [1], None, "times must be as many as items, got 1 for 2"),
        ([1], [1], [1, 2], "weights must be as many as events"),
        ([1], [1], [0.5], "weights must be integers"),
        ([1], [1.5], None, "times must be integers"),
        ([1], [2**62], None, "times must lie in"),
        ([None], [1], None, "items must be integers or text"),
        (["a"], [1], None, "items must be integers, as those before, got text"),
    ]:
        with pytest.raises(ValueError, match=match):
            ordered.update(items, times, weights)
    assert len(ordered) == 1
    for lateness in (0, -1, "1 s", 1.5):
        with pytest.raises(ValueError, match="lateness must be"):
            Reorder(new(), lateness)
    with pytest.raises(ValueError, match="most must be"):
        Reorder(new(), 1, most=0)
    with pytest.raises(ValueError, match="window must be a number of ticks or a duration"):
        Reorder(new(window=arrivals(10)), 1)
