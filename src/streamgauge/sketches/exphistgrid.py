"""Many exponential histograms in one set of arrays: allocation, growth, rebasing and bytes.

The arrays and the invariant are described in kernels/exphist.py; this is their owner, with the
interface of WaveGrid, so that a sketch can hold either.
"""

import copy
import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streamgauge import kernels
from streamgauge.sketches.door import Admitted, DoorState
from streamgauge.sketches.merging import Drift, Placed, Segments
from streamgauge.sketches.spans import Spans
from streamgauge.sketches.wavegrid import MEMORY_LIMIT, GridState, stamp_type
from streamgauge.wire import WireError


def buckets(epsilon: float) -> int:
    """Datar et al.'s k for a relative error of at most `epsilon`: ceil(1 / epsilon).

    Never less than 2, which only rounding can bring about: epsilon < 1.
    """
    return max(2, math.ceil(1 / epsilon))


def require_memory(cells: int, levels: int, k: int, window: int) -> None:
    """Refuse a grid of so many histograms and levels if its buckets take too much."""
    stamps = (levels + 1) << _shift(k)
    if cells * (stamps * stamp_type(window)().itemsize + 8 * levels) > MEMORY_LIMIT:
        raise OverflowError(
            f"{cells} exponential histograms of {levels} levels with k = {k} need more than "
            f"{MEMORY_LIMIT >> 30} GiB; a larger epsilon or delta needs less"
        )


