"""Items whose popularity falls as a power of their rank."""

import numpy as np
from numpy.typing import NDArray


def zipf(rng: np.random.Generator, size: int, items: int, exponent: float) -> NDArray[np.int64]:
    """`size` draws from 0 .. items - 1; item i comes in proportion to (i + 1) ** -exponent."""
    cumulated = np.cumsum(np.arange(1, items + 1, dtype=np.float64) ** -exponent)
    return np.searchsorted(cumulated / cumulated[-1], rng.random(size)).astype(np.int64)
