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
from streamgauge.sketches.door import (
    COUNT_LIMIT,
    Admitted,
    Door,
    DoorState,
    Late,
    require_room,
    require_share,
)
from streamgauge.sketches.wave import Wave
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
    Estimate(value=2.0, low=1.90..., high=2.0, confidence=0.95)
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
        self.door = door
        self._kind: item_words.Kind | None = None
        self._seeds = seeds.expand(sizes.seed, 3 * sizes.depth).reshape(sizes.depth, 3)

    def __repr__(self) -> str:
        """The specification, as it could be written again, and the clock."""
        door = self.door
        window = f"{door.window}"
        if door.tick is not None:
            window = f"{door.spell(door.window)!r}, tick={door.spell(1)!r}"
        return (
            f"EcmSketch(window={window}, epsilon={self.epsilon}, delta={self.delta}, "
            f"seed={self._sizes.seed}, late={door.late!r}; "
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
        return self.door.window

    @property
    def tick(self) -> int | None:
        """Nanoseconds a tick, None for plain integer ticks."""
        return self.door.tick

    @property
    def now(self) -> int | None:
        """The clock: the greatest tick seen or advanced to, None before the first."""
        return self.door.now

    @property
    def late_events(self) -> int:
        """How many late events were dropped or clamped."""
        return self.door.late_events

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return self._cells.nbytes + self._total.nbytes

    @property
    def arrivals(self) -> int:
        """How many events were ever recorded."""
        return int(self._total.counts[0])

    @property
    def specification(self) -> dict[str, object]:
        """Every parameter: sketches that agree in all answer together as if they were one."""
        door = {"window": self.door.window, "tick": self.door.tick}
        return msgspec.structs.asdict(self._sizes) | door

    def fresh(self) -> Self:
        """Another sketch like this one, which must be empty: it is the template of many."""
        if self.now is not None:
            raise ValueError(f"template must be an empty sketch, got {self}")
        return self.from_bytes(self.to_bytes())

    def total_wave(self) -> Wave:
        """The count of all events by itself, as it is now."""
        return Wave.of(self.epsilon, self.door, self._total)

    def update(self, items: Any, times: Any, weights: Any = None) -> None:
        """Record that items[i] occurred at times[i], weights[i] times or once."""
        words, kind = self.words(items)
        ticks = self.door.ticks(times)
        if ticks.size != words.size:
            raise ValueError(f"times must be as many as items, got {ticks.size} for {words.size}")
        admitted = self.door.admit(ticks, weights)
        require_room(int(self._total.counts[0]), admitted)
        if admitted.kept is not None:
            words = words[admitted.kept]
        self.insert(words, kind, admitted)

    def insert(
        self, words: NDArray[np.uint64], kind: item_words.Kind | None, admitted: Admitted
    ) -> None:
        """Record what the door has admitted."""
        self._kind = self._kind or kind
        self._cells.insert(self._seeds, words, admitted)
        self._total.insert_run(admitted)
        self.door.enter(admitted)

    def follow(self, cutoff: int, expired: NDArray[np.int64], live: NDArray[np.int64]) -> Spans:
        """The spans of all cells, `expired` and `live` kept from one cutoff to a later one."""
        return self._cells.follow(cutoff, expired, live)

    def total_span(self, cutoff: int) -> Spans:
        """The span of the total."""
        return _spans(self._total, np.zeros(1, np.int64), cutoff)

    def advance(self, now: Any) -> None:
        """Let time pass without events."""
        self.door.advance(now)

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

    def cells_of(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """cells[row, i], the number of the wave that words[i] has in each row."""
        columns = np.empty((self.depth, words.size), np.int64)
        kernels.hashing.columns(self._seeds, self.width, words, columns)
        return columns + (np.arange(self.depth) * self.width)[:, None]

    def words(self, items: Any) -> tuple[NDArray[np.uint64], item_words.Kind | None]:
        """Items as words, and their kind, which must be that of the items before."""
        words, kind = item_words.words(items)
        self.require_kind(kind)
        return words, kind

    def require_kind(self, kind: item_words.Kind | None) -> None:
        """Refuse items of another kind than those before."""
        if kind and self._kind and kind != self._kind:
            raise ValueError(f"items must be {self._kind}, as those before, got {kind}")

    def to_bytes(self) -> bytes:
        """Everything a question or an update can still see."""
        total = self._total.pack(self.now)
        header = _Header(
            self._sizes,
            self.door.state(),
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


class Bounds(NamedTuple):
    """Many estimates of equal confidence as arrays."""

    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    confidence: float

    def estimates(self) -> list[Estimate]:
        """One Estimate each."""
        columns = zip(self.value.tolist(), self.low.tolist(), self.high.tolist(), strict=True)
        return [Estimate(*row, self.confidence) for row in columns]


# The promises, from the spans of cells and of the total; leading axes are many questions at once.


def frequency_bounds(sketch: EcmSketch, cells: Spans, total: Spans) -> Bounds:
    """Frequencies f from the cells [..., row, item].

    A cell's arrivals c >= f exceed f by the collisions X. P(X > s (N - f)) <= p / s where p is
    the probability of a collision (Markov), in all of d rows (p / s)**d; s = p delta**(-1 / d)
    makes that delta. So with probability 1 - delta some row has c <= f + s (N - f), that is
    f >= (c - s N) / (1 - s).
    """
    share = _collision_share(sketch)
    most = total.high[..., None]
    high = np.minimum(cells.high.min(axis=-2), most).astype(np.float64)
    low = np.maximum(cells.low.min(axis=-2) - share * most, 0) / (1 - share)
    low = np.minimum(low, high)
    value = np.clip((cells.low + cells.high).min(axis=-2) / 2, low, high)
    return Bounds(value, low, high, 1 - sketch.delta)


def self_join_bounds(sketch: EcmSketch, cells: Spans, total: Spans) -> Bounds:
    """Sums F of squared frequencies from the cells [..., row, column].

    A row's sum of squares is F plus what colliding pairs add, at most p (N**2 - F) on average;
    the bound follows as for frequencies. Besides, N <= F <= N**2, for frequencies are whole.
    """
    share = _collision_share(sketch)
    least, most = cells.low.astype(np.float64), cells.high.astype(np.float64)
    largest = total.high.astype(np.float64) ** 2
    high = np.minimum((most**2).sum(axis=-1).min(axis=-1), largest)
    # Whole numbers are exact up to 2**53; of larger ones, 2**24 sums and squares round by less.
    high = np.where(high < COUNT_LIMIT, high, high * (1 + 2**-28))
    low = ((least**2).sum(axis=-1).min(axis=-1) - share * largest) / (1 - share)
    low = np.minimum(np.maximum(low, total.low), high)
    value = (((least + most) / 2) ** 2).sum(axis=-1).min(axis=-1)
    return Bounds(np.clip(value, low, high), low, high, 1 - sketch.delta)


def total_bounds(total: Spans) -> Bounds:
    """Numbers of events; certain."""
    low, high = total.low.astype(np.float64), total.high.astype(np.float64)
    return Bounds((low + high) / 2, low, high, 1.0)


def _collision_share(sketch: EcmSketch) -> float:
    collision = math.ceil(2**32 / sketch.width) / 2**32
    return float(min(collision * sketch.delta ** (-1 / sketch.depth), 1 - 1e-9))


# The questions, over the union of several sites' streams: sketches of equal specification, at one
# moment. A cell of the union has had as many arrivals as the sites' cells together.


def frequencies(sketches: Sequence[EcmSketch], items: Any, last: Any, now: Any) -> Bounds:
    """How often each of `items` occurred."""
    cutoff = _cutoff(sketches, last, now)
    words, kind = item_words.words(items)
    for sketch in sketches:
        sketch.require_kind(kind)
    at = sketches[0].cells_of(words)
    low, high = _sum(_spans(sketch._cells, at.ravel(), cutoff) for sketch in sketches)
    cells = Spans(low.reshape(at.shape), high.reshape(at.shape))
    total = _sum(sketch.total_span(cutoff) for sketch in sketches)
    return frequency_bounds(sketches[0], cells, Spans(*(span.reshape(()) for span in total)))


def totals(sketches: Sequence[EcmSketch], last: Any, now: Any) -> Estimate:
    """How many events there were."""
    cutoff = _cutoff(sketches, last, now)
    return total_bounds(_sum(sketch.total_span(cutoff) for sketch in sketches)).estimates()[0]


def self_joins(sketches: Sequence[EcmSketch], last: Any, now: Any) -> Estimate:
    """The sum of squared frequencies."""
    cutoff = _cutoff(sketches, last, now)
    rows = (1, sketches[0].depth, sketches[0].width)
    every = np.arange(sketches[0].depth * sketches[0].width)
    low, high = _sum(_spans(sketch._cells, every, cutoff) for sketch in sketches)
    cells = Spans(low.reshape(rows), high.reshape(rows))
    total = _sum(sketch.total_span(cutoff) for sketch in sketches)
    return self_join_bounds(sketches[0], cells, total).estimates()[0]


def _cutoff(sketches: Sequence[EcmSketch], last: Any, now: Any) -> int:
    """Where the range of a question to all of them begins; at their greatest clock if None."""
    if not sketches:
        raise ValueError("sketches must be at least one, got none")
    first = sketches[0].specification
    for sketch in sketches[1:]:
        other = sketch.specification
        unlike = [name for name in first if first[name] != other[name]]
        if unlike:
            got = ", ".join(f"{name} {first[name]} and {other[name]}" for name in unlike)
            raise ValueError(f"sketches must be specified alike, got {got}")
    latest = max(sketches, key=lambda sketch: -math.inf if sketch.now is None else sketch.now)
    return latest.door.range(last, now)[0]


def _spans(grid: WaveGrid, cells: NDArray[np.int64], cutoff: int) -> Spans:
    return grid.spans(cells, np.full(cells.size, cutoff, np.int64))


def _sum(spans: Any) -> Spans:
    low, high = zip(*spans, strict=True)
    return Spans(sum(low), sum(high))
