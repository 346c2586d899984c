"""Many randomized waves in one arena: sizes, growth, rebasing, merging and bytes.

The arrays are described in kernels/randomized.py; this is their owner.
"""

import copy
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from streamgauge import kernels, seeds
from streamgauge.sketches.door import COUNT_LIMIT, Admitted, DoorState, require_share
from streamgauge.sketches.merging import Drift
from streamgauge.sketches.spans import Spans
from streamgauge.sketches.wavegrid import MEMORY_LIMIT, GridState
from streamgauge.wire import WireError

HEAVIEST = 1 << 20  # arrivals of one event: each tosses coins of its own
LEAST_EPSILON = 1e-3

_INT32_WINDOW = 1 << 30  # longer windows take int64 stamps
_LISTED = 4 + 8 + 1  # bytes for a list besides its ring
_LEVELS_AT_ONCE = 4


class _Content(NamedTuple):
    """Live stamps or ticks by list, see `gather`."""

    lists: NDArray[np.int64]
    offsets: NDArray[np.int64]
    stamps: NDArray[np.int64]

    @classmethod
    def room(cls, lists: int, stamps: int) -> Self:
        """For at most so many."""
        return cls(*(np.empty(size, np.int64) for size in (lists, lists + 1, stamps)))

    def found(self, lists: int) -> Self:
        """The first so many lists."""
        end = self.offsets[lists]
        return type(self)(self.lists[:lists], self.offsets[: lists + 1], self.stamps[:end])

    def joined(self, other: Self, most: int) -> Self:
        """Each list's newest `most` of both."""
        both = self.room(self.lists.size + other.lists.size, self.stamps.size + other.stamps.size)
        return both.found(kernels.randomized.join(*self, *other, most, *both))


def capacity_for(epsilon: float) -> int:
    """Stamps a sample must hold for one copy to be within `epsilon` with probability 3/4.

    ceil(36 / epsilon**2): the proof needs 8 / (epsilon**2 c) + 2 / c <= 1/4 (docs/guarantees.md,
    "Randomized wave"), which c >= 36 / epsilon**2 and c >= 72 give. The 6 / epsilon**2 that
    others found sufficient in practice loses the proof.
    """
    if require_share("epsilon", epsilon) < LEAST_EPSILON:
        raise ValueError(f"epsilon of a randomized wave must be at least 0.001, got {epsilon}")
    return max(72, math.ceil(36 / epsilon**2))


