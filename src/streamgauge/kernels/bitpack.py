"""Whole numbers as bits, one after the other, and runs of them in blocks of equal width.

    a block: 6 bits with the width of its largest number, then each of its numbers in that width

A block holds BLOCK numbers, the last one of a run what is left. All numbers are below 2**63. The
bytes are little-endian words, as memory is wherever numba compiles: bit i is bit i % 64 of word
i // 64. A number lies in one word or two neighbouring ones, and is read and written without asking
which; hence there is one word more than the bits need.
"""

import numpy as np
from numba import njit

from streamgauge.kernels.bits import bit_length

u64 = np.uint64

BLOCK = 8
COMPLETE, TRUNCATED, IMPOSSIBLE = 0, 1, 2  # what came of reading


@njit(inline="always")
def _width(value):
    return np.int64(bit_length(u64(value)))


@njit(inline="always")
def _put(words, at, value, width):
    """Write a number into zeros; returns where it ends."""
    shift = u64(at & 63)
    words[at >> 6] |= u64(value) << shift
    # In two steps, since a shift by 64 is none.
    words[(at >> 6) + 1] |= (u64(value) >> u64(1)) >> (u64(63) - shift)
    return at + width


@njit(inline="always")
def _get(words, at, width):
    shift = u64(at & 63)
    low = words[at >> 6] >> shift
    high = (words[(at >> 6) + 1] << u64(1)) << (u64(63) - shift)
    return np.int64((low | high) & ((u64(1) << u64(width)) - u64(1)))


@njit(cache=True)
def _words(data):
    """The bits of some bytes, for `_get` at any place up to their end."""
    words = np.zeros((data.size >> 3) + 2, np.uint64)
    words.view(np.uint8)[: data.size] = data
    return words


@njit(cache=True)
def _bytes(words, at):
    """The bytes of the bits before `at`."""
    return words.view(np.uint8)[: (at + 7) >> 3]


@njit(cache=True)
def _is_end(words, at, size):
    """Whether `size` bytes end with the bits before `at`, and with zeros to fill the last one."""
    return (at + 7) >> 3 == size and _get(words, at, -at & 7) == 0


@njit(cache=True)
def _room(words, at, bits):
    """`words`, or a longer copy of it, with space for `bits` more."""
    need = ((at + bits) >> 6) + 2
    if need <= words.size:
        return words
    longer = np.zeros(2 * need, np.uint64)
    longer[: words.size] = words
    return longer


@njit(cache=True)
def _put_blocks(words, at, numbers, size):
    """Write the first `size` numbers; returns `words`, or a longer copy of it, and its end."""
    for begin in range(0, size, BLOCK):
        end = min(size, begin + BLOCK)
        any_of_them = 0
        for i in range(begin, end):
            any_of_them |= numbers[i]
        width = _width(any_of_them)
        words = _room(words, at, 6 + BLOCK * width)
        at = _put(words, at, width, 6)
        for i in range(begin, end):
            at = _put(words, at, numbers[i], width)
    return words, at
