"""The exponential histogram as its definition says it, slowly: what the kernels are compared with.

An arrival is a bucket of size 1. A level with more buckets than it may hold, k + 1 at size 1 and
ceil(k / 2) + 1 above, gives its two oldest to the next level as one, dated by the newer. Nothing
is deleted: of what has left the window only that may be used.
"""

import math
from collections import deque


class TwinHistogram:
    """One cell; `levels[l]` holds the ticks of its buckets of size 2**l, the oldest first."""

    def __init__(self, k, window):
        self.k, self.window = k, window
        self.count = 0
        self.levels = [deque()]

    def arrive(self, tick):
        self.count += 1
        level = 0
        self.levels[0].append(tick)
        while len(self.levels[level]) > (self.k if level == 0 else math.ceil(self.k / 2)) + 1:
            self.levels[level].popleft()
            newer = self.levels[level].popleft()
            level += 1
            if level == len(self.levels):
                self.levels.append(deque())
            self.levels[level].append(newer)

    def buckets(self, cutoff):
        """(tick, size) of those later than `cutoff`, the newest first."""
        return [
            (tick, 2**level)
            for level, ticks in enumerate(self.levels)
            for tick in reversed(ticks)
            if tick > cutoff
        ]

    def span(self, cutoff):
        """The fewest and the most arrivals after `cutoff`."""
        sizes = [size for _, size in self.buckets(cutoff)]
        return (sum(sizes) - sizes[-1] + 1, sum(sizes)) if sizes else (0, 0)


class TwinHistograms:
    """Several cells."""

    def __init__(self, cells, k, window):
        self.cells = [TwinHistogram(k, window) for _ in range(cells)]

    def arrive(self, cells, tick, weight=1):
        for _ in range(weight):
            for cell in cells:
                self.cells[cell].arrive(tick)