@cache
def copies_for(delta: float) -> int:
    """The smallest odd d whose median fails with probability at most `delta`.

    It fails only if (d + 1) / 2 copies or more do, each with probability 1/4 at most: that is
    P[Bin(d, 1/4) >= (d + 1) / 2] = sum of C(d, k) 3**(d - k) / 4**d, here in whole numbers.
    """
    allowed = Fraction(require_share("delta", delta))
    copies = 1
    while True:
        failing = sum(
            math.comb(copies, k) * 3 ** (copies - k) for k in range((copies + 1) // 2, copies + 1)
        )
        if failing <= allowed * 4**copies:
            return copies
        copies += 2


def require_light(admitted: Admitted) -> None:
    """Refuse an event that weighs more than it may toss coins."""
    if admitted.weights is not None and admitted.weights.size:
        heaviest = int(admitted.weights.max())
        if heaviest > HEAVIEST:
            raise ValueError(
                f"weights of a randomized wave must be at most 2**20, got {heaviest}: "
                "every arrival tosses its own coins"
            )


class RandomizedGrid:
    """`cells` randomized waves over one window, in `copies` copies of samples of `capacity`.

    Rings double one by one, from 4 slots up to the power of two that holds capacity + 1. They lie
    in one arena; a ring that grows leaves its old place behind, and when the arena is full all
    move to a fresh one without gaps. Stamps are int32 relative to `_base` where the window allows
    it; when ticks run past their range, `_base` moves up and what falls below it has expired.
    """

    drift = Drift()  # merging loses nothing

    def __init__(
        self, cells: int, capacity: int, copies: int, window: int, coins_seed: int
    ) -> None:
        self.window = window
        self.capacity = capacity
        self.copies = copies
        self.coins_seed = coins_seed
        self.epsilon = 6 / math.sqrt(capacity)  # what `capacity_for` of it gives
        self.first: int | None = None  # tick of the first arrival ever
        self.counts = np.zeros(cells, np.uint64)
        self._kind = np.int32 if window <= _INT32_WINDOW else np.int64
        self._range = int(np.iinfo(self._kind).max)
        self._most = capacity.bit_length()  # 1 << _most > capacity
        self._require_memory(cells * (1 + copies) << self._most)  # sooner or later
        self._keys = seeds.expand(coins_seed, copies)
        self._base = 0
        self._levels = 1
        self._used = np.zeros(1, np.int64)
        self._list(1)
        self._arena = np.zeros(0, self._kind)

    def _require_memory(self, slots: int, lists: int = 0) -> None:
        if slots * self._kind().itemsize + lists * _LISTED > MEMORY_LIMIT:
            raise OverflowError(
                f"{self.counts.size} randomized waves of {self.copies} samples of {self.capacity} "
                f"need more than {MEMORY_LIMIT >> 30} GiB; a larger epsilon or delta needs less"
            )

    def _list(self, levels: int) -> None:
        """Room for the lists of so many levels."""
        lists = self.counts.size * self.copies * levels
        self._require_memory(0, lists)
        self._heads = np.zeros(lists, np.uint32)
        self._begins = np.zeros(lists, np.int64)
        self._shifts = np.zeros(lists, np.uint8)
        self._levels = levels

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        arrays = (self.counts, self._arena, self._heads, self._begins, self._shifts)
        return sum(array.nbytes for array in arrays)

    def copy(self) -> Self:
        """Another grid with the same content."""
        return copy.deepcopy(self)

    def insert(
        self, seeds: NDArray[np.uint64], words: NDArray[np.uint64], admitted: Admitted
    ) -> None:
        """Every word's arrivals in its column of every row; as many rows as `seeds`."""
        rows = seeds.shape[0]
        width = self.counts.size // rows
        cells = np.empty((rows, words.size), np.int64)
        kernels.hashing.columns(seeds, width, words, cells)
        cells += width * np.arange(rows)[:, None]
        self._insert(cells, admitted)

    def insert_run(self, admitted: Admitted) -> None:
        """All arrivals into the only cell."""
        self._insert(np.zeros((1, admitted.ticks.size), np.int64), admitted)

    def _insert(self, cells: NDArray[np.int64], admitted: Admitted) -> None:
        require_light(admitted)
        ticks, weights = admitted.ticks, admitted.weights
        if weights is None:
            weights = np.empty(0, np.int64)
        if self.first is None and ticks.size:
            before = int(weights[0]) - 1 if weights.size else 0
            self.first = int(ticks[0]) - before * admitted.step
            self._base = int(ticks[0]) - self.window - 1
        begin = 0
        while begin < ticks.size:
            end = self._reach(ticks, begin)
            events = (cells[:, begin:end], ticks[begin:end], weights[begin:end])
            cursor = np.zeros(5, np.int64)
            status = None
            while status != kernels.randomized.DONE:
                status = kernels.randomized.insert(
                    self.counts, *self._rings(), self._used, self._keys, self._levels, self._most,
                    self.window, *events, admitted.step, self._base, cursor,
                )  # fmt: skip
                if status == kernels.randomized.NEEDS_ROOM:
                    self._grow()
                elif status == kernels.randomized.NEEDS_LEVELS:
                    self._deepen()
            begin = end

    def _rings(self) -> tuple[NDArray[Any], ...]:
        return self._heads, self._begins, self._shifts, self._arena

    def _grow(self) -> None:
        """An arena with room for one ring more, whichever it is, and for a quarter besides."""
        slots = 1 << self._shifts.astype(np.int64)
        taken = int(slots[self._shifts > 0].sum())
        largest = int(slots.max())
        size = taken + max(taken // 4, min(2 * largest, 1 << self._most), 64)
        self._require_memory(size, slots.size)
        fresh = np.zeros(size, self._kind)
        self._used[0] = kernels.randomized.compact(self._begins, self._shifts, self._arena, fresh)
        self._arena = fresh

    def _deepen(self) -> None:
        """Lists for some levels more."""
        old: tuple[NDArray[Any], ...] = self._heads, self._begins, self._shifts
        before = self._levels
        self._list(min(before + _LEVELS_AT_ONCE, kernels.randomized.LEVELS))
        new: tuple[NDArray[Any], ...] = self._heads, self._begins, self._shifts
        for deeper, array in zip(new, old, strict=True):
            deeper.reshape(-1, self._levels)[:, :before] = array.reshape(-1, before)

    def _reach(self, ticks: NDArray[np.int64], begin: int) -> int:
        """Move the base so that event `begin` fits; returns how far the events fit."""
        tick = int(ticks[begin])
        if tick - self._base > self._range:
            by = tick - self.window - 1 - self._base
            if by > self._range:
                self._arena[:] = 0
            else:
                kernels.wave.shift_base(self._arena, by)
            self._base += by
        return int(np.searchsorted(ticks, self._base + self._range, "right"))

    def spans(self, cells: NDArray[np.int64], cutoffs: NDArray[np.int64]) -> Spans:
        """What is known of the arrivals of cells[i] later than the tick cutoffs[i].

        Exact where all of them are stored. Else the median v of the copies' estimates, and what
        |v - truth| <= epsilon * truth says of the truth: probable. Certain besides, and respected
        by v, is that there are more than `capacity` and not more than ever came.
        """
        cells = np.ascontiguousarray(cells)
        values, is_exact = np.empty(cells.size), np.empty(cells.size, np.bool_)
        kernels.randomized.medians(
            *self._rings(), self._levels, self.copies, self.capacity,
            cells, np.maximum(cutoffs - self._base, 0), values, is_exact,
        )  # fmt: skip
        least = np.where(is_exact, 0, self.capacity + 1)
        most = self.counts[cells].astype(np.int64)
        values = np.clip(values, least, most)
        # Rounded outwards: epsilon and the division are off by an ulp each.
        low = np.ceil(values / ((1 + self.epsilon) * (1 + 2**-50))).astype(np.int64)
        high = np.floor(values / ((1 - self.epsilon) * (1 - 2**-50))).astype(np.int64)
        counted = values.astype(np.int64)
        return Spans(
            np.where(is_exact, counted, np.maximum(low, least)),
            np.where(is_exact, counted, np.minimum(high, most)),
            values,
        )

    def follow(self, cutoff: int, expired: NDArray[np.int64], live: NDArray[np.int64]) -> Spans:
        """The spans of all cells. No step is spared by the last one: the two arrays stay unused."""
        every = np.arange(self.counts.size)
        return self.spans(every, np.full(every.size, cutoff))

    def next_change(self, cutoff: int) -> int | None:
        """The next cutoff at which what is known of a cell may change; None if all has expired."""
        stamp = kernels.randomized.next_stamp(
            *self._rings(), self.capacity, max(cutoff - self._base, 0)
        )
        return int(stamp) + self._base if stamp else None

    @classmethod
    def merged(cls, grids: "Sequence[RandomizedGrid]", now: int | None) -> Self:
        """One grid of all these grids' arrivals at the tick `now`, with the coins of the first.

        Nothing is lost: the newest capacity + 1 stamps of a list of the union are among the newest
        capacity + 1 of each part's. If the parts tossed different coins, this is what one grid
        would hold that had seen all arrivals and tossed these coins.
        """
        own = grids[0]
        counts = np.sum([grid.counts for grid in grids], axis=0, dtype=np.uint64)
        if np.any(counts >= COUNT_LIMIT):
            raise OverflowError(f"arrivals must stay below 2**53, got {counts.max()}")
        union = cls(own.counts.size, own.capacity, own.copies, own.window, own.coins_seed)
        union.counts[:] = counts
        firsts = [grid.first for grid in grids if grid.first is not None]
        if now is None or not firsts:
            return union
        union.first = min(firsts)
        held = own._content(now)
        for grid in grids[1:]:
            held = held.joined(grid._content(now), own.capacity + 1)
        union._fill(held, now)
        return union

    def _content(self, now: int | None) -> _Content:
        """The ticks in the window that ends at `now`."""
        sizes = np.minimum(1 << self._shifts.astype(np.int64), self.capacity + 1)
        rings = sizes[self._shifts > 0]
        held = _Content.room(rings.size, int(rings.sum()))
        cutoff = 0 if now is None else max(now - self.window - self._base, 0)
        found = kernels.randomized.gather(
            *self._rings(), self._levels, self.capacity, cutoff, *held
        )
        lists, offsets, stamps = held.found(found)
        return _Content(lists, offsets, stamps + self._base)

    def _fill(self, content: _Content, now: int) -> None:
        """An empty grid takes these ticks, all of them in the window that ends at `now`."""
        lists, offsets, stamps = content
        self._base = now - self.window - 1
        self._list(int((lists % kernels.randomized.LEVELS).max(initial=0)) + 1)
        needed = kernels.randomized.allot(self._begins, self._shifts, self._levels, lists, offsets)
        self._require_memory(needed, self._shifts.size)
        self._used[0] = needed
        self._arena = np.zeros(needed, self._kind)
        kernels.randomized.fill(
            self._heads, self._begins, self._arena, self._levels, lists, offsets,
            stamps - self._base,
        )  # fmt: skip

    def begin(self, cutoff: int) -> int | None:
        """No arrival later than the tick `cutoff` came before this one; None: there is none."""
        return None if self.first is None else max(self.first, cutoff + 1)

    def state(self, now: int | None) -> GridState:
        """With `pack`, what makes an equal grid at the tick `now`."""
        seen = now is not None and self.first is not None and self.first > now - self.window
        return GridState(1, self.first if seen else None)

    def pack(self, now: int | None) -> bytes:
        """The cells' bytes at the tick `now`."""
        clock = 0 if now is None else now
        packed = kernels.randomizedbits.pack(
            self.counts, self.copies, self.capacity, *self._content(now), clock
        )
        return bytes(packed.tobytes())

    @classmethod
    def unpack(
        cls,
        cells: int,
        capacity: int,
        copies: int,
        coins_seed: int,
        *,
        door: DoorState,
        state: GridState,
        data: memoryview,
    ) -> Self:
        """The grid with this state and these bytes; WireError if there is none."""
        bits, length = 8 * len(data), (capacity + 1).bit_length()
        if cells * (6 + 6 * copies + length) > bits:
            raise WireError(f"truncated: {len(data)} bytes cannot hold {cells} randomized waves")
        if state.levels != 1 or state.drift is not None:
            raise WireError("randomized waves have samples, and neither levels nor a drift")
        clock = 0 if door.now is None else door.now
        held = _Content.room(bits // (6 + length) + 1, 8 * (bits // 6 + 1))
        try:
            grid = cls(cells, capacity, copies, door.window, coins_seed)
            status, found = kernels.randomizedbits.unpack(
                np.frombuffer(data, np.uint8), grid.counts, copies, capacity, door.window, clock,
                *held,
            )  # fmt: skip
            if status == kernels.bitpack.TRUNCATED:
                raise WireError("truncated: the randomized waves go on beyond the end")
            if status == kernels.bitpack.IMPOSSIBLE:
                raise WireError("no randomized waves have this content: stamps or bits left over")
            grid._fill(held.found(found), clock)
        except (OverflowError, MemoryError) as error:
            raise WireError(str(error)) from None
        if not grid.counts.any():
            if state.first is not None:
                raise WireError("a first arrival is given, but no randomized wave has any")
            return grid
        if door.now is None:
            raise WireError("there are arrivals, but no clock")
        if state.first is None:
            grid.first = clock - door.window
        elif clock - door.window < state.first <= clock:
            grid.first = state.first
        else:
            raise WireError(f"the first arrival at {state.first} is not in the window")
        return grid
