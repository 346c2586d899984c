"""An exponential histogram over a whole stream, whose buckets carry a summary of their events.

(Datar et al. 2002 for the histogram; any summary goes that two of can be made one of.) The newest
events are kept as they came, in a log. Arrivals have ranks 1, 2, ..., n, a weight of c takes c of
them, and a bucket of level l holds S_l = GRAIN << l consecutive ranks, the last a multiple of S_l:

    log                 the ranks above  edge(0)
    level l             the ranks from   edge(l + 1)  to  edge(l),   edge(l) = S_l (n // S_l - kept)

So a bucket (X - S_l, X] comes into being at the very arrival X + kept S_l, from the two halves on
the level below: at least `kept` times its size is newer. If it is cut by the edge of a question's
range, the events inside are more than kept S_l, and taking half of it for the range is off by less
than 1 / (2 kept) of them (docs/guarantees.md, "Buckets").

A half that has left the window when a bucket comes into being is left out of it. What the buckets
hold is thus decided by the stream alone, and equal streams have equal bytes, however they were cut:
a batch goes to where its last event puts everything at once, without the levels in between.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated, Generic, NamedTuple, Protocol, Self, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamgauge.sketches.columns import Reader, column
from streamgauge.sketches.door import Admitted, Count, DoorState, Tick
from streamgauge.wire import WireError

GRAIN_BITS = 6
GRAIN = 1 << GRAIN_BITS  # a batch makes a bucket for each level it fills, and small ones cost most

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]
P = TypeVar("P")


class Summaries(Protocol[P]):
    """What a bucket carries."""

    def summarise(self, words: Words, weights: Ints) -> P:
        """The summary of some events."""
        ...

    def combine(self, parts: Sequence[P]) -> P:
        """The summary of the events of several, the oldest first."""
        ...


class Bucket(NamedTuple, Generic[P]):
    """`size` events of which the first came at `first` and the last, of rank `end`, at `last`."""

    level: int
    end: int
    first: int
    last: int
    size: int
    payload: P


class Entries(NamedTuple):
    """Events as they came; equal neighbours are one entry."""

    words: Words
    ticks: Ints
    weights: Ints

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return sum(column.nbytes for column in self)

    def part(self, begin: int, end: int | None = None) -> "Entries":
        """The entries begin..end, without the memory of the others."""
        words, ticks, weights = (
            self.words[begin:end],
            self.ticks[begin:end],
            self.weights[begin:end],
        )
        return Entries(words.copy(), ticks.copy(), weights.copy())

    def since(self, cutoff: int) -> "Entries":
        """Those after the tick `cutoff`."""
        begin = int(np.searchsorted(self.ticks, cutoff, "right"))
        return self.part(begin) if begin else self


class Cut(NamedTuple, Generic[P]):
    """What came after a cutoff: the buckets inside, the one that is partly, and the log."""

    inside: list[Bucket[P]]
    edge: Bucket[P] | None
    log: Entries


class BucketState(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """A bucket on the wire; its level and rank follow from its place. `listed` is its payload's."""

    first: Tick
    last: Tick
    size: Annotated[int, msgspec.Meta(ge=1)]
    listed: Count


