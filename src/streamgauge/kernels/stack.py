"""Counts of the items of [0, 2**bits): a sorted list of them, or hashed counts for every prefix.

A list is two arrays, the items in order and the running sums of their counts, led by 0, so that a
range of items is two searches. A stack of counters is one array: for each level l below `hashed`
`rows` rows of `width` counters over the prefixes item >> l, each row with a hash function of its
own, then the running sums, led by 0, over all prefixes of level `hashed`. Both are linear in the
stream: those of two streams together are sums.
"""

import numpy as np
from numba import njit

from streamgauge.kernels.bits import load32, load64
from streamgauge.kernels.hashing import column

u64 = np.uint64


@njit(cache=True, nogil=True)
def merge(words, sums, others, other_sums, out, out_sums):
    """The list of two lists; returns how many items it has."""
    i = j = n = 0
    out_sums[0] = 0
    while i < words.size or j < others.size:
        if j == others.size or (i < words.size and words[i] < others[j]):
            out[n] = words[i]
            i += 1
        elif i == words.size or others[j] < words[i]:
            out[n] = others[j]
            j += 1
        else:
            out[n] = words[i]
            i += 1
            j += 1
        n += 1
        out_sums[n] = sums[i] + other_sums[j]
    return n


@njit(cache=True, nogil=True)
def spread(seeds, width, words, sums, cells):
    """Add a list to the hashed counters of a stack; seeds[level, row] are three words."""
    hashed, rows, _ = seeds.shape
    for level in range(hashed):
        for row in range(rows):
            a, b, c = seeds[level, row]
            at = (level * rows + row) * width
            for i in range(words.size):
                prefix = u64(words[i]) >> u64(level)
                cells[at + np.int64(column(prefix, a, b, c, u64(width)))] += sums[i + 1] - sums[i]


@njit(cache=True, nogil=True)
def places(seeds, width, levels, prefixes, out):
    """out[i, row] = where a stack counts the prefixes[i] of levels[i] < hashed."""
    rows = seeds.shape[1]
    for i in range(levels.size):
        for row in range(rows):
            a, b, c = seeds[levels[i], row]
            at = (levels[i] * rows + row) * width
            out[i, row] = at + np.int64(column(prefixes[i], a, b, c, u64(width)))


@njit(inline="always")
def _before(at, size, shift, word):
    """How many of the `size` items at this address, of 1 << shift bytes, are below `word`."""
    low, high = u64(0), size
    while low < high:
        middle = (low + high) >> u64(1)
        place = at + (middle << shift)
        item = load32(place) if shift == u64(2) else load64(place)
        if item < word:
            low = middle + u64(1)
        else:
            high = middle
    return low


@njit(inline="always")
def _sum(at, index, shift):
    place = at + (index << shift)
    return load32(place) if shift == u64(2) else load64(place)


@njit(cache=True, nogil=True)
def between(lists, firsts, lasts, out):
    """out[i] += the counts of the items firsts[i] .. lasts[i] in all lists, where they lie.

    A row of `lists`: address of the items, their number, log2 of their bytes, address of the sums,
    log2 of their bytes. Hundreds of lists take part in an answer: one call of numpy for each
    would cost more than the searches.
    """
    for j in range(lists.shape[0]):
        at, size, shift, sums, wide = lists[j]
        for i in range(firsts.size):
            begin = _before(at, size, shift, firsts[i])
            # lasts[i] + 1 may be 2**64, which is 0
            follow = lasts[i] + u64(1)
            end = _before(at, size, shift, follow) if follow > u64(0) else size
            out[i] += np.int64(_sum(sums, end, wide) - _sum(sums, begin, wide))
