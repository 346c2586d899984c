"""Durations and times against Python's own calendar, in integers of nanoseconds."""

import datetime
from datetime import timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import ticks
from streamgauge.ticks import LIMIT, instant, nanoseconds, numbers, show, span, spell

MS, S, MIN, HOUR, DAY = 10**6, 10**9, 60 * 10**9, 3600 * 10**9, 86400 * 10**9
BERLIN = datetime.timezone(timedelta(hours=2))
NOON = datetime.datetime(2024, 2, 29, 12, 30, 15, 123456)
NOON_NS = 1709209815123456000


@pytest.mark.parametrize(
    ("duration", "length"),
    [
        ("10 min", 10 * MIN),
        ("10min", 10 * MIN),
        ("1 hour 30 minutes", 90 * MIN),
        ("1h30min", 90 * MIN),
        (" 2 days  1 s ", 2 * DAY + S),
        ("5 Hours", 5 * HOUR),
        ("3 hrs", 3 * HOUR),
        ("7 secs 1 ms 2 us 3 ns", 7 * S + MS + 2003),
        ("1 millisecond 1 microsecond 1 nanosecond", MS + 1001),
        ("0 s", 0),
        ("999999999999999999 d", 999999999999999999 * DAY),
        (timedelta(days=1, microseconds=1), DAY + 1000),
        (timedelta(seconds=-1), -S),
        (np.timedelta64(5, "ns"), 5),
        (np.timedelta64(5, "10ns"), 50),
        (np.timedelta64(5, "10ms"), 50 * MS),
        (np.timedelta64(2, "W"), 14 * DAY),
        (np.timedelta64(2**62, "s"), 2**62 * S),
        (np.timedelta64(3, "m"), 3 * MIN),
    ],
    ids=repr,
)
def test_durations(duration, length):
    assert nanoseconds(duration, "window") == length


@pytest.mark.parametrize(
    "duration",
    [
        *("", " ", "10", "min", "ten min", "10 M", "10 m", "1.5 h", "-1 s", "1 s,", "1 fortnight"),
        *("1 ss", "1" * 19 + " s", 5, 1.5, None, True, b"1 s", datetime.time(1)),
        *(np.timedelta64(1, unit) for unit in ("Y", "M", "ps", "generic")),
        np.timedelta64("NaT"),
    ],
    ids=repr,
)
def test_what_is_no_duration_is_refused(duration):
    with pytest.raises(ValueError, match=r"^window must be a duration .*, got") as refused:
        nanoseconds(duration, "window")
    assert repr(duration) in str(refused.value)


@pytest.mark.parametrize(
    ("duration", "tick", "length"),
    [
        (5, None, 5),
        (np.uint8(5), None, 5),
        (LIMIT, None, LIMIT),
        ("1 min", S, 60),
        ("1 ns", 1, 1),
        (timedelta(hours=1), MS, 3_600_000),
    ],
)
def test_spans(duration, tick, length):
    assert span(duration, tick, "last") == length


@pytest.mark.parametrize(
    ("duration", "tick", "message"),
    [
        (0, None, "be at least 1 tick and at most 2**61, got 0"),
        (-3, None, "be at least 1 tick and at most 2**61, got -3"),
        (LIMIT + 1, None, f"be at least 1 tick and at most 2**61, got {LIMIT + 1}"),
        ("0 s", S, "be at least 1 tick and at most 2**61, got '0 s'"),
        ("3000 d", 1, None),
        ("999999999 d", 1, "be at least 1 tick and at most 2**61, got '999999999 d'"),
        ("1500 ms", S, "be a whole number of ticks of 1 s, got '1500 ms'"),
        ("1 s", None, "be a number of ticks, as the window is, got '1 s'"),
        (1.0, None, "be a number of ticks, as the window is, got 1.0"),
        (True, None, "be a number of ticks, as the window is, got True"),
    ],
)
def test_spans_that_do_not_fit_are_refused(duration, tick, message):
    if message is None:
        assert span(duration, tick, "last") > 0
        return
    with pytest.raises(ValueError) as refused:
        span(duration, tick, "last")
    assert str(refused.value) == f"last must {message}"


