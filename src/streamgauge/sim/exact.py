"""The oracle: exact answers about a sliding window, computed from the definition.

At clock t the range `last` is the half-open interval (t - last, t]: an arrival counts when
t - last < tick <= t. Items are opaque hashables, weights are non-negative integers, and
every answer is the integer that the definition gives:

    frequency(item)   the sum of the item's weights inside the range
    total             the sum of all weights inside the range
    self_join         the sum over all items of frequency(item) ** 2

Nothing of streamgauge is imported here, because an oracle that shares code with the accused
cannot accuse it. Misuse is an AssertionError: only tests and simulations come here.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]


class ExactWindow:
    """Every arrival of the window (now - window, now], kept as it came.

    >>> exact = ExactWindow(window=10)
    >>> exact.update(["a", "b", "a"], [1, 5, 11])
    >>> exact.frequencies(last=10)  # (1, 11]: tick 1 has just left
    {'a': 1, 'b': 1}
    """

    def __init__(self, window: int):
        assert window >= 1, f"window must be at least 1 tick, got {window}"
        self.window = window
        self.now: int | None = None
        self._codes: dict[Hashable, int] = {}
        self._ticks: Ints = np.zeros(0, np.int64)
        self._arrivals: Ints = np.zeros(0, np.int64)  # the codes of the items
        self._weights: Ints = np.zeros(0, np.int64)

    def update(
        self, items: Iterable[Hashable], ticks: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Add arrivals whose ticks do not decrease, within the call and since the last one."""
        ticks = np.asarray(ticks, np.int64)
        arrivals, weights = _checked(items, ticks, weights, self._codes)
        if ticks.size == 0:
            return
        assert self.now is None or ticks[0] >= self.now, f"tick {ticks[0]} is before {self.now}"
        self._ticks = np.concatenate([self._ticks, ticks])
        self._arrivals = np.concatenate([self._arrivals, arrivals])
        self._weights = np.concatenate([self._weights, weights])
        self.advance(int(ticks[-1]))
        held = self._weights.sum(dtype=np.float64)
        assert held < 2**62, f"the window's total must fit in int64, got {held}"

    def advance(self, now: int) -> None:
        """Let time pass, and forget what no range can reach any more."""
        assert self.now is None or now >= self.now, f"time cannot go back from {self.now} to {now}"
        self.now = now
        inside = self._ticks > now - self.window
        self._ticks = self._ticks[inside]
        self._arrivals = self._arrivals[inside]
        self._weights = self._weights[inside]

    def frequency(self, item: Hashable, last: int | None = None, now: int | None = None) -> int:
        inside = self._inside(last, now)
        if item not in self._codes:
            return 0
        return int(self._weights[inside & (self._arrivals == self._codes[item])].sum())

    def frequencies(self, last: int | None = None, now: int | None = None) -> dict[Hashable, int]:
        """Every item whose frequency is positive."""
        counts = self._counts(last, now).tolist()
        return {item: counts[code] for item, code in self._codes.items() if counts[code] > 0}

    def total(self, last: int | None = None, now: int | None = None) -> int:
        return int(self._weights[self._inside(last, now)].sum())

    def self_join(self, last: int | None = None, now: int | None = None) -> int:
        return sum(count * count for count in self._counts(last, now).tolist())

    def _inside(self, last: int | None, now: int | None) -> NDArray[np.bool_]:
        """Which arrivals lie in (now - last, now]; by default the whole window at the clock."""
        last = self.window if last is None else last
        now = self.now if now is None else now
        assert 1 <= last <= self.window, f"last must lie in [1, {self.window}], got {last}"
        if now is None:  # nothing ever happened, so there is nothing to select
            return np.zeros(0, np.bool_)
        assert self.now is None or now >= self.now, f"{now} is before the clock at {self.now}"
        return self._ticks > now - last

    def _counts(self, last: int | None, now: int | None) -> Ints:
        inside = self._inside(last, now)
        counts = np.zeros(len(self._codes), np.int64)
        np.add.at(counts, self._arrivals[inside], self._weights[inside])
        return counts


