"""A Misra-Gries chain: allocation, growth, rebasing, bytes, and how good its answers are.

The arrays and the equation that they keep are described in kernels/heavy.py; this is their owner.
"""

import math
from typing import Annotated, Any, NamedTuple, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamgauge import kernels
from streamgauge.items import Words
from streamgauge.sketches.door import Admitted, DoorState
from streamgauge.wire import WireError

Ints = NDArray[np.int64]

_MOST_LEVELS = 27  # blocks of 4**27 arrivals; a sketch holds fewer than 2**53
_INT32_WINDOW = 1 << 30  # longer windows take int64 stamps
_RHO, _MARKS = 4, 8  # as in the kernel, which may not be loaded yet


class Sizes(NamedTuple):
    """How many of what a chain keeps for a width of at most epsilon * N in any range of N arrivals.

    With a = 3 times 1 / epsilon rests kept by a purge and tables g = 2 times as large, docs/
    guarantees.md has a width below

        N / kept + kappa RHO**l,     kappa = 2 - 1 / RHO + g / RHO + 1 / 6

    at level l, which is epsilon N from N = good * RHO**l on. `room` and `marks` are what makes sure
    that a level which has forgotten some of its range is not the one that the range needs.
    """

    kept: int
    most: int
    slots: int
    room: int
    marks: int
    good: float

    @classmethod
    def of(cls, epsilon: float) -> Self:
        """The factors a and g: more of either takes more memory, less of a more room."""
        kept = math.ceil(3 / epsilon)
        most = 2 * kept
        slots = 1 << (3 * most // 2).bit_length()
        spent = 1 - 1 / _RHO + most / kept / _RHO  # of a block, before any arrival of the range
        good = (1 + spent + _RHO / (_RHO - 1) / _MARKS) / (epsilon - 1 / kept)
        room = math.ceil(_RHO * good + most) + 1
        marks = math.ceil(_MARKS * (_RHO * good / kept + spent)) + 2
        return cls(kept, most, slots, room, marks, good)


class ChainState(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """What the bits of a chain do not say."""

    top: Annotated[int, msgspec.Meta(ge=0, le=_MOST_LEVELS)]
    words: Annotated[int, msgspec.Meta(ge=0, le=1 << 32)]


class Seen(NamedTuple):
    """What a chain knows of a range: any item not among `words` came at most `lost` times."""

    words: Words
    low: Ints
    high: Ints
    lost: int


class Chain:
    """Frequent items of one stream over one window.

    For every item and every range up to the window, low <= truth <= high, and high - low is at most
    epsilon times the arrivals in the range.
    """

    def __init__(self, epsilon: float, window: int, top: int = 0) -> None:
        self.sizes = Sizes.of(epsilon)
        self.window = window
        kind = np.int32 if window <= _INT32_WINDOW else np.int64
        self._range = int(np.iinfo(kind).max)
        self._base: int | None = None
        sizes = self.sizes
        rings, tables, marks = (top + 1) * sizes.room, top * sizes.slots, top * sizes.marks
        self._arrays = kernels.heavy.Chain(
            top, *sizes[:5],
            words=np.zeros(rings, np.uint64), stamps=np.zeros(rings, kind),
            times=np.zeros(rings, np.uint32), heads=_zeros(top), gone=_zeros(top),
            held=np.zeros(tables, np.uint64), rests=np.zeros(tables, np.uint8), filled=_zeros(top),
            lost=_zeros(top), marked=_zeros(top),
            mark_stamps=np.zeros(marks, kind), mark_lost=np.zeros(marks, np.int64),
            mark_heads=_zeros(top), mark_gone=_zeros(top), mark_base=_zeros(top),
        )  # fmt: skip

    @property
    def top(self) -> int:
        """The number of the coarsest level."""
        return int(self._arrays.top)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return sum(column.nbytes for column in self._arrays[6:])

    def copy(self) -> "Chain":
        """Another chain with the same content."""
        twin = Chain.__new__(Chain)
        twin.__dict__ |= vars(self)
        twin._arrays = self._arrays._make(
            [*self._arrays[:6], *(column.copy() for column in self._arrays[6:])]
        )
        return twin

    def insert(self, words: Words, admitted: Admitted) -> None:
        """Every word's arrivals at its tick."""
        ticks, weights = admitted.ticks, admitted.weights
        begin = 0
        while begin < ticks.size:
            end = self._reach(ticks, begin)
            part = slice(begin, end)
            self._insert(words[part], ticks[part], None if weights is None else weights[part])
            begin = end

    def _insert(self, words: Words, ticks: Ints, weights: Ints | None) -> None:
        """Events whose ticks fit the base."""
        kernel, base, window = kernels.heavy, self._base, self.window
        each = np.empty(0, np.int64) if weights is None else weights
        cursor = np.zeros(2, np.int64)  # event, arrivals of it still to take or 0 for all
        if self.top == 0:
            if kernel.fill(self._arrays, words, ticks, each, base, window, cursor):
                return
            self._grow(int(ticks[cursor[0] - (cursor[1] == 0)]))
        if weights is None:
            at = int(cursor[0])
            kernel.log(self._arrays, words, ticks, base, at, ticks.size)
            while at < ticks.size:
                at = kernel.update(self._arrays, words, ticks, base, window, at, ticks.size)
                self._grow_if_full(int(ticks[at - 1]))
            return
        kernel.log_weighted(self._arrays, words, ticks, weights, base, cursor)
        while not kernel.update_weighted(self._arrays, words, ticks, weights, base, window, cursor):
            self._grow(int(ticks[cursor[0] - (cursor[1] == 0)]))

    def _reach(self, ticks: Ints, begin: int) -> int:
        """Move the base so that event `begin` fits; returns how far the events fit."""
        tick = int(ticks[begin])
        if self._base is None:
            self._base = tick - 1
        if tick - self._base > self._range:
            by = tick - self.window - 1 - self._base
            kernels.heavy.shift_base(self._arrays, min(by, self._range))
            self._base += by
        return int(np.searchsorted(ticks, self._base + self._range, "right"))

    def _grow_if_full(self, tick: int) -> None:
        if kernels.heavy.must_grow(self._arrays, tick - (self._base or 0), self.window):
            self._grow(tick)

    def _grow(self, tick: int) -> None:
        """Add a level at this tick, and others as long as the new one is full at once.

        A level that is full with few arrivals of many times, or few large losses, has as many on
        the next. Marks go on from one new level to the other in full, though a level may not keep
        as many.
        """
        sizes, kernel = self.sizes, kernels.heavy
        stamp = tick - (self._base or 0)
        cutoff = max(stamp - self.window, 0)
        stamps, lost = np.empty(sizes.marks, np.int64), np.empty(sizes.marks, np.int64)
        count, rest = kernel.live_marks(self._arrays, cutoff, stamps, lost)
        while kernel.must_grow(self._arrays, stamp, self.window):
            self._arrays = _with_a_level_more(self._arrays)
            room = count + sizes.room // (sizes.most - sizes.kept) + 4  # each purge can mark once
            below, below_lost = stamps, lost
            stamps, lost = np.empty(room, np.int64), np.empty(room, np.int64)
            count, rest = kernel.replay(
                self._arrays, cutoff, stamp, below, below_lost, count, rest, stamps, lost
            )

    def frequencies(self, words: Words, cutoff: int) -> tuple[Ints, Ints]:
        """The fewest and the most arrivals of each word after the tick `cutoff`."""
        low, high = np.empty(words.size, np.int64), np.empty(words.size, np.int64)
        kernels.heavy.frequencies(self._arrays, self._stamp(cutoff), words, low, high)
        return low, high

    def every(self, cutoff: int) -> Seen:
        """Every word that may have come more often than the others, unordered."""
        return Seen(*kernels.heavy.every(self._arrays, self._stamp(cutoff)))

    def held(self, cutoff: int) -> Words:
        """Every word that a question about ticks after `cutoff` may name, in order."""
        return np.sort(kernels.heavy.distinct(self._arrays, self._stamp(cutoff)))

    def segments(self, cutoff: int) -> tuple[Words, Ints, Ints]:
        """Words, ticks and numbers of the arrivals after `cutoff`, as far as they are known.

        In any range an item has at most epsilon N arrivals more or fewer (docs/guarantees.md).
        """
        most = self._arrays.words.size
        words = np.empty(most, np.uint64)
        ticks, arrivals = np.empty(most, np.int64), np.empty(most, np.int64)
        found = kernels.heavy.segments(self._arrays, self._stamp(cutoff), words, ticks, arrivals)
        return words[:found], ticks[:found] + (self._base or 0), arrivals[:found]

    def exact_after(self, cutoff: int) -> int:
        """The tick from which on every arrival is known, at least `cutoff`."""
        gone = int(self._arrays.gone[0])
        return max(gone + (self._base or 0), cutoff) if gone else cutoff

    def _stamp(self, tick: int) -> int:
        return 0 if self._base is None else max(tick - self._base, 0)

    def pack(self, words: Words, now: int | None) -> bytes:
        """The bits of all levels at the tick `now`; `words` are those held."""
        stamp = 0 if self._base is None or now is None else now - self._base
        packed = kernels.heavybits.pack(self._arrays, words, self.window, stamp)
        return bytes(packed.tobytes())

    @classmethod
    def unpack(
        cls, epsilon: float, door: DoorState, state: ChainState, words: Words, data: memoryview
    ) -> Self:
        """The chain with this state, these words and these bits; WireError if there is none."""
        window = door.window
        try:
            chain = cls(epsilon, window, state.top)
        except MemoryError:
            raise WireError(f"{state.top} levels do not fit in memory") from None
        if door.now is not None:
            chain._base = door.now - window - 1
        status = kernels.heavybits.unpack(
            np.frombuffer(data, np.uint8), chain._arrays, words, window, window + 1
        )
        if status == kernels.heavybits.TRUNCATED:
            raise WireError("truncated: the chain goes on beyond the end")
        if status == kernels.heavybits.IMPOSSIBLE:
            raise WireError("no chain has this content")
        if words.size and door.now is None:
            raise WireError("there are arrivals, but no clock")
        return chain


def _zeros(top: int) -> Ints:
    return np.zeros(top + 1, np.int64)


def _with_a_level_more(arrays: Any) -> Any:
    """The same with zeros for another level; no level has been written beyond its own part."""
    top, _, _, slots, room, marks = arrays[:6]
    more = {
        "words": room, "stamps": room, "times": room,
        "held": slots, "rests": slots, "mark_stamps": marks, "mark_lost": marks,
    }  # fmt: skip
    longer = {
        name: np.concatenate([column, np.zeros(more.get(name, 1), column.dtype)])
        for name, column in zip(arrays._fields[6:], arrays[6:], strict=True)
    }
    return arrays._replace(top=top + 1, **longer)
