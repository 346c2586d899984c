"""Which times are too far ahead of all the others to be true."""

import numpy as np
from numpy.typing import NDArray

_FEW = 1000  # one row in so many


def latest(
    first: NDArray[np.int64], last: NDArray[np.int64], rows: NDArray[np.int64], max_ahead: int
) -> int:
    """The greatest time of those that are not too far ahead.

    Times are too far ahead if a gap longer than `max_ahead` separates them from all earlier ones
    and fewer than one row in a thousand lies beyond that gap. So a single row dated 2262 does not
    move the clock, while a stream that resumes after a silence is believed as soon as a
    thousandth of its rows say so.

    The times come as stretches of at most `max_ahead`, without order: the first time, the last
    and the number of rows of each.
    """
    order = np.argsort(first)
    first, last, rows = first[order], last[order], rows[order]
    # Unsigned, so that the distance between any two int64 is right.
    gaps = first[1:].view(np.uint64) - last[:-1].view(np.uint64)
    beyond = rows.sum() - np.cumsum(rows)[:-1]
    ends = np.flatnonzero((gaps > max_ahead) & (beyond * _FEW < rows.sum()))
    return int(last[ends[0]] if ends.size else last[-1])
