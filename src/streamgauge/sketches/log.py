"""The events of a window as they came: what a sketch is while they are few.

A grid of counters costs the same for ten events as for ten thousand, and on Spark, where every
key is a site, ten is the normal case. So a sketch begins as a list of its live events and becomes
a grid at the first event that would make more than `limit` entries alive. Which one that is
depends on the stream alone: equal streams have equal bytes, however they were cut.
"""

import copy
from collections.abc import Sequence
from typing import Annotated, Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamgauge.sketches.columns import Reader, column
from streamgauge.sketches.door import COUNT_LIMIT, Admitted, DoorState
from streamgauge.wire import WireError

ENTRY_BYTES = 24  # in memory: word, tick, weight
MOST_ENTRIES = 1024


class LogState(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True, tag="log"):
    """What the bytes of a log's entries do not say: how many there are."""

    entries: Annotated[int, msgspec.Meta(ge=0, le=MOST_ENTRIES)]


class Log:
    """At most `limit` live entries (word, tick, weight); equal neighbours are one entry.

    Where ticks count arrivals (`step` 1), an entry's arrivals came at as many consecutive ticks,
    the newest at its own: then neighbours are equal if their words are, and the oldest entry may
    have expired in part.
    """

    def __init__(self, limit: int, window: int, step: int = 0) -> None:
        self.limit = limit
        self.window = window
        self._step = step
        self._keep(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64))

    def _keep(
        self, words: NDArray[np.uint64], ticks: NDArray[np.int64], weights: NDArray[np.int64]
    ) -> None:
        self.words, self.ticks, self.weights = words, ticks, weights

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return self.words.nbytes + self.ticks.nbytes + self.weights.nbytes

    def take(self, words: NDArray[np.uint64], admitted: Admitted) -> int:
        """Append events up to the first that is one entry too many; returns how many it took."""
        ticks, weights = admitted.ticks, admitted.counts
        taken = 0
        while taken < ticks.size:
            part = slice(taken, taken + self.limit + 1)
            before = self.ticks.size
            entries = self._append(words[part], ticks[part], weights[part])
            begun = self.ticks - self._step * (self.weights - 1)
            oldest = np.searchsorted(self.ticks, begun - self.window, "right")
            over = np.arange(1, self.ticks.size + 1) - oldest > self.limit
            if over.any():
                first = int(np.argmax(over))
                self._cut(slice(int(oldest[first]), first))
                return taken + int(entries[first]) - before
            self._cut(slice(int(oldest[-1]), None))
            taken = min(part.stop, ticks.size)
        return taken

    def _append(
        self, words: NDArray[np.uint64], ticks: NDArray[np.int64], weights: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Where, among the entries before and these events, each entry begins that is there now."""
        words = np.concatenate([self.words, words])
        ticks = np.concatenate([self.ticks, ticks])
        weights = np.concatenate([self.weights, weights])
        fresh = np.diff(words) != 0
        if not self._step:
            fresh |= np.diff(ticks) != 0
        entries = np.flatnonzero(np.concatenate([[True], fresh]))
        newest = np.append(entries[1:], words.size) - 1
        self._keep(words[entries], ticks[newest], np.add.reduceat(weights, entries))
        return entries

    def _cut(self, part: slice) -> None:
        self._keep(self.words[part].copy(), self.ticks[part].copy(), self.weights[part].copy())

    def events(self, cutoff: int) -> tuple[NDArray[np.uint64], Admitted]:
        """The entries later than the tick `cutoff` as they would come in again."""
        words, weights = self.since(cutoff)
        ticks = self.ticks[self.ticks.size - words.size :]
        return words, Admitted(ticks, weights, None, None, 0, self._step)

    def since(self, cutoff: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Words and weights of the entries later than the tick `cutoff`."""
        begin = int(np.searchsorted(self.ticks, cutoff, "right"))
        words, weights = self.words[begin:], self.weights[begin:]
        if self._step:
            weights = np.minimum(weights, self.ticks[begin:] - cutoff)
        return words, weights

    def copy(self) -> Self:
        """Another log with the same entries; their arrays are never written to."""
        return copy.copy(self)

    @staticmethod
    def together(logs: "Sequence[Log]", cutoff: int) -> tuple[NDArray[np.uint64], Admitted]:
        """The entries of all of them later than the tick `cutoff`, in order of time."""
        parts = [log.events(cutoff) for log in logs]
        ticks = np.concatenate([np.empty(0, np.int64), *(events.ticks for _, events in parts)])
        weights = np.concatenate([np.empty(0, np.int64), *(events.counts for _, events in parts)])
        words = np.concatenate([np.empty(0, np.uint64), *(words for words, _ in parts)])
        order = np.argsort(ticks, kind="stable")
        return words[order], Admitted(ticks[order], weights[order], None, None, 0)

    def state(self, now: int | None) -> LogState:
        """With `pack`, what makes an equal log at the tick `now`."""
        return LogState(self._columns(now)[0].size)

    def pack(self, now: int | None) -> bytes:
        """The live entries' bytes at the tick `now`: words, gaps between ticks, weights."""
        return b"".join(map(column, self._columns(now)))

    def _columns(self, now: int | None) -> tuple[NDArray[Any], ...]:
        if now is None:
            return self.words, self.ticks, self.weights
        words, weights = self.since(now - self.window)
        return words, np.diff(self.ticks[self.ticks.size - words.size :], append=now), weights

    @classmethod
    def unpack(cls, limit: int, door: DoorState, state: LogState, data: memoryview) -> Self:
        """The log with this state and these bytes; WireError if there is none."""
        n, step = state.entries, int(door.tick == "arrival")
        log = cls(limit, door.window, step)
        if n > limit:
            raise WireError(f"{n} entries are more than this sketch keeps, {limit}")
        reader = Reader(data)
        words, gaps, weights = (reader.take(n) for _ in range(3))
        reader.close()
        if n == 0:
            return log
        if door.now is None:
            raise WireError("there are entries, but no clock")
        if int(gaps.sum(dtype=object)) >= door.window:
            raise WireError("an entry is older than the window")
        if weights.min() == 0 or int(weights.sum(dtype=object)) >= COUNT_LIMIT:
            raise WireError("weights must be positive, and their sum below 2**53")
        ticks = door.now - np.cumsum(gaps.astype(np.int64)[::-1])[::-1]
        same = np.diff(words) == 0
        if np.any(same if step else same & (np.diff(ticks) == 0)):
            raise WireError("two entries in a row are one")
        log._keep(words, ticks, weights.astype(np.int64))
        if step and np.any(np.diff(ticks, prepend=ticks[0] - log.weights[0]) != log.weights):
            raise WireError("arrivals are missing between two entries")
        if step and log.weights[0] > ticks[0] - (door.now - door.window):
            raise WireError("arrivals are older than the window")
        return log
