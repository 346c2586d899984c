"""Columns of whole numbers as bits, `width` for each value, the lowest bit first."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def put(values, width, out, at):
    """Write every value from the bit `at` of zeroed bytes on; returns where that ends."""
    for i in range(values.size):
        value = values[i]
        left = width
        while left > 0:
            take = min(8 - (at & 7), left)
            out[at >> 3] |= np.uint8((value & np.uint64((1 << take) - 1)) << np.uint64(at & 7))
            value >>= np.uint64(take)
            at += take
            left -= take
    return at


@njit(cache=True, nogil=True)
def get(data, at, width, values):
    """Read every value; the bits must be there."""
    for i in range(values.size):
        value = np.uint64(0)
        got = 0
        while got < width:
            take = min(8 - (at & 7), width - got)
            part = np.uint64((data[at >> 3] >> np.uint8(at & 7)) & np.uint8((1 << take) - 1))
            value |= part << np.uint64(got)
            at += take
            got += take
        values[i] = value
    return at
