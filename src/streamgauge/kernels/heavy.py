"""A chain of Misra-Gries tables with logs of blocks: frequent items of any recent range.

Level l counts items in blocks of RHO**l arrivals; only when an item has filled a block is that
logged, with its time. A full block of level l - 1 is one arrival of the same item at level l:

    arrival of x  ->  ring 0 and table 1
    RHO arrivals of x at table l  ->  block (x, time) in ring l, arrival of x at table l + 1

so the levels share what is not yet a block, and most arrivals touch one table. A table holds the
rest, 0 .. RHO - 1, of fewer than `most` items. When it gets full, the kept-th largest rest d is
subtracted from all (Misra & Gries 1982), which costs an item at most d * RHO**(l - 1) arrivals.
These losses add up in lost[l] for all levels up to l, and whenever they have grown by
RHO**l / MARKS a mark remembers when. For every item x, cutoff and level l,

    arrivals of x after it = RHO**l * blocks of x after it + rests of x now - rests of x then + loss

where 0 <= rests then < RHO**l and 0 <= loss <= what was lost after it: docs/guarantees.md,
"HeavyHitterSketch". The rings are the newest `room` entries of each level, so a question takes the
finest level that still has all after its cutoff. The top level always has; when it is about to
forget a live entry or mark it is replayed into a new level above it, see `replay`.

A stamp is a tick relative to the caller's base and at least 1; 0 means expired or never written.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

u64 = np.uint64

RHO = 4  # arrivals of a level that are one of the next; `replay` and the shifts by 2 rely on it
MARKS = 8  # marks a block of losses
MOST_TIMES = (1 << 32) - 1  # blocks in one entry of a ring


class Chain(NamedTuple):
    """The state of one chain; levels are 0 .. top, and level 0 has neither table nor losses."""

    top: int
    kept: int  # rests that survive a purge are fewer
    most: int  # rests that make a purge
    slots: int  # of a table, a power of two
    room: int  # entries of a ring
    marks: int  # of a level
    # rings: level l from l * room on
    words: Any  # uint64
    stamps: Any  # int32 or int64
    times: Any  # uint32: so many blocks at once
    heads: Any  # int64, by level: where the next entry goes
    gone: Any  # int64, by level: stamp of the newest entry overwritten
    # tables: level l from (l - 1) * slots on
    held: Any  # uint64: words
    rests: Any  # uint8: 1 + rest, 0 for an empty slot
    filled: Any  # int64, by level
    # losses: level l from (l - 1) * marks on
    lost: Any  # int64, by level: arrivals lost up to now
    marked: Any  # int64, by level: of that at the newest mark
    mark_stamps: Any  # as stamps
    mark_lost: Any  # int64: arrivals lost up to the mark's tick, this included
    mark_heads: Any  # int64, by level
    mark_gone: Any  # int64, by level: stamp of the newest mark overwritten
    mark_base: Any  # int64, by level: its arrivals lost


@njit(inline="always")
def _mix(word):
    mixed = word * u64(0x9E3779B97F4A7C15)
    return (mixed ^ (mixed >> u64(32))) >> u64(7)


# What is called for every event takes arrays, not the chain, and uses them last where all its
# branches meet: else numba counts references each time, which made updates up to ten times as slow.


@njit(cache=True, nogil=True)
def _append(words, stamps, times, heads, gone, room, level, word, stamp, many):
    """Log so many blocks, at most MOST_TIMES; an equal newest entry takes what it can."""
    head = heads[level]
    ring = level * room
    newest = ring + (head if head > 0 else room) - 1
    before, fresh = np.int64(times[newest]), many
    if (stamps[newest] == stamp) & (words[newest] == word):
        fresh = max(before + many - MOST_TIMES, 0)
        before += many - fresh
    times[newest] = np.uint32(before)
    at, newly_gone = newest, gone[level]
    if fresh > 0:
        at = ring + head
        newly_gone = np.int64(stamps[at])
        head = head + 1 if head + 1 < room else 0
        before = fresh
    gone[level] = newly_gone
    words[at] = word
    stamps[at] = stamp
    times[at] = np.uint32(before)
    heads[level] = head


@njit(cache=True, nogil=True)
def must_grow(chain, stamp, window):
    """Whether the top level's ring or marks are full of what is live at this stamp."""
    top = chain.top
    cutoff = max(stamp - window, 0)
    if chain.stamps[top * chain.room + chain.heads[top]] > cutoff:
        return True
    return top > 0 and chain.mark_stamps[(top - 1) * chain.marks + chain.mark_heads[top]] > cutoff


