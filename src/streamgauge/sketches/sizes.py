"""How large a count-min grid of window counters has to be: the one place that knows.

A point query sees a cell's arrivals with relative error e_w, and in one of `depth` rows at most a
share s of the other items' arrivals (docs/guarantees.md, "ECM-sketch"). With

    depth = ceil(ln 1 / delta),  width = ceil(e / e_cm),  e_cm = epsilon / (1 + epsilon)

s is at most e_cm, and the error (1 + e_w) (f + s (N - f)) - f stays within epsilon N for
e_w = epsilon; for a product of two cells (1 + e_w)**2 takes the place of 1 + e_w, so that
e_w = sqrt(1 + epsilon) - 1 (Theorems 1 and 2 of the paper). These splits minimise memory, which
is as 1 / (e_w e_cm).

Counters that only probably keep to e_w share delta with the hashing, half and half, and their half
goes to all the counters that one question reads (Theorem 3 gave each the whole half):

    depth = ceil(ln 2 / delta),  delta_w = delta / (2 * counters).
"""

import math
from typing import Annotated, Literal, Self, cast, get_args

import msgspec
import numpy as np

from streamgauge.sketches.door import require_share

Counter = Literal["wave", "exphist", "randomized"]

_SEED_LIMIT = 1 << 64

Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class Sizes(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """Everything that two grids must have in common to be added up."""

    counter: Counter
    epsilon: Annotated[float, msgspec.Meta(ge=1e-6)]
    delta: Annotated[float, msgspec.Meta(ge=1e-18, lt=1)]
    depth: Annotated[int, msgspec.Meta(ge=1, le=64)]
    width: Annotated[int, msgspec.Meta(ge=1, le=1 << 24)]
    epsilon_window: Annotated[float, msgspec.Meta(ge=1e-7, lt=1)]
    delta_window: Annotated[float, msgspec.Meta(ge=0, lt=1)]
    seed: Annotated[int, msgspec.Meta(ge=0)]

    def __post_init__(self) -> None:
        if self.seed >= _SEED_LIMIT:
            raise ValueError(f"seed must lie in [0, 2**64), got {self.seed}")
        if (self.delta_window > 0) != (self.counter == "randomized"):
            raise ValueError(f"delta_window of a {self.counter} cannot be {self.delta_window}")

    @classmethod
    def of(
        cls, epsilon: float, delta: float, seed: int, counter: str, *, products: bool = False
    ) -> Self:
        """For frequencies within epsilon N, or products of two streams within epsilon N M."""
        epsilon, delta = require_share("epsilon", epsilon), require_share("delta", delta)
        if epsilon < 1e-6:
            raise ValueError(f"epsilon must be at least 1e-6, got {epsilon}")
        if delta < 1e-18:
            raise ValueError(f"delta must be at least 1e-18, got {delta}")
        counter = _known(counter)
        randomized = counter == "randomized"
        depth = math.ceil(math.log((2 if randomized else 1) / delta))
        width = math.ceil(math.e * (1 + epsilon) / epsilon)
        read = depth * (width if products else 1) + 1  # and the total
        return cls(
            counter=counter,
            epsilon=epsilon,
            delta=delta,
            depth=depth,
            width=width,
            epsilon_window=math.sqrt(1 + epsilon) - 1 if products else epsilon,
            delta_window=delta / (2 * read) if randomized else 0.0,
            seed=_seed(seed),
        )

    @classmethod
    def given(cls, depth: int, width: int, epsilon_window: float, seed: int, counter: str) -> Self:
        """Rows and columns as they are given, and what follows from them for frequencies."""
        for name, value, most in (("depth", depth, 64), ("width", width, 1 << 24)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise ValueError(f"{name} must be an integer, got {value!r}")
            if not 1 <= value <= most:
                raise ValueError(f"{name} must lie in [1, {most}], got {value}")
        window = require_share("epsilon_window", epsilon_window)
        if window < 1e-6:
            raise ValueError(f"epsilon_window must be at least 1e-6, got {window}")
        counter = _known(counter)
        randomized = counter == "randomized"
        delta = math.exp(-depth)
        return cls(
            counter=counter,
            epsilon=max(window, (1 + window) * math.e / width),
            delta=2 * delta if randomized else delta,
            depth=int(depth),
            width=int(width),
            epsilon_window=window,
            delta_window=delta / (depth + 1) if randomized else 0.0,
            seed=_seed(seed),
        )

    @property
    def delta_hash(self) -> float:
        """The probability with which collisions may spoil the lower end of an answer."""
        return self.delta / 2 if self.delta_window else self.delta

    @property
    def share(self) -> float:
        """The s that all rows exceed with probability delta_hash at most (Markov)."""
        collision = math.ceil(2**32 / self.width) / 2**32
        return float(min(collision * self.delta_hash ** (-1 / self.depth), 1 - 1e-9))

    def confidence(self, counters: int, *, hashed: bool = True) -> float:
        """Of an answer that reads so many counters; 0 if nothing is left of it."""
        failing = (self.delta_hash if hashed else 0.0) + counters * self.delta_window
        return max(0.0, 1 - failing)


def _known(counter: str) -> Counter:
    if counter not in get_args(Counter):
        raise ValueError(f"counter must be one of {', '.join(get_args(Counter))}, got {counter!r}")
    return cast(Counter, counter)


def _seed(seed: int) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise ValueError(f"seed must be an integer, got {seed!r}")
    if not 0 <= seed < _SEED_LIMIT:
        raise ValueError(f"seed must lie in [0, 2**64), got {seed}")
    return int(seed)
