"""Matrices of counts, and the sub-cells of SPLITTER (Rivetti, Busnel & Mostefaoui 2015, III-D).

A matrix is one int64 array of rows * width counts, row by row. SPLITTER keeps a queue of sub-cells
in each cell instead, in arrays that the caller owns:

    cells     four int64 a cell: its oldest sub-cell, its newest, the one before, how many it has
    parts     four int64 a sub-cell: its count, last tick, the next one of its queue, first tick
    counts    the same memory as float64, for the count: arrivals
    spare     the first free sub-cell, which leads to the others; how many they are

A sub-cell is named by its place in `parts`, a multiple of four: what belongs together is in half a
line of the cache.

What a sub-cell counted is taken as spread evenly over its L = last - first + 1 ticks. The listing
takes count / L away from the oldest one of every cell in every tick. That rate stays what it is
while the sub-cell only loses, so after k of its ticks it is worth count * (L - k) / L (`_left`):
cells are looked at when they are touched or asked for, and an update costs O(rows). Only a
sub-cell that is about to be changed or compared, one of the newest two, is brought up to date.

Sub-cells come out of one pool since a single cell of a row may have nearly all of them.
"""

import numpy as np
from numba import njit

from streamgauge.kernels.hashing import column

u64 = np.uint64

CHUNK = 1024

CELL = PART = u64(4)
NEWEST, BEFORE, LENGTH = u64(1), u64(2), u64(3)
LAST, NEXT, FIRST = u64(1), u64(2), u64(3)


@njit(cache=True, nogil=True)
def add_ones(matrix, seeds, width, words):
    """Count every word once in its column of every row."""
    columns = np.empty(CHUNK, np.uint32)
    for begin in range(0, words.size, CHUNK):
        chunk = words[begin : begin + CHUNK]
        for row in range(seeds.shape[0]):
            a, b, c = seeds[row, 0], seeds[row, 1], seeds[row, 2]
            for i in range(chunk.size):
                columns[i] = np.uint32(column(chunk[i], a, b, c, u64(width)))
            cells = matrix[row * width : (row + 1) * width]
            for i in range(u64(chunk.size)):
                cells[u64(columns[i])] += 1


@njit(cache=True, nogil=True)
def add(matrix, seeds, width, words, weights):
    """Count every word as often as it weighs."""
    for row in range(seeds.shape[0]):
        a, b, c = seeds[row, 0], seeds[row, 1], seeds[row, 2]
        cells = matrix[row * width : (row + 1) * width]
        for i in range(words.size):
            cells[u64(column(words[i], a, b, c, u64(width)))] += weights[i]


@njit(inline="always")
def _left(count, first, last, cutoff):
    """What a sub-cell is worth when its ticks up to the cutoff have expired."""
    if first > cutoff:
        return count
    return count * (float(max(last - cutoff, 0)) / float(last - first + 1))


@njit(inline="always")
def _is_alike(count, first, other, begun, last, mu):
    """ERROR <= mu: the rates of a sub-cell and of the newest, which began later, are that near.

    ERROR is the larger rate over the smaller. The older sub-cell's time goes on until the newer one
    begins: a silence between them belongs to it.
    """
    mine = count * float(last - begun + 1)
    its = other * float(max(begun - first, 1))
    return mine <= mu * its and its <= mu * mine


