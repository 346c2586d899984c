"""The bytes of many exponential histograms: only what a question can still see.

For each cell: 6 bits with the width of its count, the count, then how many of its buckets are live
(in as many bits as their greatest possible number needs) and, newest first, the time from each
live stamp back to the one before it, the first from `now`, in blocks (kernels/bitpack.py). Sizes
are not written: which buckets there are follows from the count alone. Neither are expired stamps,
so equal streams give equal bytes, however they were cut into batches.
"""

import numpy as np
from numba import njit

from streamgauge.kernels.bitpack import (
    BLOCK,
    COMPLETE,
    IMPOSSIBLE,
    TRUNCATED,
    _bytes,
    _get,
    _is_end,
    _put,
    _put_blocks,
    _room,
    _width,
    _words,
)
from streamgauge.kernels.exphist import _mask, _most, _ring, _stored

u64 = np.uint64


@njit(cache=True, nogil=True)
def pack(counts, filled, oldest, stamps, levels, shift, k, reach, window, now):
    """The bytes of all cells at the relative tick `now`, of the first `reach` levels of each."""
    words = np.zeros(32, np.uint64)
    gaps = np.empty(reach * (k + 1), np.int64)
    at = 0
    for cell in range(counts.size):
        count = np.int64(counts[cell])
        live = 0
        newer = now
        for level in range(reach):
            ring, mask = _ring(cell, level, levels, shift), _mask(level, shift)
            first = np.int64(oldest[cell * levels + level])
            left = np.int64(filled[cell * levels + level])
            while left > 0:
                stamp = np.int64(stamps[ring + ((first + left - 1) & mask)])
                if stamp == 0 or stamp <= now - window:
                    break
                gaps[live] = newer - stamp
                newer = stamp
                live += 1
                left -= 1
            if left > 0:
                break
        words = _room(words, at, 6 + 53 + 32)
        at = _put(words, at, _width(count), 6)
        at = _put(words, at, count, _width(count))
        at = _put(words, at, live, _width(_stored(count, reach, k)))
        words, at = _put_blocks(words, at, gaps, live)
    return _bytes(words, at)


@njit(cache=True, nogil=True)
def unpack(data, counts, filled, oldest, stamps, levels, shift, k, window, now):
    """Fill zeroed arrays from bytes that may be anything; returns a status."""
    at = 0
    words, bits = _words(data), data.size * 8
    for cell in range(counts.size):
        if at + 6 > bits:
            return TRUNCATED
        width = _get(words, at, 6)
        at += 6
        if at + width > bits:
            return TRUNCATED
        count = _get(words, at, width)
        at += width
        if count >> 53:
            return IMPOSSIBLE
        stored = _stored(count, levels, k)
        width = _width(stored)
        if at + width > bits:
            return TRUNCATED
        live = _get(words, at, width)
        at += width
        if live > stored:
            return IMPOSSIBLE
        counts[cell] = u64(count)
        given, read, stamp = count, 0, now
        for level in range(levels):
            if given == 0:
                break
            carried = max(given - _most(level, k) + 1, 0) >> 1
            left = given - 2 * carried
            filled[cell * levels + level] = left
            given = carried
            while left > 0 and read < live:
                if read % BLOCK == 0:
                    if at + 6 > bits:
                        return TRUNCATED
                    width = _get(words, at, 6)
                    at += 6
                if at + width > bits:
                    return TRUNCATED
                stamp -= _get(words, at, width)
                at += width
                if stamp <= now - window or stamp > now:
                    return IMPOSSIBLE
                left -= 1
                stamps[_ring(cell, level, levels, shift) + left] = stamp
                read += 1
    if not _is_end(words, at, data.size):
        return IMPOSSIBLE
    return COMPLETE
