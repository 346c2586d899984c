"""What the buckets of a dyadic sketch know of prefixes in a part of the window.

Buckets that came after the question's cutoff are inside, and so are the events of the log. One
bucket of each stream may be cut: its first event came at the cutoff or before, its last after it.
Of its C events between 1 and C - 1 are inside, so it counts for the upper end, to at most C - 1,
not for the lower, and half for the value.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from streamgauge.estimate import Estimate
from streamgauge.sketches.buckets import Buckets
from streamgauge.sketches.stack import Counted, Gathered, Ints, Reading, Stacks

Words = NDArray[np.uint64]


class Found(NamedTuple):
    """Counts of prefixes, or of sums of them."""

    inside: Reading
    cut: Reading
    view: "View"

    @property
    def most(self) -> Ints:
        """Upper ends, certain."""
        cut = np.minimum(self.cut.most, self.view.cut_events - self.view.cut_buckets)
        return np.minimum(self.inside.most + cut, int(self.view.total.high))

    @property
    def value(self) -> NDArray[np.float64]:
        """The guesses."""
        guess = self.inside.most + np.minimum(self.cut.most, self.view.cut_events) / 2
        return np.minimum(guess, self.most)

    def plus(self, other: Self) -> Self:
        """Prefix by prefix."""
        inside, cut = self.inside.plus(other.inside), self.cut.plus(other.cut)
        return self._replace(inside=inside, cut=cut)

    def summed(self) -> Self:
        """All of them as one."""
        return self._replace(inside=self.inside.summed(), cut=self.cut.summed())

    def at(self, index: NDArray[np.bool_]) -> Self:
        """Those that numpy's indexing selects."""
        return self._replace(inside=self.inside.at(index), cut=self.cut.at(index))

    def estimates(self, share: float, hashed: int) -> list[Estimate]:
        """One for each, which sums over so many hashed prefixes."""
        value = self.value
        least = np.minimum(self.inside.least(share, hashed), value)
        sure = not hashed or not self.inside.arrivals
        confidence = 1.0 if sure else 1 - self.view.delta
        columns = zip(value.tolist(), least.tolist(), self.most.tolist(), strict=True)
        return [Estimate(value, low, float(high), confidence) for value, low, high in columns]


class Level(NamedTuple):
    """Prefixes of one level that were selected among so many."""

    level: int
    prefixes: Words
    found: Found
    candidates: int


class View:
    """All that several streams hold of what came after a cutoff."""

    def __init__(self, stacks: Stacks, streams: Sequence[Buckets[Counted]], cutoff: int) -> None:
        self._stacks = stacks
        cuts = [stream.since(cutoff) for stream in streams]
        buckets = [bucket for cut in cuts for bucket in cut.inside]
        edges = [cut.edge for cut in cuts if cut.edge]
        logs = [stacks.listed(cut.log.words, cut.log.weights) for cut in cuts if cut.log.words.size]
        self._inside = Gathered.of([*(bucket.payload for bucket in buckets), *logs])
        self._cut = Gathered.of([edge.payload for edge in edges])
        self.delta = stacks.sizes.delta
        self.cut_buckets, self.cut_events = len(edges), sum(edge.size for edge in edges)
        inside = sum(bucket.size for bucket in buckets) + sum(int(log.sums[-1]) for log in logs)
        low, high = inside + len(edges), inside + self.cut_events - len(edges)
        self.total = Estimate((low + high) / 2, float(low), float(high), 1.0)

    def read(self, levels: Ints, prefixes: Words) -> Found:
        """The counts of prefixes[i] of levels[i] < bits."""
        read = self._stacks.read
        return Found(read(self._inside, levels, prefixes), read(self._cut, levels, prefixes), self)

    def nodes(self, level: int, prefixes: Words) -> Found:
        """The counts of prefixes of one level."""
        return self.read(np.full(prefixes.size, level), prefixes)

    def descend(self, select: Callable[[Ints], NDArray[np.bool_]]) -> Iterator[Level]:
        """From the top level down, the selected of the selected ones' halves.

        `select` sees upper ends. A level's hash functions are independent of those above, which
        decide what it is asked about: its candidates are as good as chosen before the seed.
        """
        prefixes: Words = np.zeros(1, np.uint64)
        for level in reversed(range(self._stacks.sizes.bits)):
            left = prefixes << np.uint64(1)
            candidates: Words = np.stack([left, left | np.uint64(1)], axis=1).ravel()
            found = self.nodes(level, candidates)
            chosen = select(found.most)
            prefixes = candidates[chosen]
            yield Level(level, prefixes, found.at(chosen), candidates.size)
