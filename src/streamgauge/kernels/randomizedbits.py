"""The bytes of many randomized waves: their live stamps, in as few bits as fit.

For each cell: 6 bits with the width of its count, and the count. Then for each copy 6 bits with
the highest level that has a list, and the lists up to it, in copy 0 from level 0 on and else from
level 1: how many stamps (in as many bits as `capacity` + 1 needs) and, newest first, the time from
each back to the one before it, the first from `now`. These gaps come in blocks of BLOCK, each
led by 6 bits with the width of its largest. Only what is in the window is written, so equal
streams give equal bytes.
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
from streamgauge.kernels.randomized import LEVELS

u64 = np.uint64


@njit(cache=True, nogil=True)
def pack(counts, copies, capacity, lists, offsets, stamps, now):
    """The bytes of all cells, with the lists that `gather` gave, at the relative tick `now`."""
    words = np.zeros(32, np.uint64)
    gaps = np.empty(capacity + 1, np.int64)
    length_bits = _width(capacity + 1)
    at = 0
    k = 0
    for place in range(counts.size * copies):
        if place % copies == 0:
            count = np.int64(counts[place // copies])
            words = _room(words, at, 6 + 63)
            at = _put(words, at, _width(count), 6)
            at = _put(words, at, count, _width(count))
        end = k
        while end < lists.size and lists[end] // LEVELS == place:
            end += 1
        top = lists[end - 1] % LEVELS if end > k else 0
        words = _room(words, at, 6)
        at = _put(words, at, top, 6)
        for level in range(0 if place % copies == 0 else 1, top + 1):
            length = 0
            if k < end and lists[k] % LEVELS == level:
                length = offsets[k + 1] - offsets[k]
                k += 1
            words = _room(words, at, length_bits)
            at = _put(words, at, length, length_bits)
            newer = now
            for i in range(length):
                stamp = stamps[offsets[k] - 1 - i]
                gaps[i] = newer - stamp
                newer = stamp
            words, at = _put_blocks(words, at, gaps, length)
    return _bytes(words, at)


@njit(cache=True, nogil=True)
def unpack(data, counts, copies, capacity, window, now, lists, offsets, stamps):
    """Fill the arrays from bytes that may be anything; returns a status and how many lists.

    Room is needed for a list in the bits of a length and 6 more, for 8 stamps in every 6 bits.
    """
    words, bits = _words(data), data.size * 8
    length_bits = _width(capacity + 1)
    at = 0
    found = 0
    offsets[0] = 0
    for place in range(counts.size * copies):
        if place % copies == 0:
            if at + 6 > bits:
                return TRUNCATED, 0
            width = _get(words, at, 6)
            at += 6
            if at + width > bits:
                return TRUNCATED, 0
            count = _get(words, at, width)
            at += width
            if count >> 53:
                return IMPOSSIBLE, 0
            counts[place // copies] = u64(count)
        count = np.int64(counts[place // copies])
        if at + 6 > bits:
            return TRUNCATED, 0
        top = _get(words, at, 6)
        at += 6
        if top >= LEVELS:
            return IMPOSSIBLE, 0
        for level in range(0 if place % copies == 0 else 1, top + 1):
            if at + length_bits > bits:
                return TRUNCATED, 0
            length = _get(words, at, length_bits)
            at += length_bits
            if length > min(count, capacity + 1) or (length == 0 and 0 < level == top):
                return IMPOSSIBLE, 0
            stamp = now
            end = offsets[found] + length
            for i in range(length):
                if i % BLOCK == 0:
                    if at + 6 > bits:
                        return TRUNCATED, 0
                    width = _get(words, at, 6)
                    at += 6
                    # Of a claimed length only what has its bits is written.
                    if at + width * min(BLOCK, length - i) > bits:
                        return TRUNCATED, 0
                stamp -= _get(words, at, width)
                at += width
                if stamp <= now - window or stamp > now:
                    return IMPOSSIBLE, 0
                stamps[offsets[found] + i] = stamp
            if length > 0:
                stamps[offsets[found] : end] = stamps[offsets[found] : end][::-1].copy()
                lists[found] = place * LEVELS + level
                found += 1
                offsets[found] = end
    if not _is_end(words, at, data.size):
        return IMPOSSIBLE, 0
    return COMPLETE, found
