"""The door of a sketch: which events come in, when, and what the clock says."""

from typing import Annotated, Any, Literal, NamedTuple, Self, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamgauge import kernels, ticks
from streamgauge.wire import WireError

Late = Literal["raise", "drop", "clamp"]

COUNT_LIMIT = 1 << 53  # counts up to here are exact as float64

Tick = Annotated[int, msgspec.Meta(ge=-ticks.LIMIT, le=ticks.LIMIT)]
Length = Annotated[int, msgspec.Meta(ge=1, le=ticks.LIMIT)]
Count = Annotated[int, msgspec.Meta(ge=0, le=COUNT_LIMIT)]


class DoorState(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """A door on the wire; `tick` is in nanoseconds, None for plain integer ticks and arrivals."""

    window: Length
    tick: Length | Literal["arrival"] | None
    late: Late
    now: Tick | None
    late_events: Count


class Admitted(NamedTuple):
    """The events of a batch that count, and what the door will remember of it."""

    ticks: NDArray[np.int64]  # never decreasing
    weights: NDArray[np.int64] | None  # positive; None: all 1
    kept: NDArray[np.bool_] | None  # which of those offered; None: all
    clock: int | None
    late: int
    step: int = 0  # 1: the arrivals of one event came at consecutive ticks, the newest at its own

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often each event came."""
        return np.ones_like(self.ticks) if self.weights is None else self.weights

    @property
    def arrivals(self) -> int:
        """How many there are, each event as often as it weighs."""
        return self.ticks.size if self.weights is None else _sum(self.weights)

    def part(self, begin: int, end: int | None = None, clock: int | None = None) -> "Admitted":
        """The events begin..end by themselves, after which the clock is at `clock`."""
        weights = None if self.weights is None else self.weights[begin:end]
        return Admitted(self.ticks[begin:end], weights, None, clock, 0, self.step)


class Door:
    """Keeps one sketch's clock and holds its events to the window `(now - window, now]`.

    The clock is the greatest tick seen or advanced to, None before the first. An event older
    than the clock is late: `raise` refuses the batch, `drop` leaves the event out, `clamp` takes
    it as if it came now; both are counted in `late_events`.

    Where the window counts arrivals, a tick is the number of an arrival, from 1: times are neither
    given nor late, and the clock moves with arrivals only.
    """

    def __init__(self, state: DoorState) -> None:
        self.window = state.window
        self.counts_arrivals = state.tick == "arrival"
        self.tick = None if state.tick == "arrival" else state.tick
        self.late: Late = state.late
        self.now = state.now
        self.late_events = state.late_events

    @classmethod
    def parse(cls, window: Any, tick: Any, late: Any) -> Self:
        """The door of a new sketch, from what its user wrote."""
        if late not in get_args(Late):
            raise ValueError(f"late must be one of {', '.join(get_args(Late))}, got {late!r}")
        if isinstance(window, ticks.Arrivals):
            if tick is not None:
                raise ValueError(f"tick goes with a window that is a duration, got tick={tick!r}")
            number = ticks.arrivals(window.number).number
            return cls(DoorState(number, "arrival", late, None, 0))
        unit = None
        if not ticks.is_whole(window):
            unit = ticks.nanoseconds("1 ms" if tick is None else tick, "tick")
            if not 1 <= unit <= ticks.LIMIT:
                raise ValueError(f"tick must be at least 1 ns and at most 2**61 ns, got {tick!r}")
        elif tick is not None:
            raise ValueError(f"tick goes with a window that is a duration, got tick={tick!r}")
        return cls(DoorState(ticks.span(window, unit, "window"), unit, late, None, 0))

    @classmethod
    def of_times(cls, state: DoorState) -> Self:
        """The door with this state; WireError if its window counts arrivals."""
        if state.tick == "arrival":
            raise WireError("a window of arrivals does not go with this type of sketch")
        return cls(state)

    def require_times(self) -> "Door":
        """Itself, unless its window counts arrivals."""
        if self.counts_arrivals:
            window = self.spell(self.window)
            raise ValueError(f"window must be a number of ticks or a duration, got {window}")
        return self

    def state(self) -> DoorState:
        """What makes an equal door."""
        unit: int | Literal["arrival"] | None = "arrival" if self.counts_arrivals else self.tick
        return DoorState(self.window, unit, self.late, self.now, self.late_events)

    @property
    def specification(self) -> dict[str, object]:
        """What sketches must agree in to answer together."""
        return {"window": self.window, "tick": self.state().tick}

    def ticks(self, times: Any, events: int, weights: Any) -> NDArray[np.int64]:
        """The tick of each event: from its time, of any accepted kind, or by counting arrivals."""
        if not self.counts_arrivals:
            return ticks.numbers(times, self.tick)
        if times is not None:
            raise ValueError("times must be left out, since the window counts arrivals")
        start = self.now or 0
        if weights is None:
            return np.arange(start + 1, start + 1 + events)
        counts = whole(weights, events)
        if start + _sum(counts) > ticks.LIMIT:
            raise OverflowError(f"arrivals must stay below 2**53, got {_sum(counts)} more")
        return start + np.cumsum(counts)

    def admit(self, arrived: NDArray[np.int64], weights: Any) -> Admitted:
        """What the door makes of a batch. Nothing changes before the batch is whole: `enter`."""
        counts = None if weights is None else whole(weights, arrived.size)
        if counts is not None and np.all(counts == 1):
            counts = None
        if arrived.size == 0:
            return Admitted(arrived, None, None, self.now, 0, int(self.counts_arrivals))
        arrived = np.require(arrived, np.int64, ["C", "W"])
        start = int(arrived[0]) if self.now is None else self.now
        kept = None
        late = 0
        if arrived[0] >= start and kernels.order.never_decreases(arrived):
            ticks.require_in_range(arrived[[0, -1]])
        else:
            ticks.require_in_range(arrived)
            clock = np.maximum(np.maximum.accumulate(arrived), start)
            behind = arrived < clock
            late = int(np.count_nonzero(behind))
            if self.late == "raise":
                first = int(np.argmax(behind))
                raise ValueError(
                    f"times must not decrease: times[{first}] = {self.show(int(arrived[first]))} "
                    f"is before {self.show(int(clock[first]))} "
                    '(late="drop" leaves such events out, late="clamp" takes them as now)'
                )
            if self.late == "drop":
                kept = ~behind
            arrived = clock
        now = int(arrived[-1])
        if counts is not None and not counts.all():
            kept = counts > 0 if kept is None else kept & (counts > 0)
        if kept is not None:
            arrived = arrived[kept]
            counts = None if counts is None else counts[kept]
        return Admitted(arrived, counts, kept, now, late, int(self.counts_arrivals))

    def enter(self, admitted: Admitted) -> None:
        """The admitted events are in."""
        self.now = admitted.clock
        self.late_events += admitted.late

    def advance(self, now: Any) -> None:
        """Let time pass without events."""
        moment = ticks.instant(now, self.tick, "now")
        if self.now is not None and moment < self.now:
            raise ValueError(
                f"now must not go back: {self.show(moment)} is before {self.show(self.now)}"
            )
        self._require_arrivals(moment)
        self.now = moment

    def range(self, last: Any, now: Any) -> tuple[int, int]:
        """A question's `(cutoff, now]` in ticks; None means the whole window, at the clock."""
        length = self.window if last is None else ticks.span(last, self.tick, "last")
        if length > self.window:
            raise ValueError(
                f"last must not exceed the window of {self.spell(self.window)}, "
                f"got {self.spell(length)}"
            )
        if now is None:
            moment = 0 if self.now is None else self.now
        else:
            moment = ticks.instant(now, self.tick, "now")
            if self.now is not None and moment < self.now:
                raise ValueError(
                    f"now must not be before the clock: {self.show(moment)} is before "
                    f"{self.show(self.now)}"
                )
            self._require_arrivals(moment)
        return moment - length, moment

    def _require_arrivals(self, moment: int) -> None:
        if self.counts_arrivals and moment != (self.now or 0):
            raise ValueError(
                f"now must be {self.now or 0}, the number of arrivals, as nothing else moves a "
                f"window of arrivals, got {moment}"
            )

    def time(self, moment: int) -> int | np.datetime64:
        """A tick as `now=` takes it."""
        return ticks.time(moment, self.tick)

    def show(self, moment: int) -> str:
        """A tick for people."""
        return ticks.show(moment, self.tick)

    def spell(self, length: int) -> str:
        """A number of ticks for people."""
        if self.counts_arrivals:
            return f"{length} arrivals"
        return f"{length} ticks" if self.tick is None else ticks.spell(length * self.tick)

    def written(self) -> str:
        """The window and the tick as they are given to a sketch."""
        if self.counts_arrivals:
            return f"window=arrivals({self.window})"
        if self.tick is None:
            return f"window={self.window}"
        return f"window={self.spell(self.window)!r}, tick={self.spell(1)!r}"


def whole(weights: Any, events: int) -> NDArray[np.int64]:
    """Weights as integers that are not negative, one for each event."""
    ticks.require_unmasked(weights, "weights")
    given = np.atleast_1d(np.asarray(weights))
    if given.size == 0 and events == 0:
        return np.empty(0, np.int64)
    if given.dtype.kind not in "iu":
        raise ValueError(f"weights must be integers, got {given.dtype}")
    if given.shape != (events,):
        raise ValueError(f"weights must be as many as events, got {given.size} for {events}")
    if int(given.min()) < 0 or int(given.max()) >= COUNT_LIMIT:
        worst = given.min() if given.min() < 0 else given.max()
        raise ValueError(f"weights must lie in [0, 2**53), got {worst}")
    return np.require(given, np.int64, ["C", "W"])


def _sum(weights: NDArray[np.int64]) -> int:
    """Their sum, in two columns: many weights near 2**53 exceed int64 together."""
    low, high = weights & 0xFFFFFFFF, weights >> 32
    return int(low.sum()) + (int(high.sum()) << 32)


def require_share(name: str, value: Any) -> float:
    """`value` as a float strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ValueError(f"{name} must be a number in (0, 1), got {value!r}")
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie in (0, 1), got {value}")
    return float(value)


def require_room(total: int, admitted: Admitted) -> None:
    """Refuse a batch with which `total` arrivals would no longer be exact as float64."""
    if total + admitted.arrivals >= COUNT_LIMIT:
        raise OverflowError(
            f"arrivals must stay below 2**53, got {total} and {admitted.arrivals} more"
        )
