"""Listings III.3 and III.4 of Rivetti, Busnel & Mostefaoui (2015) as they are printed, compiled.

What a reader of the paper would write: every sample visits every cell of the matrix. Words are
hashed as the library does it, so that the difference in time is that of the algorithms.
"""

import numpy as np
from numba import njit

from streamgauge.kernels.hashing import column

u64 = np.uint64


@njit(cache=True, nogil=True)
def _hashed(seeds, width, word, hit):
    for row in range(seeds.shape[0]):
        a, b, c = seeds[row, 0], seeds[row, 1], seeds[row, 2]
        hit[row] = row * width + np.int64(column(word, a, b, c, u64(width)))


@njit(cache=True, nogil=True)
def proportional(count, snapshot, seeds, width, window, words, now):
    """Listing III.3; `now` samples came before."""
    hit = np.empty(seeds.shape[0], np.int64)
    for m in range(now, now + words.size):
        if m % window == 0:
            for i in range(count.size):
                snapshot[i] = count[i] / window
        _hashed(seeds, width, words[m - now], hit)
        for cell in hit:
            count[cell] += 1.0
        for i in range(count.size):
            count[i] -= snapshot[i]


@njit(cache=True, nogil=True)
def splitter(first, last, counter, head, length, v, seeds, width, window, mu, tau, words, now):
    """Listing III.4, each queue a ring: arrays [cell, place] and the place of the oldest."""
    hit = np.empty(seeds.shape[0], np.int64)
    enough = tau * window / width
    places = first.shape[1]
    for m in range(now, now + words.size):
        for i in range(v.size):
            if length[i] > 0:
                z = head[i]
                if first[i, z] == m - window:
                    lost = counter[i, z] / (last[i, z] - first[i, z] + 1)
                    v[i] -= lost
                    counter[i, z] -= lost
                    first[i, z] += 1
                    if first[i, z] > last[i, z]:
                        head[i] = (z + 1) % places
                        length[i] -= 1
        _hashed(seeds, width, words[m - now], hit)
        for i in hit:
            v[i] += 1.0
            z = (head[i] + length[i] - 1) % places
            if length[i] > 0 and counter[i, z] < enough:
                counter[i, z] += 1.0
                last[i, z] = m
                continue
            if length[i] > 1:
                y = (z - 1) % places
                mine = counter[i, y] / max(first[i, z] - first[i, y], 1)
                its = counter[i, z] / (last[i, z] - first[i, z] + 1)
                if max(mine / its, its / mine) <= mu * (1 + 1e-9):
                    counter[i, y] += counter[i, z]
                    last[i, y] = last[i, z]
                    counter[i, z] = 1.0
                    first[i, z] = m
                    last[i, z] = m
                    continue
            z = (z + 1) % places
            counter[i, z] = 1.0
            first[i, z] = m
            last[i, z] = m
            length[i] += 1
