"""Frequencies and self-joins over a sliding window: a count-min grid of waves."""

import math
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, Self, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamgauge import items as item_words
from streamgauge import kernels, seeds, wire
from streamgauge.estimate import Estimate
from streamgauge.sketches.door import Door, DoorState, Late, require_room, require_share
from streamgauge.sketches.wavegrid import GridState, Spans, WaveGrid, kept_ranks

_SEED_LIMIT = 1 << 64


class _Sizes(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    epsilon: Annotated[float, msgspec.Meta(ge=1e-6, lt=1)]
    delta: Annotated[float, msgspec.Meta(ge=1e-18, lt=1)]
    depth: Annotated[int, msgspec.Meta(ge=1, le=64)]
    width: Annotated[int, msgspec.Meta(ge=1, le=1 << 24)]
    kept: Annotated[int, msgspec.Meta(ge=2, le=1 << 20)]
    seed: Annotated[int, msgspec.Meta(ge=0)]


class _Header(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    sizes: _Sizes
    door: DoorState
    kind: item_words.Kind | None
    cells: GridState
    total: GridState
    total_bytes: Annotated[int, msgspec.Meta(ge=1)]


class EcmSketch:
    """How often items occurred in the last part of a window (Papapetrou et al. 2015).

    `depth` rows of `width` waves; an item adds to one wave of each row. A wave holds all of its
    item's events and those of others that share it, so for each question by itself

        high: certain,  low: holds with probability 1 - delta,
        |estimate - truth| <= epsilon * total         with probability 1 - delta,

    for items fixed before the seed is drawn (docs/guarantees.md, "ECM-sketch"). `total` is
    certain. The window is a number of ticks or a duration such as "1 hour"; `tick` is the
    resolution of the latter, 1 ms unless given.

    >>> sketch = EcmSketch(window=100, epsilon=0.1, delta=0.05, seed=7)
    >>> sketch.update(["a", "b", "a"], [1, 2, 3])
    >>> sketch.estimate("a")
    Estimate(value=2.0, low=1.92..., high=2.0, confidence=0.95)
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
        # Theorem 1 of the paper: waves within epsilon, rows within epsilon / (1 + epsilon) of
        # the rest of the stream; Markov's inequality needs width e / that for failure 1 / e.
        epsilon, delta = require_share("epsilon", epsilon), require_share("delta", delta)
        if epsilon < 1e-6:
            raise ValueError(f"epsilon must be at least 1e-6, got {epsilon}")
        if delta < 1e-18:
            raise ValueError(f"delta must be at least 1e-18, got {delta}")
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
            raise ValueError(f"seed must be an integer, got {seed!r}")
        if not 0 <= seed < _SEED_LIMIT:
            raise ValueError(f"seed must lie in [0, 2**64), got {seed}")
        sizes = _Sizes(
            epsilon=epsilon,
            delta=delta,
            depth=math.ceil(math.log(1 / delta)),
            width=math.ceil(math.e * (1 + epsilon) / epsilon),
            kept=kept_ranks(epsilon),
            seed=int(seed),
        )
        self._start(sizes, Door.parse(window, tick, late))
        self._cells = WaveGrid(sizes.depth * sizes.width, sizes.kept, self.window)
        self._total = WaveGrid(1, sizes.kept, self.window)

    def _start(self, sizes: _Sizes, door: Door) -> None:
        self._sizes = sizes
        self._door = door
        self._kind: item_words.Kind | None = None
        self._seeds = seeds.expand(sizes.seed, 3 * sizes.depth).reshape(sizes.depth, 3)

    def __repr__(self) -> str:
        """The specification, as it could be written again, and the clock."""
        door = self._door
        return (
            f"EcmSketch(window={door.spell(door.window)!r}, epsilon={self.epsilon}, "
            f"delta={self.delta}, seed={self._sizes.seed}, late={door.late!r}; "
            f"{self.depth} x {self.width} waves, now={self.now})"
        )

    @property
    def epsilon(self) -> float:
        """The error, relative to the total, that the sizes were chosen for."""
        return self._sizes.epsilon

    @property
    def delta(self) -> float:
        """The probability with which a lower bound may fail."""
        return self._sizes.delta

    @property
    def depth(self) -> int:
        """Rows."""
        return self._sizes.depth

    @property
    def width(self) -> int:
        """Waves a row."""
        return self._sizes.width

    @property
    def window(self) -> int:
        """The window in ticks."""
        return self._door.window

    @property
    def tick(self) -> int | None:
        """Nanoseconds a tick, None for plain integer ticks."""
        return self._door.tick

    @property
    def now(self) -> int | None:
        """The clock: the greatest tick seen or advanced to, None before the first."""
        return self._door.now

    @property
    def late_events(self) -> int:
        """How many late events were dropped or clamped."""
        return self._door.late_events

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return self._cells.nbytes + self._total.nbytes

    def update(self, items: Any, times: Any, weights: Any = None) -> None:
        """Record that items[i] occurred at times[i], weights[i] times or once."""
        words, kind = self._words(items)
        ticks = self._door.ticks(times)
        if ticks.size != words.size:
            raise ValueError(f"times must be as many as items, got {ticks.size} for {words.size}")
        admitted = self._door.admit(ticks, weights)
        require_room(int(self._total.counts[0]), admitted)
        if admitted.kept is not None:
            words = words[admitted.kept]
        self._cells.insert(self._seeds, words, admitted)
        self._total.insert_run(admitted)
        self._kind = self._kind or kind
        self._door.enter(admitted)

    def advance(self, now: Any) -> None:
        """Let time pass without events."""
        self._door.advance(now)

    @overload
    def estimate(self, item: int | str | bytes, last: Any = None, now: Any = None) -> Estimate: ...
    @overload
    def estimate(self, item: Any, last: Any = None, now: Any = None) -> list[Estimate]: ...
    def estimate(self, item: Any, last: Any = None, now: Any = None) -> Estimate | list[Estimate]:
        """How often an item occurred in `(now - last, now]`, or each of many items."""
        found = frequencies([self], item, last, now).estimates()
        return found[0] if isinstance(item, str | bytes | int | np.integer) else found

    def total(self, last: Any = None, now: Any = None) -> Estimate:
        """How many events there were in `(now - last, now]`; certain."""
        return totals([self], last, now)

    def self_join(self, last: Any = None, now: Any = None) -> Estimate:
        """The sum over all items of their squared frequency in `(now - last, now]`."""
        return self_joins([self], last, now)

    def _words(self, items: Any) -> tuple[NDArray[np.uint64], item_words.Kind | None]:
        words, kind = item_words.words(items)
        if kind and self._kind and kind != self._kind:
            raise ValueError(f"items must be {self._kind}, as those before, got {kind}")
        return words, kind

    def to_bytes(self) -> bytes:
        """Everything a question or an update can still see."""
        total = self._total.pack(self.now)
        header = _Header(
            self._sizes,
            self._door.state(),
            self._kind,
            self._cells.state(self.now),
            self._total.state(self.now),
            len(total),
        )
        return wire.frame(wire.ECM, header, total + self._cells.pack(self.now))

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """The sketch whose `to_bytes` gave `data`; WireError for anything else."""
        header, payload = wire.unframe(data, wire.ECM, _Header)
        sizes, door, split = header.sizes, header.door, header.total_bytes
        if sizes.seed >= _SEED_LIMIT:
            raise wire.WireError(f"seed must lie in [0, 2**64), got {sizes.seed}")
        if split > len(payload):
            raise wire.WireError(f"truncated: {len(payload)} bytes of waves, {split} in the first")
        sketch = cls.__new__(cls)
        sketch._start(sizes, Door(door))
        sketch._kind = header.kind
        cells = sizes.depth * sizes.width
        sketch._total = WaveGrid.unpack(1, sizes.kept, door, header.total, payload[:split])
        sketch._cells = WaveGrid.unpack(cells, sizes.kept, door, header.cells, payload[split:])
        rows = sketch._cells.counts.reshape(sizes.depth, sizes.width).astype(np.float64).sum(axis=1)
        if np.any(rows != float(sketch._total.counts[0])):
            raise wire.WireError("the rows of the sketch do not hold the same number of events")
        if header.kind is None and sketch._total.counts[0]:
            raise wire.WireError("there are events, but no kind of items")
        return sketch


class Frequencies(NamedTuple):
    """The answers for many items as arrays."""

    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    confidence: float

    def estimates(self) -> list[Estimate]:
        """One Estimate an item."""
        columns = zip(self.value.tolist(), self.low.tolist(), self.high.tolist(), strict=True)
        return [Estimate(*row, self.confidence) for row in columns]


# The questions, over the union of several sites' streams: sketches of equal specification, each
# with its own clock. A cell of the union has had as many arrivals as the sites' cells together.


def frequencies(sketches: Sequence[EcmSketch], items: Any, last: Any, now: Any) -> Frequencies:
    """How often items occurred.

    A cell's arrivals c >= f exceed f by the collisions X. P(X > s (N - f)) <= p / s where p is
    the probability of a collision (Markov), in all of d rows (p / s)**d; s = p delta**(-1 / d)
    makes that delta. So with probability 1 - delta some row has c <= f + s (N - f), that is
    f >= (c - s N) / (1 - s).
    """
    words, _ = sketches[0]._words(items)
    low, high = _sum(_item_spans(sketch, words, last, now) for sketch in sketches)
    total = _total_span(sketches, last, now)
    share = _collision_share(sketches[0])
    at_most = np.minimum(high.min(axis=0), total.high[0]).astype(np.float64)
    at_least = np.maximum(low.min(axis=0) - share * total.high[0], 0) / (1 - share)
    value = np.clip((low + high).min(axis=0) / 2, at_least, at_most)
    return Frequencies(value, at_least, at_most, 1 - sketches[0].delta)


def totals(sketches: Sequence[EcmSketch], last: Any, now: Any) -> Estimate:
    """How many events there were."""
    span = _total_span(sketches, last, now)
    low, high = float(span.low[0]), float(span.high[0])
    return Estimate((low + high) / 2, low, high, 1.0)


def self_joins(sketches: Sequence[EcmSketch], last: Any, now: Any) -> Estimate:
    """The sum of squared frequencies F.

    A row's sum of squares is F plus what colliding pairs add, at most p (N**2 - F) on average;
    the bound follows as in `frequencies`. F >= N, for frequencies are whole.
    """
    first = sketches[0]
    every = np.arange(first.depth * first.width)
    low, high = _sum(_spans(s._cells, every, s._door.range(last, now)[0]) for s in sketches)
    rows = (first.depth, first.width)
    least, most = low.reshape(rows).astype(np.float64), high.reshape(rows).astype(np.float64)
    total = _total_span(sketches, last, now)
    share = _collision_share(first)
    at_most = min(float((most**2).sum(axis=1).min()), float(total.high[0]) ** 2)
    squares = float((least**2).sum(axis=1).min())
    at_least = (squares - share * float(total.high[0]) ** 2) / (1 - share)
    at_least = min(max(at_least, float(total.low[0])), at_most)
    value = float((((least + most) / 2) ** 2).sum(axis=1).min())
    return Estimate(min(max(value, at_least), at_most), at_least, at_most, 1 - first.delta)


def _collision_share(sketch: EcmSketch) -> float:
    collision = math.ceil(2**32 / sketch.width) / 2**32
    return float(min(collision * sketch.delta ** (-1 / sketch.depth), 1 - 1e-9))


def _spans(grid: WaveGrid, cells: NDArray[np.int64], cutoff: int) -> Spans:
    return grid.spans(cells, np.full(cells.size, cutoff, np.int64))


def _item_spans(sketch: EcmSketch, words: NDArray[np.uint64], last: Any, now: Any) -> Spans:
    cutoff, _ = sketch._door.range(last, now)
    columns = np.empty((sketch.depth, words.size), np.int64)
    kernels.hashing.columns(sketch._seeds, sketch.width, words, columns)
    columns += (np.arange(sketch.depth) * sketch.width)[:, None]
    low, high = _spans(sketch._cells, columns.ravel(), cutoff)
    return Spans(low.reshape(columns.shape), high.reshape(columns.shape))


def _total_span(sketches: Sequence[EcmSketch], last: Any, now: Any) -> Spans:
    one = np.zeros(1, np.int64)
    return _sum(_spans(s._total, one, s._door.range(last, now)[0]) for s in sketches)


def _sum(spans: Any) -> Spans:
    low, high = zip(*spans, strict=True)
    return Spans(sum(low), sum(high))
