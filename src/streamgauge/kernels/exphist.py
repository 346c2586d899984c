"""Exponential histograms (Datar, Gionis, Indyk & Motwani 2002, section 3), many at a time.

An arrival becomes a bucket of size 1 at level 0. A level that holds more than it may joins its
two oldest buckets to one of twice the size at the next level, dated by the younger of the two.
With k = ceil(1 / epsilon), level 0 may hold k + 1 buckets, every other one ceil(k / 2) + 1. The
caller owns, all flat,

    counts[cell]            uint64, arrivals ever
    filled[cell, level]     uint32, how many buckets the level holds
    oldest[cell, level]     uint32, the slot of the oldest of them
    stamps[cell, slot]      int32 or int64; a ring a level: 2 << shift slots for level 0, then
                            1 << shift for each further one, which is room enough

A stamp is a tick relative to the caller's base and at least 1; 0 means "expired".

Expired buckets are joined like all others. So which buckets there are follows from the number of
arrivals alone: with a(0) = count, level l has ever been given

    a(l) = max(0, floor((count - k - ceil(k / 2) (2**l - 2)) / 2**l))

of them and still holds a(l) - 2 a(l + 1). Nothing depends on when anyone looked or let time pass,
and c arrivals at once are joined as c single ones would have been, whatever expires meanwhile.
What is carried out of the top level is dropped: the invariant that proofs rest on
(docs/guarantees.md, "Exponential histogram") is that

    every bucket that was dropped had left the full window.

A kernel that would break it stops before the arrival that does, and the caller calls `grow`.
"""

import numpy as np
from numba import njit

from streamgauge.kernels.hashing import column

u64 = np.uint64

CHUNK = 8192  # events hashed at once, as in kernels/wave.py


@njit(inline="always")
def _most(level, k):
    """How many buckets a level may hold."""
    return k + 1 if level == 0 else ((k + 1) >> 1) + 1


@njit(inline="always")
def _ring(cell, level, levels, shift):
    """Where the slots of a level begin."""
    return (cell * (levels + 1) + level + (level > 0)) << shift


@njit(inline="always")
def _mask(level, shift):
    return ((2 if level == 0 else 1) << shift) - 1


@njit(inline="always")
def _given(count, level, k):
    """How many buckets a level has ever been given."""
    given = count
    for below in range(level):
        given = max(given - _most(below, k) + 1, 0) >> 1
    return given


@njit(inline="always")
def _stored(count, levels, k):
    """How many buckets there are of a cell with `count` arrivals, at all its levels."""
    stored = 0
    given = count
    for level in range(levels):
        carried = max(given - _most(level, k) + 1, 0) >> 1
        stored += given - 2 * carried
        given = carried
    return stored


@njit(inline="always")
def _full(levels, k):
    """How many arrivals fill all levels; 2**levels more, and a bucket is carried out."""
    full = k
    for level in range(1, levels):
        if full >> 53:
            break  # more than there can be
        full += ((k + 1) >> 1) << level
    return full


@njit(cache=True, nogil=True)
def insert_row(
    counts, filled, oldest, stamps, levels, shift, k, window, columns, ticks, begin, end
):
    """Insert events begin..end, one a cell; returns the first that needs a level more, or end."""
    top = levels - 1
    full = u64(_full(levels, k))
    between = (u64(1) << u64(levels)) - u64(1)
    slots = u64(1) << u64(shift)
    most = u64(_most(1, k))
    for i in range(u64(begin), u64(end)):
        cell = u64(columns[i])
        count = counts[cell] + u64(1)
        if ((count - full) & between) == u64(0) and count > full:
            second = u64(oldest[cell * u64(levels) + u64(top)]) + u64(1)
            ring = _ring(np.int64(cell), top, levels, shift)
            if stamps[ring + (np.int64(second) & _mask(top, shift))] > ticks[i] - window:
                return np.int64(i)
        counts[cell] = count
        stamp = ticks[i]
        place = cell * u64(levels)
        ring = (cell * u64(levels + 1)) << u64(shift)
        size = slots << u64(1)
        room = u64(k + 1)
        for _ in range(levels):
            first, held = u64(oldest[place]), u64(filled[place])
            slot = ring + ((first + held) & (size - u64(1)))
            if held < room:
                stamps[slot] = stamp
                filled[place] = held + u64(1)
                break
            carried = stamps[ring + ((first + u64(1)) & (size - u64(1)))]
            stamps[slot] = stamp
            oldest[place] = (first + u64(2)) & (size - u64(1))
            filled[place] = held - u64(1)
            stamp = carried
            place += u64(1)
            ring += size
            size = slots
            room = most
    return end


