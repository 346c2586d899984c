"""The listings of Rivetti, Busnel & Mostefaoui (2015), line by line, as slow twins.

In windows of arrivals a tick is a sample. In windows of time `tick` is the paper's UPDATETICK and
`sample` its UPDATESAMPLE (III-F). `columns` are the cells of a sample, one for each row.
"""

from collections import deque
from fractions import Fraction

SLOTS = 64
TIE = 1 + 1e-9


class Simple:
    """Listing III.2."""

    def __init__(self, rows, width, window):
        self.count = [[0] * width for _ in range(rows)]
        self.window = window

    def tick(self, now):
        if (now - 1) % self.window == 0:
            self.count = [[0] * len(row) for row in self.count]

    def sample(self, columns):
        for row, i in zip(self.count, columns, strict=True):
            row[i] += 1


class Proportional:
    """Listing III.3."""

    def __init__(self, rows, width, window):
        self.count = [[0.0] * width for _ in range(rows)]
        self.snapshot = [[0.0] * width for _ in range(rows)]
        self.window = window

    def tick(self, now):
        if (now - 1) % self.window == 0:
            self.snapshot = [[cell / self.window for cell in row] for row in self.count]
        for row, snapshot in zip(self.count, self.snapshot, strict=True):
            for i in range(len(row)):
                row[i] -= snapshot[i]

    def sample(self, columns):
        for row, i in zip(self.count, columns, strict=True):
            row[i] += 1


class SubCell:
    def __init__(self, now):
        self.init, self.last, self.counter = now, now, 1


class Splitter:
    """Listing III.4, with the authors' ERROR; in windows of time N is what the window holds.

    Two sub-cells may share a tick there, so line 10 is asked again after a removal. Counters are
    fractions, so nothing rounds.
    """

    def __init__(self, rows, width, window, mu, tau, counts_arrivals):
        self.queues = [[deque() for _ in range(width)] for _ in range(rows)]
        self.count = [[Fraction(0)] * width for _ in range(rows)]
        self.width, self.window, self.mu, self.tau = width, window, mu, tau
        self.counts_arrivals = counts_arrivals
        self.arrived = deque()

    def tick(self, now):
        self.now = now
        for queues, count in zip(self.queues, self.count, strict=True):
            for i, queue in enumerate(queues):
                while queue and queue[0].init == now - self.window:
                    first = queue[0]
                    rate = Fraction(first.counter) / (first.last - first.init + 1)
                    count[i] -= rate
                    first.counter -= rate
                    first.init += 1
                    if first.init > first.last:
                        queue.popleft()

    def samples_in_window(self):
        """At most a 64th of its ticks too many: as many as in the slots that it touches."""
        if self.counts_arrivals:
            return self.window
        slot = -(-self.window // SLOTS)
        while self.arrived[0] // slot < (self.now - self.window + 1) // slot:
            self.arrived.popleft()
        return len(self.arrived)

    def sample(self, columns):
        self.arrived.append(self.now)
        enough = self.tau * self.samples_in_window() / self.width / TIE
        for queues, count, i in zip(self.queues, self.count, columns, strict=True):
            queue = queues[i]
            count[i] += 1
            if not queue:
                queue.append(SubCell(self.now))
            elif queue[-1].counter < enough:
                queue[-1].counter += 1
                queue[-1].last = self.now
            elif len(queue) > 1 and error(queue[-2], queue[-1]) <= self.mu * TIE:
                queue[-2].counter += queue[-1].counter
                queue[-2].last = queue[-1].last
                queue[-1] = SubCell(self.now)
            else:
                queue.append(SubCell(self.now))


def error(pred, last):
    mine = Fraction(pred.counter) / max(1, last.init - pred.init)
    its = Fraction(last.counter) / (last.last - last.init + 1)
    return max(mine / its, its / mine)