@njit(cache=True, nogil=True)
def insert(
    cells, parts, counts, spare, seeds, width, window, mu, share, words, ticks, weights,
    present, step, cursor,
):  # fmt: skip
    """Insert every word as often as it weighs; True when all are in.

    False: too few sub-cells are free. `cursor` = (event, unit) says where to go on after there are
    more; start with zeros. `present[i]` is how many arrivals the window holds when event i comes:
    a finished sub-cell has at least the part `share` of them. Where arrivals are counted (`step` 1)
    that is constant, and an event's units came at consecutive ticks, the newest at its own.

    Unsigned and flat on purpose: see kernels/wave.py.
    """
    rows = seeds.shape[0]
    columns = np.empty(rows * CHUNK, np.uint32)
    free, many = u64(spare[0]), spare[1]
    unit = cursor[1]
    for begin in range(cursor[0], words.size, CHUNK):
        size = min(CHUNK, words.size - begin)
        for row in range(rows):
            a, b, c = seeds[row, 0], seeds[row, 1], seeds[row, 2]
            for i in range(size):
                at = u64(row * width) + column(words[begin + i], a, b, c, u64(width))
                columns[row * CHUNK + i] = np.uint32(at)
        for i in range(u64(size)):
            event = u64(begin) + i
            weight = weights[event]
            while unit < weight:
                if many < rows:
                    cursor[0], cursor[1] = event, unit
                    spare[0], spare[1] = free, many
                    return False
                now = ticks[event] - step * (weight - 1 - unit)
                unit += 1
                cutoff = now - window
                enough = share * float(present[event] + (1 - step) * unit)
                for row in range(u64(rows)):
                    cell = u64(columns[row * u64(CHUNK) + i]) * CELL
                    oldest, newest = u64(cells[cell]), u64(cells[cell + NEWEST])
                    length = cells[cell + LENGTH]
                    while length > 0 and parts[oldest + LAST] <= cutoff:
                        following = u64(parts[oldest + NEXT])
                        parts[oldest + NEXT] = free
                        free = oldest
                        many += 1
                        oldest = following
                        length -= 1
                    if 1 <= length <= 2 and parts[oldest + FIRST] <= cutoff:
                        first, last = parts[oldest + FIRST], parts[oldest + LAST]
                        counts[oldest] = _left(counts[oldest], first, last, cutoff)
                        parts[oldest + FIRST] = cutoff + 1
                    if length > 0 and counts[newest] < enough:
                        counts[newest] += 1.0
                        parts[newest + LAST] = now
                    else:
                        before = u64(cells[cell + BEFORE])
                        if length > 1 and _is_alike(
                            counts[before], parts[before + FIRST],
                            counts[newest], parts[newest + FIRST], parts[newest + LAST], mu,
                        ):  # fmt: skip
                            counts[before] += counts[newest]
                            parts[before + LAST] = parts[newest + LAST]
                        else:
                            fresh = free
                            free = u64(parts[fresh + NEXT])
                            many -= 1
                            if length > 0:
                                parts[newest + NEXT] = fresh
                            else:
                                oldest = fresh
                            cells[cell + BEFORE] = newest
                            cells[cell + NEWEST] = fresh
                            newest = fresh
                            length += 1
                        counts[newest] = 1.0
                        parts[newest + FIRST] = now
                        parts[newest + LAST] = now
                    cells[cell], cells[cell + LENGTH] = oldest, length
            unit = 0
    spare[0], spare[1] = free, many
    return True


@njit(cache=True, nogil=True)
def sweep(cells, parts, spare, cutoff):
    """Free the sub-cells that have expired in cells that were not touched since."""
    for cell in range(u64(0), u64(cells.size), CELL):
        oldest, length = u64(cells[cell]), cells[cell + LENGTH]
        while length > 0 and parts[oldest + LAST] <= cutoff:
            following = u64(parts[oldest + NEXT])
            parts[oldest + NEXT] = spare[0]
            spare[0] = oldest
            spare[1] += 1
            oldest = following
            length -= 1
        cells[cell], cells[cell + LENGTH] = oldest, length


@njit(cache=True, nogil=True)
def values(cells, parts, counts, asked, cutoff, out):
    """out[i] = what the cell asked[i] is worth without what is not later than the cutoff."""
    for i in range(asked.size):
        cell, worth = u64(asked[i]) * CELL, 0.0
        part = u64(cells[cell])
        for _ in range(cells[cell + LENGTH]):
            worth += _left(counts[part], parts[part + FIRST], parts[part + LAST], cutoff)
            part = u64(parts[part + NEXT])
        out[i] = worth


@njit(cache=True, nogil=True)
def lengths(cells, parts, cutoff, out):
    """out[i] = how many sub-cells of cell i have not expired."""
    for i in range(out.size):
        cell = u64(i) * CELL
        part, length = u64(cells[cell]), cells[cell + LENGTH]
        while length > 0 and parts[part + LAST] <= cutoff:
            part = u64(parts[part + NEXT])
            length -= 1
        out[i] = length


@njit(cache=True, nogil=True)
def unroll(cells, parts, lengths, out):
    """The sub-cells of all cells, of cell i the newest lengths[i], oldest first."""
    n = 0
    for i in range(lengths.size):
        cell = u64(i) * CELL
        part = u64(cells[cell])
        for _ in range(cells[cell + LENGTH] - lengths[i]):
            part = u64(parts[part + NEXT])
        for _ in range(lengths[i]):
            out[n] = part
            part = u64(parts[part + NEXT])
            n += 1