@njit(cache=True, nogil=True)
def _slot(held, rests, table, mask, word):
    """Where a table has the word, or would have it."""
    slot = table + (_mix(word) & mask)
    while (held[slot] != word) & (rests[slot] != 0):
        slot = table + ((slot - table + u64(1)) & mask)
    return slot


@njit(cache=True, nogil=True)
def _purge(held, rests, kept, slots, table):
    """Subtract the kept-th largest rest, or 0, from all, and forget those left without any.

    Returns what was subtracted, and how many are left. In place: from an empty slot on, every word
    goes where it is found when the words before it have gone where they are.
    """
    mask = u64(slots - 1)
    empty = table
    ones, twos, threes = 0, 0, 0  # rests of at least so much
    for slot in range(table, table + u64(slots)):
        rest = rests[slot]
        ones += rest > 1
        twos += rest > 2
        threes += rest > 3
        if rest == 0:
            empty = slot
    dropped = int(ones >= kept) + int(twos >= kept) + int(threes >= kept)
    left = 0
    for i in range(slots):
        slot = table + ((empty - table + u64(i)) & mask)
        rest = np.int64(rests[slot]) - dropped
        rests[slot] = 0
        if rest > 1:
            word = held[slot]
            slot = _slot(held, rests, table, mask, word)
            held[slot] = word
            rests[slot] = np.uint8(rest)
            left += 1
    return dropped, left


@njit(cache=True, nogil=True)
def _count(held, rests, filled, kept, most, slots, level, word, many):
    """So many arrivals of a word at a table, all at once; (full blocks, what a purge subtracted).

    The first may fill the table; whatever the purge leaves of it, the word keeps its slot.
    """
    table = u64((level - 1) * slots)
    mask = u64(slots - 1)
    count = filled[level]
    dropped = 0
    slot = _slot(held, rests, table, mask, word)
    rest = np.int64(rests[slot]) - 1
    if rest < 0:
        rest = 0
        count += 1
        if count >= most:
            held[slot] = word
            rests[slot] = 2
            dropped, count = _purge(held, rests, kept, slots, table)
            slot = _slot(held, rests, table, mask, word)
            if dropped > 0:
                count += 1
                rest = -1
    rest += many
    held[slot] = word
    rests[slot] = np.uint8((rest & (RHO - 1)) + 1)
    filled[level] = count
    return rest >> 2, dropped


@njit(cache=True, nogil=True)
def _lose(chain, level, arrivals, stamp):
    """That many arrivals of an item may be lost to all levels from this one on.

    A tick has one mark, with what was lost up to its end: no cutoff lies inside a tick.
    """
    for at in range(level, chain.top + 1):
        chain.lost[at] += arrivals
        marks = (at - 1) * chain.marks
        head = chain.mark_heads[at]
        newest = marks + (head if head > 0 else chain.marks) - 1
        if chain.mark_stamps[newest] == stamp:
            chain.mark_lost[newest] = chain.lost[at]
        elif chain.lost[at] - chain.marked[at] >= mark_step(at):
            if chain.mark_lost[marks + head] > 0:  # written before, if only before the base
                chain.mark_gone[at] = chain.mark_stamps[marks + head]
                chain.mark_base[at] = chain.mark_lost[marks + head]
            chain.mark_stamps[marks + head] = stamp
            chain.mark_lost[marks + head] = chain.lost[at]
            chain.mark_heads[at] = head + 1 if head + 1 < chain.marks else 0
        else:
            continue
        chain.marked[at] = chain.lost[at]


