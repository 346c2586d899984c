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
    _get,
    _put,
    _put_blocks,
    _room,
    _width,
)
from streamgauge.kernels.wave import _older, _slot, _stored

u64 = np.uint64


@njit(cache=True, nogil=True)
def pack(counts, stamps, levels, shift, kept, window, now):
    """The bytes of all cells at the relative tick `now`."""
    out = np.zeros(256, np.uint8)
    gaps = np.empty(levels * kept + 1, np.int64)
    at = 0
    for cell in range(counts.size):
        count = np.int64(counts[cell])
        out = _room(out, at, 12 + 63 + 32)
        at = _put(out, at, _width(count), 6)
        at = _put(out, at, count, _width(count))
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
        at = _put(out, at, live, _width(stored))
        out, at = _put_blocks(out, at, gaps, live)
    return out[: (at + 7) >> 3]


@njit(cache=True, nogil=True)
def unpack(data, counts, stamps, levels, shift, kept, window, now):
    """Fill zeroed counts and stamps from bytes that may be anything; returns a status."""
    at = 0
    bits = data.size * 8
    for cell in range(counts.size):
        if at + 6 > bits:
            return TRUNCATED
        width = _get(data, at, 6)
        at += 6
        if at + width > bits:
            return TRUNCATED
        count = _get(data, at, width)
        at += width
        if count >> 53:
            return IMPOSSIBLE
        counts[cell] = u64(count)
        stored = _stored(count, levels, kept)
        width = _width(stored)
        if at + width > bits:
            return TRUNCATED
        live = _get(data, at, width)
        at += width
        if live > stored:
            return IMPOSSIBLE
        rank, level, stamp = count, 0, now
        for i in range(live):
            if i % BLOCK == 0:
                if at + 6 > bits:
                    return TRUNCATED
                width = _get(data, at, 6)
                at += 6
            if at + width > bits:
                return TRUNCATED
            stamp -= _get(data, at, width)
            at += width
            if stamp <= now - window or stamp > now:
                return IMPOSSIBLE
            rank, level = _older(rank, level, count, levels, kept)
            stamps[_slot(cell, u64(rank), levels, shift)] = stamp
            rank -= 1
    if (at + 7) >> 3 != data.size or (at & 7 and data[at >> 3] >> (at & 7)):
        return IMPOSSIBLE
    return COMPLETE
