"""Randomized waves (Gibbons & Tirthapura 2002, section 4), many at a time.

A randomized wave keeps samples of its arrivals. In each of several copies an arrival tosses coins
until the first tail; after G heads it is in the samples 0, 1, ... G of that copy. So sample l has
each arrival with probability 2**-l, and 2**l times its size estimates their number. Stored are

    list l of a copy          arrivals with exactly l heads: sample l is the lists l, l + 1, ...
    list 0 of copy 0          all arrivals, as sample 0 is the same in every copy; the other
                              copies have no list 0

and of each list the newest `capacity` + 1 stamps. A sample answers for a cutoff if at most
`capacity` of its stored stamps are later: then none that is later was ever pushed out, since
`capacity` + 1 newer ones of its list would be stored. So the one stamp too many takes the place
of a mark of what was lost, and it is right for any ties. The caller owns

    counts[cell]                  uint64, arrivals ever
    heads[cell, copy, level]      uint32, stamps ever appended to the list, modulo 2**32
    begins[cell, copy, level]     int64, where the list's ring begins in the arena
    shifts[cell, copy, level]     uint8, the ring has 1 << shift slots; 0: there is none yet
    arena[]                       int32 or int64, all rings; the first used[0] are given out

(flat, of `levels` levels). A ring doubles when it would overwrite a stamp that is in the window,
up to 1 << most slots, so memory follows what the window holds. A stamp is a tick relative to the
caller's base and at least 1; 0 means "expired or never written".

Coins are bits of a hash of (the copy's key, the cell, the number of the arrival in its cell): the
same stream gives the same coins everywhere, however it is cut. Gibbons & Tirthapura hash positions
to count a union once. Hashing the tick would make simultaneous arrivals, and those of two sites in
one tick, a single one that is sampled as a whole or not at all.
"""

import numpy as np
from numba import njit

from streamgauge.kernels.bits import trailing_zeros

u64 = np.uint64

LEVELS = 49  # of 2**53 arrivals sample 48 has 32 on average, fewer than any capacity
FIRST = 2  # a list begins with 4 slots
DONE, NEEDS_ROOM, NEEDS_LEVELS = 0, 1, 2

_ODD = u64(0x9E3779B97F4A7C15)
_ALL_HEADS = u64(1 << (LEVELS - 1))


@njit(inline="always")
def _mix(word):
    """The finalizer of splitmix64 (Steele, Lea & Flood 2014)."""
    word = (word ^ (word >> u64(30))) * u64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> u64(27))) * u64(0x94D049BB133111EB)
    return word ^ (word >> u64(31))


@njit(inline="always")
def _toss(key, salt, number):
    """How many heads an arrival tosses in a row.

    The key is xored and not added: two keys then never have the same coins in a row, shifted.
    """
    return trailing_zeros(_mix(key ^ salt ^ (number * _ODD)) | _ALL_HEADS)


@njit(inline="always")
def _salt(cell):
    return _mix(u64(cell) + _ODD)


@njit(cache=True, nogil=True)
def tosses(keys, cell, numbers, out):
    """out[copy, i] = the heads of arrival numbers[i] of a cell."""
    for copy in range(keys.size):
        for i in range(numbers.size):
            out[copy, i] = _toss(keys[copy], _salt(cell), numbers[i])


@njit(cache=True, nogil=True)
def _insert(
    counts, heads, begins, shifts, arena, keys, levels, most, window,
    cells, ticks, weights, step, base, cursor,
):  # fmt: skip
    """As `insert` up to the first list that needs a larger ring, which the status then is.

    No other function is called with the arrays from here: that alone would take five times as
    long as an arrival.
    """
    begin_row, begin, begin_list = cursor[1], cursor[2], cursor[3]
    copies = u64(keys.size)
    depth = u64(levels)
    for i in range(cursor[0], ticks.size):
        weight = weights[i] if weights.size > 0 else 1
        for row in range(begin_row, cells.shape[0]):
            cell = u64(cells[row, i])
            all_of_them = cell * copies * depth
            salt = _salt(cell)
            number = counts[cell]
            for arrival in range(begin, weight):
                stamp = max(ticks[i] - base - step * (weight - 1 - arrival), 0)
                cutoff = max(stamp - window, 0)
                number += u64(1)
                for each in range(u64(begin_list), copies + u64(1)):
                    at = all_of_them
                    if each > u64(0):
                        level = _toss(keys[each - u64(1)], salt, number)
                        if level == u64(0):
                            continue
                        at += (each - u64(1)) * depth + level
                        if level >= depth:
                            counts[cell] = number - u64(1)
                            cursor[0], cursor[1], cursor[2], cursor[3] = i, row, arrival, each
                            return NEEDS_LEVELS
                    shift = u64(shifts[at])
                    slot = u64(begins[at]) + (u64(heads[at]) & ((u64(1) << shift) - u64(1)))
                    if shift < most and (shift == u64(0) or arena[slot] > cutoff):
                        counts[cell] = number - u64(1)
                        cursor[0], cursor[1], cursor[2], cursor[3] = i, row, arrival, each
                        cursor[4] = at
                        return NEEDS_ROOM
                    arena[slot] = stamp
                    heads[at] += np.uint32(1)
                begin_list = 0
            counts[cell] = number
            begin = 0
        begin_row = 0
    return DONE


