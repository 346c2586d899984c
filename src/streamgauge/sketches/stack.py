"""What is counted of the items of [0, 2**bits), for every prefix of theirs, and in how much space.

Few items are a sorted list with their counts, which answers exactly. Once that takes more memory
it becomes a stack of count-min sketches, one for each level of prefixes x >> l, l < T; the levels
from T up have few prefixes and are counted one by one. Any range of items is the disjoint union
of prefixes, at most two a level. Of a range that reads k hashed prefixes let c be the sum, over
these, of the smallest counter. With d independent rows, any one of which adds at most p (k N - f)
on average to the true f,

    f <= c,   and   c <= f + s (k N - f)   with probability 1 - delta,   s = p delta**(-1 / d):

the sum of the smallest counters is at most the smallest sum of a row, and Markov's inequality for
d rows makes (p / s)**d = delta of it. So delta is not shared out among the prefixes, and depth
stays ceil(ln 1 / delta) for any number of bits; the width grows with 2 T.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from streamgauge import kernels, seeds
from streamgauge.sketches.columns import Reader, column
from streamgauge.wire import WireError

MOST_CELLS = 1 << 27  # of one stack

Words = NDArray[np.uint32] | NDArray[np.uint64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class StackSizes:
    """Sizes for ranges within epsilon N, half of it for the window and half for the hashing.

    A bucket cut by the window's edge is guessed to be half inside, and is at most 1 / kept of what
    is newer: kept = ceil(1 / epsilon) makes that epsilon / 2. The hashed counts of the 2 T
    prefixes of a range see one cut bucket too much (half of it is taken off), hence

        epsilon_hash = (epsilon / 2) / (1 + epsilon / 2),   2 T s <= epsilon_hash,

    and T is the number of hashed levels that takes the least memory.
    """

    bits: int
    epsilon: float
    delta: float
    seed: int

    @cached_property
    def kept(self) -> int:
        """Of each size of bucket so many are kept, at least."""
        return math.ceil(1 / self.epsilon)

    @cached_property
    def depth(self) -> int:
        """Rows a level."""
        return math.ceil(math.log(1 / self.delta))

    @cached_property
    def hashed(self) -> int:
        """Levels with hashed counters, T."""
        return min(range(self.bits + 1), key=self._cells)

    @cached_property
    def width(self) -> int:
        """Counters a row."""
        return max(1, self._width(self.hashed))

    @cached_property
    def cells(self) -> int:
        """Counters and running sums of a stack."""
        return self._cells(self.hashed)

    @cached_property
    def most_listed(self) -> int:
        """Items that a list has at most: it takes no more memory than a stack."""
        return self.cells * 4 // (self.word.itemsize + 4)

    @property
    def word(self) -> np.dtype[Any]:
        """What holds an item."""
        return np.dtype(np.uint32 if self.bits <= 32 else np.uint64)

    @cached_property
    def seeds(self) -> NDArray[np.uint64]:
        """Three words for each row of each level."""
        words = seeds.expand(self.seed, 3 * self.hashed * self.depth)
        return words.reshape(self.hashed, self.depth, 3)

    def _width(self, hashed: int) -> int:
        error = self.epsilon / (2 + self.epsilon)
        return math.ceil(2 * hashed * float(self.delta ** (-1 / self.depth)) / error)

    def _cells(self, hashed: int) -> int:
        return hashed * self.depth * self._width(hashed) + self._tops(hashed) + 1

    def _tops(self, hashed: int) -> int:
        """How many prefixes the lowest level without a hash has."""
        return int(2 ** (self.bits - hashed))

    def share(self, questions: float = 1) -> float:
        """The s of so many questions that are all to hold with probability 1 - delta."""
        collision = math.ceil(2**32 / self.width) / 2**32
        return float(min(collision * (self.delta / questions) ** (-1 / self.depth), 1 - 1e-9))


class Listed(NamedTuple):
    """Items in order, and the running sums of their counts, led by 0."""

    words: Words
    sums: Words

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return self.words.nbytes + self.sums.nbytes


class Stacked(NamedTuple):
    """The counters of all levels."""

    cells: Words

    @property
    def nbytes(self) -> int:
        """Memory of the array."""
        return self.cells.nbytes


Counted = Listed | Stacked


class Reading(NamedTuple):
    """What several summaries say together about some prefixes, those with a hash by themselves.

    The truth is `exact` and something up to `hashed`; the hashed ones are of `arrivals` events.
    """

    exact: Ints
    hashed: Ints
    arrivals: int

    def plus(self, other: Self) -> Self:
        """Prefix by prefix; both of the same summaries."""
        exact, hashed = self.exact + other.exact, self.hashed + other.hashed
        return self._replace(exact=exact, hashed=hashed)

    def summed(self) -> Self:
        """All of them as one."""
        exact, hashed = self.exact.sum(keepdims=True), self.hashed.sum(keepdims=True)
        return self._replace(exact=exact, hashed=hashed)

    def at(self, index: Any) -> Self:
        """Those that numpy's indexing selects."""
        return self._replace(exact=self.exact[index], hashed=self.hashed[index])

    @property
    def most(self) -> Ints:
        """Upper ends, certain."""
        return self.exact + self.hashed

    def least(self, share: float, hashed: int) -> NDArray[np.float64]:
        """Lower ends, probable, of sums over so many hashed prefixes each.

        What is hashed has f >= (c - s k N) / (1 - s), which is at most c <= k N.
        """
        if not hashed or not self.arrivals:
            return self.most.astype(np.float64)
        noise = share * hashed * self.arrivals
        hidden = np.maximum(self.hashed - noise, 0) / (1 - share)
        ends: NDArray[np.float64] = self.exact + np.minimum(hidden, self.hashed)
        return ends


