"""A point query by a scan of every level of a cell: what asking a wave costs without bisection."""

import numpy as np
from numba import njit

from streamgauge.kernels.hashing import column

u64 = np.uint64


@njit(inline="always")
def _scanned(cell, count, stamps, levels, shift, kept, cutoff):
    """The middle of what the cell's stored ranks say about arrivals with stamps above `cutoff`."""
    slots = 1 << shift
    expired, live = 0, count + 1
    for level in range(levels):
        top = level == levels - 1
        place = count >> level if top else (((count >> level) + 1) >> 1) - 1
        oldest = max(1 if top else 0, place - kept + 1)
        while place >= oldest:
            rank = place << level if top else (2 * place + 1) << level
            if stamps[((cell * levels + level) << shift) | (place & (slots - 1))] > cutoff:
                live = min(live, rank)
            else:
                expired = max(expired, rank)
                break
            place -= 1
    return (count - live + 1 + count - expired) / 2 if live <= count else 0.0


@njit(cache=True, nogil=True)
def frequencies(counts, stamps, levels, shift, kept, cutoff, seeds, width, words, found):
    """The least of each word's cells."""
    for i in range(words.size):
        found[i] = np.inf
        for row in range(seeds.shape[0]):
            a, b, c = seeds[row, 0], seeds[row, 1], seeds[row, 2]
            cell = row * width + np.int64(column(words[i], a, b, c, u64(width)))
            count = np.int64(counts[cell])
            scanned = _scanned(cell, count, stamps, levels, shift, kept, cutoff)
            found[i] = min(found[i], scanned)