@njit(cache=True, nogil=True)
def insert(
    counts, heads, begins, shifts, arena, used, keys, levels, most, window,
    cells, ticks, weights, step, base, cursor,
):  # fmt: skip
    """Insert event i in cells[row, i] of every row, weights[i] times (once if there are none).

    The arrivals of one event are `step` ticks apart, the newest at its own. The status is DONE or
    what the caller has to provide; `cursor` = (event, row, arrival, copy + 1, list) says where to
    go on after that; start with zeros.
    """
    while True:
        status = _insert(
            counts, heads, begins, shifts, arena, keys, levels, u64(most), window,
            cells, ticks, weights, step, base, cursor,
        )  # fmt: skip
        if status != NEEDS_ROOM:
            return status
        at = cursor[4]
        old, shift = np.int64(shifts[at]), max(np.int64(shifts[at]) + 1, FIRST)
        begin = used[0]
        if begin + (1 << shift) > arena.size:
            return NEEDS_ROOM
        if old > 0:
            head = np.int64(heads[at])
            for place in range(head - (1 << old), head):
                stamp = arena[begins[at] + (place & ((1 << old) - 1))]
                arena[begin + (place & ((1 << shift) - 1))] = stamp
        used[0] = begin + (1 << shift)
        begins[at] = begin
        shifts[at] = shift


@njit(cache=True, nogil=True)
def compact(begins, shifts, arena, fresh):
    """Move every ring to the beginning of a fresh arena; returns how much of it is used."""
    used = 0
    for at in range(shifts.size):
        if shifts[at] > 0:
            slots = 1 << np.int64(shifts[at])
            fresh[used : used + slots] = arena[begins[at] : begins[at] + slots]
            begins[at] = used
            used += slots
    return used


@njit(inline="always")
def _later(heads, begins, shifts, arena, at, capacity, cutoff):
    """How many of a list's stored stamps are above the cutoff; they never decrease."""
    if shifts[at] == 0:
        return 0
    mask = (1 << np.int64(shifts[at])) - 1
    head = np.int64(heads[at])
    later = 0
    most = min(mask, capacity) + 1
    while later < most:
        middle = (later + most + 1) >> 1
        if arena[begins[at] + ((head - middle) & mask)] > cutoff:
            later = middle
        else:
            most = middle - 1
    return later


@njit(cache=True, nogil=True)
def _scaled(heads, begins, shifts, arena, levels, capacity, first, cutoff):
    """A copy's estimate: of the largest sample that answers, its size times 2**level."""
    size = 0
    for level in range(levels - 1, 0, -1):
        larger = size + _later(heads, begins, shifts, arena, first + level, capacity, cutoff)
        if larger > capacity:
            return np.float64(size) * np.float64(1 << (level + 1))
        size = larger
    return np.float64(size) * 2.0


@njit(cache=True, nogil=True)
def estimates(heads, begins, shifts, arena, levels, copies, capacity, cell, cutoff, out):
    """Every copy's estimate of the arrivals above the cutoff, from its samples 1, 2, ..."""
    for copy in range(copies):
        first = (cell * copies + copy) * levels
        out[copy] = _scaled(heads, begins, shifts, arena, levels, capacity, first, cutoff)


