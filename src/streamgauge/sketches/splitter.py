"""SPLITTER: counts that follow a stream's changes (Rivetti, Busnel & Mostefaoui 2015, III-D)."""

import math
from collections.abc import Iterable
from typing import Annotated, Any, Self, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamgauge import items as item_words
from streamgauge import kernels, wire
from streamgauge.estimate import Estimate
from streamgauge.sketches import tuning
from streamgauge.sketches.columns import Reader, column
from streamgauge.sketches.door import Admitted, Door, Late
from streamgauge.sketches.frame import Frame, FrameState, Ints, answer, heuristic
from streamgauge.sketches.merging import NotMergeable
from streamgauge.sketches.spans import Floats
from streamgauge.sketches.tuning import Tuning

MU, TAU = 1.5, 0.05  # the paper's
_TIE = 1 + 1e-9  # what differs by rounding only is equal
_SLOTS = 64


class _Header(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    frame: FrameState
    mu: float
    tau: float
    slots: Annotated[int, msgspec.Meta(ge=0, le=_SLOTS + 1)]


class SplitterWindowSketch:
    """How often items occurred in the window, by stretches in which each cell's rate was steady.

    A cell is a queue of sub-cells; the oldest shrinks at the rate at which it grew. A sub-cell of
    tau * N / width arrivals is finished, and becomes part of the one before it if their rates
    differ by a factor of `mu` at most. N is the window in arrivals, and in windows of time the
    number of arrivals that the window holds at the moment (at most one 64th of its ticks too many).

    Heuristic, confidence is 0: merged sub-cells can hide a slow change for ever
    (docs/guarantees.md). With mu < 1 nothing is merged, and no cell is off by more than
    tau * N / width + 1. `tune` chooses mu and tau for a stream.

    >>> sketch = SplitterWindowSketch(window=100, epsilon=0.1, delta=0.05, seed=7)
    >>> sketch.update(["a", "b", "a"], [1, 2, 3])
    >>> sketch.estimate("a").value, sketch.estimate("a", now=101).value
    (2.0, 1.0)
    """

    def __init__(
        self,
        *,
        window: Any,
        epsilon: float,
        delta: float,
        seed: int,
        mu: float = MU,
        tau: float = TAU,
        tick: Any = None,
        late: Late = "raise",
    ) -> None:
        self._start(Frame.asked(window, epsilon, delta, seed, tick, late), mu, tau)

    def _start(self, frame: Frame, mu: Any, tau: Any) -> None:
        self.mu = _factor("mu", mu, math.inf)
        self.tau = _factor("tau", tau, 1)
        self._share = self.tau / frame.sizes.width / _TIE
        self._frame = frame
        self.sizes, self.door = frame.sizes, frame.door
        self._recent = None if frame.door.counts_arrivals else _Recent(frame.door.window)
        self._cells = np.zeros((frame.sizes.cells, 4), np.int64)
        self._parts = np.zeros((0, 4), np.int64)
        self._spare = np.zeros(2, np.int64)

    def __repr__(self) -> str:
        """The specification, as it could be written again, and the clock."""
        written = f"{self._frame.written()}, mu={self.mu}, tau={self.tau}"
        return f"SplitterWindowSketch({written}; now={self.now})"

    @property
    def now(self) -> int | None:
        """The clock: the greatest tick seen or advanced to, None before the first."""
        return self.door.now

    @property
    def window(self) -> int:
        """The window in ticks."""
        return self.door.window

    @property
    def arrivals(self) -> int:
        """How many events were ever recorded."""
        return self._frame.arrivals

    @property
    def kind(self) -> item_words.Kind | None:
        """Whether the items are integers or text; None before the first."""
        return self._frame.kind

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return self._cells.nbytes + self._parts.nbytes

    @property
    def subcells(self) -> int:
        """How many sub-cells have not expired."""
        return int(self._lengths().sum())

    @property
    def splits(self) -> int:
        """How many there are beyond the newest two of each cell: the changes that it remembers."""
        return int(np.maximum(self._lengths() - 2, 0).sum())

    def _lengths(self) -> Ints:
        lengths = np.zeros(self.sizes.cells, np.int64)
        cells, parts, _ = self._arrays()
        kernels.windowed.lengths(cells, parts, (self.now or 0) - self.window, lengths)
        return lengths

    def update(self, items: Any, times: Any = None, weights: Any = None) -> None:
        """Record that items[i] occurred at times[i], weights[i] times or once.

        A weight takes the time of as many events.
        """
        words, admitted, kind = self._frame.admit(items, times, weights)
        if words.size:
            if self._recent is None:
                present = np.full(words.size, self.window)
            else:
                present = self._recent.take(admitted)
            batch = words, admitted.ticks, admitted.counts, present, admitted.step
            cursor = np.zeros(2, np.int64)
            sizes = self.sizes.width, self.window, self.mu * _TIE, self._share
            given = self._frame.rows.seeds, *sizes, *batch
            while not kernels.windowed.insert(*self._arrays(), self._spare, *given, cursor):
                at, unit = cursor.tolist()
                behind = admitted.step * (int(admitted.counts[at]) - 1 - unit)
                self._make_room(int(admitted.ticks[at]) - behind - self.window)
        self._frame.enter(admitted, kind)

    def _arrays(self) -> tuple[Ints, Ints, Floats]:
        """The cells, the sub-cells, and these as float64."""
        parts = self._parts.ravel()
        return self._cells.ravel(), parts, parts.view(np.float64)

    def _make_room(self, cutoff: int) -> None:
        """Free what has expired unseen, and have a third more unless a quarter is free then."""
        cells, parts, _ = self._arrays()
        kernels.windowed.sweep(cells, parts, self._spare, cutoff)
        many = len(self._parts)
        if self._spare[1] < max(self.sizes.depth, many // 4):
            self._grow(max(many // 3, self.sizes.cells // 4, self.sizes.depth))

    def _grow(self, more: int) -> None:
        many = len(self._parts)
        parts = np.zeros((many + more, 4), np.int64)
        parts[:many] = self._parts
        parts[many:, 2] = 4 * np.arange(many + 1, many + more + 1)
        parts[-1, 2] = self._spare[0]
        self._parts = parts
        self._spare[:] = 4 * many, self._spare[1] + more

    def advance(self, now: Any) -> None:
        """Let time pass without events."""
        self.door.advance(now)

    def _values(self, now: Any, cells: Ints) -> Floats:
        found = np.empty(cells.size)
        cutoff = self._frame.moment(now) - self.window
        kernels.windowed.values(*self._arrays(), cells.ravel(), cutoff, found)
        return found.reshape(cells.shape)

    def values(self, now: Any = None) -> Floats:
        """What each cell is worth, row by row."""
        every = np.arange(self.sizes.cells)
        return self._values(now, every.reshape(self.sizes.depth, -1))

    @overload
    def estimate(self, item: int | str | bytes, now: Any = None) -> Estimate: ...
    @overload
    def estimate(self, item: Any, now: Any = None) -> list[Estimate]: ...
    def estimate(self, item: Any, now: Any = None) -> Estimate | list[Estimate]:
        """How often an item occurred in `(now - window, now]`, or each of many items."""
        return answer(item, heuristic(self._values(now, self._frame.cells(item))))

    @classmethod
    def merge(cls, parts: Iterable[Any]) -> Self:
        """NotMergeable: of two streams together neither sketch knows where the rates changed."""
        raise NotMergeable(
            "sub-cells of several streams do not make those of their union, which are cut where "
            "its rates change; the matrices that values() gives may be added"
        )

    def to_bytes(self) -> bytes:
        """Everything a question or an update can still see: the sub-cells that have not expired."""
        now = self.now or 0
        lengths = self._lengths()
        order = np.empty(int(lengths.sum()), np.int64)
        cells, parts, _ = self._arrays()
        kernels.windowed.unroll(cells, parts, lengths, order)
        counts, last, _, first = self._parts[order // 4].T
        columns = [lengths, now - last, last - first, counts.astype(np.uint64)]
        slots = 0
        if self._recent is not None:
            recent = self._recent.state(now)
            slots = recent[0].size
            columns += recent
        header = _Header(self._frame.state(), self.mu, self.tau, slots)
        return wire.frame(wire.SPLITTER, header, b"".join(map(column, columns)))

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """The sketch whose `to_bytes` gave `data`; WireError for anything else."""
        header, payload = wire.unframe(data, wire.SPLITTER, _Header)
        frame = Frame.restored(header.frame)
        sketch = cls.__new__(cls)
        try:
            sketch._start(frame, header.mu, header.tau)
        except ValueError as error:
            raise wire.WireError(str(error)) from None
        reader = Reader(payload)
        lengths = reader.take(frame.sizes.cells)
        many = sum(lengths.tolist())
        ages, spans, counts = (reader.take(many) for _ in range(3))
        if many:
            sketch._hold(lengths.astype(np.int64), ages, spans, counts.view(np.float64))
        if sketch._recent is not None:
            slots = reader.take(header.slots), reader.take(header.slots)
            sketch._recent.restore(frame.door.now or 0, *slots, frame.arrivals)
        elif header.slots:
            raise wire.WireError("a window of arrivals needs no slots")
        reader.close()
        return sketch

    def _hold(
        self,
        lengths: Ints,
        ages: NDArray[np.uint64],
        spans: NDArray[np.uint64],
        counts: Floats,
    ) -> None:
        """Sub-cells that came as bytes, those of a cell after those of the one before."""
        if self.now is None:
            raise wire.WireError("there are sub-cells, but no clock")
        if max(ages.max(), spans.max()) >= self.window:
            raise wire.WireError("a sub-cell has expired, or spans more than a window")
        last = self.now - ages.astype(np.int64)
        first = last - spans.astype(np.int64)
        begins = np.cumsum(lengths) - lengths
        follows = np.ones(last.size, np.bool_)
        follows[begins[lengths > 0]] = False
        if np.any(follows[1:] & (first[1:] < last[:-1])):
            raise wire.WireError("the sub-cells of a cell overlap")
        if not np.all((counts > 0) & (counts <= self.arrivals)):
            raise wire.WireError("a sub-cell holds nothing, or more than ever came")
        self._grow(last.size)
        following = 4 * np.arange(1, last.size + 1)
        self._parts[:] = np.column_stack([counts.view(np.int64), last, following, first])
        self._spare[:] = 0
        newest = 4 * (begins + lengths - 1)
        self._cells[:] = np.column_stack([4 * begins, newest, newest - 4, lengths])
        rows = self.values().sum(axis=1)
        if rows.max() > self.arrivals * _TIE:
            raise wire.WireError(f"a row holds more than the {self.arrivals} events that ever came")

    @classmethod
    def tune(
        cls,
        sample: Any,
        times: Any = None,
        *,
        memory: int,
        window: Any,
        epsilon: float,
        delta: float,
        seed: int,
        tick: Any = None,
    ) -> Tuning:
        """The mu and tau that were best for a sample of the stream, in at most so many bytes.

        See sketches/tuning.py. The same sample always gives the same choice.
        """
        given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "seed": seed}
        door = Door.parse(window, tick, "raise")
        return tuning.tuned(cls, given, door, sample, times, memory)


class _Recent:
    """How many arrivals the window holds, or at most a 64th of its ticks before it too many.

    They are counted by slots of that many ticks.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._length = -(-window // _SLOTS)
        self._slots = np.empty(0, np.int64)
        self._counts = np.empty(0, np.int64)

    def take(self, events: Admitted) -> Ints:
        """Count these, and say how many there were when each of them came, itself not included."""
        arrived = events.ticks // self._length
        slots = np.concatenate([self._slots, arrived])
        counts = np.concatenate([self._counts, events.counts])
        sums = np.append(0, np.cumsum(counts))
        expired = np.searchsorted(slots, self._oldest(events.ticks))
        present = sums[self._slots.size : -1] - sums[expired]
        fresh = np.flatnonzero(np.diff(slots, prepend=slots[0] - 1))
        self._slots, self._counts = slots[fresh], np.add.reduceat(counts, fresh)
        live = self._slots >= self._oldest(events.ticks[-1])
        self._slots, self._counts = self._slots[live], self._counts[live]
        return present  # type: ignore[no-any-return]

    def _oldest(self, ticks: Any) -> Any:
        """The slot of the first tick of the window."""
        return (ticks - self._window + 1) // self._length

    def state(self, now: int) -> list[Ints]:
        """How many slots ago the live ones were, and their counts."""
        live = self._slots >= self._oldest(now)
        return [now // self._length - self._slots[live], self._counts[live]]

    def restore(
        self, now: int, ages: NDArray[np.uint64], counts: NDArray[np.uint64], arrivals: int
    ) -> None:
        """What `state` gave, or WireError."""
        if np.any(ages > now // self._length - self._oldest(now)) or np.any(ages[1:] >= ages[:-1]):
            raise wire.WireError("slots are not in order, or have expired")
        if np.any(counts == 0) or sum(counts.tolist()) > arrivals:
            raise wire.WireError("a slot holds nothing, or all hold more than ever came")
        self._slots = now // self._length - ages.astype(np.int64)
        self._counts = counts.astype(np.int64)


def _factor(name: str, value: Any, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ValueError(f"{name} must be a positive number, got {value!r}")
    if not 0 < value <= most or not math.isfinite(value):
        raise ValueError(f"{name} must be positive and at most {most}, got {value}")
    return float(value)
