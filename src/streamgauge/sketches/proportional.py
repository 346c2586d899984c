"""SIMPLE and PROPORTIONAL: counts of the stretch of a window's length that is going on.

Time is cut into stretches of `window` ticks that end at the multiples of the window, for every
sketch alike; where arrivals are counted the first begins with the first arrival. (Rivetti, Busnel &
Mostefaoui 2015, III-B and III-C)
"""

from collections.abc import Iterable, Sequence
from typing import Any, Self, overload

import msgspec
import numpy as np

from streamgauge import items as item_words
from streamgauge import wire
from streamgauge.estimate import Estimate
from streamgauge.sketches.columns import Reader, column
from streamgauge.sketches.door import Late
from streamgauge.sketches.frame import (
    Frame,
    FrameState,
    Ints,
    answer,
    heuristic,
    require_rows,
    within,
)
from streamgauge.sketches.merging import objects
from streamgauge.sketches.spans import Floats


class _Header(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    frame: FrameState


class _Stretches:
    """The counts of the newest few stretches, stretches[0] those of the one that goes on."""

    def __init__(self, frame: Frame, many: int) -> None:
        self.frame = frame
        self.counts = np.zeros((many, frame.sizes.cells), np.int64)

    def at(self, moment: int) -> tuple[Ints, int]:
        """The counts at a tick, and how many ticks of its stretch are over, this one included."""
        window, now = self.frame.door.window, self.frame.door.now
        stretch, over = divmod(moment - 1, window)
        passed = 0 if now is None else min(stretch - (now - 1) // window, len(self.counts))
        if not passed:
            return self.counts, over + 1
        counts = np.zeros_like(self.counts)
        counts[passed:] = self.counts[: len(counts) - passed]
        return counts, over + 1

    def update(self, items: Any, times: Any, weights: Any) -> None:
        """Only what falls into the stretches that are kept after the batch is counted."""
        words, admitted, kind = self.frame.admit(items, times, weights)
        if admitted.clock is not None:
            self.counts, over = self.at(admitted.clock)
            end = admitted.clock
            for matrix in self.counts:
                begin = end - over
                self.frame.rows.count(matrix, *within(words, admitted, begin, end))
                end, over = begin, self.frame.door.window
        self.frame.enter(admitted, kind)

    def advance(self, now: Any) -> None:
        """Let time pass without events."""
        counts, _ = self.at(self.frame.moment(now))
        self.frame.door.advance(now)
        self.counts = counts

    @classmethod
    def merged(cls, parts: "Sequence[_Stretches]") -> Self:
        """Of several streams: all stretches end at the same ticks, so the counts are added."""
        frame = Frame.together([part.frame for part in parts])
        merged = cls(frame, len(parts[0].counts))
        if frame.door.now is not None:
            for part in parts:
                merged.counts += part.at(frame.door.now)[0]
        return merged

    def to_bytes(self, kind: int) -> bytes:
        """The frame and the counts."""
        return wire.frame(kind, _Header(self.frame.state()), b"".join(map(column, self.counts)))

    @classmethod
    def from_bytes(cls, kind: int, many: int, data: Any) -> Self:
        """What `to_bytes` wrote, or WireError."""
        header, payload = wire.unframe(data, kind, _Header)
        frame = Frame.restored(header.frame)
        stretches = cls(frame, many)
        reader = Reader(payload)
        for matrix in stretches.counts:
            counts = reader.take(matrix.size)
            require_rows(counts.reshape(frame.sizes.depth, -1), "a matrix", frame.arrivals)
            matrix[:] = counts
        reader.close()
        held = stretches.counts[:, : frame.sizes.width].sum(axis=1)
        if held.sum() > frame.arrivals:
            raise wire.WireError(f"{held.sum()} events are held, but {frame.arrivals} ever came")
        if frame.door.counts_arrivals:
            over = (frame.arrivals - 1) % frame.door.window + 1 if frame.arrivals else 0
            before = min(frame.arrivals - over, frame.door.window)
            if held.tolist() != [over, before][:many]:
                raise wire.WireError(f"{held.tolist()} events are not the newest of the window's")
        return stretches


class SimpleWindowSketch:
    """How often items occurred since the window was last begun anew: SIMPLE.

    A count-min sketch that is emptied every `window` ticks. Heuristic: right at the end of such a
    stretch, without a memory of anything at its beginning; confidence is 0.

    >>> sketch = SimpleWindowSketch(window=100, epsilon=0.1, delta=0.05, seed=7)
    >>> sketch.update(["a", "b", "a"], [1, 2, 100])
    >>> sketch.estimate("a").value, sketch.estimate("a", now=101).value
    (2.0, 0.0)
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
        self._start(_Stretches(Frame.asked(window, epsilon, delta, seed, tick, late), 1))

    def _start(self, stretches: _Stretches) -> None:
        self._stretches = stretches
        self.sizes, self.door = stretches.frame.sizes, stretches.frame.door

    def __repr__(self) -> str:
        """The specification, as it could be written again, and the clock."""
        return f"SimpleWindowSketch({self._stretches.frame.written()}; now={self.now})"

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
        return self._stretches.frame.arrivals

    @property
    def kind(self) -> item_words.Kind | None:
        """Whether the items are integers or text; None before the first."""
        return self._stretches.frame.kind

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return self._stretches.counts.nbytes

    def update(self, items: Any, times: Any = None, weights: Any = None) -> None:
        """Record that items[i] occurred at times[i], weights[i] times or once."""
        self._stretches.update(items, times, weights)

    def advance(self, now: Any) -> None:
        """Let time pass without events."""
        self._stretches.advance(now)

    def _cells(self, now: Any, cells: Any) -> Floats:
        (counts,), _ = self._stretches.at(self._stretches.frame.moment(now))
        return counts[cells].astype(np.float64)  # type: ignore[no-any-return]

    def values(self, now: Any = None) -> Floats:
        """What each cell is worth, row by row."""
        return self._cells(now, slice(None)).reshape(self.sizes.depth, -1)

    @overload
    def estimate(self, item: int | str | bytes, now: Any = None) -> Estimate: ...
    @overload
    def estimate(self, item: Any, now: Any = None) -> list[Estimate]: ...
    def estimate(self, item: Any, now: Any = None) -> Estimate | list[Estimate]:
        """How often an item occurred in `(now - window, now]`, or each of many items."""
        cells = self._stretches.frame.cells(item)
        return answer(item, heuristic(self._cells(now, cells)))

    @classmethod
    def merge(cls, parts: Iterable[Any]) -> Self:
        """The sketch of several streams, from theirs or their bytes, which stay as they are.

        In windows of time it loses nothing. Windows of arrivals are NotMergeable.
        """
        sketches = objects(cls, parts)
        merged = cls.__new__(cls)
        merged._start(_Stretches.merged([sketch._stretches for sketch in sketches]))
        return merged

    def to_bytes(self) -> bytes:
        """Everything a question or an update can still see."""
        return self._stretches.to_bytes(wire.SIMPLE)

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """The sketch whose `to_bytes` gave `data`; WireError for anything else."""
        sketch = cls.__new__(cls)
        sketch._start(_Stretches.from_bytes(wire.SIMPLE, 1, data))
        return sketch


class ProportionalWindowSketch:
    """How often items occurred in the window if the last one was even: PROPORTIONAL.

    The listing takes, in each tick, an N-th of the last stretch's counts from every cell. After k
    of a stretch's N ticks that is previous * (1 - k / N) + current, so two matrices of integers are
    kept and an update costs O(rows). Heuristic: exact up to collisions at the end of a stretch; in
    between nothing holds for every stream (docs/guarantees.md has one for which it is off by a
    quarter of the window), and confidence is 0.

    >>> sketch = ProportionalWindowSketch(window=100, epsilon=0.1, delta=0.05, seed=7)
    >>> sketch.update(["a", "b", "a"], [1, 2, 100])
    >>> sketch.estimate("a").value, sketch.estimate("a", now=150).value
    (2.0, 1.0)
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
        self._start(_Stretches(Frame.asked(window, epsilon, delta, seed, tick, late), 2))

    def _start(self, stretches: _Stretches) -> None:
        self._stretches = stretches
        self.sizes, self.door = stretches.frame.sizes, stretches.frame.door

    def __repr__(self) -> str:
        """The specification, as it could be written again, and the clock."""
        return f"ProportionalWindowSketch({self._stretches.frame.written()}; now={self.now})"

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
        return self._stretches.frame.arrivals

    @property
    def kind(self) -> item_words.Kind | None:
        """Whether the items are integers or text; None before the first."""
        return self._stretches.frame.kind

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return self._stretches.counts.nbytes

    def update(self, items: Any, times: Any = None, weights: Any = None) -> None:
        """Record that items[i] occurred at times[i], weights[i] times or once."""
        self._stretches.update(items, times, weights)

    def advance(self, now: Any) -> None:
        """Let time pass without events."""
        self._stretches.advance(now)

    def _cells(self, now: Any, cells: Any) -> Floats:
        moment = self._stretches.frame.moment(now)
        (current, previous), over = self._stretches.at(moment)
        rest = (self.window - over) / self.window
        return current[cells] + previous[cells] * rest  # type: ignore[no-any-return]

    def values(self, now: Any = None) -> Floats:
        """What each cell is worth, row by row."""
        return self._cells(now, slice(None)).reshape(self.sizes.depth, -1)

    @overload
    def estimate(self, item: int | str | bytes, now: Any = None) -> Estimate: ...
    @overload
    def estimate(self, item: Any, now: Any = None) -> list[Estimate]: ...
    def estimate(self, item: Any, now: Any = None) -> Estimate | list[Estimate]:
        """How often an item occurred in `(now - window, now]`, or each of many items."""
        cells = self._stretches.frame.cells(item)
        return answer(item, heuristic(self._cells(now, cells)))

    @classmethod
    def merge(cls, parts: Iterable[Any]) -> Self:
        """The sketch of several streams, from theirs or their bytes, which stay as they are.

        In windows of time it loses nothing. Windows of arrivals are NotMergeable.
        """
        sketches = objects(cls, parts)
        merged = cls.__new__(cls)
        merged._start(_Stretches.merged([sketch._stretches for sketch in sketches]))
        return merged

    def to_bytes(self) -> bytes:
        """Everything a question or an update can still see."""
        return self._stretches.to_bytes(wire.PROPORTIONAL)

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """The sketch whose `to_bytes` gave `data`; WireError for anything else."""
        sketch = cls.__new__(cls)
        sketch._start(_Stretches.from_bytes(wire.PROPORTIONAL, 2, data))
        return sketch
