"""The histogram of buckets against its definition, arrival by arrival."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.sketches.buckets import GRAIN, Buckets
from streamgauge.sketches.door import Admitted
from tests import arrivals


class Sorted:
    """A summary that forgets nothing but the order."""

    def summarise(self, words, weights):
        return sorted(np.repeat(words, weights).tolist())

    def combine(self, parts):
        return sorted(word for part in parts for word in part)


class Twin:
    """What kernels do at once and cut anyhow, one event after the other."""

    def __init__(self, kept, window):
        self.kept, self.window, self.arrivals = kept, window, 0
        self.log, self.buckets = [], {}

    def take(self, word, tick):
        self.arrivals += 1
        self.log.append((self.arrivals, word, tick))
        level, size = 0, GRAIN
        while self.arrivals % size == 0:
            end = self.arrivals - self.kept * size
            if end > 0:
                self.make(level, size, end, tick - self.window)
            level, size = level + 1, 2 * size

    def make(self, level, size, end, cutoff):
        if level == 0:
            old = [entry for entry in self.log if entry[0] <= end and entry[2] > cutoff]
            self.log = [entry for entry in self.log if entry[0] > end]
            content = [(word, tick) for _, word, tick in old]
        else:
            halves = [self.buckets.pop((level - 1, at), []) for at in (end - size // 2, end)]
            content = [event for half in halves if half and half[-1][1] > cutoff for event in half]
        self.buckets[level, end] = content

    def live(self, cutoff):
        found = sorted(
            (end, level, content[0][1], content[-1][1], sorted(word for word, _ in content))
            for (level, end), content in self.buckets.items()
            if content and content[-1][1] > cutoff
        )
        return found, [(word, tick) for _, word, tick in self.log if tick > cutoff]


programs = arrivals.programs(max_size=3000)


@given(programs, st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_batches_make_the_buckets_that_their_events_make_one_by_one(program, kept, cut):
    """Which there are, and which expired events they hold.

    Seen to catch: nothing is left out of a bucket.
    """
    items, ticks, weights = program.arrivals()
    weights %= 4
    items, ticks, weights = (column[weights > 0] for column in (items, ticks, weights))
    buckets, twin = Buckets(kept, program.window, Sorted()), Twin(kept, program.window)
    for batch in arrivals.cut(cut, items, ticks, weights):
        words = batch.items.astype(np.uint64)
        buckets.take(words, Admitted(batch.ticks, batch.weights, None, None, 0))
        for word, tick, weight in zip(*(column.tolist() for column in batch), strict=True):
            for _ in range(weight):
                twin.take(word, tick)
        if batch.ticks.size:
            cutoff = int(batch.ticks[-1]) - program.window
            found = [
                (each.end, each.level, each.first, each.last, each.payload)
                for each in buckets.buckets
            ]
            words, times, counts = buckets.log
            pairs = zip(words.tolist(), times.tolist(), counts.tolist(), strict=True)
            log = [(word, tick) for word, tick, count in pairs for _ in range(count)]
            assert (found, log) == twin.live(cutoff)
            assert [len(each.payload) for each in buckets.buckets] == [
                each.size for each in buckets.buckets
            ]


@given(st.integers(1, 5), st.lists(st.integers(1, 2**45), min_size=1, max_size=6))
def test_what_is_newer_than_a_bucket_is_a_multiple_of_it(kept, weights):
    """At most kept + 2 buckets a level, the newest `kept` sizes back, whatever the weights.

    Seen to catch: `kept` is halved.
    """

    class Sums:
        def summarise(self, words, weights):
            return int(weights.sum())

        def combine(self, parts):
            return sum(parts)

    buckets = Buckets(kept, 10, Sums())
    for tick, weight in enumerate(weights):
        part = Admitted(np.array([tick]), np.array([weight]), None, None, 0)
        buckets.take(np.zeros(1, np.uint64), part)
    assert sum(each.payload for each in buckets.buckets) + buckets.log.weights.sum() == sum(weights)
    for each in buckets.buckets:
        assert each.payload == each.size == GRAIN << each.level
        assert buckets.arrivals - each.end >= kept * each.size
        assert sum(other.level == each.level for other in buckets.buckets) <= kept + 2