@pytest.mark.parametrize("tick", [1, 7, 1000, MS, 10 * MS, S, 90 * S, HOUR, 7 * DAY])
@pytest.mark.parametrize("unit", ["ns", "10ns", "us", "ms", "25ms", "s", "m", "h", "D", "W"])
def test_numpy_times_are_floored_to_the_tick(unit, tick):
    base, step = np.datetime_data(f"M8[{unit}]")
    lengths = {"us": 1000, "ms": MS, "s": S, "m": MIN, "h": HOUR, "D": DAY, "W": 7 * DAY}
    length = step * lengths.get(base, 1)
    counts = np.array([-1000, -1, 0, 1, 1234])
    expected = [count * length // tick for count in counts.tolist()]
    times = counts.view(f"M8[{unit}]")
    for same in (times, times.astype(times.dtype.newbyteorder(">")), times.repeat(2)[::2]):
        found = numbers(same, tick)
        assert found.dtype == np.int64
        assert found.tolist() == expected


def test_numpy_years_and_months_are_those_of_the_calendar():
    months = np.array(["1969-11", "1970-01", "2024-03"], "M8[M]")
    days = [(datetime.date(*ym, 1) - datetime.date(1970, 1, 1)).days for ym in
            ((1969, 11), (1970, 1), (2024, 3))]  # fmt: skip
    assert numbers(months, DAY).tolist() == days
    assert numbers(np.array(["2024"], "M8[Y]"), DAY).tolist() == [days[-1] - 31 - 29]


@pytest.mark.parametrize(
    "time",
    [
        NOON,
        NOON.replace(tzinfo=datetime.UTC),
        (NOON + timedelta(hours=2)).replace(tzinfo=BERLIN),
        np.datetime64(NOON),
        np.datetime64(NOON_NS, "ns"),
        pd.Timestamp(NOON),
        pd.Timestamp(NOON, tz="UTC").tz_convert("America/New_York"),
        pa.array([NOON_NS], pa.timestamp("ns")),
        pa.array([NOON_NS // 1000], pa.timestamp("us", "Europe/Berlin")),
        pa.chunked_array([[NOON_NS // 1000]], pa.timestamp("us", "UTC")),
        pd.Series([NOON]),
        pd.Series([NOON]).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
        pd.DatetimeIndex([NOON]),
        np.array([NOON], object),
        [NOON],
        (NOON.replace(tzinfo=datetime.UTC),),
    ],
    ids=repr,
)
def test_one_instant_has_one_tick_whatever_says_it(time):
    """Naive times are UTC; times with a zone are the instants they name."""
    assert numbers(time, 1000).tolist() == [NOON_NS // 1000]
    assert instant(time, S, "now") == NOON_NS // S


def test_days_of_arrow():
    days = np.array([-1, 0, 19_782], np.int32)
    for kind in (pa.date32(), pa.date64()):
        found = numbers(pa.array(days).cast(pa.date32()).cast(kind), HOUR)
        assert found.tolist() == (24 * days).tolist()


@pytest.mark.parametrize("code", [*"bhilqBHILQ", ">i4"])
def test_integers_of_every_width_are_ticks(code):
    times = np.array([0, 1, 100], code)
    native = times.astype(times.dtype.newbyteorder("="))
    for same in (times, times.tolist(), pa.array(native), pd.Series(native), range(0, 1)):
        found = numbers(same, None)
        assert found.dtype == np.int64
        assert found.tolist() == [0, 1, 100][: len(same)]


@pytest.mark.parametrize(
    "nothing",
    [
        *([], (), pd.Series([], dtype=object)),
        *(np.array([], kind) for kind in ("f8", "i2", "M8[ns]", "O")),
        *(pa.array([], kind) for kind in (pa.null(), pa.int8(), pa.timestamp("us"))),
    ],
    ids=repr,
)
@pytest.mark.parametrize("tick", [None, MS])
def test_no_times_are_no_ticks(nothing, tick):
    found = numbers(nothing, tick)
    assert (found.tolist(), found.dtype) == ([], np.int64)


CALENDAR = "be datetimes, since the window is a duration, got"
PLAIN = "be integers, since the window is a number of ticks, got"


@pytest.mark.parametrize(
    ("times", "tick", "message"),
    [
        ([1.5], None, f"{PLAIN} float64 such as 1.5"),
        ([True], None, f"{PLAIN} bool such as True"),
        (["1"], None, f"{PLAIN} <U1 such as '1'"),
        (None, None, f"{PLAIN} object such as None"),
        ([2**64], None, f"{PLAIN} object such as {2**64}"),
        (NOON, None, f"{PLAIN} datetime64[us] such as {NOON!r}"),
        (np.array([2**63], np.uint64), None, f"lie in [-2**61, 2**61] ticks, got {2**63}"),
        (np.zeros((1, 1), int), None, "be one-dimensional, got 2 dimensions"),
        (pa.array([1, None]), None, "not hold nulls, got 1"),
        ([5], MS, f"{CALENDAR} int64 such as 5"),
        ("2024-01-01", MS, f"{CALENDAR} <U10 such as '2024-01-01'"),
        ([datetime.date(2024, 1, 1)], MS, f"{CALENDAR} object such as datetime.date(2024, 1, 1)"),
        (pa.array([1], pa.duration("s")), MS,
         f"{CALENDAR} timedelta64[s] such as datetime.timedelta(seconds=1)"),
        ([NOON, 5], MS, "all be datetimes, got 5"),
        ([NOON, pd.NaT], MS, "all be datetimes, got NaT"),
        (np.array(["2024", "NaT"], "M8[s]"), MS, "not hold NaT, got one at 1"),
        (pa.array([None, 1], pa.timestamp("s")), MS, "not hold nulls, got 1"),
        (np.array([1], "M8[ps]"), MS, "be in nanoseconds or coarser, got datetime64[ps]"),
        (np.array([2**60], "M8[s]"), MS,
         "lie in [-2**61, 2**61] ticks of 1 ms, got 36534630048-05-13T13:56:16"),
        (np.array([2**60], "M8[s]"), 3,
         "lie in [-2**61, 2**61] ticks of 3 ns, got 36534630048-05-13T13:56:16"),
        (np.array([0, -(2**60)], "M8[D]"), MS,
         "lie in [-2**61, 2**61] ticks of 1 ms, got -3156591865968850-09-06"),
        (np.array([2**60], "M8[Y]"), MS, f"lie in [-2**63, 2**63) days, got {2**60 + 1970}"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_times_are_refused(times, tick, message):
    with pytest.raises(ValueError) as refused:
        numbers(times, tick)
    assert str(refused.value) == f"times must {message}"


@pytest.mark.parametrize("far", [LIMIT + 1, -LIMIT - 1, 2**63 - 1, -(2**63)])
def test_ticks_out_of_range_are_refused(far):
    with pytest.raises(
        ValueError, match=rf"^now must lie in \[-2\*\*61, 2\*\*61\] ticks, got {far}$"
    ):
        instant(far, None, "now")


@pytest.mark.parametrize("near", [LIMIT, -LIMIT])
def test_ticks_at_the_limit_are_taken(near):
    assert instant(near, None, "now") == near


@pytest.mark.parametrize("times", [[], [1, 2]])
def test_now_is_one_time(times):
    with pytest.raises(ValueError, match=rf"^now must be one time, got {len(times)}$"):
        instant(times, None, "now")


@given(st.integers(1, 10**15), st.sampled_from([1, 10, 1000, MS, S, MIN, HOUR, DAY]))
def test_spelled_lengths_are_durations_again(count, unit):
    assert nanoseconds(spell(count * unit), "window") == count * unit


@given(st.integers(-(2**61), 2**61), st.sampled_from([None, 1, 1000, MS, 5 * MS, S]))
def test_a_time_made_from_a_tick_is_that_tick_again(number, tick):
    number %= 2**61 // (tick or 1)
    assert numbers(ticks.time(number, tick), tick).tolist() == [number]


@pytest.mark.parametrize(
    ("number", "tick", "shown"),
    [
        (-5, None, "-5"),
        (0, S, "1970-01-01T00:00:00"),
        (-1, MS, "1969-12-31T23:59:59.999"),
        (NOON_NS, 1, "2024-02-29T12:30:15.123456"),
        (LIMIT, S, f"tick {LIMIT}"),
    ],
)
def test_ticks_are_shown_as_people_read_them(number, tick, shown):
    assert show(number, tick) == shown


def test_the_callers_array_may_be_used_but_is_not_changed():
    times = np.array([3, 1, 2])
    assert numbers(times, None) is times
    calendar = times.view("M8[ns]")
    numbers(calendar, 2)
    assert times.tolist() == [3, 1, 2]