class BucketsState(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """What the bytes of log and summaries do not say; buckets from the oldest on."""

    arrivals: Count
    entries: Count
    buckets: list[BucketState]


class Buckets(Generic[P]):
    """The log and the buckets of one stream."""

    def __init__(self, kept: int, window: int, summaries: Summaries[P]) -> None:
        self.kept = kept
        self.window = window
        self.arrivals = 0
        self.buckets: list[Bucket[P]] = []
        self._summaries = summaries
        self.log = Entries(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64))

    def _edge(self, level: int, arrivals: int) -> int:
        shift = GRAIN_BITS + level
        return max((arrivals >> shift) - self.kept, 0) << shift

    def take(self, words: Words, admitted: Admitted) -> None:
        """Record events."""
        if words.size == 0:
            return
        before = self.arrivals
        self.arrivals += admitted.arrivals
        weights = admitted.weights
        if weights is None:
            weights = np.ones(words.size, np.int64)
        words = np.concatenate([self.log.words, words])
        ticks = np.concatenate([self.log.ticks, admitted.ticks])
        weights = np.concatenate([self.log.weights, weights])
        fresh = np.append(True, (words[1:] != words[:-1]) | (ticks[1:] != ticks[:-1]))
        entries = np.flatnonzero(fresh)
        self.log = Entries(words[entries], ticks[entries], np.add.reduceat(weights, entries))
        self._carry(before)
        self.expire(int(ticks[-1]))

    def _carry(self, before: int) -> None:
        """Make the buckets that the arrivals since the rank `before` fill."""
        top = -1
        while self._edge(top + 1, self.arrivals) > self._edge(top + 1, before):
            top += 1
        if top < 0:
            return
        split = next((i for i, old in enumerate(self.buckets) if old.level <= top), None)
        split = len(self.buckets) if split is None else split
        stretch = _Stretch(self, self.buckets[split:])
        made = []
        for level in range(top, -1, -1):
            size = GRAIN << level
            begin, end = self._edge(level + 1, self.arrivals), self._edge(level, self.arrivals)
            made += [stretch.bucket(level, at) for at in range(begin + size, end + 1, size)]
        self.buckets[split:] = [bucket for bucket in made if bucket]
        self.log = stretch.entries(self._edge(0, self.arrivals), self.arrivals)

    def expire(self, now: int) -> None:
        """Forget what has left the window."""
        cutoff = now - self.window
        live = next((i for i, old in enumerate(self.buckets) if old.last > cutoff), None)
        if live != 0:
            self.buckets = [] if live is None else self.buckets[live:]
        self.log = self.log.since(cutoff)

    def since(self, cutoff: int) -> Cut[P]:
        """What came after the tick `cutoff`."""
        live = [bucket for bucket in self.buckets if bucket.last > cutoff]
        edge = live[0] if live and live[0].first <= cutoff else None
        return Cut(live[edge is not None :], edge, self.log.since(cutoff))

    def copy(self) -> Self:
        """Another one with the same content."""
        other = type(self)(self.kept, self.window, self._summaries)
        other.arrivals, other.buckets = self.arrivals, list(self.buckets)
        other.log = self.log
        return other

    def pack_log(self, now: int) -> tuple[int, bytes]:
        """How many events are in the log at the tick `now`, and their bytes."""
        words, ticks, weights = self.log.since(now - self.window)
        columns = (words, np.diff(ticks, append=now), weights)
        return words.size, b"".join(column(each) for each in columns)

    def live(self, now: int) -> list[Bucket[P]]:
        """The buckets that the window still sees at the tick `now`, from the oldest on."""
        return [bucket for bucket in self.buckets if bucket.last > now - self.window]

    def unpack(self, door: DoorState, state: BucketsState, words_below: int, data: Reader) -> None:
        """Fill a new list's log, and its buckets but for their payloads, from a wire."""
        if state.arrivals and door.now is None:
            raise WireError("there were events, but no clock")
        now = door.now or 0
        self.arrivals = state.arrivals
        self._unpack_log(now, state, words_below, data)
        places = self._places(len(state.buckets))
        newest = int(self.log.ticks[0]) if self.log.ticks.size else now
        for i, ((level, end), each) in enumerate(zip(places, state.buckets, strict=True)):
            following = state.buckets[i + 1].first if i + 1 < len(places) else newest
            if not each.first <= each.last <= following or each.last <= now - self.window:
                raise WireError(f"a bucket from {each.first} to {each.last} is out of place")
            size = GRAIN << level
            if each.size > size or (i and each.size < size):
                raise WireError(f"a bucket of {each.size} events is where {size} have to be")
            self.buckets.append(Bucket(level, end, each.first, each.last, each.size, None))  # type: ignore[arg-type]

    def _unpack_log(self, now: int, state: BucketsState, words_below: int, data: Reader) -> None:
        words, gaps, weights = (data.take(state.entries) for _ in range(3))
        if int(gaps.sum(dtype=object)) >= self.window:
            raise WireError("an event is older than the window")
        held, most = int(weights.sum(dtype=object)), state.arrivals - self._edge(0, state.arrivals)
        if held > most or (state.buckets and held < most) or not weights.all():
            raise WireError(f"{held} events are where {most} are expected")
        if words.size and int(words.max()) >= words_below:
            raise WireError("an item is beyond the domain")
        ticks = now - np.cumsum(gaps.astype(np.int64)[::-1])[::-1]
        if np.any((np.diff(words) == 0) & (np.diff(ticks) == 0)):
            raise WireError("two entries in a row are one")
        self.log = Entries(words, ticks, weights.astype(np.int64))

    def _places(self, count: int) -> list[tuple[int, int]]:
        """Level and rank of the newest `count` buckets, from the oldest of them on."""
        found = list(islice(self._newest_places(), count))
        if len(found) < count:
            raise WireError(f"{self.arrivals} arrivals have at most {len(found)} buckets")
        return found[::-1]

    def _newest_places(self) -> Iterator[tuple[int, int]]:
        level = 0
        while end := self._edge(level, self.arrivals):
            begin = self._edge(level + 1, self.arrivals)
            yield from ((level, at) for at in range(end, begin, -(GRAIN << level)))
            level += 1


