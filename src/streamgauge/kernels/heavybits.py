"""The bytes of a chain: only what a question or an update can still see.

Words are given once, in order; everything else names them by their place there. Level by level:

    entries of its ring that are live, then for each, newest first, the time back to the one before
    it (the first from `now`), its word, and 0 or 1 and its times;
    whether the newest entry overwritten is live, and its time back from `now`;
    from level 1 on, for each word, whether the table holds it, and its rest;
    marks that are live, then for each, newest first, the time and the losses back to the one
    before it (the first from `now`); whether the newest mark overwritten is live, and its time;
    the losses at the oldest mark since the one before it.

Times back come in blocks of BLOCK, each led by 6 bits with the width of its largest; other numbers
are led by 6 bits with their own. Losses are told from the newest mark that has expired or been
overwritten: no question tells where they began. So equal streams have equal bytes.
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
    _room,
    _width,
    _words,
)
from streamgauge.kernels.heavy import (
    MOST_TIMES,
    _first_after,
    _lost_by,
    _mix,
    _ring_slot,
    mark_step,
)

u64 = np.uint64

MOST = 1 << 55  # arrivals: fewer than 2**53 came, and rests older than the window add to them


@njit(cache=True)
def _put_led(out, at, value):
    """A number led by its width."""
    out = _room(out, at, 6 + 64)
    at = _put(out, at, _width(value), 6)
    return out, _put(out, at, value, _width(value))


@njit(cache=True)
def _place(words, word):
    low, high = 0, words.size
    while low < high:
        middle = (low + high) >> 1
        if words[middle] < word:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def _put_times(out, at, begin, head, room, first, stamps, newer):
    """The times back of the entries from the first-th on, newest first."""
    gaps = np.empty(BLOCK, np.int64)
    place = room - 1
    while place >= first:
        many = min(BLOCK, place - first + 1)
        width = 0
        for i in range(many):
            stamp = np.int64(stamps[begin + _ring_slot(head, place - i, room)])
            gaps[i] = newer - stamp
            width = max(width, _width(gaps[i]))
            newer = stamp
        out = _room(out, at, 6 + BLOCK * width)
        at = _put(out, at, width, 6)
        for i in range(many):
            at = _put(out, at, gaps[i], width)
        place -= many
    return out, at


@njit(cache=True)
def _put_gone(out, at, gone, cutoff, now):
    out = _room(out, at, 1)
    at = _put(out, at, np.int64(gone > cutoff), 1)
    if gone > cutoff:
        return _put_led(out, at, now - gone)
    return out, at


@njit(cache=True, nogil=True)
def pack(chain, words, window, now):
    """The bytes at the relative tick `now`; `words` are all that are held, in order."""
    out = np.zeros(128, np.uint64)
    at = 0
    cutoff = max(now - window, 0)
    wide = _width(max(words.size - 1, 0))
    rests = np.zeros(words.size, np.uint8)
    for level in range(chain.top + 1):
        begin, head = level * chain.room, chain.heads[level]
        first = _first_after(chain.stamps, begin, head, chain.room, cutoff)
        live = chain.room - first
        out = _room(out, at, 32)
        at = _put(out, at, live, _width(chain.room))
        out, at = _put_times(out, at, begin, head, chain.room, first, chain.stamps, now)
        for place in range(chain.room - 1, first - 1, -1):
            slot = begin + _ring_slot(head, place, chain.room)
            times = np.int64(chain.times[slot])
            out = _room(out, at, wide + 1)
            at = _put(out, at, _place(words, chain.words[slot]), wide)
            at = _put(out, at, np.int64(times > 1), 1)
            if times > 1:
                out, at = _put_led(out, at, times)
        out, at = _put_gone(out, at, chain.gone[level], cutoff, now)
        if level == 0:
            continue
        rests[:] = 0
        for slot in range((level - 1) * chain.slots, level * chain.slots):
            if chain.rests[slot] != 0:
                rests[_place(words, chain.held[slot])] = chain.rests[slot]
        out = _room(out, at, 3 * words.size)
        for i in range(words.size):
            at = _put(out, at, np.int64(rests[i] != 0), 1)
            if rests[i] != 0:
                at = _put(out, at, np.int64(rests[i]) - 1, 2)
        begin, head = (level - 1) * chain.marks, chain.mark_heads[level]
        first = _first_after(chain.mark_stamps, begin, head, chain.marks, cutoff)
        out = _room(out, at, 32)
        at = _put(out, at, chain.marks - first, _width(chain.marks))
        out, at = _put_times(out, at, begin, head, chain.marks, first, chain.mark_stamps, now)
        out, at = _put_gone(out, at, chain.mark_gone[level], cutoff, now)
        newer = chain.lost[level]
        for place in range(chain.marks - 1, first - 1, -1):
            lost = chain.mark_lost[begin + _ring_slot(head, place, chain.marks)]
            out, at = _put_led(out, at, newer - lost)
            newer = lost
        out, at = _put_led(out, at, newer - _lost_by(chain, level, first))
    return _bytes(out, at)


@njit(cache=True)
def _led(data, at, bits):
    """(number led by its width, where the next is); the place is beyond the end if it is cut."""
    if at + 6 > bits:
        return 0, bits + 1
    width = _get(data, at, 6)
    if at + 6 + width > bits:
        return 0, bits + 1
    return _get(data, at + 6, width), at + 6 + width


@njit(cache=True)
def _times(data, at, bits, many, oldest, newer, begin, stamps):
    """Write `many` stamps, newest last; where the next bit is, beyond the end if cut, -1 if wrong.

    None may be at `oldest` or before, nor after the newer one.
    """
    width = 0
    for i in range(many):
        if i % BLOCK == 0:
            if at + 6 > bits:
                return bits + 1
            width = _get(data, at, 6)
            at += 6
        if at + width > bits:
            return bits + 1
        newer -= _get(data, at, width)
        at += width
        if newer <= oldest:
            return -1
        stamps[begin + many - 1 - i] = newer
    return at


@njit(cache=True, nogil=True)
def unpack(data, chain, words, window, now):
    """Fill an empty chain of as many levels from bytes that may be anything; returns a status."""
    packed, bits = _words(data), data.size * 8
    at = 0
    cutoff = now - window
    wide = _width(max(words.size - 1, 0))
    used = np.zeros(words.size, np.uint8)
    mask = u64(chain.slots - 1)
    for level in range(chain.top + 1):
        width = _width(chain.room)
        if at + width > bits:
            return TRUNCATED
        live = _get(packed, at, width)
        at += width
        if live > chain.room - np.int64(level == chain.top):
            return IMPOSSIBLE
        begin = level * chain.room
        at = _times(packed, at, bits, live, cutoff, now, begin, chain.stamps)
        if at < 0:
            return IMPOSSIBLE
        blocks = np.int64(0)
        for place in range(live - 1, -1, -1):
            if at + wide + 1 > bits:
                return TRUNCATED
            word = _get(packed, at, wide)
            several = _get(packed, at + wide, 1)
            at += wide + 1
            times = np.int64(1)
            if several:
                times, at = _led(packed, at, bits)
                if at > bits:
                    return TRUNCATED
                if times < 2 or times > MOST_TIMES:
                    return IMPOSSIBLE
            if word >= words.size:
                return IMPOSSIBLE
            blocks += times
            if blocks << 2 * level > MOST:
                return IMPOSSIBLE
            slot = begin + place
            chain.words[slot] = words[word]
            chain.times[slot] = np.uint32(times)
            used[word] = 1
            if place + 1 < live and chain.words[slot] == chain.words[slot + 1]:
                if chain.stamps[slot] == chain.stamps[slot + 1] and times < MOST_TIMES:
                    return IMPOSSIBLE
        chain.heads[level] = live if live < chain.room else 0
        if at + 1 > bits:
            return TRUNCATED
        at += 1
        if _get(packed, at - 1, 1):
            back, at = _led(packed, at, bits)
            if at > bits:
                return TRUNCATED
            gone = now - back
            if live < chain.room or gone <= cutoff or gone > chain.stamps[begin]:
                return IMPOSSIBLE
            chain.gone[level] = gone
        if level == 0:
            continue
        table = u64((level - 1) * chain.slots)
        for i in range(words.size):
            if at + 1 > bits:
                return TRUNCATED
            at += 1
            if not _get(packed, at - 1, 1):
                continue
            if at + 2 > bits:
                return TRUNCATED
            rest = _get(packed, at, 2)
            at += 2
            chain.filled[level] += 1
            if chain.filled[level] >= chain.most:
                return IMPOSSIBLE
            slot = _mix(words[i]) & mask
            while chain.rests[table + slot] != 0:
                slot = (slot + u64(1)) & mask
            chain.held[table + slot] = words[i]
            chain.rests[table + slot] = np.uint8(rest + 1)
            used[i] = 1
        width = _width(chain.marks)
        if at + width > bits:
            return TRUNCATED
        live = _get(packed, at, width)
        at += width
        if live > chain.marks - np.int64(level == chain.top):
            return IMPOSSIBLE
        begin = (level - 1) * chain.marks
        at = _times(packed, at, bits, live, cutoff, now, begin, chain.mark_stamps)
        if at < 0:
            return IMPOSSIBLE
        if at + 1 > bits:
            return TRUNCATED
        at += 1
        if _get(packed, at - 1, 1):
            back, at = _led(packed, at, bits)
            if at > bits:
                return TRUNCATED
            gone = now - back
            if live < chain.marks or gone <= cutoff or gone >= chain.mark_stamps[begin]:
                return IMPOSSIBLE
            chain.mark_gone[level] = gone
        step = mark_step(level)
        total = 0
        for place in range(live, -1, -1):  # from the newest mark on; 0: since before the oldest
            back, at = _led(packed, at, bits)
            if at > bits:
                return TRUNCATED
            if back > MOST - total or (back >= step) != (place < live):
                return IMPOSSIBLE
            total += back
            if place > 0:
                chain.mark_lost[begin + place - 1] = -total  # from the end, for now
        for place in range(live):
            chain.mark_lost[begin + place] += total
        for place in range(1, live):
            if chain.mark_stamps[begin + place] == chain.mark_stamps[begin + place - 1]:
                return IMPOSSIBLE
        chain.lost[level] = total
        chain.marked[level] = chain.mark_lost[begin + live - 1] if live > 0 else 0
        chain.mark_heads[level] = live if live < chain.marks else 0
    for i in range(words.size):
        if not used[i]:
            return IMPOSSIBLE
    if not _is_end(packed, at, data.size):
        return IMPOSSIBLE
    return COMPLETE
