"""One user's seed becomes as many random 64-bit words as a sketch needs, everywhere the same.

splitmix64 (Steele, Lea & Flood 2014) walks a counter by a fixed odd step and mixes it. The
outputs are pinned by golden values in the tests: no platform's random library is involved, so
the same seed means the same hash functions on every machine and in every release.
"""

import numpy as np
from numpy.typing import NDArray

_MASK = (1 << 64) - 1


def expand(seed: int, count: int) -> NDArray[np.uint64]:
    """The first `count` outputs of splitmix64 started at `seed`."""
    words = np.empty(count, np.uint64)
    state = seed
    for i in range(count):
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        word = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _MASK
        words[i] = word ^ (word >> 31)
    return words
