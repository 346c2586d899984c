"""Rank-addressed deterministic waves (Gibbons & Tirthapura 2002, section 3), many at a time.

A wave remembers when some of its arrivals came, so that arrivals since any recent moment can be
counted. Arrivals have ranks 1, 2, 3 ... within their cell. A rank whose lowest one bit is bit l
lives at level l; the top level holds every multiple of 2**top. Each level keeps its newest `kept`
ranks, in a ring addressed by the rank itself, so an arrival is one increment and one store: no
merging, no heads, no expiry. The caller owns

    counts[cell]                  uint64, arrivals ever = rank of the newest
    stamps[cell, level, slot]     int32 or int64, flat; `1 << shift` >= kept slots a level

A stamp is a tick relative to the caller's base and at least 1; 0 means "expired or never written".
The invariant that proofs rest on (docs/guarantees.md, "Wave"):

    every multiple of 2**top that is no longer among the newest `kept` of the top level had
    left the full window when it was pushed out.

A kernel that would break it stops before the arrival that does, and the caller calls `grow`.
Between levels, stored ranks get coarser with age: below the oldest rank kept at level l only
multiples of 2**(l + 1) are stored.
"""

import numpy as np
from numba import njit

from streamgauge.kernels.bits import trailing_zeros
from streamgauge.kernels.hashing import column

u64 = np.uint64

CHUNK = 8192  # events hashed at once; with more of them a row's rings stay longer in the cache


@njit(inline="always")
def _slot(cell, rank, levels, shift):
    """Where the stamp of a stored rank of a cell lives."""
    top = u64(levels - 1)
    level = trailing_zeros(rank | (u64(1) << top))
    down = level + u64(level != top)
    mask = (u64(1) << u64(shift)) - u64(1)
    return ((u64(cell) * u64(levels) + level) << u64(shift)) | ((rank >> down) & mask)


@njit(inline="always")
def _newest_place(count, level, levels):
    """Where a level's newest rank stands: k for k * 2**top, else q for (2 q + 1) * 2**level."""
    if level == levels - 1:
        return count >> level
    return (((count >> level) + 1) >> 1) - 1


@njit(inline="always")
def _rank_at(place, level, levels):
    if level == levels - 1:
        return place << level
    return (2 * place + 1) << level


@njit(inline="always")
def _oldest_kept(count, level, levels, kept):
    """The smallest rank that a level keeps when the cell has `count` arrivals; may be < 1."""
    return _rank_at(_newest_place(count, level, levels) - kept + 1, level, levels)


@njit(inline="always")
def _is_kept(rank, count, levels, kept):
    level = min(np.int64(trailing_zeros(u64(rank))), levels - 1)
    return rank >= _oldest_kept(count, level, levels, kept)


@njit(inline="always")
def _stored(count, levels, kept):
    """How many ranks are stored of a cell with `count` arrivals."""
    stored = min(kept, count >> (levels - 1))
    for level in range(levels - 1):
        stored += min(kept, ((count >> level) + 1) >> 1)
    return stored


@njit(inline="always")
def _older(rank, level, count, levels, kept):
    """The largest stored rank up to `rank`, and the level from which on all are stored there."""
    while level < levels - 1 and rank < _oldest_kept(count, level, levels, kept):
        level += 1
    return (rank >> level) << level, level


@njit(cache=True, nogil=True)
def _insert_row(counts, stamps, levels, shift, kept, window, columns, ticks, begin, end):
    """Insert events begin..end, one a cell; returns the first that needs a level more, or end.

    Unsigned and flat on purpose, the loop's own index too: signed or three-dimensional indexing
    costs a factor of 1.3 to 2.4, and asking for the top level first another 1.3.
    """
    top = u64(levels - 1)
    below_top = (u64(1) << top) - u64(1)
    safe = u64(kept) << top
    bits = u64(shift)
    mask = (u64(1) << bits) - u64(1)
    for i in range(u64(begin), u64(end)):
        cell = u64(columns[i])
        rank = counts[cell] + u64(1)
        if (rank & below_top) == u64(0):
            ring = (cell * u64(levels) + top) << bits
            place = rank >> top
            if rank > safe and stamps[ring | ((place - u64(kept)) & mask)] > ticks[i] - window:
                return np.int64(i)
            stamps[ring | (place & mask)] = ticks[i]
        else:
            level = trailing_zeros(rank)
            place = rank >> (level + u64(1))
            stamps[((cell * u64(levels) + level) << bits) | (place & mask)] = ticks[i]
        counts[cell] = rank
    return end


