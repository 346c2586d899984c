"""What is known of a number of arrivals: the fewest, the most, the best guess."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Spans(NamedTuple):
    """The fewest and the most arrivals there can have been and the best guess, elementwise."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    value: Floats

    @classmethod
    def exact(cls, counts: NDArray[np.int64]) -> Self:
        """Of arrivals that are known one by one."""
        return cls(counts, counts, counts.astype(np.float64))

    @classmethod
    def blank(cls, *shape: int) -> Self:
        """Room for so many."""
        return cls(np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape))

    @classmethod
    def between(cls, low: NDArray[np.int64], high: NDArray[np.int64]) -> Self:
        """With the middle as the guess."""
        return cls(low, high, (low + high) / 2)

    @classmethod
    def sum(cls, spans: Iterable[Self]) -> Self:
        """Of several streams taken together."""
        low, high, value = (sum(ends) for ends in zip(*spans, strict=True))
        return cls(low, high, value)

    def reshape(self, *shape: int) -> Self:
        """The same spans in another shape."""
        low, high, value = self
        return type(self)(low.reshape(shape), high.reshape(shape), value.reshape(shape))

    def at(self, index: Any) -> Self:
        """Those that numpy's indexing selects."""
        return type(self)(self.low[index], self.high[index], self.value[index])

    def put(self, index: Any, spans: Self) -> None:
        """Overwrite those that numpy's indexing selects."""
        for mine, theirs in zip(self, spans, strict=True):
            mine[index] = theirs