@njit(cache=True, nogil=True)
def update(
    counts, filled, oldest, stamps, levels, shift, k, window, seeds, width, words, ticks, base,
    cursor,
):  # fmt: skip
    """Insert every word in its column of every row; True when all are in.

    False: a cell needs a level more. `cursor` = (chunk, row, event) says where to go on after
    `grow`; start with zeros.
    """
    columns = np.empty(CHUNK, np.uint32)
    stamped = np.empty(CHUNK, stamps.dtype)
    rows = seeds.shape[0]
    heads, slots = width * levels, (width * (levels + 1)) << shift
    for chunk in range(cursor[0], words.size, CHUNK):
        size = min(CHUNK, words.size - chunk)
        chunk_words = words[chunk : chunk + size]
        for i in range(size):
            stamped[i] = ticks[chunk + i] - base
        for row in range(cursor[1], rows):
            a, b, c = seeds[row, 0], seeds[row, 1], seeds[row, 2]
            for i in range(size):
                columns[i] = np.uint32(column(chunk_words[i], a, b, c, u64(width)))
            done = insert_row(
                counts[row * width : (row + 1) * width],
                filled[row * heads : (row + 1) * heads],
                oldest[row * heads : (row + 1) * heads],
                stamps[row * slots : (row + 1) * slots],
                levels, shift, k, window, columns, stamped, cursor[2], size,
            )  # fmt: skip
            if done < size:
                cursor[0], cursor[1], cursor[2] = chunk, row, done
                return False
            cursor[2] = 0
        cursor[1] = 0
    return True


@njit(inline="always")
def _would_lose(counts, oldest, stamps, levels, shift, k, window, cell, stamp, weight, step):
    """Whether `weight` arrivals carry a bucket out of the top level that may be live."""
    top = levels - 1
    before = np.int64(counts[cell])
    given, dropped = _given(before, top, k), _given(before, levels, k)
    dropping = _given(before + weight, levels, k)
    if dropping == dropped:
        return False
    newest = 2 * dropping  # of the buckets at the top, the newest that goes
    if newest <= given:
        at = np.int64(oldest[cell * levels + top]) + newest - 2 * dropped - 1
        left = np.int64(stamps[_ring(cell, top, levels, shift) + (at & _mask(top, shift))])
    else:
        of_these = (newest << top) - before  # its newest arrival is that one of these, or older
        left = stamp - step * (weight - max(of_these, 1))
    return left > stamp - window


@njit(cache=True, nogil=True)
def _add(
    counts, filled, oldest, stamps, levels, shift, k, window, cell, stamp, weight, step, spare
):
    """Insert `weight` arrivals in O(k log weight), the newest at `stamp`, the others `step` apart.

    False: needs a level more. Each level is given what the one below carries, oldest first: some
    stamps, which stand in a row of `spare`, then an even run. Of joined neighbours the newer
    stamp stays, so a run (begin, step, length) becomes one with twice the step.
    """
    if _would_lose(counts, oldest, stamps, levels, shift, k, window, cell, stamp, weight, step):
        return False
    begin, run = stamp - step * (weight - 1), weight
    given, here = 0, 0
    for level in range(levels):
        if given + run == 0:
            break
        place = cell * levels + level
        ring, mask = _ring(cell, level, levels, shift), _mask(level, shift)
        first, held = np.int64(oldest[place]), np.int64(filled[place])
        known = held + given
        pairs = max(known + run - _most(level, k) + 1, 0) >> 1
        carried = min(pairs, known >> 1)
        for i in range(carried):
            newer = 2 * i + 1
            if newer < held:
                spare[1 - here, i] = stamps[ring + ((first + newer) & mask)]
            else:
                spare[1 - here, i] = spare[here, newer - held]
        for i in range(max(held, 2 * pairs), known + run):
            entry = spare[here, i - held] if i < known else max(begin + step * (i - known), 0)
            stamps[ring + ((first + i) & mask)] = entry
        oldest[place] = (first + 2 * pairs) & mask
        filled[place] = known + run - 2 * pairs
        run = pairs - carried
        if run > 0:
            begin += step * (2 * carried + 1 - known)
            step *= 2
        given, here = carried, 1 - here
    counts[cell] += u64(weight)
    return True


@njit(cache=True, nogil=True)
def update_weighted(
    counts, filled, oldest, stamps, levels, shift, k, window, seeds, width, words, ticks, weights,
    step, base, cursor,
):  # fmt: skip
    """As `update`, event by event, each `weights[i]` times; `cursor` = (event, row, 0)."""
    spare = np.empty((2, k + 2), np.int64)
    for i in range(cursor[0], words.size):
        for row in range(cursor[1], seeds.shape[0]):
            a, b, c = seeds[row, 0], seeds[row, 1], seeds[row, 2]
            cell = row * width + np.int64(column(words[i], a, b, c, u64(width)))
            if not _add(
                counts, filled, oldest, stamps, levels, shift, k, window,
                cell, ticks[i] - base, weights[i], step, spare,
            ):  # fmt: skip
                cursor[0], cursor[1] = i, row
                return False
        cursor[1] = 0
    return True


