"""The other way to a dyadic sketch: a grid of waves for each level of prefixes.

What DyadicEcmSketch was measured against before it was chosen (docs/decisions/0004). A cell counts
within epsilon / 2, which is relative and so not shared out among the levels; levels with few
prefixes have a wave for each, the others `depth` rows of hashed ones, sized as those of a stack.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgauge.sketches.door import Admitted
from streamgauge.sketches.stack import StackSizes
from streamgauge.sketches.wavegrid import WaveGrid, kept_ranks


class LevelSketch:
    """Takes events as DyadicEcmSketch does; it was measured, not finished."""

    def __init__(self, *, bits: int, window: int, epsilon: float, delta: float, seed: int) -> None:
        self.sizes = sizes = StackSizes(bits, epsilon, delta, seed)
        kept = kept_ranks(epsilon / 2)
        self.hashed = [
            WaveGrid(sizes.depth * sizes.width, kept, window) for _ in range(sizes.hashed)
        ]
        self.exact = [
            WaveGrid(1 << (bits - level), kept, window) for level in range(sizes.hashed, bits + 1)
        ]
        # A row whose hash is the word's low half: 2**32 low >> 32.
        self.identity = np.array([[1 << 32, 0, 0]], np.uint64)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return sum(grid.nbytes for grid in (*self.hashed, *self.exact))

    def update(self, items: NDArray[np.int64], times: NDArray[np.int64], _: Any = None) -> None:
        """Record that items[i] occurred at times[i]."""
        words = items.view(np.uint64)
        admitted = Admitted(times, None, None, None, 0)
        for level, grid in enumerate(self.hashed):
            grid.insert(self.sizes.seeds[level], words >> np.uint64(level), admitted)
        for level, grid in enumerate(self.exact, self.sizes.hashed):
            spread = (words >> np.uint64(level)) << np.uint64(32 - self.sizes.bits + level)
            grid.insert(self.identity, spread, admitted)