def _shift(k: int) -> int:
    """A ring has 1 << shift slots, enough for ceil(k / 2) + 1 buckets, the lowest twice that."""
    return ((k + 1) // 2).bit_length()


class ExpHistGrid:
    """`cells` exponential histograms over one window, each with a relative error below 1 / k.

    Rings are rounded up to powers of two, so that a slot is a mask and not a division. Stamps are
    int32 relative to `_base` where the window allows it; when ticks run past their range, `_base`
    moves up and what falls below it has expired.
    """

    def __init__(self, cells: int, k: int, window: int) -> None:
        self.window = window
        self.k = k
        self.first: int | None = None  # tick of the first arrival ever
        self.drift = Drift()
        self.counts = np.zeros(cells, np.uint64)
        self._shift = _shift(k)
        self._kind = stamp_type(window)
        self._range = int(np.iinfo(self._kind).max)
        self._base = 0
        self._own(1, *self._allocate(1))

    def _allocate(self, levels: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[Any]]:
        """How many buckets each level holds, where the oldest is, and their stamps."""
        cells = self.counts.size
        require_memory(cells, levels, self.k, self.window)
        filled, oldest = np.zeros(cells * levels, np.uint32), np.zeros(cells * levels, np.uint32)
        return filled, oldest, np.zeros((cells * (levels + 1)) << self._shift, self._kind)

    def _own(
        self,
        levels: int,
        filled: NDArray[np.uint32],
        oldest: NDArray[np.uint32],
        stamps: NDArray[Any],
    ) -> None:
        self.levels = levels
        self._filled, self._oldest, self._stamps = filled, oldest, stamps

    def _rings(self) -> tuple[Any, ...]:
        return self._filled, self._oldest, self._stamps, self.levels, self._shift

    def _arrays(self) -> tuple[Any, ...]:
        return self.counts, *self._rings(), self.k

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        heads = self.counts.nbytes + self._filled.nbytes + self._oldest.nbytes
        return heads + self._stamps.nbytes

    def fresh(self) -> "ExpHistGrid":
        """An empty grid of as many and equal cells."""
        return ExpHistGrid(self.counts.size, self.k, self.window)

    def copy(self) -> Self:
        """Another grid with the same content."""
        return copy.deepcopy(self)

    def begin(self, cutoff: int) -> int | None:
        """No arrival later than the tick `cutoff` came before this one; None: there is none."""
        return None if self.first is None else max(self.first, cutoff + 1)

    def insert(
        self, seeds: NDArray[np.uint64], words: NDArray[np.uint64], admitted: Admitted
    ) -> None:
        """Every word's arrivals in its column of every row; as many rows as `seeds`."""
        ticks, weights = admitted.ticks, admitted.weights
        width = self.counts.size // seeds.shape[0]
        begin = 0
        while begin < ticks.size:
            end = self._reach(admitted, begin)
            events = (seeds, width, words[begin:end], ticks[begin:end])
            cursor = np.zeros(3, np.int64)
            done = False
            while not done:
                grid = (*self._arrays(), self.window)
                if weights is None:
                    done = kernels.exphist.update(*grid, *events, self._base, cursor)
                else:
                    done = kernels.exphist.update_weighted(
                        *grid, *events, weights[begin:end], admitted.step, self._base, cursor
                    )
                if not done:
                    self._grow()
            begin = end

    def insert_run(self, admitted: Admitted) -> None:
        """All arrivals into the only cell."""
        begin = 0
        while begin < admitted.ticks.size:
            end = self._reach(admitted, begin)
            if admitted.weights is None:
                self._insert_ones(admitted.ticks[begin:end])
            else:
                cell = (np.zeros(1, np.int64), np.array([end - begin]))
                events = (admitted.ticks[begin:end], admitted.weights[begin:end])
                self._extend(*cell, *events, admitted.step)
            begin = end

    def _insert_ones(self, ticks: NDArray[np.int64]) -> None:
        stamps, columns = (ticks - self._base).astype(self._kind), np.zeros(ticks.size, np.uint32)
        begin = 0
        while begin < ticks.size:
            begin = kernels.exphist.insert_row(
                *self._arrays(), self.window, columns, stamps, begin, ticks.size
            )
            if begin < ticks.size:
                self._grow()

    def _extend(
        self,
        begins: NDArray[np.int64],
        ends: NDArray[np.int64],
        ticks: NDArray[np.int64],
        weights: NDArray[np.int64],
        step: int,
    ) -> None:
        cursor, events = np.zeros(2, np.int64), (begins, ends, ticks, weights)
        while not kernels.exphist.extend(
            *self._arrays(), self.window, *events, step, self._base, cursor
        ):
            self._grow()

    def _grow(self) -> None:
        grown = self._allocate(self.levels + 1)
        kernels.exphist.grow(*self._arrays(), *grown)
        self._own(self.levels + 1, *grown)

    def _reach(self, admitted: Admitted, begin: int) -> int:
        """Move the base so that event `begin` fits; returns how far the events fit."""
        ticks, weights = admitted.ticks, admitted.weights
        tick = int(ticks[begin])
        if self.first is None:
            weight = 1 if weights is None else int(weights[begin])
            self.first = tick - admitted.step * (weight - 1)
            self._base = self.first - 1
        if tick - self._base > self._range:
            self._rebase(tick - self.window - 1)
        return int(np.searchsorted(ticks, self._base + self._range, "right"))

    def _rebase(self, base: int) -> None:
        if base - self._base > self._range:
            self._stamps[:] = 0
        else:
            kernels.wave.shift_base(self._stamps, base - self._base)
        self._base = base

    def spans(self, cells: NDArray[np.int64], cutoffs: NDArray[np.int64]) -> Spans:
        """The fewest and the most arrivals of cells[i] later than the tick cutoffs[i]."""
        return self.drift.true(self.fed(cells, cutoffs))

    def fed(self, cells: NDArray[np.int64], cutoffs: NDArray[np.int64]) -> Spans:
        """The same of what it was fed, which merging may have misplaced."""
        counts = self.counts[cells].astype(np.int64)
        if self.first is None:
            return Spans.exact(counts)
        low, high = np.empty_like(counts), np.empty_like(counts)
        kernels.exphist.spans(*self._rings(), cells, np.maximum(cutoffs - self._base, 0), low, high)
        none_expired = cutoffs < self.first
        low, high = np.where(none_expired, counts, low), np.where(none_expired, counts, high)
        return Spans.between(low, high)

    def follow(self, cutoff: int, expired: NDArray[np.int64], live: NDArray[np.int64]) -> Spans:
        """The spans of all cells; `expired` and `live` are what WaveGrid keeps, unused here."""
        cells = np.arange(self.counts.size)
        return self.spans(cells, np.full_like(cells, cutoff))

    def segments(self, cutoff: int) -> Segments:
        """What is known of the arrivals later than the tick `cutoff`."""
        cells, most = self.counts.size, int(self._filled.sum())
        offsets = np.empty(cells + 1, np.int64)
        ends, sizes = np.empty(most, np.int64), np.empty(most, np.int64)
        found = kernels.exphist.segments(
            cells, *self._rings(), max(cutoff - self._base, 0), offsets, ends, sizes
        )
        known = self.first is not None and self.first > cutoff
        starts = np.full(cells, self.first if known else self._base, np.int64)
        return Segments(offsets, ends[:found] + self._base, sizes[:found], starts)

    def next_change(self, cutoff: int) -> int | None:
        """The next cutoff at which what is known of a cell may change; None if all has expired."""
        if self.first is None:
            return None
        if self.first > cutoff:
            return self.first
        stamp = kernels.exphist.next_stamp(
            self.counts.size, *self._rings(), max(cutoff - self._base, 0)
        )
        return int(stamp) + self._base if stamp else None

    def extend(self, placed: Placed, now: int) -> None:
        """Every cell's arrivals in order of time; all are in the window that ends at `now`."""
        self.drift = Drift.of([self.drift, placed.drift])
        begin = now - self.window - 1
        if self.first is None:
            self._base, self.first = begin, placed.first
        elif begin > self._base:
            self._rebase(begin)
        self._extend(placed.begins, placed.ends, placed.ticks, placed.weights, 0)

    def state(self, now: int | None) -> GridState:
        """With `pack`, what makes an equal grid at the tick `now`."""
        if self.first is None or now is None:
            return GridState(1, None)
        seen = self.first > now - self.window
        drift = self.drift if self.drift.levels else None
        return GridState(self._live_levels(now), self.first if seen else None, drift)

    def _live_levels(self, now: int) -> int:
        cutoff = max(now - self.window - self._base, 0)
        return int(kernels.exphist.live_levels(self.counts.size, *self._rings(), cutoff))

    def pack(self, now: int | None) -> bytes:
        """The cells' bytes at the tick `now`."""
        if self.first is None or now is None:
            return bytes((6 * self.counts.size + 7) // 8)
        reach, clock = self._live_levels(now), now - self._base
        packed = kernels.exphistbits.pack(*self._arrays(), reach, self.window, clock)
        return bytes(packed.tobytes())

    @classmethod
    def unpack(
        cls, cells: int, k: int, door: DoorState, state: GridState, data: memoryview
    ) -> Self:
        """The grid with this state and these bytes; WireError if there is none."""
        if 6 * cells > 8 * len(data):
            raise WireError(
                f"truncated: {len(data)} bytes cannot hold {cells} exponential histograms"
            )
        try:
            grid = cls(cells, k, door.window)
            grid._own(state.levels, *grid._allocate(state.levels))
        except (OverflowError, MemoryError) as error:
            raise WireError(str(error)) from None
        grid.drift = state.drift or Drift()
        clock = 0 if door.now is None else door.now
        begin = clock - door.window
        grid._base = begin - 1
        status = kernels.exphistbits.unpack(
            np.frombuffer(data, np.uint8), *grid._arrays(), door.window, door.window + 1
        )
        if status == kernels.bitpack.TRUNCATED:
            raise WireError("truncated: the exponential histograms go on beyond the end")
        if status == kernels.bitpack.IMPOSSIBLE:
            raise WireError(
                "no exponential histograms have this content: more buckets than their arrivals "
                "make, stamps outside the window or bits left"
            )
        if not grid.counts.any():
            if state != GridState(1, None):
                raise WireError("levels or a first arrival are given, but nothing ever arrived")
            return grid
        if door.now is None:
            raise WireError("there are arrivals, but no clock")
        if state.levels != grid._live_levels(clock):
            raise WireError(f"{state.levels} levels, but live are {grid._live_levels(clock)}")
        if state.first is None:
            grid.first = begin
        elif begin < state.first <= clock:
            grid.first = state.first
            grid._require_nothing_expired()
        else:
            raise WireError(f"the first arrival at {state.first} is not in the window")
        return grid

    def _require_nothing_expired(self) -> None:
        """All arrivals ever stand in buckets, none of them before the first arrival."""
        assert self.first is not None
        known = np.full(self.counts.size, self.first - 1 - self._base)
        low, high = np.empty_like(known), np.empty_like(known)
        kernels.exphist.spans(*self._rings(), np.arange(known.size), known, low, high)
        if np.any(high != self.counts.astype(np.int64)):
            raise WireError(f"the first arrival came at {self.first}, but some have expired")
