"""Many waves in one pair of arrays: allocation, growth, rebasing and bytes.

The arrays and the invariant are described in kernels/wave.py; this is their owner.
"""

import copy
import math
from typing import Annotated, Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamgauge import kernels
from streamgauge.sketches.door import Admitted, DoorState, Tick
from streamgauge.sketches.merging import Drift, Placed, Segments
from streamgauge.sketches.spans import Spans
from streamgauge.wire import WireError

MEMORY_LIMIT = 1 << 33  # bytes of stamps that one grid may own
_LEVEL_LIMIT = 53  # counts stay below 2**53
_INT32_WINDOW = 1 << 30  # longer windows take int64 stamps


class GridState(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """What the bytes of a grid's cells do not say; `first` is None once it has expired."""

    levels: Annotated[int, msgspec.Meta(ge=1, le=_LEVEL_LIMIT)]
    first: Tick | None
    drift: Drift | None = None  # of what was merged


def kept_ranks(epsilon: float) -> int:
    """Ranks to keep a level for a relative error of at most `epsilon`.

    The error is below 1 / (2 kept - 1) (docs/guarantees.md, "Wave"), so kept is
    ceil((1 / epsilon + 1) / 2): half of Gibbons & Tirthapura's M = ceil(1 / epsilon) + 1. Never
    less than 2, which only rounding can bring about: epsilon < 1.
    """
    return max(2, math.ceil((1 / epsilon + 1) / 2))


def most_levels(kept: int) -> int:
    """As many as 2**53 arrivals in one window can need."""
    return _LEVEL_LIMIT + 2 - kept.bit_length()


def require_memory(cells: int, levels: int, kept: int, window: int) -> None:
    """Refuse a grid of so many waves and levels if its stamps take too much."""
    slots = 1 << (kept - 1).bit_length()
    if cells * levels * slots * stamp_type(window)().itemsize > MEMORY_LIMIT:
        raise OverflowError(
            f"{cells} waves of {levels} levels of {slots} slots need more than "
            f"{MEMORY_LIMIT >> 30} GiB; a larger epsilon or delta needs less"
        )


def stamp_type(window: int) -> type[np.int32] | type[np.int64]:
    """How stamps of such a window are kept."""
    return np.int32 if window <= _INT32_WINDOW else np.int64


class WaveGrid:
    """`cells` waves over one window, each with a relative error below 1 / (2 kept - 1).

    Slots are `kept` rounded up to a power of two, so that a rank's slot is a mask and not a
    division; the ranks beyond `kept` are neither asked nor written to bytes. Stamps are int32
    relative to `_base` where the window allows it; when ticks run past their range, `_base`
    moves up and what falls below it has expired.
    """

    def __init__(self, cells: int, kept: int, window: int) -> None:
        self.window = window
        self.kept = kept
        self.levels = 1
        self.first: int | None = None  # tick of the first arrival ever
        self.drift = Drift()
        self.counts = np.zeros(cells, np.uint64)
        self._shift = (kept - 1).bit_length()
        self._kind = stamp_type(window)
        self._range = int(np.iinfo(self._kind).max)
        self._base = 0
        self._stamps = self._allocate(1)

    def _allocate(self, levels: int) -> NDArray[Any]:
        require_memory(self.counts.size, levels, self.kept, self.window)
        return np.zeros((self.counts.size * levels) << self._shift, self._kind)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return self.counts.nbytes + self._stamps.nbytes

    def fresh(self) -> "WaveGrid":
        """An empty grid of as many and equal cells."""
        return WaveGrid(self.counts.size, self.kept, self.window)

    def copy(self) -> Self:
        """Another grid with the same content."""
        return copy.deepcopy(self)

    def insert(
        self, seeds: NDArray[np.uint64], words: NDArray[np.uint64], admitted: Admitted
    ) -> None:
        """Every word's arrivals in its column of every row; as many rows as `seeds`."""
        ticks, weights = admitted.ticks, admitted.weights
        width = self.counts.size // seeds.shape[0]
        begin = 0
        while begin < ticks.size:
            end = self._reach(admitted, begin)
            events = (words[begin:end], ticks[begin:end])
            cursor = np.zeros(3, np.int64)
            done = False
            while not done:
                grid = (*self._arrays(), self.window, seeds, width)
                if weights is None:
                    done = kernels.wave.update(*grid, *events, self._base, cursor)
                else:
                    done = kernels.wave.update_weighted(
                        *grid, *events, weights[begin:end], admitted.step, self._base, cursor
                    )
                if not done:
                    self._grow()
            begin = end

    def insert_run(self, admitted: Admitted) -> None:
        """All arrivals into the only cell."""
        ticks, weights = admitted.ticks, admitted.weights
        begin = 0
        while begin < ticks.size:
            end = self._reach(admitted, begin)
            while begin < end:
                grid = (*self._arrays(), self.window)
                if weights is None:
                    stop = kernels.wave.first_loss(*grid, ticks[:end], self._base, begin)
                    kernels.wave.add_run(*grid[:4], ticks, self._base, begin, stop)
                elif admitted.step == 0:
                    stop = kernels.wave.first_loss_weighted(
                        *grid, ticks[:end], weights, self._base, begin
                    )
                    kernels.wave.add_run_weighted(
                        *grid[:4], ticks, weights, self._base, begin, stop
                    )
                else:
                    stop = kernels.wave.add_weighted(
                        *grid, ticks[:end], weights, admitted.step, self._base, begin
                    )
                begin = stop
                if begin < end:
                    self._grow()

    def _arrays(self) -> tuple[Any, ...]:
        return self.counts, self._stamps, self.levels, self._shift, self.kept

    def _grow(self) -> None:
        grown = self._allocate(self.levels + 1)
        kernels.wave.grow(self.counts, self._stamps, self.levels, self._shift, grown)
        self._stamps = grown
        self.levels += 1

    def _reach(self, admitted: Admitted, begin: int) -> int:
        """Move the base so that event `begin` fits; returns how far the events fit."""
        ticks, weights = admitted.ticks, admitted.weights
        tick = int(ticks[begin])
        if self.first is None:
            earlier = 0 if weights is None else admitted.step * (int(weights[begin]) - 1)
            self.first = tick - earlier
            self._base = max(self.first, tick - self.window) - 1
        if tick - self._base > self._range:
            by = tick - self.window - 1 - self._base
            if by > self._range:
                self._stamps[:] = 0
            else:
                kernels.wave.shift_base(self._stamps, by)
            self._base += by
        return int(np.searchsorted(ticks, self._base + self._range, "right"))

    def spans(self, cells: NDArray[np.int64], cutoffs: NDArray[np.int64]) -> Spans:
        """The fewest and the most arrivals of cells[i] later than the tick cutoffs[i]."""
        counts = self.counts[cells].astype(np.int64)
        if self.first is None:
            return Spans.exact(counts)
        expired, live = np.empty_like(counts), np.empty_like(counts)
        kernels.wave.brackets(
            *self._arrays(), cells, np.maximum(cutoffs - self._base, 0), expired, live
        )
        none_expired = cutoffs < self.first
        low = np.where(none_expired, counts, counts - live + 1)
        high = np.where(none_expired, counts, counts - expired)
        return self.drift.true(Spans.between(low, high))

    def follow(self, cutoff: int, expired: NDArray[np.int64], live: NDArray[np.int64]) -> Spans:
        """The spans of all cells; `expired` and `live` are kept from cutoff to later cutoff.

        They belong to the caller, start as zeros, and make a step cost what has changed.
        """
        counts = self.counts.astype(np.int64)
        if self.first is None or cutoff < self.first:
            return self.drift.true(Spans.exact(counts))
        kernels.wave.follow(*self._arrays(), max(cutoff - self._base, 0), expired, live)
        return self.drift.true(Spans.between(counts - live + 1, counts - expired))

    def segments(self, cutoff: int) -> Segments:
        """What is known of the arrivals later than the tick `cutoff`."""
        cells = self.counts.size
        most = int(self.kept * self.levels * cells)
        offsets, starts = np.empty(cells + 1, np.int64), np.empty(cells, np.int64)
        ends, sizes = np.empty(most, np.int64), np.empty(most, np.int64)
        begin = 0 if self.first is None or self.first <= cutoff else self.first - self._base
        found = kernels.wave.segments(
            *self._arrays(), max(cutoff - self._base, 0), begin, offsets, ends, sizes, starts
        )
        return Segments(offsets, ends[:found] + self._base, sizes[:found], starts + self._base)

    def next_change(self, cutoff: int) -> int | None:
        """The next cutoff at which what is known of a cell may change; None if all has expired."""
        if self.first is None:
            return None
        if self.first > cutoff:
            return self.first
        stamp = kernels.wave.next_stamp(*self._arrays(), max(cutoff - self._base, 0))
        return int(stamp) + self._base if stamp else None

    def begin(self, cutoff: int) -> int | None:
        """No arrival later than the tick `cutoff` came before this one; None: there is none."""
        return None if self.first is None else max(self.first, cutoff + 1)

    def extend(self, placed: Placed, now: int) -> None:
        """Every cell's arrivals in order of time; all are in the window that ends at `now`."""
        self.drift = Drift.of([self.drift, placed.drift])
        if placed.ticks.size == 0:
            return
        begin = now - self.window - 1
        if self.first is None:
            self._base, self.first = begin, placed.first
        elif begin > self._base:
            kernels.wave.shift_base(self._stamps, begin - self._base)
            self._base = begin
        cells = (placed.begins, placed.ends)
        cutoff = now - self.window - self._base
        while kernels.wave.would_lose(*self._arrays(), cutoff, *cells, placed.weights):
            self._grow()
        kernels.wave.extend(*self._arrays(), *cells, placed.ticks, placed.weights, self._base)

    def state(self, now: int | None) -> GridState:
        """With `pack`, what makes an equal grid at the tick `now`."""
        seen = now is not None and self.first is not None and self.first > now - self.window
        drift = self.drift if self.drift.levels else None
        return GridState(self.levels, self.first if seen else None, drift)

    def pack(self, now: int | None) -> bytes:
        """The cells' bytes at the tick `now`."""
        if self.first is None or now is None:
            return bytes((6 * self.counts.size + 7) // 8)
        packed = kernels.wavebits.pack(*self._arrays(), self.window, now - self._base)
        return bytes(packed.tobytes())

    @classmethod
    def unpack(
        cls, cells: int, kept: int, door: DoorState, state: GridState, data: memoryview
    ) -> Self:
        """The grid with this state and these bytes; WireError if there is none."""
        if 6 * cells > 8 * len(data):
            raise WireError(f"truncated: {len(data)} bytes cannot hold {cells} waves")
        if state.drift is not None and state.drift.levels == 0:
            raise WireError("a drift is given, but nothing was merged")
        try:
            grid = cls(cells, kept, door.window)
            grid._stamps = grid._allocate(state.levels)
        except (OverflowError, MemoryError) as error:
            raise WireError(str(error)) from None
        grid.levels = state.levels
        grid.drift = state.drift or Drift()
        clock = 0 if door.now is None else door.now
        begin = clock - door.window
        grid._base = begin - 1
        status = kernels.wavebits.unpack(
            np.frombuffer(data, np.uint8), *grid._arrays(), door.window, door.window + 1
        )
        if status == kernels.wavebits.TRUNCATED:
            raise WireError("truncated: the waves go on beyond the end")
        if status == kernels.wavebits.IMPOSSIBLE:
            raise WireError("no waves have this content: stamps outside the window or bits left")
        most = int(grid.counts.max())
        if state.levels > 1 and most <= kept << (state.levels - 2):
            raise WireError(f"{state.levels} levels are more than {most} arrivals can need")
        if most == 0:
            if state.first is not None:
                raise WireError("a first arrival is given, but no wave has any")
            return grid
        if door.now is None:
            raise WireError("there are arrivals, but no clock")
        if state.first is None:
            grid.first = begin
        elif begin < state.first <= clock:
            grid.first = state.first
        else:
            raise WireError(f"the first arrival at {state.first} is not in the window")
        return grid
