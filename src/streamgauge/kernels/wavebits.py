"""The bytes of many waves: only what a question can still see, in as few bits as fit.

For each cell: 6 bits with the width of its count, the count, then how many of its stored ranks
are live (in as many bits as their greatest possible number needs) and, newest first, the time
from each live stamp back to the one before it, the first from `now`. These gaps come in blocks
of BLOCK, each led by 6 bits with the width of its largest. Which ranks the stamps belong to
follows from the count alone, see `_older`. Expired stamps are not written: no question tells
one from another. So equal streams give equal bytes, however they were cut into batches.
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
from streamgauge.kernels.wave import _older, _slot, _stored

u64 = np.uint64


@njit(cache=True, nogil=True)
def pack(counts, stamps, levels, shift, kept, window, now):
    """The bytes of all cells at the relative tick `now`."""
    words = np.zeros(32, np.uint64)
    gaps = np.empty(levels * kept + 1, np.int64)
    at = 0
    for cell in range(counts.size):
        count = np.int64(counts[cell])
        words = _room(words, at, 12 + 63 + 32)
        at = _put(words, at, _width(count), 6)
        at = _put(words, at, count, _width(count))
        stored = _stored(count, levels, kept)
        live = 0
        rank, level, newer = count, 0, now
        while live < stored:
            rank, level = _older(rank, level, count, levels, kept)
            stamp = np.int64(stamps[_slot(cell, u64(rank), levels, shift)])
            if stamp == 0 or stamp <= now - window:
                break
            gaps[live] = newer - stamp
            newer = stamp
            live += 1
            rank -= 1
        at = _put(words, at, live, _width(stored))
        words, at = _put_blocks(words, at, gaps, live)
    return _bytes(words, at)


@njit(cache=True, nogil=True)
def unpack(data, counts, stamps, levels, shift, kept, window, now):
    """Fill zeroed counts and stamps from bytes that may be anything; returns a status."""
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
        counts[cell] = u64(count)
        stored = _stored(count, levels, kept)
        width = _width(stored)
        if at + width > bits:
            return TRUNCATED
        live = _get(words, at, width)
        at += width
        if live > stored:
            return IMPOSSIBLE
        rank, level, stamp = count, 0, now
        for i in range(live):
            if i % BLOCK == 0:
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
            rank, level = _older(rank, level, count, levels, kept)
            stamps[_slot(cell, u64(rank), levels, shift)] = stamp
            rank -= 1
    if not _is_end(words, at, data.size):
        return IMPOSSIBLE
    return COMPLETE