@njit(cache=True, nogil=True)
def update(counts, stamps, levels, shift, kept, window, seeds, width, words, ticks, base, cursor):
    """Insert every word in its column of every row; True when all are in.

    False: a cell needs a level more. `cursor` = (chunk, row, event) says where to go on after
    `grow`; start with zeros.
    """
    columns = np.empty(CHUNK, np.uint32)
    stamped = np.empty(CHUNK, stamps.dtype)
    rows = seeds.shape[0]
    stride = levels << shift
    for chunk in range(cursor[0], words.size, CHUNK):
        size = min(CHUNK, words.size - chunk)
        chunk_words = words[chunk : chunk + size]
        for i in range(size):
            stamped[i] = ticks[chunk + i] - base
        for row in range(cursor[1], rows):
            a, b, c = seeds[row, 0], seeds[row, 1], seeds[row, 2]
            for i in range(size):
                columns[i] = np.uint32(column(chunk_words[i], a, b, c, u64(width)))
            done = _insert_row(
                counts[row * width : (row + 1) * width],
                stamps[row * width * stride : (row + 1) * width * stride],
                levels, shift, kept, window, columns, stamped, cursor[2], size,
            )  # fmt: skip
            if done < size:
                cursor[0], cursor[1], cursor[2] = chunk, row, done
                return False
            cursor[2] = 0
        cursor[1] = 0
    return True


@njit(cache=True, nogil=True)
def _add(counts, stamps, levels, shift, kept, window, cell, stamp, weight, step):
    """Insert `weight` arrivals in O(kept * log weight); False: needs a level more.

    Arrival `after` came at `stamp`, the ones before it `step` ticks apart: 0, or 1 where ticks
    count arrivals. Then of all ranks that are pushed out the newest is the closest to the one
    that pushes it, for between two ranks lie at least as many ticks.
    """
    top = levels - 1
    before = np.int64(counts[cell])
    after = before + weight
    newest = (after >> top) << top
    gone = newest - (kept << top)  # the newest multiple of 2**top that is pushed out
    if gone >= 1 and newest > before:
        if gone > before:
            left = stamp - step * (after - gone)
        else:
            left = np.int64(stamps[_slot(cell, u64(gone), levels, shift)])
        if left > stamp - step * (after - newest) - window:
            return False
    slots = 1 << shift
    for level in range(levels):
        first = _newest_place(before, level, levels) + 1
        last = _newest_place(after, level, levels)
        ring = (cell * levels + level) << shift
        for place in range(max(first, last - slots + 1), last + 1):
            came = stamp - step * (after - _rank_at(place, level, levels))
            stamps[ring | (place & (slots - 1))] = max(came, 0)
        if (before >> level) == (after >> level):
            break
    counts[cell] = u64(after)
    return True


@njit(cache=True, nogil=True)
def update_weighted(
    counts, stamps, levels, shift, kept, window,
    seeds, width, words, ticks, weights, step, base, cursor,
):  # fmt: skip
    """As `update`, event by event, each `weights[i]` times; `cursor` = (event, row, 0)."""
    for i in range(cursor[0], words.size):
        for row in range(cursor[1], seeds.shape[0]):
            a, b, c = seeds[row, 0], seeds[row, 1], seeds[row, 2]
            cell = row * width + np.int64(column(words[i], a, b, c, u64(width)))
            if not _add(
                counts, stamps, levels, shift, kept, window, cell, ticks[i] - base, weights[i], step
            ):
                cursor[0], cursor[1] = i, row
                return False
        cursor[1] = 0
    return True


@njit(cache=True, nogil=True)
def add_weighted(counts, stamps, levels, shift, kept, window, ticks, weights, step, base, begin):
    """Insert all events in cell 0; returns the first that needs a level more, or their number."""
    for i in range(begin, ticks.size):
        if not _add(
            counts, stamps, levels, shift, kept, window, 0, ticks[i] - base, weights[i], step
        ):
            return i
    return ticks.size


@njit(cache=True, nogil=True)
def first_loss(counts, stamps, levels, shift, kept, window, ticks, base, begin):
    """Of a run of events for cell 0, the first that needs a level more, or their number."""
    top = levels - 1
    before = np.int64(counts[0])
    after = before + ticks.size - begin
    for place in range(max((before >> top) + 1, kept + 1), (after >> top) + 1):
        gone = (place - kept) << top
        event = begin + (place << top) - before - 1
        if gone > before:
            left = ticks[begin + gone - before - 1]
        else:
            left = np.int64(stamps[_slot(0, u64(gone), levels, shift)]) + base
        if left > ticks[event] - window:
            return event
    return ticks.size


