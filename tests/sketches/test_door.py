"""The door of every sketch: what comes in, what is refused, and that a refusal changes nothing."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import EcmSketch, Wave
from streamgauge.sketches.door import COUNT_LIMIT, Door

KINDS = [Wave, EcmSketch]
NOON = datetime.datetime(2024, 2, 29, 12)


def new(kind, **changed):
    given = {"window": 100, "epsilon": 0.1}
    if kind is EcmSketch:
        given |= {"delta": 0.1, "seed": 7}
    return kind(**(given | changed))


def feed(sketch, times, weights=None):
    if isinstance(sketch, Wave):
        sketch.update(times, weights)
    else:
        sketch.update([1] * np.size(times), times, weights)


def total(sketch, last=None, now=None):
    return sketch.estimate(last, now) if isinstance(sketch, Wave) else sketch.total(last, now)


def refused(message, call, *arguments, error=ValueError):
    with pytest.raises(error) as info:
        call(*arguments)
    assert type(info.value) is error
    assert str(info.value) == message


ONE_TO_2_61 = "must be at least 1 tick and at most 2**61, got"
DURATION = 'must be a duration such as "10 min", got'
SHARE = "must lie in (0, 1), got"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"window": 0}, f"window {ONE_TO_2_61} 0"),
        ({"window": -5}, f"window {ONE_TO_2_61} -5"),
        ({"window": 2**61 + 1}, f"window {ONE_TO_2_61} {2**61 + 1}"),
        ({"window": "0 s"}, f"window {ONE_TO_2_61} '0 s'"),
        (
            {"window": datetime.timedelta(days=-1)},
            f"window {ONE_TO_2_61} {datetime.timedelta(-1)!r}",
        ),
        ({"window": 1.5}, f"window {DURATION} 1.5"),
        ({"window": True}, f"window {DURATION} True"),
        ({"window": None}, f"window {DURATION} None"),
        (
            {"window": "1 h", "tick": "7 ms"},
            "window must be a whole number of ticks of 7 ms, got '1 h'",
        ),
        (
            {"window": "1 h", "tick": "0 s"},
            "tick must be at least 1 ns and at most 2**61 ns, got '0 s'",
        ),
        ({"window": "1 h", "tick": 5}, f"tick {DURATION} 5"),
        ({"tick": "1 ms"}, "tick goes with a window that is a duration, got tick='1 ms'"),
        ({"late": "ignore"}, "late must be one of raise, drop, clamp, got 'ignore'"),
        ({"late": None}, "late must be one of raise, drop, clamp, got None"),
        ({"epsilon": 0}, f"epsilon {SHARE} 0"),
        ({"epsilon": 1}, f"epsilon {SHARE} 1"),
        ({"epsilon": -0.1}, f"epsilon {SHARE} -0.1"),
        ({"epsilon": float("nan")}, f"epsilon {SHARE} nan"),
        ({"epsilon": "0.1"}, "epsilon must be a number in (0, 1), got '0.1'"),
        ({"epsilon": True}, "epsilon must be a number in (0, 1), got True"),
        ({"epsilon": 9e-7}, "epsilon must be at least 1e-6, got 9e-07"),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", KINDS)
def test_bad_parameters_are_refused(kind, changed, message):
    refused(message, lambda: new(kind, **changed))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"delta": 0}, f"delta {SHARE} 0"),
        ({"delta": 1.0}, f"delta {SHARE} 1.0"),
        ({"delta": None}, "delta must be a number in (0, 1), got None"),
        ({"delta": 1e-19}, "delta must be at least 1e-18, got 1e-19"),
        ({"seed": -1}, "seed must lie in [0, 2**64), got -1"),
        ({"seed": 2**64}, f"seed must lie in [0, 2**64), got {2**64}"),
        ({"seed": 1.0}, "seed must be an integer, got 1.0"),
        ({"seed": True}, "seed must be an integer, got True"),
        ({"seed": "1"}, "seed must be an integer, got '1'"),
    ],
    ids=str,
)
def test_bad_parameters_of_the_rows_are_refused(changed, message):
    refused(message, lambda: new(EcmSketch, **changed))


WHOLE = "weights must be integers, got"
RANGE = "weights must lie in [0, 2**53), got"


@pytest.mark.parametrize(
    ("times", "weights", "message"),
    [
        ([4], None, 'times must not decrease: times[0] = 4 is before 5 (late="drop" leaves such '
         'events out, late="clamp" takes them as now)'),
        ([6, 9, 8], None, 'times must not decrease: times[2] = 8 is before 9 (late="drop" leaves '
         'such events out, late="clamp" takes them as now)'),
        ([6, 7.5], None, "times must be integers, since the window is a number of ticks, "
         "got float64 such as 6.0"),
        ([NOON], None, "times must be integers, since the window is a number of ticks, "
         f"got datetime64[us] such as {NOON!r}"),
        ([6, 2**61 + 1], None, f"times must lie in [-2**61, 2**61] ticks, got {2**61 + 1}"),
        ([2**61 + 1, 6], None, f"times must lie in [-2**61, 2**61] ticks, got {2**61 + 1}"),
        (pa.array([6, None]), None, "times must not hold nulls, got 1"),
        ([6, 7], [1], "weights must be as many as events, got 1 for 2"),
        ([6, 7], [[1, 2]], "weights must be as many as events, got 2 for 2"),
        ([6, 7], 3, "weights must be as many as events, got 1 for 2"),
        ([6, 7], [], f"{WHOLE} float64"),
        ([6, 7], [1, -1], f"{RANGE} -1"),
        ([6, 7], [1, 2**53], f"{RANGE} {2**53}"),
        ([6, 7], np.array([1, 2**64 - 1], np.uint64), f"{RANGE} {2**64 - 1}"),
        ([6, 7], [1, 2**64], f"{WHOLE} object"),
        ([6, 7], [1.0, 2.0], f"{WHOLE} float64"),
        ([6, 7], [True, True], f"{WHOLE} bool"),
        ([6, 7], ["1", "2"], f"{WHOLE} <U1"),
        ([6, 7], [1, None], f"{WHOLE} object"),
        ([6, 7], pa.array([1, None]), f"{WHOLE} float64"),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_batch_is_refused_whole(kind, times, weights, message):
    """The bytes stay as they were, and the next batch comes in.

    Seen to catch: the clock moves before a batch is known to be whole; negative weights are let in.
    """
    sketch = new(kind)
    feed(sketch, [3, 5])
    before = sketch.to_bytes()
    refused(message, feed, sketch, times, weights)
    assert sketch.to_bytes() == before
    feed(sketch, [5, 6])
    assert total(sketch).value == 4


@pytest.mark.parametrize(
    ("items", "times", "message"),
    [
        (["a"], [6], "items must be integers, as those before, got text"),
        ([1, "a"], [6, 7], "items must be all integers or all text, got both"),
        ([1.5], [6], "items must be integers or text, got float 1.5"),
        (None, [6], "items must be integers or text, got NoneType None"),
        (pa.array([1, None]), [6, 7], "items must not hold nulls, got 1"),
        ([1, 2, 3], [6, 7], "times must be as many as items, got 2 for 3"),
        ([], [6], "times must be as many as items, got 1 for 0"),
    ],
)
def test_bad_items_are_refused_with_their_batch(items, times, message):
    sketch = new(EcmSketch)
    sketch.update([1, 2], [3, 5])
    before = sketch.to_bytes()
    refused(message, sketch.update, items, times)
    assert sketch.to_bytes() == before


def test_a_refused_first_batch_leaves_the_kind_open():
    sketch = new(EcmSketch)
    empty = sketch.to_bytes()
    with pytest.raises(ValueError, match=r"^times must not decrease"):
        sketch.update(["a", "b"], [2, 1])
    assert sketch.to_bytes() == empty
    sketch.update([1], [1])


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_batch_changes_nothing(kind):
    for times in ([], np.array([], np.int64), np.array([]), pa.array([])):
        for weights in (None, [], np.array([], np.int64)):
            sketch = new(kind)
            empty = sketch.to_bytes()
            feed(sketch, times, weights)
            assert sketch.to_bytes() == empty
    text = new(EcmSketch)
    text.update("a", 1)
    text.update(np.array([], np.int64), [])
    assert text.total().value == 1


def naive(policy, start, times, weights):
    """(the admitted (tick, weight), late events, clock), or None where the batch is refused."""
    admitted, late, clock = [], 0, start
    for time, weight in zip(times, weights, strict=True):
        tick = time
        if clock is not None and time < clock:
            late += 1
            if policy == "raise":
                return None
            if policy == "drop":
                continue
            tick = clock
        clock = tick
        if weight:
            admitted.append((tick, weight))
    return admitted, late, clock


@given(
    st.sampled_from(["raise", "drop", "clamp"]),
    st.none() | st.integers(-5, 15),
    st.lists(st.tuples(st.integers(-10, 20), st.integers(0, 3)), max_size=12),
    st.booleans(),
)
def test_policies(policy, start, events, weighted):
    """Every event is in, dropped or clamped, and counted.

    Seen to catch: a late event is one that is before the batch; the late events of a batch count as
    one; clamped events are not counted; the clock moves before a batch is known to be whole.
    """
    door = Door.parse(100, None, policy)
    if start is not None:
        door.advance(start)
    times = np.array([time for time, _ in events], np.int64)
    weights = np.array([weight if weighted else 1 for _, weight in events], np.int64)
    expected = naive(policy, start, times.tolist(), weights.tolist())
    if expected is None:
        with pytest.raises(ValueError, match=r"^times must not decrease"):
            door.admit(times, weights)
        assert (door.now, door.late_events) == (start, 0)
        return
    for offered in (weights, None if not weighted else weights.tolist()):
        admitted = door.admit(times, offered)
        taken = np.ones(admitted.ticks.size) if admitted.weights is None else admitted.weights
        found = list(zip(admitted.ticks.tolist(), taken.tolist(), strict=True))
        assert (found, admitted.late, admitted.clock) == expected
        kept = np.arange(times.size) if admitted.kept is None else np.flatnonzero(admitted.kept)
        assert weights[kept].tolist() == taken.tolist()
    assert (door.now, door.late_events) == (start, 0)
    door.enter(admitted)
    assert (door.now, door.late_events) == (expected[2], expected[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("late", "inside", "counted"), [("drop", 3, 2), ("clamp", 5, 2)])
def test_late_events_are_dropped_or_taken_as_now_and_counted(kind, late, inside, counted):
    sketch = new(kind, late=late)
    feed(sketch, [10, 20, 15])
    feed(sketch, [19, 20])
    assert (total(sketch, last=1).value, sketch.late_events) == (inside - 1, counted)
    assert total(sketch).value == inside
    again = type(sketch).from_bytes(sketch.to_bytes())
    assert (again.late_events, again.door.late) == (counted, late)


@pytest.mark.parametrize("kind", KINDS)
def test_weight_nothing_moves_the_clock_and_counts_nothing(kind):
    sketch = new(kind)
    feed(sketch, [5, 9], [0, 0])
    assert (sketch.now, total(sketch).value) == (9, 0)
    feed(sketch, [9, 10, 12], [2, 0, 0])
    assert (sketch.now, total(sketch).value, total(sketch, last=3).value) == (12, 2, 0)


@pytest.mark.parametrize("code", "bhilqBHILQ")
@pytest.mark.parametrize("kind", KINDS)
def test_weights_may_be_integers_of_every_width(kind, code):
    weights = np.array([0, 1, 5], code)
    for same in (weights, weights.tolist(), pa.array(weights), pd.Series(weights)):
        sketch = new(kind)
        feed(sketch, [1, 2, 3], same)
        assert total(sketch, last=1).value == 5
        assert total(sketch).value == 6


@pytest.mark.parametrize("kind", KINDS)
def test_arrivals_stay_below_2_53(kind):
    """Seen to catch: the arrivals may come to 2**53; no room is asked for."""
    sketch = new(kind)
    feed(sketch, [1, 2], [COUNT_LIMIT - 3, 1])
    before = sketch.to_bytes()
    most = COUNT_LIMIT - 1
    for times, weights, more in (([3], [2], 2), ([3, 3], None, 2), ([3], [most], most)):
        message = f"arrivals must stay below 2**53, got {COUNT_LIMIT - 2} and {more} more"
        refused(message, feed, sketch, times, weights, error=OverflowError)
        assert sketch.to_bytes() == before
    feed(sketch, [3])
    assert total(sketch) == (most, most, most, 1.0)
    assert total(type(sketch).from_bytes(sketch.to_bytes()), last=1).low == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_sum_of_weights_is_not_taken_modulo_2_64(kind):
    sketch = new(kind)
    weights = [COUNT_LIMIT - 1] * 2049
    message = f"arrivals must stay below 2**53, got 0 and {sum(weights)} more"
    refused(message, feed, sketch, [1] * 2049, weights, error=OverflowError)


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (101, "last must not exceed the window of 100 ticks, got 101 ticks"),
        (0, f"last {ONE_TO_2_61} 0"),
        (-1, f"last {ONE_TO_2_61} -1"),
        (1.5, "last must be a number of ticks, as the window is, got 1.5"),
        ("5 s", "last must be a number of ticks, as the window is, got '5 s'"),
        (True, "last must be a number of ticks, as the window is, got True"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_range_lies_within_the_window(kind, last, message):
    sketch = new(kind)
    refused(message, total, sketch, last)
    feed(sketch, [5])
    refused(message, total, sketch, last)


@pytest.mark.parametrize(
    ("now", "message"),
    [
        (4, "now must not be before the clock: 4 is before 5"),
        (2**61 + 1, f"now must lie in [-2**61, 2**61] ticks, got {2**61 + 1}"),
        ([5, 6], "now must be one time, got 2"),
        ("5", "now must be integers, since the window is a number of ticks, got <U1 such as '5'"),
        (NOON, "now must be integers, since the window is a number of ticks, "
         f"got datetime64[us] such as {NOON!r}"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", KINDS)
def test_now_is_not_before_the_clock(kind, now, message):
    sketch = new(kind)
    feed(sketch, [5])
    before = sketch.to_bytes()
    refused(message, total, sketch, None, now)
    if "clock" in message:
        message = "now must not go back: 4 is before 5"
    refused(message, sketch.advance, now)
    assert sketch.to_bytes() == before


@pytest.mark.parametrize("kind", KINDS)
def test_the_clock(kind):
    sketch = new(kind)
    assert sketch.now is None
    assert total(sketch).value == total(sketch, now=50).value == 0
    feed(sketch, [-7, -7])
    assert (sketch.now, total(sketch).value) == (-7, 2)
    sketch.advance(-7)
    sketch.advance(20)
    assert (sketch.now, total(sketch, last=27).value, total(sketch, last=28).value) == (20, 0, 2)
    assert total(sketch, now=92).value == 2
    assert total(sketch, now=93).value == 0
    assert sketch.now == 20


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_sketch_may_be_advanced_first(kind):
    sketch = new(kind)
    sketch.advance(10)
    refused('times must not decrease: times[0] = 9 is before 10 (late="drop" leaves such events '
            'out, late="clamp" takes them as now)', feed, sketch, [9])  # fmt: skip
    again = type(sketch).from_bytes(sketch.to_bytes())
    feed(again, [10])
    assert total(again).value == 1


def instants():
    """The same three instants in everything that may hold them: 0, 1.5 and 2.25 s after noon."""
    plain = [NOON + datetime.timedelta(milliseconds=ms) for ms in (0, 1500, 2250)]
    tokyo = datetime.timezone(datetime.timedelta(hours=9))
    aware = [time.replace(tzinfo=datetime.UTC).astimezone(tokyo) for time in plain]
    numpy = np.array(plain, "M8[ms]")
    arrow = pa.array(plain, pa.timestamp("us"))
    return [
        *(plain, tuple(plain), aware, numpy, numpy.astype("M8[us]"), numpy.astype("M8[ns]")),
        *(pd.Series(plain), pd.Series(aware), pd.DatetimeIndex(plain)),
        *(arrow, arrow.cast(pa.timestamp("ns", "UTC")), pa.chunked_array([arrow[:1], arrow[1:]])),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_calendar_sketch_takes_instants_of_every_kind(kind):
    images = set()
    for times in instants():
        sketch = new(kind, window="1 min", tick="500 ms")
        feed(sketch, times)
        images.add(sketch.to_bytes())
        assert total(sketch, last="1 s").value == 2
        assert total(sketch, last=datetime.timedelta(minutes=1)).value == 3
        assert total(sketch, last="500 ms", now=NOON + datetime.timedelta(seconds=3)).value == 0
        sketch.advance(np.datetime64(NOON) + np.timedelta64(61, "s"))
        assert total(sketch).value == 2
    assert len(images) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda sketch: feed(sketch, [5]),
         "times must be datetimes, since the window is a duration, got int64 such as 5"),
        (lambda sketch: feed(sketch, [NOON, NOON - datetime.timedelta(seconds=1)]),
         "times must not decrease: times[1] = 2024-02-29T11:59:59 is before 2024-02-29T12:00:00 "
         '(late="drop" leaves such events out, late="clamp" takes them as now)'),
        (lambda sketch: total(sketch, last=5), f"last {DURATION} 5"),
        (lambda sketch: total(sketch, last="2 h"),
         "last must not exceed the window of 1 h, got 2 h"),
        (lambda sketch: total(sketch, last="1 us"),
         "last must be a whole number of ticks of 1 ms, got '1 us'"),
        (lambda sketch: total(sketch, now=5),
         "now must be datetimes, since the window is a duration, got int64 such as 5"),
        (lambda sketch: sketch.advance(NOON - datetime.timedelta(milliseconds=1)),
         "now must not go back: 2024-02-29T11:59:59.999 is before 2024-02-29T12:00:00"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", KINDS)
def test_a_calendar_sketch_speaks_of_calendar_times(kind, call, message):
    sketch = new(kind, window="1 hour")
    feed(sketch, [NOON])
    refused(message, call, sketch)


@pytest.mark.parametrize("kind", KINDS)
def test_times_and_items_are_not_kept(kind):
    times, weights = np.array([1, 2, 3]), np.array([1, 2, 3])
    sketch = new(kind)
    feed(sketch, times, weights)
    before = sketch.to_bytes()
    times[:], weights[:] = 99, 99
    assert sketch.to_bytes() == before


@pytest.mark.parametrize("hour", [np.timedelta64(1, "h"), np.timedelta64(3_600_000_000_000, "ns")])
def test_a_duration_of_numpy_is_a_duration(hour):
    """numpy calls its timedelta64 an integer. Seen to catch: a duration is taken for ticks."""
    sketch = Wave(window=hour, epsilon=0.1)
    assert (sketch.window, sketch.door.tick) == (3_600_000, 10**6)
    assert sketch.estimate(last=np.timedelta64(30, "m")).value == 0
    with pytest.raises(ValueError, match="last must be a number of ticks, as the window is, got"):
        Wave(window=10, epsilon=0.1).estimate(last=hour)
    with pytest.raises(ValueError, match="seed must be an integer, got"):
        new(EcmSketch, seed=hour)
    with pytest.raises(ValueError, match="items must be integers or text, got"):
        new(EcmSketch).update(hour, 1)