class Gathered(NamedTuple):
    """Summaries that are read together, again and again."""

    summaries: Sequence[Counted]  # they keep alive what the addresses point to
    lists: NDArray[np.uint64]
    stacks: Sequence[Words]
    stacked: int

    @classmethod
    def of(cls, summaries: Sequence[Counted]) -> Self:
        """Where their arrays lie."""
        lists = [_address(each) for each in summaries if isinstance(each, Listed)]
        stacks = [each.cells for each in summaries if isinstance(each, Stacked)]
        stacked = sum(int(cells[-1]) for cells in stacks)
        return cls(summaries, np.array(lists, np.uint64).reshape(-1, 5), stacks, stacked)


class Stacks:
    """Makes, adds, reads and writes what is counted; all of one specification add up."""

    def __init__(self, sizes: StackSizes) -> None:
        self.sizes = sizes

    def listed(self, words: NDArray[np.uint64], weights: Ints) -> Listed:
        """The list of some events, however many."""
        order = np.argsort(words)
        words, sums = words[order], np.cumsum(weights[order])
        last = np.append(words[1:] != words[:-1], True)
        return self._kept(words[last], np.append(0, sums[last]))

    def _kept(self, words: Any, sums: Any) -> Listed:
        return Listed(words.astype(self.sizes.word), _narrow(sums, int(sums[-1])))

    def summarise(self, words: NDArray[np.uint64], weights: Ints) -> Counted:
        """What is kept of some events."""
        return self._fitting(self.listed(words, weights))

    def combine(self, parts: Sequence[Counted]) -> Counted:
        """What would have been kept of all their events; the largest part comes first."""
        stacks = [part for part in parts if isinstance(part, Stacked)]
        lists = [part for part in parts if isinstance(part, Listed)]
        if not stacks:
            return self._fitting(reduce(self._merged, reversed(lists)))
        cells = np.zeros(self.sizes.cells, np.uint64)
        for stack in stacks:
            cells += stack.cells
        for each in lists:
            self._spread(each, cells)
        return Stacked(_narrow(cells, int(cells[-1])))

    def _merged(self, one: Listed, other: Listed) -> Listed:
        most = one.words.size + other.words.size
        words, sums = np.empty(most, self.sizes.word), np.empty(most + 1, np.uint64)
        size = kernels.stack.merge(*one, *other, words, sums)
        return Listed(words[:size].copy(), _narrow(sums[: size + 1], int(sums[size])))

    def _fitting(self, each: Listed) -> Counted:
        if each.words.size <= self.sizes.most_listed:
            return each
        cells = np.zeros(self.sizes.cells, np.uint64)
        self._spread(each, cells)
        return Stacked(_narrow(cells, int(cells[-1])))

    def _spread(self, each: Listed, cells: NDArray[np.uint64]) -> None:
        sizes = self.sizes
        sums = each.sums.astype(np.uint64)
        kernels.stack.spread(sizes.seeds, sizes.width, each.words, sums, cells)
        ends = np.arange(1, (1 << (sizes.bits - sizes.hashed)) + 1, dtype=np.uint64)
        prefixes = each.words.astype(np.uint64) >> np.uint64(sizes.hashed)
        cells[-ends.size :] += sums[np.searchsorted(prefixes, ends, "left")]

    def read(self, gathered: Gathered, levels: Ints, prefixes: Any) -> Reading:
        """The counts of prefixes[i] of levels[i] < bits in all of the summaries together."""
        sizes, stacks = self.sizes, gathered.stacks
        exact, hashed = np.zeros(levels.size, np.int64), np.zeros(levels.size, np.int64)
        shifts = levels.astype(np.uint64)
        firsts = prefixes << shifts
        lasts = firsts | ((np.uint64(1) << shifts) - np.uint64(1))
        kernels.stack.between(gathered.lists, firsts, lasts, exact)
        if not stacks:
            return Reading(exact, hashed, 0)
        low = levels < sizes.hashed
        at = np.empty((int(low.sum()), sizes.depth), np.int64)
        kernels.stack.places(sizes.seeds, sizes.width, levels[low], prefixes[low], at)
        rows = sum(cells[at].astype(np.int64) for cells in stacks)
        hashed[low] = np.min(rows, axis=1, initial=np.iinfo(np.int64).max)
        tops = sizes.cells - (1 << (sizes.bits - sizes.hashed)) - 1
        begin = tops + (firsts[~low] >> np.uint64(sizes.hashed)).astype(np.int64)
        end = begin + (1 << (levels[~low] - sizes.hashed))
        exact[~low] += sum(
            cells[end].astype(np.int64) - cells[begin].astype(np.int64) for cells in stacks
        )
        return Reading(exact, hashed, gathered.stacked)

    def pack(self, each: Counted) -> bytes:
        """Its bytes: gaps between the items and their counts, or all counters."""
        if isinstance(each, Stacked):
            return column(each.cells)
        gaps = np.diff(each.words, prepend=each.words.dtype.type(0))
        return column(gaps) + column(np.diff(each.sums))

    def unpack(self, reader: Reader, listed: int, size: int) -> Counted:
        """A list of so many items, or a stack if 0, that holds `size` events."""
        sizes = self.sizes
        if not listed:
            return Stacked(_narrow(self._checked(reader.take(sizes.cells), size), size))
        if listed > sizes.most_listed:
            raise WireError(f"{listed} items are more than a list has, {sizes.most_listed}")
        gaps, counts = reader.take(listed), reader.take(listed)
        if not gaps[1:].all() or not counts.all():
            raise WireError("an item is listed twice or has no count")
        if int(gaps.sum(dtype=object)) >= 1 << sizes.bits:
            raise WireError("an item is beyond the domain")
        if int(counts.sum(dtype=object)) != size:
            raise WireError(f"the counts of a list are not those of {size} events")
        return self._kept(np.cumsum(gaps), np.append(np.uint64(0), np.cumsum(counts)))

    def _checked(self, cells: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
        sizes = self.sizes
        split = sizes.hashed * sizes.depth * sizes.width
        rows, sums = cells[:split].reshape(-1, sizes.width), cells[split:]
        if sums[0] != 0 or int(sums[-1]) != size or np.any(sums[1:] < sums[:-1]):
            raise WireError(f"the running sums of a stack do not lead from 0 to {size}")
        # In floats too, since a sum of many large counters may wrap.
        wrapped = rows.astype(np.float64).sum(axis=1) > 2 * size
        if np.any(wrapped) or np.any(rows.sum(axis=1) != size):
            raise WireError(f"a row of a stack does not hold {size} events")
        return cells


def _narrow(counts: Any, largest: int) -> Words:
    kept: Words = counts.astype(np.uint32 if largest < 1 << 32 else np.uint64)
    return kept


def _address(each: Listed) -> tuple[int, int, int, int, int]:
    words, sums = each
    return (
        words.__array_interface__["data"][0],
        words.size,
        words.itemsize.bit_length() - 1,
        sums.__array_interface__["data"][0],
        sums.itemsize.bit_length() - 1,
    )