@njit(cache=True, nogil=True)
def first_loss_weighted(
    counts, stamps, levels, shift, kept, window, ticks, weights, base, begin
):  # fmt: skip
    """As `first_loss`, where each event is weights[i] arrivals at its tick."""
    top = levels - 1
    before = np.int64(counts[0])
    after = before
    older, older_rank = begin - 1, before  # an event of the run and its newest arrival
    for event in range(begin, ticks.size):
        first = after
        after += weights[event]
        gone = ((after >> top) - kept) << top
        if gone < 1 or (after >> top) == (first >> top):
            continue
        while older_rank < gone:
            older += 1
            older_rank += weights[older]
        if gone > before:
            left = ticks[older]
        else:
            left = np.int64(stamps[_slot(0, u64(gone), levels, shift)]) + base
        if left > ticks[event] - window:
            return event
    return ticks.size


@njit(cache=True, nogil=True)
def add_run(counts, stamps, levels, shift, ticks, base, begin, end):
    """Insert events begin..end in cell 0, writing only what its levels keep of them."""
    slots = 1 << shift
    before = np.int64(counts[0])
    after = before + end - begin
    for level in range(levels):
        first = _newest_place(before, level, levels) + 1
        last = _newest_place(after, level, levels)
        ring = level << shift
        for place in range(max(first, last - slots + 1), last + 1):
            event = begin + _rank_at(place, level, levels) - before - 1
            stamps[ring | (place & (slots - 1))] = ticks[event] - base
    counts[0] = u64(after)


@njit(cache=True, nogil=True)
def add_run_weighted(counts, stamps, levels, shift, ticks, weights, base, begin, end):
    """As `add_run`, where each event is weights[i] arrivals at its tick."""
    slots = 1 << shift
    before = np.int64(counts[0])
    after = before
    for event in range(begin, end):
        after += weights[event]
    for level in range(levels):
        first = _newest_place(before, level, levels) + 1
        last = _newest_place(after, level, levels)
        ring = level << shift
        event, low = end, after  # the arrivals up to rank `low` are of events before this one
        for place in range(last, max(first, last - slots + 1) - 1, -1):
            while _rank_at(place, level, levels) <= low:
                event -= 1
                low -= weights[event]
            stamps[ring | (place & (slots - 1))] = ticks[event] - base
    counts[0] = u64(after)


@njit(cache=True, nogil=True)
def grow(counts, stamps, levels, shift, grown):
    """Copy into `grown`, zeros with one level more: the old top splits into odd and even.

    Slots that the split leaves empty belong to ranks pushed out earlier, which had expired: 0.
    """
    slots = 1 << shift
    top = levels - 1
    for cell in range(counts.size):
        old = (cell * levels) << shift
        new = (cell * (levels + 1)) << shift
        for k in range(top << shift):
            grown[new + k] = stamps[old + k]
        newest = np.int64(counts[cell]) >> top
        for place in range(max(1, newest - slots + 1), newest + 1):
            level = top + 1 - (place & 1)
            stamp = stamps[old + (top << shift) + (place & (slots - 1))]
            grown[new + (level << shift) + ((place >> 1) & (slots - 1))] = stamp


@njit(cache=True, nogil=True)
def shift_base(stamps, by):
    """Lower every stamp by `by`; those that would fall below 1 have expired."""
    for i in range(stamps.size):
        stamps[i] = max(stamps[i] - by, 0)


@njit(inline="always")
def _bracket(cell, count, stamps, levels, shift, kept, cutoff):
    """(largest rank known to be expired or 0, smallest stored live rank or count + 1).

    Stamps never decrease with rank. Bisect the top level, then halve the gap level by level:
    between neighbouring multiples of 2**(l + 1) lies one odd multiple of 2**l. Where that one
    is no longer kept, no finer one is either.
    """
    top = levels - 1
    below = max((count >> top) - kept, 0)  # 0, or pushed out and therefore expired
    above = (count >> top) + 1
    while above - below > 1:
        middle = (below + above) >> 1
        if stamps[_slot(cell, u64(middle << top), levels, shift)] > cutoff:
            above = middle
        else:
            below = middle
    expired = below << top
    live = min(above << top, count + 1)
    for level in range(top - 1, -1, -1):
        rank = expired + (1 << level)
        if rank > count:
            continue
        if rank < _oldest_kept(count, level, levels, kept):
            break
        if stamps[_slot(cell, u64(rank), levels, shift)] > cutoff:
            live = rank
        else:
            expired = rank
    return expired, live


