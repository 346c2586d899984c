"""Time: durations, calendar times and the int64 ticks that everything inside counts in.

A sketch either counts plain integer ticks, or it is a calendar sketch whose tick is so many
nanoseconds; then times are instants (naive ones are UTC), floored to the tick. This is the one
module that knows about calendars.
"""

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LIMIT = 1 << 61  # ticks lie in [-LIMIT, LIMIT]: differences and bases never overflow

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
_NAMES = {
    **{name: name for name in _UNITS},
    "nanosecond": "ns",
    "microsecond": "us",
    "millisecond": "ms",
    "sec": "s",
    "second": "s",
    "minute": "min",
    "hr": "h",
    "hour": "h",
    "day": "d",
}
_NUMPY = {  # how numpy spells the units of fixed length
    "W": 7 * _UNITS["d"],
    "D": _UNITS["d"],
    "h": _UNITS["h"],
    "m": _UNITS["min"],
    **{unit: _UNITS[unit] for unit in ("s", "ms", "us", "ns")},
}
_TERM = re.compile(r"\s*(\d{1,18})\s*([a-zA-Z]+)")

Duration = str | datetime.timedelta | np.timedelta64


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The length of a window that counts arrivals: a tick is the number of one."""

    number: int


def arrivals(number: int) -> Arrivals:
    """A window of the last `number` arrivals, whenever they came."""
    return Arrivals(span(number, None, "number"))


def nanoseconds(duration: Duration, name: str) -> int:
    """A duration such as "10 min", "1 hour 30 min" or a timedelta; `name` is for the error."""
    if isinstance(duration, datetime.timedelta):
        return (duration // datetime.timedelta(microseconds=1)) * 1000
    if isinstance(duration, np.timedelta64):
        code, step = np.datetime_data(duration.dtype)
        if np.isnat(duration) or code not in _NUMPY:
            raise ValueError(
                f"{name} must be a duration of fixed length and whole nanoseconds, got {duration!r}"
            )
        return int(duration.astype(np.int64)) * step * _NUMPY[code]
    if not isinstance(duration, str):
        raise ValueError(f'{name} must be a duration such as "10 min", got {duration!r}')
    total, at = 0, 0
    while at < len(duration.rstrip()):
        term = _TERM.match(duration, at)
        unit = (term and _NAMES.get(term[2])) or (term and _NAMES.get(term[2].lower().rstrip("s")))
        if not term or not unit:
            known = ", ".join(_UNITS)
            raise ValueError(
                f'{name} must be a duration such as "10 min" (units {known}), got {duration!r}'
            )
        total += int(term[1]) * _UNITS[unit]
        at = term.end()
    if at == 0:
        raise ValueError(f'{name} must be a duration such as "10 min", got {duration!r}')
    return total


def is_whole(value: Any) -> bool:
    """Whether a value is an integer; numpy calls its durations integers, Python its booleans."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def span(duration: Duration | int, tick: int | None, name: str) -> int:
    """A length of time in ticks: of `tick` nanoseconds, or plain where `tick` is None."""
    if tick is None:
        if not is_whole(duration):
            raise ValueError(
                f"{name} must be a number of ticks, as the window is, got {duration!r}"
            )
        ticks = int(duration)  # type: ignore[arg-type]
    else:
        length = nanoseconds(duration, name)  # type: ignore[arg-type]
        ticks, rest = divmod(length, tick)
        if rest:
            raise ValueError(
                f"{name} must be a whole number of ticks of {spell(tick)}, got {duration!r}"
            )
    if not 1 <= ticks <= LIMIT:
        raise ValueError(f"{name} must be at least 1 tick and at most 2**61, got {duration!r}")
    return ticks


