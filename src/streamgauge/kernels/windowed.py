"""Matrices of counts, and the sub-cells of SPLITTER (Rivetti, Busnel & Mostefaoui 2015, III-D).

A matrix is one int64 array of rows * width counts, row by row. SPLITTER keeps a queue of sub-cells
in each cell instead, in arrays that the caller owns:

    cells[cell]      the cell's oldest sub-cell, its newest, the one before that, how many it has
    parts[part]      a sub-cell: first tick, last tick, the next one of its queue
    counts[part]     how many arrivals, float64
    spare            the first free sub-cell, which leads to the others; how many they are

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

OLDEST, NEWEST, BEFORE, LENGTH = range(4)
FIRST, LAST, NEXT = range(3)


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
    cells, parts, counts, spare, seeds, width, window, mu, tau, words, ticks, weights,
    present, step, cursor,
):  # fmt: skip
    """Insert every word as often as it weighs; True when all are in.

    False: too few sub-cells are free. `cursor` = (event, unit) says where to go on after there are
    more; start with zeros. `present[i]` is how many arrivals the window holds when event i comes.
    Where arrivals are counted (`step` 1) that is constant, and the units of an event came at
    consecutive ticks, the newest at its own.
    """
    rows = seeds.shape[0]
    columns = np.empty((rows, CHUNK), np.int64)
    for begin in range(cursor[0], words.size, CHUNK):
        size = min(CHUNK, words.size - begin)
        for row in range(rows):
            a, b, c = seeds[row, 0], seeds[row, 1], seeds[row, 2]
            for i in range(size):
                at = column(words[begin + i], a, b, c, u64(width))
                columns[row, i] = row * width + np.int64(at)
        for i in range(size):
            event = begin + i
            for unit in range(cursor[1], weights[event]):
                if spare[1] < rows:
                    cursor[0] = event
                    cursor[1] = unit
                    return False
                now = ticks[event] - step * (weights[event] - 1 - unit)
                cutoff = now - window
                enough = tau * float(present[event] + (1 - step) * (unit + 1)) / float(width)
                for row in range(rows):
                    cell = cells[u64(columns[row, i])]
                    oldest, newest, length = u64(cell[OLDEST]), u64(cell[NEWEST]), cell[LENGTH]
                    while length > 0 and parts[oldest, LAST] <= cutoff:
                        following = parts[oldest, NEXT]
                        parts[oldest, NEXT] = spare[0]
                        spare[0] = oldest
                        spare[1] += 1
                        oldest = u64(following)
                        length -= 1
                    if 1 <= length <= 2 and parts[oldest, FIRST] <= cutoff:
                        first, last = parts[oldest, FIRST], parts[oldest, LAST]
                        counts[oldest] = _left(counts[oldest], first, last, cutoff)
                        parts[oldest, FIRST] = cutoff + 1
                    if length > 0 and counts[newest] < enough:
                        counts[newest] += 1.0
                        parts[newest, LAST] = now
                    else:
                        before = u64(cell[BEFORE])
                        if length > 1 and _is_alike(
                            counts[before], parts[before, FIRST],
                            counts[newest], parts[newest, FIRST], parts[newest, LAST], mu,
                        ):  # fmt: skip
                            counts[before] += counts[newest]
                            parts[before, LAST] = parts[newest, LAST]
                        else:
                            cell[BEFORE] = newest
                            fresh = u64(spare[0])
                            spare[0] = parts[fresh, NEXT]
                            spare[1] -= 1
                            if length > 0:
                                parts[newest, NEXT] = fresh
                            else:
                                oldest = fresh
                            newest = fresh
                            length += 1
                        counts[newest] = 1.0
                        parts[newest, FIRST] = now
                        parts[newest, LAST] = now
                    cell[OLDEST], cell[NEWEST], cell[LENGTH] = oldest, newest, length
            cursor[1] = 0
    return True


@njit(cache=True, nogil=True)
def sweep(cells, parts, spare, cutoff):
    """Free the sub-cells that have expired in cells that were not touched since."""
    for cell in range(cells.shape[0]):
        oldest, length = cells[cell, OLDEST], cells[cell, LENGTH]
        while length > 0 and parts[oldest, LAST] <= cutoff:
            following = parts[oldest, NEXT]
            parts[oldest, NEXT] = spare[0]
            spare[0] = oldest
            spare[1] += 1
            oldest = following
            length -= 1
        cells[cell, OLDEST], cells[cell, LENGTH] = oldest, length


@njit(cache=True, nogil=True)
def values(cells, parts, counts, asked, cutoff, out):
    """out[i] = what the cell asked[i] is worth without what is not later than the cutoff."""
    for i in range(asked.size):
        part, worth = cells[asked[i], OLDEST], 0.0
        for _ in range(cells[asked[i], LENGTH]):
            worth += _left(counts[part], parts[part, FIRST], parts[part, LAST], cutoff)
            part = parts[part, NEXT]
        out[i] = worth


@njit(cache=True, nogil=True)
def lengths(cells, parts, cutoff, out):
    """out[cell] = how many of its sub-cells have not expired."""
    for cell in range(cells.shape[0]):
        part, length = cells[cell, OLDEST], cells[cell, LENGTH]
        while length > 0 and parts[part, LAST] <= cutoff:
            part = parts[part, NEXT]
            length -= 1
        out[cell] = length


@njit(cache=True, nogil=True)
def unroll(cells, parts, lengths, out):
    """The sub-cells of all cells, of each the newest lengths[cell], oldest first."""
    n = 0
    for cell in range(cells.shape[0]):
        part = cells[cell, OLDEST]
        for _ in range(cells[cell, LENGTH] - lengths[cell]):
            part = parts[part, NEXT]
        for _ in range(lengths[cell]):
            out[n] = part
            part = parts[part, NEXT]
            n += 1