@njit(cache=True, nogil=True)
def brackets(counts, stamps, levels, shift, kept, cells, cutoffs, expired, live):
    """For cells[i], the bracket (expired[i], live[i]) of arrivals with a stamp above cutoffs[i].

    The arrivals in range number between count - live + 1 and count - expired.
    """
    for i in range(cells.size):
        cell = cells[i]
        expired[i], live[i] = _bracket(
            cell, np.int64(counts[cell]), stamps, levels, shift, kept, cutoffs[i]
        )


@njit(cache=True, nogil=True)
def follow(counts, stamps, levels, shift, kept, cutoff, expired, live):
    """As `brackets` for every cell, from those of an earlier cutoff of the same waves.

    A bracket stands as long as both its ranks are kept and the upper one is live: most cells
    of a grid change little between two steps of a sliding question.
    """
    top = levels - 1
    for cell in range(counts.size):
        count = np.int64(counts[cell])
        lower, upper = expired[cell], live[cell]
        if 1 <= upper <= count and _is_kept(upper, count, levels, kept):
            if lower == 0:
                stands = (count >> top) <= kept
            else:
                stands = _is_kept(lower, count, levels, kept)
            if stands and stamps[_slot(cell, u64(upper), levels, shift)] > cutoff:
                continue
        expired[cell], live[cell] = _bracket(cell, count, stamps, levels, shift, kept, cutoff)


@njit(cache=True, nogil=True)
def segments(counts, stamps, levels, shift, kept, cutoff, begin, offsets, ends, sizes, starts):
    """Each cell's live stored ranks, newest first, as what lies between them; their number.

    Where every arrival of the grid is live, `begin` is the stamp of the first, else 0: then the
    ranks below a cell's oldest stored one came since.
    """
    at = 0
    for cell in range(counts.size):
        offsets[cell] = at
        count = np.int64(counts[cell])
        stored = _stored(count, levels, kept)
        rank, level, newer = count, 0, 0
        seen = 0
        while seen < stored:
            rank, level = _older(rank, level, count, levels, kept)
            stamp = np.int64(stamps[_slot(cell, u64(rank), levels, shift)])
            if stamp <= cutoff:
                break
            if seen > 0:
                sizes[at - 1] = newer - rank
            ends[at] = stamp
            newer = rank
            at += 1
            seen += 1
            rank -= 1
        starts[cell] = 0
        if seen == stored:  # what is below was pushed out: expired, or as old as the first arrival
            rank = max((count >> (levels - 1)) - kept, 0) << (levels - 1)
            starts[cell] = begin
        if seen > 0:
            sizes[at - 1] = newer - rank
    offsets[counts.size] = at
    return at


@njit(cache=True, nogil=True)
def next_stamp(counts, stamps, levels, shift, kept, cutoff):
    """The smallest stamp above `cutoff` that a bracket can move at, 0 if there is none."""
    found = 0
    for cell in range(counts.size):
        count = np.int64(counts[cell])
        _, live = _bracket(cell, count, stamps, levels, shift, kept, cutoff)
        if live <= count:
            stamp = np.int64(stamps[_slot(cell, u64(live), levels, shift)])
            if found == 0 or stamp < found:
                found = stamp
    return found


@njit(cache=True, nogil=True)
def would_lose(counts, stamps, levels, shift, kept, cutoff, begins, ends, weights):
    """Whether each cell's live events push a rank out of a top level that is live."""
    top = levels - 1
    for cell in range(counts.size):
        before = np.int64(counts[cell])
        after = before
        for i in range(begins[cell], ends[cell]):
            after += weights[i]
        gone = (after >> top) - kept
        if gone <= (before >> top) - kept or gone < 1:
            continue
        if gone << top > before:
            return True
        if stamps[_slot(cell, u64(gone << top), levels, shift)] > cutoff:
            return True
    return False


@njit(cache=True, nogil=True)
def extend(counts, stamps, levels, shift, kept, begins, ends, ticks, weights, base):
    """Insert events begins[cell]..ends[cell] in each cell, writing only what it keeps."""
    for cell in range(counts.size):
        before = np.int64(counts[cell])
        event = ends[cell]
        after = before
        for i in range(begins[cell], event):
            after += weights[i]
        rank, level, low = after, 0, after  # ranks above `low` belong to events from `event` on
        while rank > before:
            rank, level = _older(rank, level, after, levels, kept)
            if rank <= before:
                break
            while rank <= low:
                event -= 1
                low -= weights[event]
            stamps[_slot(cell, u64(rank), levels, shift)] = ticks[event] - base
            rank -= 1
        counts[cell] = u64(after)
