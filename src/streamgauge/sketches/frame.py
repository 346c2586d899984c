"""What the sketches of one matrix of counts share: sizes, the way in, the form of an answer.

The matrix has the sizes of Rivetti, Busnel & Mostefaoui (2015, II-B),

    depth = ceil(log2 1 / delta),  width = ceil(e / epsilon),

with which a row's collisions exceed epsilon (N - f) with probability 1 / e at most (Markov), those
of all rows with e**-depth <= delta.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamgauge import items as item_words
from streamgauge import kernels, seeds, wire
from streamgauge.estimate import Estimate
from streamgauge.sketches import merging
from streamgauge.sketches.bounds import Bounds
from streamgauge.sketches.door import (
    COUNT_LIMIT,
    Admitted,
    Count,
    Door,
    DoorState,
    Late,
    require_room,
    require_share,
)
from streamgauge.sketches.sizes import Seed, require_seed
from streamgauge.sketches.spans import Floats

MOST_CELLS = 1 << 24

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]


class MatrixSizes(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """Rows, columns and hash functions by what they promise."""

    epsilon: float
    delta: float
    seed: Seed

    @classmethod
    def asked(cls, epsilon: Any, delta: Any, seed: Any) -> Self:
        """ValueError for what cannot be."""
        epsilon, delta = require_share("epsilon", epsilon), require_share("delta", delta)
        for name, value, least in (("epsilon", epsilon, 1e-6), ("delta", delta, 1e-18)):
            if value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")
        sizes = cls(epsilon, delta, require_seed(seed))
        if sizes.cells > MOST_CELLS:
            raise OverflowError(
                f"{sizes.depth} x {sizes.width} cells are more than {MOST_CELLS}; "
                "a larger epsilon needs less"
            )
        return sizes

    @property
    def depth(self) -> int:
        """Rows."""
        return math.ceil(math.log2(1 / self.delta))

    @property
    def width(self) -> int:
        """Cells a row."""
        return math.ceil(math.e / self.epsilon)

    @property
    def cells(self) -> int:
        """Of all rows."""
        return self.depth * self.width

    @property
    def share(self) -> float:
        """The s that all rows exceed with probability delta at most, as in sketches/sizes.py."""
        collision = math.ceil(2**32 / self.width) / 2**32
        return float(collision * self.delta ** (-1 / self.depth))

    def confidence(self, counters: int) -> float:
        """Of an answer; counts are exact, however many are read."""
        return 1 - self.delta


class Rows:
    """The hash functions of a matrix."""

    def __init__(self, sizes: MatrixSizes) -> None:
        self.width = sizes.width
        self.seeds = seeds.expand(sizes.seed, 3 * sizes.depth).reshape(sizes.depth, 3)

    def cells(self, words: Words) -> Ints:
        """cells[row, i], the number of the cell that words[i] has in each row."""
        columns = np.empty((self.seeds.shape[0], words.size), np.int64)
        kernels.hashing.columns(self.seeds, self.width, words, columns)
        return columns + (np.arange(columns.shape[0]) * self.width)[:, None]

    def count(self, matrix: Ints, words: Words, weights: Ints | None) -> None:
        """Add so much, or one, to the cells of each word."""
        if weights is None:
            kernels.windowed.add_ones(matrix, self.seeds, self.width, words)
        else:
            kernels.windowed.add(matrix, self.seeds, self.width, words, weights)


def require_kind(
    kind: item_words.Kind | None, before: item_words.Kind | None
) -> item_words.Kind | None:
    """Refuse items of another kind than those before."""
    if kind and before and kind != before:
        raise ValueError(f"items must be {before}, as those before, got {kind}")
    return before or kind


def common_kind(kinds: Iterable[item_words.Kind | None]) -> item_words.Kind | None:
    """That of all sketches that have one."""
    found = set(kinds) - {None}
    if len(found) > 1:
        raise merging.NotMergeable("sketches must be all of integers or all of text, got both")
    return found.pop() if found else None


def common_arrivals(counts: Iterable[int]) -> int:
    """Of all sketches together."""
    arrivals = sum(counts)
    if arrivals >= COUNT_LIMIT:
        raise OverflowError(f"arrivals must stay below 2**53, got {arrivals}")
    return arrivals


def answer(item: Any, found: Bounds) -> Estimate | list[Estimate]:
    """One Estimate for one item, else a list."""
    return found.estimates()[0] if item_words.is_one(item) else found.estimates()


def heuristic(cells: Floats) -> Bounds:
    """The least cell of each item, rounded half up, of which nothing is proved."""
    value = np.maximum(np.floor(cells.min(axis=0) + 0.5), 0.0)
    return Bounds.of(value, value, value, 0.0)


class FrameState(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """A frame on the wire."""

    sizes: MatrixSizes
    door: DoorState
    kind: item_words.Kind | None
    arrivals: Count


class Frame:
    """All that a windowed sketch of one matrix is, except its counts."""

    def __init__(self, sizes: MatrixSizes, door: Door) -> None:
        self.sizes = sizes
        self.rows = Rows(sizes)
        self.door = door
        self.kind: item_words.Kind | None = None
        self.arrivals = 0

    @classmethod
    def asked(  # noqa: PLR0917  (the parameters of every sketch's constructor)
        cls, window: Any, epsilon: Any, delta: Any, seed: Any, tick: Any, late: Late
    ) -> Self:
        """Of a new sketch, from what its user wrote."""
        return cls(MatrixSizes.asked(epsilon, delta, seed), Door.parse(window, tick, late))

    def written(self) -> str:
        """As it is given to a sketch."""
        sizes = self.sizes
        return (
            f"{self.door.written()}, epsilon={sizes.epsilon}, delta={sizes.delta}, "
            f"seed={sizes.seed}, late={self.door.late!r}"
        )

    @property
    def specification(self) -> dict[str, object]:
        """What sketches must agree in to be merged."""
        return msgspec.structs.asdict(self.sizes) | self.door.specification

    def admit(
        self, items: Any, times: Any, weights: Any
    ) -> tuple[Words, Admitted, item_words.Kind | None]:
        """A batch as words and ticks; nothing has changed yet."""
        words, kind = item_words.words(items)
        require_kind(kind, self.kind)
        moments = self.door.ticks(times, words.size, weights)
        if moments.size != words.size:
            raise ValueError(f"times must be as many as items, got {moments.size} for {words.size}")
        admitted = self.door.admit(moments, weights)
        require_room(self.arrivals, admitted)
        return (words if admitted.kept is None else words[admitted.kept]), admitted, kind

    def enter(self, admitted: Admitted, kind: item_words.Kind | None) -> None:
        """The admitted batch is counted."""
        self.arrivals += admitted.arrivals
        self.kind = self.kind or kind
        self.door.enter(admitted)

    def moment(self, now: Any) -> int:
        """The tick at which a question is asked; the clock if None."""
        return self.door.range(None, now)[1]

    def cells(self, items: Any) -> Ints:
        """cells[row, i], the number of the cell of items[i] in each row."""
        words, kind = item_words.words(items)
        require_kind(kind, self.kind)
        return self.rows.cells(words)

    def state(self) -> FrameState:
        """What makes an equal frame."""
        return FrameState(self.sizes, self.door.state(), self.kind, self.arrivals)

    @classmethod
    def restored(cls, state: FrameState) -> Self:
        """The frame of this state, or WireError."""
        try:
            sizes = MatrixSizes.asked(state.sizes.epsilon, state.sizes.delta, state.sizes.seed)
        except (ValueError, OverflowError) as error:
            raise wire.WireError(str(error)) from None
        frame = cls(sizes, Door(state.door))
        if state.arrivals and (state.kind is None or state.door.now is None):
            raise wire.WireError("there were events, but no clock or no kind of items")
        if state.door.tick == "arrival" and state.arrivals != (state.door.now or 0):
            raise wire.WireError(f"{state.arrivals} arrivals make a clock of that, not another")
        frame.kind, frame.arrivals = state.kind, state.arrivals
        return frame

    @classmethod
    def together(cls, frames: "Sequence[Frame]") -> Self:
        """Of the sketch of several streams, at the greatest of their clocks."""
        door = merging.common_door(frames)
        frame = cls(frames[0].sizes, door)
        frame.kind = common_kind(each.kind for each in frames)
        frame.arrivals = common_arrivals(each.arrivals for each in frames)
        return frame


def within(words: Words, events: Admitted, after: int, upto: int) -> tuple[Words, Ints | None]:
    """Words and weights of what came in (after, upto]."""
    times, weights = events.ticks, events.weights
    begin = int(np.searchsorted(times, after, "right"))
    end = int(np.searchsorted(times, upto, "right"))
    if weights is None or not events.step:
        return words[begin:end], None if weights is None else weights[begin:end]
    end += 1  # the arrivals of one event may be on both sides
    times, weights = times[begin:end], weights[begin:end]
    inside = np.minimum(times, upto) - np.maximum(times - weights, after)
    return words[begin:end], np.maximum(inside, 0)


def require_rows(rows: Any, held: str, arrivals: int) -> None:
    """WireError unless every row of a matrix holds as much, and no more than ever came."""
    sums = rows.sum(axis=-1, dtype=np.float64)
    if np.any(sums != sums[:1]) or sums[0] > arrivals:
        raise wire.WireError(f"the rows of {held} do not hold the same part of {arrivals} events")
