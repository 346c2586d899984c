"""Segments of counters become arrivals again, and those of many counters one list a cell.

The arrays are those of `Segments` and `Placed` in sketches/merging.py.
"""

from numba import njit


@njit(cache=True, nogil=True)
def place(offsets, ends, sizes, starts, cutoff, placed_offsets, ticks, weights):
    """Put half of each segment, rounded down, at its beginning and the rest at its end.

    Segments come newest first, and so do the placed arrivals, whose number is returned. What
    would begin at or before the cutoff is left out.
    """
    at = 0
    for cell in range(starts.size):
        placed_offsets[cell] = at
        newer = 0
        for i in range(offsets[cell], offsets[cell + 1]):
            older = sizes[i] >> 1
            ticks[at] = ends[i]
            weights[at] = sizes[i] - older + newer
            newer = older
            at += 1
        if newer > 0 and starts[cell] > cutoff:
            ticks[at] = starts[cell]
            weights[at] = newer
            at += 1
    placed_offsets[starts.size] = at
    return at


@njit(cache=True, nogil=True)
def append(offsets, ticks, weights, ends, all_ticks, all_weights):
    """Copy each cell's arrivals to ends[cell], which moves on."""
    for cell in range(ends.size):
        at = ends[cell]
        for i in range(offsets[cell], offsets[cell + 1]):
            all_ticks[at] = ticks[i]
            all_weights[at] = weights[i]
            at += 1
        ends[cell] = at
