"""A table from words to the text that they stand for, which all lies in one array of bytes.

The caller owns

    words[slot]            uint64
    begins[slot]           int64, where its text begins in `texts`
    ends[slot]             int64, where it ends, 0 for an empty slot: `texts` begins with a byte
                           that belongs to none

and sees to it that a third of the slots and enough of `texts` stay free.
"""

import numpy as np
from numba import njit

u64 = np.uint64


@njit(inline="always")
def _slot(words, ends, word):
    """Where the word is, or should be."""
    mask = u64(words.size - 1)
    slot = ((word * u64(0x9E3779B97F4A7C15)) >> u64(20)) & mask
    while ends[slot] != 0 and words[slot] != word:
        slot = (slot + u64(1)) & mask
    return slot


@njit(cache=True, nogil=True)
def add(words, begins, ends, texts, used, items, data, starts, stops):
    """Keep the text data[starts[i] : stops[i]] of every items[i] that is new.

    Returns how many were, and how much of `texts` is used now.
    """
    fresh = 0
    for i in range(items.size):
        slot = _slot(words, ends, items[i])
        if ends[slot] == 0:
            words[slot] = items[i]
            begins[slot] = used
            for at in range(starts[i], stops[i]):
                texts[used] = data[at]
                used += 1
            ends[slot] = used
            fresh += 1
    return fresh, used


@njit(cache=True, nogil=True)
def find(words, begins, ends, items, starts, stops):
    """The text of items[i], which must be there, is texts[starts[i] : stops[i]]."""
    for i in range(items.size):
        slot = _slot(words, ends, items[i])
        starts[i] = begins[slot]
        stops[i] = ends[slot]
