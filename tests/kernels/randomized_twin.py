"""The randomized wave as its definition says it, slowly: what the kernels are compared with.

Every copy has samples 0, 1, 2 ...; an arrival with G heads enters the samples 0 to G. A sample
keeps its newest `capacity` ticks and the tick of the newest that it pushed out.
"""

import statistics
from collections import defaultdict, deque

import numpy as np

from streamgauge import seeds

MASK = 2**64 - 1
ODD = 0x9E3779B97F4A7C15


def mixed(word):
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & MASK
    word = (word ^ word >> 27) * 0x94D049BB133111EB & MASK
    return word ^ word >> 31


def tossed(key, cell, number):
    """Heads before the first tail, 48 at most: zeros at the end of a hash."""
    word = mixed(key ^ mixed((cell + ODD) & MASK) ^ (number * ODD & MASK)) | 1 << 48
    return (word & -word).bit_length() - 1


class Sample:
    def __init__(self, capacity):
        self.ticks, self.capacity = deque(), capacity
        self.lost = -np.inf

    def take(self, tick):
        self.ticks.append(tick)
        if len(self.ticks) > self.capacity:
            self.lost = self.ticks.popleft()


class Twin:
    """One cell; `cell` is its number in the grid, for its coins."""

    def __init__(self, capacity, copies, coins_seed, cell=0):
        self.keys = seeds.expand(coins_seed, copies).tolist()
        self.cell, self.count = cell, 0
        self.copies = [defaultdict(lambda: Sample(capacity)) for _ in self.keys]

    def arrive(self, tick):
        self.count += 1
        for key, samples in zip(self.keys, self.copies, strict=True):
            for level in range(tossed(key, self.cell, self.count) + 1):
                samples[level].take(tick)

    def estimate(self, cutoff):
        """The median over copies of 2**l times what the first sample that lost nothing has."""
        found = []
        for samples in self.copies:
            level = 0
            while level in samples and samples[level].lost > cutoff:
                level += 1
            inside = sum(tick > cutoff for tick in samples[level].ticks)
            found.append(2**level * inside)
        return statistics.median(found)