@njit(inline="always")
def mark_step(level):
    """How many losses make a mark."""
    return max(1, (1 << 2 * level) // MARKS)


@njit(cache=True, nogil=True)
def update(chain, words, ticks, base, window, begin, end):
    """Events begin..end, one arrival each, into the tables; ring 0 has them already.

    Returns the first event not taken, because the chain must grow, or `end`.
    """
    ring_words, stamps, times, heads, gone = chain[6:11]
    held, rests, filled = chain.held, chain.rests, chain.filled
    top, kept, most, slots, room = chain[:5]
    mask = u64(slots - 1)
    for i in range(begin, end):
        word = words[i]
        start = _mix(word) & mask
        level = 1
        table = u64(0)
        while level <= top:
            slot = table + start
            while held[slot] != word and rests[slot] != 0:
                slot = table + ((slot - table + u64(1)) & mask)
            rest = rests[slot]
            if rest == 0:
                if filled[level] + 1 < most:
                    held[slot] = word
                    rests[slot] = 2
                    filled[level] += 1
                    break
                _, dropped = _count(held, rests, filled, kept, most, slots, level, word, 1)
                if dropped > 0:
                    _lose(chain, level, dropped << (2 * level - 2), ticks[i] - base)
                    if must_grow(chain, ticks[i] - base, window):
                        return i + 1
                break
            if rest < RHO:
                rests[slot] = rest + np.uint8(1)
                break
            rests[slot] = 1
            stamp = ticks[i] - base
            _append(ring_words, stamps, times, heads, gone, room, level, word, stamp, 1)
            if level == top and stamps[top * room + heads[top]] > max(stamp - window, 0):
                return i + 1
            level += 1
            table += u64(slots)
    return end


@njit(cache=True, nogil=True)
def update_weighted(chain, words, ticks, weights, base, window, cursor):
    """As `update`, each event weights[i] times; False: must grow, then go on at `cursor`.

    `cursor` = (event, arrivals of it still to take or 0 for all).
    """
    ring_words, stamps, times, heads, gone = chain[6:11]
    held, rests, filled = chain.held, chain.rests, chain.filled
    top, kept, most, slots, room = chain[:5]
    mask = u64(slots - 1)
    for i in range(cursor[0], words.size):
        word = words[i]
        stamp = ticks[i] - base
        left = cursor[1] if cursor[1] > 0 else weights[i]
        cursor[1] = 0
        while left > 0:
            many = min(left, MOST_TIMES)
            left -= many
            grows = False
            level = 1
            while many > 0 and level <= top:
                table = u64((level - 1) * slots)
                slot = _slot(held, rests, table, mask, word)
                rest = np.int64(rests[slot]) - 1
                if rest < 0 and filled[level] + 1 >= most:
                    many, dropped = _count(
                        held, rests, filled, kept, most, slots, level, word, many
                    )
                    if dropped > 0:
                        _lose(chain, level, dropped << (2 * level - 2), stamp)
                        grows = True
                else:
                    filled[level] += rest < 0
                    held[slot] = word
                    rest = max(rest, 0) + many
                    rests[slot] = np.uint8((rest & (RHO - 1)) + 1)
                    many = rest >> 2
                if many > 0:
                    _append(ring_words, stamps, times, heads, gone, room, level, word, stamp, many)
                    grows = grows or level == top
                level += 1
            if grows and must_grow(chain, stamp, window):
                cursor[0] = i if left > 0 else i + 1
                cursor[1] = left
                return False
    return True


@njit(cache=True, nogil=True)
def fill(chain, words, ticks, weights, base, window, cursor):
    """Events into ring 0 as long as it is all there is; no weights are ones. As above."""
    ring_words, stamps, times, heads, gone = chain[6:11]
    room = chain.room
    for i in range(cursor[0], words.size):
        stamp = ticks[i] - base
        left = weights[i] if weights.size > 0 else 1
        while left > 0:
            many = min(left, MOST_TIMES)
            left -= many
            _append(ring_words, stamps, times, heads, gone, room, 0, words[i], stamp, many)
            if stamps[heads[0]] > max(stamp - window, 0):
                cursor[0] = i if left > 0 else i + 1
                cursor[1] = left
                return False
    return True


@njit(cache=True, nogil=True)
def log(chain, words, ticks, base, begin, end):
    """Events begin..end into ring 0, of which only as many runs of equal ones as it keeps."""
    ring_words, stamps, times, heads, gone = chain[6:11]
    room = chain.room
    start = end
    runs = 0
    while start > begin:
        if start == end or words[start - 1] != words[start] or ticks[start - 1] != ticks[start]:
            runs += 1
            if runs > room:
                break
        start -= 1
    if start > begin:  # all there is will be overwritten, and nothing joins it
        head = heads[0]
        stamps[(head if head > 0 else room) - 1] = 0
    for i in range(start, end):
        stamp = ticks[i] - base
        _append(ring_words, stamps, times, heads, gone, room, 0, words[i], stamp, 1)
    if start > begin:
        gone[0] = ticks[start - 1] - base


@njit(cache=True, nogil=True)
def log_weighted(chain, words, ticks, weights, base, cursor):
    """Events from `cursor` on into ring 0, each weights[i] times."""
    ring_words, stamps, times, heads, gone = chain[6:11]
    room = chain.room
    for i in range(cursor[0], words.size):
        stamp = ticks[i] - base
        left = cursor[1] if i == cursor[0] and cursor[1] > 0 else weights[i]
        while left > 0:
            many = min(left, MOST_TIMES)
            left -= many
            _append(ring_words, stamps, times, heads, gone, room, 0, words[i], stamp, many)


@njit(inline="always")
def _ring_slot(head, place, room):
    """Slot of the place-th entry of a ring, oldest first, those never written included."""
    slot = head + place
    return slot - room if slot >= room else slot


@njit(inline="always")
def _first_after(stamps, begin, head, room, cutoff):
    """The place of the oldest entry of a ring that is later than the cutoff; `room`: none is."""
    low, high = 0, room
    while low < high:
        middle = (low + high) >> 1
        if stamps[begin + _ring_slot(head, middle, room)] > cutoff:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True, nogil=True)
