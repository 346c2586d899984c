"""The exponential histogram as its paper tells it: what the counters' speed is measured against.

Datar, Gionis, Indyk & Motwani (2002), section 3, compiled: stamps of 64 bits, a ring of buckets for
each size in each cell. An arrival deletes the buckets that have left the window, the oldest of
them first, becomes a bucket of size 1, and while a size has more than it may, k + 1 of size 1 and
ceil(k / 2) + 1 above, its two oldest become one of twice the size with the newer one's stamp.

streamgauge's own exponential histogram joins expired buckets like all others instead and so needs
no look at the oldest; that it is faster is no merit of a wave. Events are hashed in chunks and
walked row by row as there, so that only the structures differ.
"""

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from streamgauge.kernels.hashing import column

u32, u64 = np.uint32, np.uint64

CHUNK = 8192  # as in streamgauge's kernels


class LiteralGrid:
    """`cells` histograms of relative error 1 / k, each with room for `arrivals` in a window."""

    def __init__(self, cells: int, k: int, window: int, arrivals: int) -> None:
        self.k, self.window = k, window
        self.levels = 2 + math.ceil(math.log2(1 + arrivals / k))
        self.shift = (k + 1).bit_length()  # a ring has 1 << shift slots, at least k + 2
        self.stamps = np.zeros((cells * self.levels) << self.shift, np.int64)
        # By cell and size: the slot of the oldest bucket, how many there are, and their stamps.
        self.oldest = np.zeros(cells * self.levels, np.uint32)
        self.filled = np.zeros(cells * self.levels, np.uint32)
        self.tops = np.zeros(cells, np.int64)  # the largest size in a cell is 1 << top
        self.totals = np.zeros(cells, np.int64)  # arrivals in its buckets

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        arrays = (self.stamps, self.oldest, self.filled, self.tops, self.totals)
        return sum(array.nbytes for array in arrays)

    def insert(
        self, seeds: NDArray[np.uint64], words: NDArray[np.uint64], ticks: NDArray[np.int64]
    ) -> None:
        """Every word's arrival in its column of every row; as many rows as `seeds`."""
        if not _insert(*self._arrays(), self.k, self.window, seeds, words, ticks):
            raise OverflowError(f"{self.levels} sizes of buckets are not enough")

    def estimate(self, cell: int, now: int) -> float:
        """The arrivals after `now - window`: all in buckets, but half of the oldest one's."""
        _expire(*self._arrays(), u64(cell), now - self.window)
        oldest = 1 << int(self.tops[cell])
        return float(self.totals[cell]) - (oldest / 2 if oldest > 1 else 0)

    def _arrays(self) -> tuple[Any, ...]:
        rings = (self.stamps, self.oldest, self.filled, self.levels, self.shift)
        return *rings, self.tops, self.totals


@njit(cache=True, nogil=True, inline="always")
def _expire(stamps, oldest, filled, levels, shift, tops, totals, cell, cutoff):
    """Delete the buckets with stamps up to `cutoff`; the oldest bucket is one of the largest."""
    top = u64(tops[cell])
    place = cell * u64(levels) + top
    while filled[place] and stamps[(place << u64(shift)) + u64(oldest[place])] <= cutoff:
        totals[cell] -= 1 << np.int64(top)
        oldest[place] = (oldest[place] + u32(1)) & u32((1 << shift) - 1)
        filled[place] -= u32(1)
        while filled[place] == 0 and top > u64(0):
            top -= u64(1)
            place -= u64(1)
        tops[cell] = np.int64(top)


@njit(cache=True, nogil=True)
def _insert_row(
    stamps, oldest, filled, levels, shift, tops, totals, k, window, columns, first_cell, ticks
):
    mask = u64((1 << shift) - 1)
    above = u64((k + 1) // 2 + 1)
    for i in range(u64(ticks.size)):
        cell = u64(first_cell) + u64(columns[i])
        stamp = ticks[i]
        _expire(stamps, oldest, filled, levels, shift, tops, totals, cell, stamp - window)
        totals[cell] += 1
        place = cell * u64(levels)
        most = u64(k + 1)
        level = 0
        while True:
            ring = place << u64(shift)
            first, held = u64(oldest[place]), u64(filled[place])
            stamps[ring + ((first + held) & mask)] = stamp
            if held < most:
                filled[place] = held + u64(1)
                break
            stamp = stamps[ring + ((first + u64(1)) & mask)]
            oldest[place] = (first + u64(2)) & mask
            filled[place] = held - u64(1)
            place += u64(1)
            level += 1
            most = above
            if level == levels:
                return False
        tops[cell] = max(tops[cell], level)
    return True


@njit(cache=True, nogil=True)
def _insert(stamps, oldest, filled, levels, shift, tops, totals, k, window, seeds, words, ticks):
    columns = np.empty(CHUNK, np.uint32)
    rows = seeds.shape[0]
    width = tops.size // rows
    for begin in range(0, words.size, CHUNK):
        size = min(CHUNK, words.size - begin)
        for row in range(rows):
            a, b, c = seeds[row, 0], seeds[row, 1], seeds[row, 2]
            for i in range(size):
                columns[i] = np.uint32(column(words[begin + i], a, b, c, u64(width)))
            if not _insert_row(
                stamps, oldest, filled, levels, shift, tops, totals, k, window,
                columns, row * width, ticks[begin : begin + size],
            ):  # fmt: skip
                return False
    return True