@njit(cache=True, nogil=True)
def extend(
    counts, filled, oldest, stamps, levels, shift, k, window, begins, ends, ticks, weights, step,
    base, cursor,
):  # fmt: skip
    """Insert events begins[cell]..ends[cell] in each cell; True when all are in.

    False: a cell needs a level more. `cursor` = (cell, event) says where to go on after `grow`;
    start with zeros.
    """
    spare = np.empty((2, k + 2), np.int64)
    for cell in range(cursor[0], counts.size):
        for i in range(max(begins[cell], cursor[1]), ends[cell]):
            if not _add(
                counts, filled, oldest, stamps, levels, shift, k, window,
                cell, ticks[i] - base, weights[i], step, spare,
            ):  # fmt: skip
                cursor[0], cursor[1] = cell, i
                return False
    return True


@njit(cache=True, nogil=True)
def grow(counts, filled, oldest, stamps, levels, shift, k, more_filled, more_oldest, more_stamps):
    """Copy into arrays of zeros with one level more.

    The buckets that it would hold by now were dropped, so they have expired: stamps of 0.
    """
    slots = (levels + 1) << shift
    for cell in range(counts.size):
        old, new = cell * levels, cell * (levels + 1)
        for level in range(levels):
            more_filled[new + level] = filled[old + level]
            more_oldest[new + level] = oldest[old + level]
        count = np.int64(counts[cell])
        more_filled[new + levels] = _given(count, levels, k) - 2 * _given(count, levels + 1, k)
        old, new = cell * slots, cell * (slots + (1 << shift))
        for i in range(slots):
            more_stamps[new + i] = stamps[old + i]


@njit(inline="always")
def _live(cell, filled, oldest, stamps, levels, shift, cutoff):
    """(arrivals in the live buckets of a cell, size of the oldest of them or 0, its stamp)."""
    total, edge, stamp = 0, 0, 0
    for level in range(levels):
        ring, mask = _ring(cell, level, levels, shift), _mask(level, shift)
        first = np.int64(oldest[cell * levels + level])
        held = np.int64(filled[cell * levels + level])
        below, above = -1, held  # buckets up to `below` have expired, those from `above` on not
        if held > 0 and stamps[ring + first] > cutoff:
            above = 0
        while above - below > 1:
            middle = (below + above) >> 1
            if stamps[ring + ((first + middle) & mask)] > cutoff:
                above = middle
            else:
                below = middle
        if above < held:
            total += (held - above) << level
            edge = 1 << level
            stamp = np.int64(stamps[ring + ((first + above) & mask)])
        if above > 0 or held == 0:
            break
    return total, edge, stamp


@njit(cache=True, nogil=True)
def spans(filled, oldest, stamps, levels, shift, cells, cutoffs, low, high):
    """The fewest and the most arrivals of cells[i] with a stamp above cutoffs[i].

    Of the oldest live bucket, the newest arrival is live and the others may be.
    """
    for i in range(cells.size):
        total, edge, _ = _live(cells[i], filled, oldest, stamps, levels, shift, cutoffs[i])
        low[i] = total - max(edge - 1, 0)
        high[i] = total


@njit(cache=True, nogil=True)
def next_stamp(cells, filled, oldest, stamps, levels, shift, cutoff):
    """The smallest stamp of a live bucket of any cell; 0 if none is live."""
    found = 0
    for cell in range(cells):
        _, _, stamp = _live(cell, filled, oldest, stamps, levels, shift, cutoff)
        if stamp > 0 and (found == 0 or stamp < found):
            found = stamp
    return found


@njit(cache=True, nogil=True)
def live_levels(cells, filled, oldest, stamps, levels, shift, cutoff):
    """How many levels, from the lowest on, have a live bucket in some cell; at least 1."""
    found = 1
    for cell in range(cells):
        _, edge, _ = _live(cell, filled, oldest, stamps, levels, shift, cutoff)
        while edge >> found:
            found += 1
    return found


@njit(cache=True, nogil=True)
def segments(cells, filled, oldest, stamps, levels, shift, cutoff, offsets, ends, sizes):
    """Each cell's live buckets, newest first; their number."""
    at = 0
    for cell in range(cells):
        offsets[cell] = at
        for level in range(levels):
            ring, mask = _ring(cell, level, levels, shift), _mask(level, shift)
            first = np.int64(oldest[cell * levels + level])
            left = np.int64(filled[cell * levels + level])
            while left > 0:
                stamp = np.int64(stamps[ring + ((first + left - 1) & mask)])
                if stamp <= cutoff:
                    break
                ends[at] = stamp
                sizes[at] = 1 << level
                at += 1
                left -= 1
            if left > 0:
                break
    offsets[cells] = at
    return at
