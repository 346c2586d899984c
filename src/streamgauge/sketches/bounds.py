"""What a count-min grid promises, from the spans of its cells.

The proofs are in docs/guarantees.md, "ECM-sketch". Leading axes are many questions at once. Upper
ends are as certain as the spans are; lower ends hold if in some row the collisions are few, which
fails with probability `sizes.delta_hash`.
"""

from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from streamgauge.estimate import Estimate
from streamgauge.sketches.door import COUNT_LIMIT
from streamgauge.sketches.sizes import Sizes
from streamgauge.sketches.spans import Floats, Spans


class _Hashed(Protocol):
    """Rows of hashed cells, as far as frequencies need to know them."""

    @property
    def depth(self) -> int: ...
    @property
    def share(self) -> float: ...
    def confidence(self, counters: int) -> float: ...


class Bounds(NamedTuple):
    """Many estimates of equal confidence as arrays."""

    value: Floats
    low: Floats
    high: Floats
    confidence: float

    @classmethod
    def of(cls, value: Floats, low: Floats, high: Floats, confidence: float) -> Self:
        """An interval without any confidence is none."""
        if confidence == 0:
            low = high = np.full_like(value, np.nan)
        return cls(value, low, high, confidence)

    def estimates(self) -> list[Estimate]:
        """One Estimate each."""
        columns = zip(self.value.tolist(), self.low.tolist(), self.high.tolist(), strict=True)
        return [Estimate(*row, self.confidence) for row in columns]


def totals(total: Spans) -> Bounds:
    """Numbers of events, which a wave of their own counts whatever the cells are."""
    return Bounds.of(total.value.copy(), _down(total.low), _up(total.high), 1.0)


def frequencies(sizes: _Hashed, cells: Spans, total: Spans, sketches: int = 1) -> Bounds:
    """Frequencies f from the cells [..., row, item], each the sum of so many sketches' cells.

    A cell's arrivals c >= f exceed f by the collisions X. P(X > s (N - f)) <= p / s where p is
    the probability of a collision (Markov), in all of d rows (p / s)**d; s = p delta**(-1 / d)
    makes that delta. So with probability 1 - delta some row has c <= f + s (N - f), that is
    f >= (c - s N) / (1 - s).
    """
    most = total.high[..., None]
    high = _up(np.minimum(cells.high.min(axis=-2), most))
    low = np.minimum(_cleared(sizes, cells.low.min(axis=-2), most), high)
    value = np.clip(cells.value.min(axis=-2), low, high)
    return Bounds.of(value, low, high, sizes.confidence(sketches * sizes.depth))


def self_joins(sizes: Sizes, cells: Spans, total: Spans, sketches: int = 1) -> Bounds:
    """Sums F of squared frequencies from the cells [..., row, column].

    A row's sum of squares is F plus what colliding pairs add, at most p (N**2 - F) on average;
    the bound follows as for frequencies. Besides, N <= F <= N**2, for frequencies are whole.
    """
    value, low, high = _products(sizes, (cells, cells), (total, total))
    low = np.minimum(np.maximum(low, _down(total.low)), high)
    confidence = sizes.confidence(sketches * sizes.depth * sizes.width)
    return Bounds.of(np.clip(value, low, high), low, high, confidence)


def inner_products(
    sizes: Sizes, cells: tuple[Spans, Spans], totals: tuple[Spans, Spans], sketches: int = 2
) -> Bounds:
    """Sums J of f(x) g(x) over all items x, from the cells [..., row, column] of two streams.

    A row's sum of products is J plus what colliding pairs add, at most p (N M - J) on average.
    """
    value, low, high = _products(sizes, cells, totals)
    confidence = sizes.confidence(sketches * sizes.depth * sizes.width)
    return Bounds.of(np.clip(value, low, high), low, high, confidence)


def _products(
    sizes: Sizes, cells: tuple[Spans, Spans], totals: tuple[Spans, Spans]
) -> tuple[Floats, Floats, Floats]:
    """Value, lower and upper end."""
    (f, g), (n, m) = cells, totals
    least, value, most = (
        (ours.astype(np.float64) * theirs).sum(axis=-1).min(axis=-1)
        for ours, theirs in ((f.low, g.low), (f.value, g.value), (f.high, g.high))
    )
    largest = _up(n.high) * _up(m.high)
    high = np.minimum(most, largest)
    # Whole numbers are exact up to 2**53; of larger ones, 2**24 sums and products round by less.
    high = np.where(high < COUNT_LIMIT, high, high * (1 + 2**-28))
    low = _cleared(sizes, least, largest)
    return value, np.minimum(low, high), high


def _cleared(sizes: _Hashed, least: NDArray[Any], largest: NDArray[Any]) -> Floats:
    """(c - s N) / (1 - s), what is no collision; nothing where s may be all, as c is at most N."""
    share = sizes.share
    found: Floats = np.maximum(least - share * largest, 0) / max(1 - share, 1e-9)
    return found


# A sketch holds fewer than 2**53 arrivals, but several sketches together may hold more.


def _up(counts: NDArray[np.int64]) -> Floats:
    found = counts.astype(np.float64)
    return np.where(found < COUNT_LIMIT, found, np.nextafter(found, np.inf))


def _down(counts: NDArray[np.int64]) -> Floats:
    found = counts.astype(np.float64)
    return np.where(found < COUNT_LIMIT, found, np.nextafter(found, 0))
