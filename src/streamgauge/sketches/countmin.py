"""Count-min sketches of all events (Cormode & Muthukrishnan 2005), and of those of a window."""

from collections.abc import Iterable
from typing import Any, Self, overload

import msgspec
import numpy as np

from streamgauge import items as item_words
from streamgauge import wire
from streamgauge.estimate import Estimate
from streamgauge.sketches import bounds
from streamgauge.sketches.columns import Reader, column
from streamgauge.sketches.door import COUNT_LIMIT, Count, Late, whole
from streamgauge.sketches.frame import (
    Frame,
    FrameState,
    Ints,
    MatrixSizes,
    Rows,
    answer,
    common_arrivals,
    common_kind,
    require_kind,
    require_rows,
    within,
)
from streamgauge.sketches.log import Log, LogState
from streamgauge.sketches.merging import NotMergeable, objects
from streamgauge.sketches.spans import Floats, Spans


class _State(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    sizes: MatrixSizes
    kind: item_words.Kind | None
    arrivals: Count


class CountMin:
    """How often items occurred, ever: the sketch that the windowed ones extend.

        high: certain,  low: holds with probability 1 - delta,
        P(value - truth >= epsilon * (arrivals - truth)) <= delta

    for items fixed before the seed is drawn (docs/guarantees.md, "Windowed count-min").

    >>> sketch = CountMin(epsilon=0.1, delta=0.05, seed=7)
    >>> sketch.update(["a", "b", "a"])
    >>> sketch.estimate("a").high
    2.0
    """

    def __init__(self, *, epsilon: float, delta: float, seed: int) -> None:
        self._start(MatrixSizes.asked(epsilon, delta, seed))

    def _start(self, sizes: MatrixSizes) -> None:
        self.sizes = sizes
        self.kind: item_words.Kind | None = None
        self.arrivals = 0
        self._rows = Rows(sizes)
        self._matrix = np.zeros(sizes.cells, np.int64)

    def __repr__(self) -> str:
        """The specification, as it could be written again."""
        sizes = self.sizes
        return f"CountMin(epsilon={sizes.epsilon}, delta={sizes.delta}, seed={sizes.seed})"

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return self._matrix.nbytes

    def update(self, items: Any, weights: Any = None) -> None:
        """Record that items[i] occurred, weights[i] times or once."""
        words, kind = item_words.words(items)
        require_kind(kind, self.kind)
        counts = None if weights is None else whole(weights, words.size)
        arrivals = words.size if counts is None else sum(counts.tolist())
        self.arrivals = common_arrivals([self.arrivals, arrivals])
        self.kind = self.kind or kind
        self._rows.count(self._matrix, words, counts)

    def values(self) -> Floats:
        """The count of each cell, row by row."""
        return self._matrix.reshape(self.sizes.depth, -1).astype(np.float64)

    @overload
    def estimate(self, item: int | str | bytes) -> Estimate: ...
    @overload
    def estimate(self, item: Any) -> list[Estimate]: ...
    def estimate(self, item: Any) -> Estimate | list[Estimate]:
        """How often an item occurred, or each of many items."""
        words, kind = item_words.words(item)
        require_kind(kind, self.kind)
        cells = Spans.exact(self._matrix[self._rows.cells(words)])
        return answer(item, bounds.frequencies(self.sizes, cells, _total(self.arrivals)))

    @classmethod
    def merge(cls, parts: Iterable[Any]) -> Self:
        """The sketch of several streams, from theirs or their bytes, which stay as they are."""
        sketches = objects(cls, parts)
        if not sketches:
            raise ValueError("sketches must be at least one, got none")
        merged = cls.__new__(cls)
        merged._start(sketches[0].sizes)
        for sketch in sketches:
            if sketch.sizes != merged.sizes:
                raise NotMergeable(
                    f"sketches must be specified alike, got {merged.sizes} and {sketch.sizes}"
                )
        merged.kind = common_kind(sketch.kind for sketch in sketches)
        merged.arrivals = common_arrivals(sketch.arrivals for sketch in sketches)
        merged._matrix = sum((sketch._matrix for sketch in sketches), start=merged._matrix)
        return merged

    def to_bytes(self) -> bytes:
        """Everything a question or an update can still see."""
        state = _State(self.sizes, self.kind, self.arrivals)
        return wire.frame(wire.COUNTMIN, state, column(self._matrix))

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """The sketch whose `to_bytes` gave `data`; WireError for anything else."""
        state, payload = wire.unframe(data, wire.COUNTMIN, _State)
        asked = state.sizes
        try:
            sizes = MatrixSizes.asked(asked.epsilon, asked.delta, asked.seed)
        except (ValueError, OverflowError) as error:
            raise wire.WireError(str(error)) from None
        if state.arrivals and state.kind is None:
            raise wire.WireError("there were events, but no kind of items")
        reader = Reader(payload)
        counts = reader.take(sizes.cells)
        reader.close()
        require_rows(counts.reshape(sizes.depth, -1), "the matrix", state.arrivals)
        sketch = cls.__new__(cls)
        sketch._start(sizes)
        sketch.kind, sketch.arrivals = state.kind, state.arrivals
        sketch._matrix = counts.astype(np.int64)
        return sketch


class _Header(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    frame: FrameState
    entries: Count  # of the queue


class PerfectWindowSketch:
    """How often items occurred in the window: PERFECT (Rivetti, Busnel & Mostefaoui 2015, III-A).

    A count-min matrix of the window's events and a queue of these, which subtracts what leaves. It
    is what the other windowed sketches are measured against: nothing but collisions is wrong,

        high: certain,  low: holds with probability 1 - delta,
        P(value - truth >= epsilon * (total - truth)) <= delta.

    The queue costs memory in proportion to the window, and an update time besides: batches should
    not be much smaller than the window.

    >>> sketch = PerfectWindowSketch(window=100, epsilon=0.1, delta=0.05, seed=7)
    >>> sketch.update(["a", "b", "a"], [1, 2, 3])
    >>> sketch.estimate("a", now=101).high
    1.0
    """

    def __init__(
        self,
        *,
        window: Any,
        epsilon: float,
        delta: float,
        seed: int,
        tick: Any = None,
        late: Late = "raise",
    ) -> None:
        self._start(Frame.asked(window, epsilon, delta, seed, tick, late))

    def _start(self, frame: Frame) -> None:
        self._frame = frame
        self.sizes, self.door = frame.sizes, frame.door
        self._matrix = np.zeros(frame.sizes.cells, np.int64)
        self._queue = Log(COUNT_LIMIT, frame.door.window, int(frame.door.counts_arrivals))

    def __repr__(self) -> str:
        """The specification, as it could be written again, and the clock."""
        return f"PerfectWindowSketch({self._frame.written()}; now={self.now})"

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
        return self._matrix.nbytes + self._queue.nbytes

    def update(self, items: Any, times: Any = None, weights: Any = None) -> None:
        """Record that items[i] occurred at times[i], weights[i] times or once."""
        words, admitted, kind = self._frame.admit(items, times, weights)
        if admitted.clock is not None:
            cutoff = admitted.clock - self.window
            self._matrix = self._matrix_at(cutoff)
            self._frame.rows.count(self._matrix, *within(words, admitted, cutoff, admitted.clock))
            self._queue.take(words, admitted)
        self._frame.enter(admitted, kind)

    def _matrix_at(self, cutoff: int) -> Ints:
        """The matrix without what is not later than the cutoff; another one if it differs."""
        if self.now is None:
            return self._matrix
        words, held = self._queue.since(self.now - self.window)
        _, kept = self._queue.since(cutoff)
        gone = held.copy()
        gone[held.size - kept.size :] -= kept
        left = int(np.count_nonzero(gone))
        if not left:
            return self._matrix
        matrix = self._matrix.copy()
        self._frame.rows.count(matrix, words[:left], -gone[:left])
        return matrix

    def advance(self, now: Any) -> None:
        """Let time pass without events."""
        moment = self._frame.moment(now)
        matrix = self._matrix_at(moment - self.window)
        self.door.advance(now)
        self._matrix = matrix

    def values(self, now: Any = None) -> Floats:
        """The count of each cell, row by row."""
        matrix = self._matrix_at(self._frame.moment(now) - self.window)
        return matrix.reshape(self.sizes.depth, -1).astype(np.float64)

    @overload
    def estimate(self, item: int | str | bytes, now: Any = None) -> Estimate: ...
    @overload
    def estimate(self, item: Any, now: Any = None) -> list[Estimate]: ...
    def estimate(self, item: Any, now: Any = None) -> Estimate | list[Estimate]:
        """How often an item occurred in `(now - window, now]`, or each of many items."""
        matrix = self._matrix_at(self._frame.moment(now) - self.window)
        total = int(matrix[: self.sizes.width].sum())
        cells = Spans.exact(matrix[self._frame.cells(item)])
        return answer(item, bounds.frequencies(self.sizes, cells, _total(total)))

    @classmethod
    def merge(cls, parts: Iterable[Any]) -> Self:
        """The sketch of several streams, from theirs or their bytes, which stay as they are.

        In windows of time it loses nothing. Windows of arrivals are NotMergeable.
        """
        sketches = objects(cls, parts)
        if len(sketches) == 1:  # in windows of arrivals too
            return cls.from_bytes(sketches[0].to_bytes())
        merged = cls.__new__(cls)
        merged._start(Frame.together([sketch._frame for sketch in sketches]))
        if merged.now is not None:
            queues = [sketch._queue for sketch in sketches]
            words, events = Log.together(queues, merged.now - merged.window)
            merged._queue.take(words, events)
            merged._frame.rows.count(merged._matrix, words, events.weights)
        return merged

    def to_bytes(self) -> bytes:
        """Everything a question or an update can still see, which all follows from the queue."""
        header = _Header(self._frame.state(), self._queue.state(self.now).entries)
        return wire.frame(wire.PERFECT, header, self._queue.pack(self.now))

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """The sketch whose `to_bytes` gave `data`; WireError for anything else."""
        header, payload = wire.unframe(data, wire.PERFECT, _Header)
        sketch = cls.__new__(cls)
        sketch._start(Frame.restored(header.frame))
        state = LogState(header.entries)
        sketch._queue = Log.unpack(COUNT_LIMIT, header.frame.door, state, payload)
        held = int(sketch._queue.weights.sum())
        expected = held
        if sketch.door.counts_arrivals:
            expected = min(sketch.arrivals, sketch.window)
        if held != expected or held > sketch.arrivals:
            raise wire.WireError(f"{held} events are held of {sketch.arrivals} that ever came")
        sketch._frame.rows.count(sketch._matrix, sketch._queue.words, sketch._queue.weights)
        return sketch


def _total(events: int) -> Spans:
    return Spans.exact(np.array(events))