class _Stretch(Generic[P]):
    """The newest ranks of a stream: old buckets, then the entries of the log."""

    def __init__(self, owner: Buckets[P], old: list[Bucket[P]]) -> None:
        self._owner = owner
        self._old = {bucket.end: bucket for bucket in old}
        self._ends = [bucket.end for bucket in old]
        self._log = owner.log
        sums = np.cumsum(self._log.weights)
        self._ranks = sums + (owner.arrivals - int(sums[-1]))
        self._cutoff = int(self._log.ticks[-1]) - owner.window
        # Nothing is left out of a bucket whose oldest event is still in the window.
        oldest = old[0].first if old else int(self._log.ticks[0])
        self._whole = oldest > self._cutoff
        self._begin = old[0].end - (GRAIN << old[0].level) if old else self._logged

    @property
    def _logged(self) -> int:
        """The rank before the log's first."""
        return int(self._ranks[0] - self._log.weights[0])

    def _tick(self, rank: int) -> int | None:
        """When it came; None for one that was forgotten because it had left the window."""
        if rank > self._logged:
            return int(self._log.ticks[np.searchsorted(self._ranks, rank)])
        return self._old[rank].last if rank in self._old else None

    def entries(self, begin: int, end: int) -> Entries:
        """The events of the ranks begin + 1 .. end that are in the log."""
        begin = max(begin, self._logged)
        if begin >= end:
            return self._log.part(0, 0)
        first = int(np.searchsorted(self._ranks, begin, "right"))
        stop = int(np.searchsorted(self._ranks, end)) + 1
        found = self._log.part(first, stop)
        found.weights[-1] -= int(self._ranks[stop - 1]) - end
        found.weights[0] -= begin - int(self._ranks[first] - self._log.weights[first])
        return found

    def bucket(self, level: int, end: int) -> Bucket[P] | None:
        """The bucket of that level that ends with that rank; None if it has left the window."""
        last = self._tick(end)
        if last is None or last <= self._cutoff:
            return None
        begin = self._start(level, end)
        old = self._between(begin, end)
        if len(old) == 1 and old[0].end == end and old[0].level == level:
            return old[0]
        fresh = self.entries(max(begin, old[-1].end) if old else begin, end)
        parts = [bucket.payload for bucket in old]
        size, first = sum(bucket.size for bucket in old), old[0].first if old else fresh.ticks[0]
        if fresh.words.size:
            parts.append(self._owner._summaries.summarise(fresh.words, fresh.weights))
            size += int(fresh.weights.sum())
        payload = parts[0] if len(parts) == 1 else self._owner._summaries.combine(parts)
        return Bucket(level, end, int(first), last, size, payload)

    def _between(self, begin: int, end: int) -> list[Bucket[P]]:
        """The old buckets of the ranks begin + 1 .. end."""
        low, high = bisect_right(self._ends, begin), bisect_right(self._ends, end)
        return [self._old[at] for at in self._ends[low:high]]

    def _start(self, level: int, end: int) -> int:
        """The rank before the first that is in the bucket.

        What had left the window when the bucket, or the half that it is reduced to, came into
        being is not.
        """
        begin = end - (GRAIN << level)
        if self._whole and begin >= self._begin:
            return begin
        while end not in self._old or self._old[end].level != level:
            born = self._tick(end + (self._owner.kept << (GRAIN_BITS + level)))
            assert born is not None, "a bucket is not older than the arrival that makes it"
            cutoff = born - self._owner.window
            if level == 0:
                return end - int(self.entries(begin, end).since(cutoff).weights.sum())
            level -= 1
            middle = end - (GRAIN << level)
            there = self._tick(middle)
            if there is not None and there > cutoff:
                end = middle
            begin = end - (GRAIN << level)
        return begin