def length(text: str, tick: int | None, name: str) -> int:
    """A length as somebody writes it, in ticks: a number of them or, where they last, a duration.

    A duration that is no whole number of ticks is rounded up.
    """
    if tick is None:
        if not text.isdecimal():
            raise ValueError(f"{name} must be a number of ticks, got {text!r}")
        return int(text)
    return -(-nanoseconds(text, name) // tick)


def spell(length: int) -> str:
    """A length in nanoseconds as its largest whole unit: 60_000_000_000 is "1 min"."""
    for unit in reversed(_UNITS):
        if length % _UNITS[unit] == 0:
            return f"{length // _UNITS[unit]} {unit}"
    raise AssertionError("every integer is a whole number of ns")


def coarse(lengths: Sequence[int]) -> int:
    """A tick for a window of lengths[0], all in nanoseconds: at most a 500th, a part of each.

    1, 2 or 5 times a power of ten.
    """
    unit = 10**17
    while unit:
        for tick in (5 * unit, 2 * unit, unit):
            if 500 * tick <= lengths[0] and not any(length % tick for length in lengths):
                return tick
        unit //= 10
    return 1


def show(tick_number: int, tick: int | None) -> str:
    """A tick as people read it, for errors and pictures."""
    if tick is None:
        return str(tick_number)
    seconds, rest = divmod(tick_number * tick, _UNITS["s"])
    if abs(seconds) > 1 << 55:
        return f"tick {tick_number}"
    return str(np.datetime64(seconds, "s")) + (f".{rest:09d}".rstrip("0") if rest else "")


def time(number: int, tick: int | None) -> int | np.datetime64:
    """A tick as a user gives it: `numbers` is the inverse."""
    return number if tick is None else times(np.array([number]), tick)[0]


def times(numbers: NDArray[np.int64], tick: int | None) -> NDArray[Any]:
    """Ticks as a user gives them."""
    if tick is None:
        return numbers
    unit = next(unit for unit in ("D", "h", "m", "s", "ms", "us", "ns") if tick % _NUMPY[unit] == 0)
    factor = tick // _NUMPY[unit]
    if factor > 1 and numbers.size and int(abs(numbers).max()) * factor >= 1 << 63:
        raise ValueError(f"times must lie in the calendar of numpy's {unit}, got tick {numbers[0]}")
    return (numbers * factor).view(f"datetime64[{unit}]")


def instant(time: Any, tick: int | None, name: str) -> int:
    """One time as one tick."""
    ticks = numbers(time, tick, name)
    if ticks.size != 1:
        raise ValueError(f"{name} must be one time, got {ticks.size}")
    require_in_range(ticks, name)
    return int(ticks[0])


def numbers(times: Any, tick: int | None, name: str = "times") -> NDArray[np.int64]:
    """Times of any accepted kind as int64 ticks, not yet required to be in range.

    One time is an array of one. The array may be the caller's own.
    """
    array = _as_numpy(times, name)
    if array.size == 0:
        return np.empty(0, np.int64)
    if tick is None:
        if array.dtype.kind not in "iu":
            raise ValueError(
                f"{name} must be integers, since the window is a number of ticks, "
                f"got {array.dtype} such as {_sample(array)}"
            )
        if array.dtype == np.uint64 and int(array.max()) > LIMIT:
            raise ValueError(f"{name} must lie in [-2**61, 2**61] ticks, got {array.max()}")
        ticks = array.astype(np.int64, copy=False)
    else:
        if array.dtype.kind != "M":
            raise ValueError(
                f"{name} must be datetimes, since the window is a duration, "
                f"got {array.dtype} such as {_sample(array)}"
            )
        ticks = _floor(array, tick, name)
    return ticks


def require_in_range(ticks: NDArray[np.int64], name: str = "times") -> None:
    """Refuse ticks whose differences could overflow; for sorted ticks its ends are enough."""
    if ticks.size and not -LIMIT <= int(ticks.min()) <= int(ticks.max()) <= LIMIT:
        worst = ticks[int(np.argmax((ticks < -LIMIT) | (ticks > LIMIT)))]
        raise ValueError(f"{name} must lie in [-2**61, 2**61] ticks, got {worst}")


def require_unmasked(values: Any, name: str) -> None:
    """Refuse numpy's masked arrays where something is masked: its data are not meant."""
    if np.ma.is_masked(values):
        masked = int(np.count_nonzero(np.ma.getmaskarray(values)))
        raise ValueError(f"{name} must not hold nulls, got {masked}")


def _sample(array: NDArray[Any]) -> str:
    return repr(array.flat[0].item() if hasattr(array.flat[0], "item") else array.flat[0])


def _as_numpy(times: Any, name: str) -> NDArray[Any]:
    if hasattr(times, "__arrow_c_array__") or hasattr(times, "__arrow_c_stream__"):
        import pyarrow as pa  # noqa: PLC0415  (65 ms that only users of Arrow should pay)

        array = pa.chunked_array(times) if hasattr(times, "__arrow_c_stream__") else pa.array(times)
        if array.null_count:
            raise ValueError(f"{name} must not hold nulls, got {array.null_count}")
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if pa.types.is_date32(array.type):
            array = array.cast(pa.date64())
        return np.asarray(array.to_numpy(zero_copy_only=False))
    require_unmasked(times, name)
    array = np.atleast_1d(np.asarray(times))
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got {array.ndim} dimensions")
    if array.dtype == object and array.size and isinstance(array[0], datetime.datetime):
        return np.array([_utc(time, name) for time in array], "datetime64[us]")
    return array


def _utc(time: Any, name: str) -> datetime.datetime:
    if not isinstance(time, datetime.datetime) or time != time:  # noqa: PLR0124  (pandas' NaT)
        raise ValueError(f"{name} must all be datetimes, got {time!r}")
    return time.astimezone(datetime.UTC).replace(tzinfo=None) if time.tzinfo else time


def _floor(array: NDArray[Any], tick: int, name: str) -> NDArray[np.int64]:
    if np.isnat(array).any():
        raise ValueError(f"{name} must not hold NaT, got one at {int(np.argmax(np.isnat(array)))}")
    unit, step = np.datetime_data(array.dtype)
    if unit in ("Y", "M"):
        days = array.astype("datetime64[D]")
        if np.any(days.astype(array.dtype) != array):
            raise ValueError(f"{name} must lie in [-2**63, 2**63) days, got {array.max()}")
        array, unit, step = days, "D", 1
    if unit not in _NUMPY:
        raise ValueError(f"{name} must be in nanoseconds or coarser, got {array.dtype}")
    numbers = array.astype(array.dtype.newbyteorder("="), copy=False).view(np.int64)
    length = _NUMPY[unit] * step
    if tick % length == 0:
        return numbers // (tick // length) if tick != length else numbers
    for extreme in (array.min(), array.max()):
        if not -LIMIT <= int(extreme.astype(np.int64)) * length // tick <= LIMIT:
            raise ValueError(
                f"{name} must lie in [-2**61, 2**61] ticks of {spell(tick)}, got {extreme}"
            )
    if length % tick == 0:
        return numbers * (length // tick)
    return (numbers.astype(object) * length // tick).astype(np.int64)
