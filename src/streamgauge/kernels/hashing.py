"""Hashing: text to 64-bit words, words to columns.

Text becomes XXH64 with seed 42 (Collet's specification), the 64 bits that Spark SQL's
`xxhash64` gives. Words become columns by Thorup's pair-multiply-shift over the word's two
32-bit halves,

    h(word) = ((a + high) * (b + low) + c mod 2**64) >> 32,      a, b, c random 64-bit words,

which is 2-universal to 32 bits (Thorup 2013, "High speed hashing", 3.5), then by
multiplication into [0, width): no two words collide with probability above
ceil(2**32 / width) / 2**32, whatever they are.
"""

import numpy as np
from numba import njit

from streamgauge.kernels.bits import load32, load64

u64 = np.uint64

_P1 = u64(0x9E3779B185EBCA87)
_P2 = u64(0xC2B2AE3D27D4EB4F)
_P3 = u64(0x165667B19E3779F9)
_P4 = u64(0x85EBCA77C2B2AE63)
_P5 = u64(0x27D4EB2F165667C5)
_HALF = u64(0xFFFFFFFF)


@njit(inline="always")
def _rotate(word, bits):
    return (word << u64(bits)) | (word >> u64(64 - bits))


@njit(inline="always")
def _round(lane, word):
    return _rotate(lane + word * _P2, 31) * _P1


@njit(inline="always")
def _fold(hashed, lane):
    return (hashed ^ _round(u64(0), lane)) * _P1 + _P4


@njit(cache=True, nogil=True)
def xxh64(data, offsets, seed, out):
    """out[i] = XXH64 of the bytes data[offsets[i] : offsets[i + 1]]."""
    start = u64(data.ctypes.data)
    for i in range(out.size):
        at = start + u64(offsets[i])
        end = start + u64(offsets[i + 1])
        length = end - at
        if length >= u64(32):
            v1 = seed + _P1 + _P2
            v2 = seed + _P2
            v3 = seed
            v4 = seed - _P1
            while at + u64(32) <= end:
                v1 = _round(v1, load64(at))
                v2 = _round(v2, load64(at + u64(8)))
                v3 = _round(v3, load64(at + u64(16)))
                v4 = _round(v4, load64(at + u64(24)))
                at += u64(32)
            h = _rotate(v1, 1) + _rotate(v2, 7) + _rotate(v3, 12) + _rotate(v4, 18)
            h = _fold(_fold(_fold(_fold(h, v1), v2), v3), v4)
        else:
            h = seed + _P5
        h += length
        while at + u64(8) <= end:
            h = _rotate(h ^ _round(u64(0), load64(at)), 27) * _P1 + _P4
            at += u64(8)
        if at + u64(4) <= end:
            h = _rotate(h ^ (load32(at) * _P1), 23) * _P2 + _P3
            at += u64(4)
        while at < end:
            h = _rotate(h ^ (u64(data[np.int64(at - start)]) * _P5), 11) * _P1
            at += u64(1)
        h ^= h >> u64(33)
        h *= _P2
        h ^= h >> u64(29)
        h *= _P3
        out[i] = h ^ (h >> u64(32))


@njit(inline="always")
def column(word, a, b, c, width):
    """The column in [0, width) of a word, by the row's three seeds."""
    hashed = ((a + (word >> u64(32))) * (b + (word & _HALF)) + c) >> u64(32)
    return (hashed * width) >> u64(32)


@njit(cache=True, nogil=True)
def columns(seeds, width, words, out):
    """out[row, i] = the column of words[i] in that row; seeds has three words a row."""
    for row in range(out.shape[0]):
        for i in range(words.size):
            out[row, i] = column(words[i], seeds[row, 0], seeds[row, 1], seeds[row, 2], u64(width))
