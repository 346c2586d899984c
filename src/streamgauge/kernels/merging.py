"""Segments of counters become arrivals again, those of many counters side by side for each cell.

A cell's arrivals stand in `ticks` and `weights` from its begin on; ends[cell] is where the next one
goes. Segments are those of sketches/merging.py.
"""

from numba import njit


@njit(cache=True, nogil=True)
def place(offsets, stamps, sizes, starts, cutoff, ends, ticks, weights):
    """Put half of each segment, rounded down, at its beginning and the rest at its end.

    What would begin at or before the cutoff is left out. Returns between which factors of the true
    number the placed one is in any range: with `newer` arrivals after a segment of C, of which a
    cutoff inside it leaves t true ones (1 <= t <= C) and C - floor(C / 2) placed ones,

        (newer + C - floor(C / 2)) / (newer + t).
    """
    low, high = 1.0, 1.0
    for cell in range(starts.size):
        at = ends[cell]
        moved, newer = 0, 0
        last = offsets[cell + 1] - 1
        for i in range(offsets[cell], last + 1):
            older = sizes[i] >> 1
            ticks[at] = stamps[i]
            weights[at] = sizes[i] - older + moved
            at += 1
            moved = older
            begin = stamps[i + 1] if i < last else starts[cell]
            if begin < stamps[i]:
                placed = newer + sizes[i] - older
                high = max(high, placed / (newer + 1))
                low = min(low, placed / (newer + sizes[i]))
            newer += sizes[i]
        if moved > 0 and starts[cell] > cutoff:
            ticks[at] = starts[cell]
            weights[at] = moved
            at += 1
        ends[cell] = at
    return low, high


@njit(cache=True, nogil=True)
def append(cells, event_ticks, event_weights, ends, ticks, weights):
    """Put event i into cells[row, i] of every row."""
    for row in range(cells.shape[0]):
        for i in range(event_ticks.size):
            at = ends[cells[row, i]]
            ticks[at] = event_ticks[i]
            weights[at] = event_weights[i]
            ends[cells[row, i]] = at + 1