def live_marks(chain, cutoff, stamps, lost):
    """The top level's marks after the cutoff, their losses from the cutoff on; (number, all)."""
    top = chain.top
    if top == 0:
        return 0, 0
    begin = (top - 1) * chain.marks
    head = chain.mark_heads[top]
    first = _first_after(chain.mark_stamps, begin, head, chain.marks, cutoff)
    base = _lost_by(chain, top, first)
    for place in range(first, chain.marks):
        slot = begin + _ring_slot(head, place, chain.marks)
        stamps[place - first] = chain.mark_stamps[slot]
        lost[place - first] = chain.mark_lost[slot] - base
    return chain.marks - first, chain.lost[top] - base


@njit(inline="always")
def _lost_by(chain, level, first):
    """What the newest mark before the first-th says was lost."""
    if first > 0:
        slot = (level - 1) * chain.marks
        slot += _ring_slot(chain.mark_heads[level], first - 1, chain.marks)
        if chain.mark_lost[slot] > 0:
            return chain.mark_lost[slot]
    return chain.mark_base[level]


@njit(inline="always")
def _marked(stamps, lost, count, last, stamp, total, step):
    """Add or renew a mark in a list; (their number, losses at the newest)."""
    if count > 0 and stamps[count - 1] == stamp:
        lost[count - 1] = total
    elif total - last >= step:
        stamps[count] = stamp
        lost[count] = total
        count += 1
    else:
        return count, last
    return count, total