@njit(cache=True, nogil=True)
def medians(
    heads, begins, shifts, arena, levels, copies, capacity, cells, cutoffs, values, is_exact
):
    """For cells[i], the arrivals above cutoffs[i]: counted, else the median of the copies."""
    guesses = np.empty(copies, np.float64)
    for i in range(cells.size):
        cell = cells[i]
        all_of_them = cell * copies * levels
        counted = _later(heads, begins, shifts, arena, all_of_them, capacity, cutoffs[i])
        is_exact[i] = counted <= capacity
        if is_exact[i]:
            values[i] = counted
        else:
            estimates(
                heads, begins, shifts, arena, levels, copies, capacity, cell, cutoffs[i], guesses
            )
            guesses.sort()
            values[i] = guesses[copies >> 1]


@njit(cache=True, nogil=True)
def next_stamp(heads, begins, shifts, arena, capacity, cutoff):
    """The smallest stored stamp above the cutoff, 0 if there is none."""
    found = 0
    for at in range(shifts.size):
        later = _later(heads, begins, shifts, arena, at, capacity, cutoff)
        if later > 0:
            mask = (1 << np.int64(shifts[at])) - 1
            stamp = np.int64(arena[begins[at] + ((np.int64(heads[at]) - later) & mask)])
            if found == 0 or stamp < found:
                found = stamp
    return found


@njit(cache=True, nogil=True)
def gather(heads, begins, shifts, arena, levels, capacity, cutoff, lists, offsets, stamps):
    """Each list's stored stamps above the cutoff, oldest first; how many lists have any.

    Its stamps stand at offsets[k] to offsets[k + 1]; it is lists[k] = place * LEVELS + level, where
    place = cell * copies + copy, whatever `levels` is here.
    """
    found = 0
    at = 0
    offsets[0] = 0
    for each in range(shifts.size):
        later = _later(heads, begins, shifts, arena, each, capacity, cutoff)
        if later == 0:
            continue
        mask = (1 << np.int64(shifts[each])) - 1
        head = np.int64(heads[each])
        for place in range(head - later, head):
            stamps[at] = arena[begins[each] + (place & mask)]
            at += 1
        lists[found] = each // levels * LEVELS + each % levels
        found += 1
        offsets[found] = at
    return found


@njit(cache=True, nogil=True)
def join(
    ours, our_offsets, our_stamps, theirs, their_offsets, their_stamps, most,
    lists, offsets, stamps,
):  # fmt: skip
    """The newest `most` stamps of each list of both, as `gather` gives them; how many lists."""
    i, j, found, at = 0, 0, 0, 0
    offsets[0] = 0
    while i < ours.size or j < theirs.size:
        each = ours[i] if i < ours.size else theirs[j]
        if j < theirs.size:
            each = min(each, theirs[j])
        mine, my_end, other, other_end = 0, 0, 0, 0
        if i < ours.size and ours[i] == each:
            mine, my_end = our_offsets[i], our_offsets[i + 1]
            i += 1
        if j < theirs.size and theirs[j] == each:
            other, other_end = their_offsets[j], their_offsets[j + 1]
            j += 1
        excess = my_end - mine + other_end - other - most
        while mine < my_end or other < other_end:
            if other == other_end or (mine < my_end and our_stamps[mine] <= their_stamps[other]):
                stamp = our_stamps[mine]
                mine += 1
            else:
                stamp = their_stamps[other]
                other += 1
            if excess > 0:
                excess -= 1
            else:
                stamps[at] = stamp
                at += 1
        lists[found] = each
        found += 1
        offsets[found] = at
    return found


@njit(cache=True, nogil=True)
def allot(begins, shifts, levels, lists, offsets):
    """Rings as large as these lists need; returns how large an arena."""
    used = 0
    for k in range(lists.size):
        shift = FIRST
        while 1 << shift < offsets[k + 1] - offsets[k]:
            shift += 1
        at = lists[k] // LEVELS * levels + lists[k] % LEVELS
        begins[at] = used
        shifts[at] = shift
        used += 1 << shift
    return used


@njit(cache=True, nogil=True)
def fill(heads, begins, arena, levels, lists, offsets, stamps):
    """Write what `gather` gave into the rings that `allot` made."""
    for k in range(lists.size):
        at = lists[k] // LEVELS * levels + lists[k] % LEVELS
        length = offsets[k + 1] - offsets[k]
        for i in range(length):
            arena[begins[at] + i] = stamps[offsets[k] + i]
        heads[at] = length
