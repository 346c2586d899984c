"""The wave as its definition says it, slowly: what the kernels are compared with.

Ranks are 1, 2, 3 ... A rank that is an odd multiple of 2**l lives at level l, every multiple of
2**top at the top. A level below the top keeps its newest `kept` ranks. The top keeps all: of what
lies beyond its newest `kept`, only one thing may be used, that it is older than the window.
"""


class Twin:
    """One cell; `levels` maps a level to its (rank, tick) in order."""

    def __init__(self, kept, window):
        self.kept, self.window = kept, window
        self.count = 0
        self.levels = {0: []}

    @property
    def top(self):
        return max(self.levels)

    def would_lose(self, tick):
        """Whether the next arrival, at `tick`, pushes a rank out of the top that is in range."""
        entries = self.levels[self.top]
        is_pushed = (self.count + 1) % 2**self.top == 0 and len(entries) >= self.kept
        return is_pushed and entries[-self.kept][1] > tick - self.window

    def grow(self):
        top = self.top
        entries = self.levels[top]
        self.levels[top] = [entry for entry in entries if entry[0] >> top & 1][-self.kept :]
        self.levels[top + 1] = [entry for entry in entries if not entry[0] >> top & 1]

    def arrive(self, tick):
        self.count += 1
        level = next((level for level in range(self.top) if self.count >> level & 1), self.top)
        self.levels[level].append((self.count, tick))
        if level < self.top:
            del self.levels[level][: -self.kept]

    def stored(self):
        """Every (level, rank, tick) that is kept."""
        return [
            (level, rank, tick)
            for level, entries in self.levels.items()
            for rank, tick in entries[-self.kept :]
        ]

    def bracket(self, cutoff):
        """(newest rank known to be at or before `cutoff`, oldest stored rank after it)."""
        expired = [rank for _, rank, tick in self.stored() if tick <= cutoff]
        expired += [rank for rank, _ in self.levels[self.top][: -self.kept]]
        live = [rank for _, rank, tick in self.stored() if tick > cutoff]
        return max(expired, default=0), min(live, default=self.count + 1)


class TwinGrid:
    """Several cells, which always have equally many levels."""

    def __init__(self, cells, kept, window):
        self.cells = [Twin(kept, window) for _ in range(cells)]

    def arrive(self, cells, tick, weight=1):
        for _ in range(weight):
            for cell in cells:
                while self.cells[cell].would_lose(tick):
                    for each in self.cells:
                        each.grow()
                self.cells[cell].arrive(tick)