@njit(cache=True, nogil=True)
def replay(chain, cutoff, stamp, below, below_lost, known_marks, rest, stamps, lost):
    """Fill the new top level from what the level below has after the cutoff.

    That level's marks are `known_marks` of (below, below_lost), its losses up to now `rest`; those
    of the new level are written to (stamps, lost) and, as many as it keeps, to the chain. Their
    number is returned, and its losses up to now. No question is about the time before the cutoff,
    so that a level which had always been there would answer no better, except for losses between
    two marks of the level below.
    """
    ring_words, ring_stamps, times, heads, gone = chain[6:11]
    held, rests, filled = chain.held, chain.rests, chain.filled
    top, kept, most, slots, room = chain[:5]
    step = mark_step(top)
    head = heads[top - 1]
    begin = (top - 1) * room
    first = _first_after(ring_stamps, begin, head, room, cutoff)
    taken, known, own, count, last = 0, 0, 0, 0, 0
    for place in range(first, room):
        slot = begin + _ring_slot(head, place, room)
        word = ring_words[slot]
        came = np.int64(ring_stamps[slot])
        while taken < known_marks and below[taken] <= came:
            known = below_lost[taken]
            count, last = _marked(stamps, lost, count, last, below[taken], known + own, step)
            taken += 1
        many = np.int64(times[slot])
        blocks, dropped = _count(held, rests, filled, kept, most, slots, top, word, many)
        if dropped > 0:
            own += dropped << (2 * top - 2)
            count, last = _marked(stamps, lost, count, last, came, known + own, step)
        if blocks > 0:
            _append(ring_words, ring_stamps, times, heads, gone, room, top, word, came, blocks)
    for at in range(taken, known_marks):
        known = below_lost[at]
        count, last = _marked(stamps, lost, count, last, below[at], known + own, step)
    if rest > known:
        count, last = _marked(stamps, lost, count, last, stamp, rest + own, step)
    chain.lost[top] = rest + own
    chain.marked[top] = last
    over = count - chain.marks
    if over > 0:
        chain.mark_gone[top] = stamps[over - 1]
        chain.mark_base[top] = lost[over - 1]
    for at in range(max(over, 0), count):
        slot = (top - 1) * chain.marks + at % chain.marks
        chain.mark_stamps[slot] = stamps[at]
        chain.mark_lost[slot] = lost[at]
    chain.mark_heads[top] = count % chain.marks
    return count, rest + own


@njit(cache=True, nogil=True)
def shift_base(chain, by):
    """Lower every stamp by `by`; those that would fall below 1 have expired."""
    for stamps in (chain.stamps, chain.mark_stamps):
        for i in range(stamps.size):
            stamps[i] = max(stamps[i] - by, 0)
    for level in range(chain.top + 1):
        chain.gone[level] = max(chain.gone[level] - by, 0)
        chain.mark_gone[level] = max(chain.mark_gone[level] - by, 0)


@njit(cache=True, nogil=True)
def edge(chain, cutoff):
    """(finest level with all after the cutoff, place of its first entry after it, losses)."""
    level = 0
    while chain.gone[level] > cutoff or chain.mark_gone[level] > cutoff:
        level += 1
    begin = level * chain.room
    first = _first_after(chain.stamps, begin, chain.heads[level], chain.room, cutoff)
    if level == 0:
        return level, first, 0
    begin = (level - 1) * chain.marks
    mark = _first_after(chain.mark_stamps, begin, chain.mark_heads[level], chain.marks, cutoff)
    return level, first, chain.lost[level] - _lost_by(chain, level, mark)


@njit(cache=True, nogil=True)
def frequencies(chain, cutoff, words, low, high):
    """Between low[i] and high[i] arrivals of words[i] came after the cutoff."""
    level, first, lost = edge(chain, cutoff)
    rests_then = (1 << (2 * level)) - 1  # at most
    begin = level * chain.room
    head = chain.heads[level]
    start = head + first
    end = head + chain.room
    mask = u64(chain.slots - 1)
    for i in range(words.size):
        word = words[i]
        blocks = 0
        for slot in range(start, min(end, chain.room)):
            blocks += np.int64(chain.times[begin + slot]) * (chain.words[begin + slot] == word)
        for slot in range(max(0, start - chain.room), end - chain.room):
            blocks += np.int64(chain.times[begin + slot]) * (chain.words[begin + slot] == word)
        arrivals = blocks << (2 * level)
        for below in range(1, level + 1):
            table = u64((below - 1) * chain.slots)
            slot = _mix(word) & mask
            while chain.held[table + slot] != word and chain.rests[table + slot] != 0:
                slot = (slot + u64(1)) & mask
            if chain.rests[table + slot] != 0:
                arrivals += (np.int64(chain.rests[table + slot]) - 1) << (2 * below - 2)
        low[i] = max(arrivals - rests_then, 0)
        high[i] = arrivals + lost