class Sliding(NamedTuple):
    """The exact answers about (end - last, end], one row for every end."""

    ends: Ints
    totals: Ints
    self_joins: Ints
    frequencies: Ints  # one column for every item asked about


def steps(ticks: ArrayLike, every: int) -> Ints:
    """Multiples of `every`: from the first that sees ticks[0] to the first that sees ticks[-1]."""
    ticks = np.asarray(ticks, np.int64)
    assert every >= 1, f"every must be at least 1 tick, got {every}"
    assert ticks.size > 0, "a stream without arrivals has no steps"
    first, final = -(-int(ticks[0]) // every), -(-int(ticks[-1]) // every)
    return every * np.arange(first, final + 1, dtype=np.int64)


def sliding(
    items: Iterable[Hashable],
    ticks: ArrayLike,
    ends: ArrayLike,
    *,
    last: int,
    asked: Sequence[Hashable] = (),
    weights: ArrayLike | None = None,
) -> Sliding:
    """The answers of one site at every step end, in one pass with two pointers.

    Between two ends only the arrivals that enter or leave change a count, so a step costs as
    much as what changed. Ends must not decrease; `steps` makes the regular ones.
    """
    ticks, ends = np.asarray(ticks, np.int64), np.asarray(ends, np.int64)
    codes: dict[Hashable, int] = {}
    arrivals, weights = _checked(items, ticks, weights, codes)
    assert last >= 1, f"last must be at least 1 tick, got {last}"
    assert np.all(np.diff(ends) >= 0), "ends must not decrease"
    total = weights.sum(dtype=np.float64)
    assert total < 2**31, f"the square of the total must fit in int64, got {total}"

    columns = [codes.setdefault(item, len(codes)) for item in asked]
    counts = np.zeros(len(codes), np.int64)
    self_joins = np.zeros(ends.size, np.int64)
    frequencies = np.zeros((ends.size, len(columns)), np.int64)
    heads = np.searchsorted(ticks, ends, side="right")  # the first arrival with tick > end
    tails = np.searchsorted(ticks, ends - last, side="right")  # ... with tick > end - last
    summed = np.concatenate([[0], np.cumsum(weights)])
    head = tail = self_join = 0
    for step in range(ends.size):
        entering, leaving = slice(head, heads[step]), slice(tail, tails[step])
        changed = np.unique(np.concatenate([arrivals[entering], arrivals[leaving]]))
        self_join -= int((counts[changed] ** 2).sum())
        np.add.at(counts, arrivals[entering], weights[entering])
        np.subtract.at(counts, arrivals[leaving], weights[leaving])
        self_join += int((counts[changed] ** 2).sum())
        head, tail = heads[step], tails[step]
        self_joins[step] = self_join
        frequencies[step] = counts[columns]
    return Sliding(ends, summed[heads] - summed[tails], self_joins, frequencies)


def _checked(
    items: Iterable[Hashable], ticks: Ints, weights: ArrayLike | None, codes: dict[Hashable, int]
) -> tuple[Ints, Ints]:
    """The items as small integers, new ones entered in `codes`, and the weights, 1 by default."""
    if isinstance(items, np.ndarray) and items.dtype.kind in "iu":
        distinct, inverse = np.unique(items, return_inverse=True)
        lookup = [codes.setdefault(item, len(codes)) for item in distinct.tolist()]
        arrivals = np.array(lookup, np.int64)[inverse]
    else:
        arrivals = np.array([codes.setdefault(item, len(codes)) for item in items], np.int64)
    weights = np.ones(ticks.size, np.int64) if weights is None else np.asarray(weights, np.int64)
    assert arrivals.shape == ticks.shape == weights.shape, "items, ticks, weights differ in length"
    assert np.all(np.diff(ticks) >= 0), "ticks must not decrease"
    assert np.all(weights >= 0), "weights must not be negative"
    return arrivals, weights
