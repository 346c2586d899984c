"""Whole numbers as bits, one after the other, and runs of them in blocks of equal width.

    a block: 6 bits with the width of its largest number, then each of its numbers in that width

A block holds BLOCK numbers, the last one of a run what is left. All numbers are below 2**63.
"""

import numpy as np
from numba import njit

BLOCK = 8
COMPLETE, TRUNCATED, IMPOSSIBLE = 0, 1, 2  # what came of reading


@njit(inline="always")
def _width(value):
    bits = 0
    while value > 0:
        value >>= 1
        bits += 1
    return bits


@njit(cache=True)
def _put(out, at, value, width):
    while width > 0:
        take = min(8 - (at & 7), width)
        out[at >> 3] |= (value & ((1 << take) - 1)) << (at & 7)
        value >>= take
        at += take
        width -= take
    return at


@njit(cache=True)
def _get(data, at, width):
    value = 0
    got = 0
    while got < width:
        take = min(8 - (at & 7), width - got)
        value |= np.int64((data[at >> 3] >> (at & 7)) & ((1 << take) - 1)) << got
        at += take
        got += take
    return value


@njit(cache=True)
def _room(out, at, bits):
    """`out`, or a longer copy of it, with space for `bits` more."""
    need = ((at + bits) >> 3) + 1
    if need <= out.size:
        return out
    longer = np.zeros(2 * need, np.uint8)
    longer[: out.size] = out
    return longer


@njit(cache=True)
def _put_blocks(out, at, numbers, size):
    """Write the first `size` numbers; returns `out`, or a longer copy of it, and its end."""
    for begin in range(0, size, BLOCK):
        end = min(size, begin + BLOCK)
        width = 0
        for i in range(begin, end):
            width = max(width, _width(numbers[i]))
        out = _room(out, at, 6 + BLOCK * width)
        at = _put(out, at, width, 6)
        for i in range(begin, end):
            at = _put(out, at, numbers[i], width)
    return out, at