@njit(inline="always")
def _add(words, found, mask, word, arrivals):
    slot = (_mix(word) >> u64(13)) & mask
    while found[slot] != 0 and words[slot] != word:
        slot = (slot + u64(1)) & mask
    words[slot] = word
    found[slot] += arrivals


@njit(cache=True, nogil=True)
def every(chain, cutoff):
    """(words, low, high, lost) of all with blocks or rests; others came up to `lost` times."""
    level, first, lost = edge(chain, cutoff)
    rests_then = (1 << (2 * level)) - 1
    most = chain.room - first
    for below in range(1, level + 1):
        most += chain.filled[below]
    slots = 16
    while 2 * slots < 3 * most:
        slots *= 2
    words = np.zeros(slots, np.uint64)
    found = np.zeros(slots, np.int64)
    mask = u64(slots - 1)
    begin = level * chain.room
    head = chain.heads[level]
    for place in range(first, chain.room):
        slot = begin + _ring_slot(head, place, chain.room)
        blocks = np.int64(chain.times[slot])
        _add(words, found, mask, chain.words[slot], blocks << (2 * level))
    for below in range(1, level + 1):
        for slot in range((below - 1) * chain.slots, below * chain.slots):
            if chain.rests[slot] > 1:
                rest = (np.int64(chain.rests[slot]) - 1) << (2 * below - 2)
                _add(words, found, mask, chain.held[slot], rest)
    count = 0
    for slot in range(slots):
        if found[slot] != 0:
            words[count] = words[slot]
            found[count] = found[slot]
            count += 1
    found = found[:count]
    return words[:count], np.maximum(found - rests_then, 0), found + lost, lost


@njit(cache=True, nogil=True)
def distinct(chain, cutoff):
    """Every word that a ring has after the cutoff or a table holds, once."""
    most = 0
    for level in range(chain.top + 1):
        begin = level * chain.room
        most += chain.room
        most -= _first_after(chain.stamps, begin, chain.heads[level], chain.room, cutoff)
        most += chain.filled[level]
    slots = 16
    while 2 * slots < 3 * most:
        slots *= 2
    words = np.zeros(slots, np.uint64)
    found = np.zeros(slots, np.int64)
    mask = u64(slots - 1)
    for slot in range(chain.stamps.size):
        if chain.stamps[slot] > cutoff:
            _add(words, found, mask, chain.words[slot], 1)
    for slot in range(chain.rests.size):
        if chain.rests[slot] != 0:
            _add(words, found, mask, chain.held[slot], 1)
    count = 0
    for slot in range(slots):
        if found[slot] != 0:
            words[count] = words[slot]
            count += 1
    return words[:count]


@njit(cache=True, nogil=True)
def segments(chain, cutoff, words, ticks, arrivals):
    """The stream after the cutoff as far as it is known, each stretch of it from its finest level.

    Filled from the newest on: arrivals[i] of words[i] at the stamp ticks[i]; their number.
    """
    count = 0
    newest = np.int64(1) << 62
    for level in range(chain.top + 1):
        oldest = max(chain.gone[level], cutoff)
        head = chain.heads[level]
        for place in range(chain.room - 1, -1, -1):
            slot = level * chain.room + _ring_slot(head, place, chain.room)
            stamp = np.int64(chain.stamps[slot])
            if stamp <= oldest:
                break
            if stamp <= newest:
                words[count] = chain.words[slot]
                ticks[count] = stamp
                arrivals[count] = np.int64(chain.times[slot]) << (2 * level)
                count += 1
        newest = min(newest, oldest)
        if oldest == cutoff:
            break
    return count
