"""The Misra-Gries chain as its definition says it, slowly: what the kernels are compared with.

One arrival at a time, every ring and every list of marks kept in full; only what a level may not
use any more is told apart: `ring` and `marks` below are the newest ones.
"""

RHO, MARKS = 4, 8


class Level:
    """One level: blocks as (word, tick, times), rests by word, marks as [tick, lost so far]."""

    def __init__(self, number, sizes):
        self.number, self.sizes = number, sizes
        self.blocks, self.rests, self.marks = [], {}, []
        self.lost = 0
        self.base = 0  # what was lost before the first mark

    def log(self, word, tick):
        if self.blocks and self.blocks[-1][:2] == (word, tick):
            self.blocks[-1] = (word, tick, self.blocks[-1][2] + 1)
        else:
            self.blocks.append((word, tick, 1))

    def count(self, word):
        """One arrival: (whether it fills a block, how much of each rest a purge takes)."""
        taken = 0
        fresh = word not in self.rests
        self.rests[word] = self.rests.get(word, 0) + 1
        if fresh and len(self.rests) >= self.sizes.most:
            ranked = sorted(self.rests.values(), reverse=True)
            taken = ranked[self.sizes.kept - 1]
            self.rests = {each: rest - taken for each, rest in self.rests.items() if rest > taken}
            self.rests.setdefault(word, 0)
        full = self.rests[word] == RHO
        if full:
            self.rests[word] = 0
        return full, taken

    def lose(self, arrivals, tick):
        self.lost += arrivals
        newest = self.marks[-1] if self.marks else [None, self.base]
        if newest[0] == tick:
            newest[1] = self.lost
        elif self.lost - newest[1] >= max(1, RHO**self.number // MARKS):
            self.marks.append([tick, self.lost])

    def is_full(self, cutoff):
        rings = ((self.blocks, self.sizes.room), (self.marks, self.sizes.marks))
        return any(len(ring) >= kept and tick_of(ring[-kept]) > cutoff for ring, kept in rings)

    def live(self, cutoff):
        """What must be alike: live blocks, rests, live marks and losses since those before."""
        blocks = [block for block in self.blocks[-self.sizes.room :] if block[1] > cutoff]
        marks = [mark for mark in self.marks[-self.sizes.marks :] if mark[0] > cutoff]
        older = self.marks[: len(self.marks) - len(marks)]
        base = older[-1][1] if older else self.base
        lost = [(tick, lost - base) for tick, lost in marks]
        gone = self.blocks[: -self.sizes.room][-1:]
        forgotten = self.marks[: -self.sizes.marks][-1:]
        edges = [max(map(tick_of, each), default=cutoff) for each in (gone, forgotten)]
        return blocks, self.rests, lost, self.lost - base, [max(edge, cutoff) for edge in edges]


def tick_of(entry):
    return entry[1] if isinstance(entry, tuple) else entry[0]


class TwinChain:
    """All levels."""

    def __init__(self, sizes, window):
        self.sizes, self.window = sizes, window
        self.levels = [Level(0, sizes)]

    def arrive(self, word, tick):
        self.levels[0].log(word, tick)
        for level in self.levels[1:]:
            full, taken = level.count(word)
            if taken:
                for above in self.levels[level.number :]:
                    above.lose(taken * RHO ** (level.number - 1), tick)
            if not full:
                break
            level.log(word, tick)
        while self.levels[-1].is_full(tick - self.window):
            self.grow(tick)

    def grow(self, now):
        """A new level out of the live blocks and marks of the one below."""
        below, level = self.levels[-1], Level(len(self.levels), self.sizes)
        cutoff = now - self.window
        marks = [mark for mark in below.marks if mark[0] > cutoff]
        older = below.marks[: len(below.marks) - len(marks)]
        known = older[-1][1] if older else below.base
        for word, tick, times in [block for block in below.blocks if block[1] > cutoff]:
            while marks and marks[0][0] <= tick:
                level.lose(marks[0][1] - known, marks[0][0])
                known = marks.pop(0)[1]
            for _ in range(times):
                full, taken = level.count(word)
                if taken:
                    level.lose(taken * RHO ** (level.number - 1), tick)
                if full:
                    level.log(word, tick)
        for tick, lost in marks:
            level.lose(lost - known, tick)
            known = lost
        if below.lost > known:
            level.lose(below.lost - known, now)
        self.levels.append(level)
