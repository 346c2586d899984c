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
from dataclasses import dataclass
from typing import Annotated, Literal, Self, cast, get_args

import msgspec

from streamgauge import ticks
from streamgauge.sketches.door import require_share
from streamgauge.sketches.merging import Drift

Counter = Literal["wave", "exphist", "randomized"]

_SEED_LIMIT = 1 << 64

Seed = Annotated[int, msgspec.Meta(ge=0)]  # below 2**64, which msgspec cannot say


class Asked(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True, tag="asked"):
    """Sizes by what they are to promise, for frequencies or for products of two streams."""

    counter: Counter
    epsilon: Annotated[float, msgspec.Meta(ge=1e-6, lt=1)]
    delta: Annotated[float, msgspec.Meta(ge=1e-18, lt=1)]
    products: bool
    seed: Seed


class Given(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True, tag="given"):
    """Sizes as somebody wants them."""

    counter: Counter
    depth: Annotated[int, msgspec.Meta(ge=1, le=64)]
    width: Annotated[int, msgspec.Meta(ge=1, le=1 << 24)]
    epsilon_window: Annotated[float, msgspec.Meta(ge=1e-6, lt=1)]
    seed: Seed


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows, columns, how well each counter counts, and what follows for the answers."""

    origin: Asked | Given
    epsilon: float
    delta: float
    depth: int
    width: int
    epsilon_window: float
    delta_window: float

    @classmethod
    def of(cls, origin: Asked | Given) -> Self:
        """ValueError for a seed of more than 64 bits."""
        if origin.seed >= _SEED_LIMIT:
            raise ValueError(f"seed must lie in [0, 2**64), got {origin.seed}")
        randomized = origin.counter == "randomized"
        halves = 2 if randomized else 1
        if isinstance(origin, Asked):
            epsilon, delta = origin.epsilon, origin.delta
            depth = math.ceil(math.log(halves / delta))
            width = math.ceil(math.e * (1 + epsilon) / epsilon)
            window = math.sqrt(1 + epsilon) - 1 if origin.products else epsilon
            read = depth * (width if origin.products else 1)
        else:
            depth, width, window = origin.depth, origin.width, origin.epsilon_window
            epsilon, delta = max(window, (1 + window) * math.e / width), halves * math.exp(-depth)
            read = depth
        delta_window = delta / (2 * read) if randomized else 0.0
        return cls(origin, epsilon, delta, depth, width, window, delta_window)

    @classmethod
    def asked(
        cls, counter: str, epsilon: float, delta: float, seed: int, *, products: bool = False
    ) -> Self:
        """For frequencies within epsilon N, or products of two streams within epsilon N M."""
        epsilon, delta = require_share("epsilon", epsilon), require_share("delta", delta)
        if epsilon < 1e-6:
            raise ValueError(f"epsilon must be at least 1e-6, got {epsilon}")
        if delta < 1e-18:
            raise ValueError(f"delta must be at least 1e-18, got {delta}")
        return cls.of(Asked(_known(counter), epsilon, delta, products, require_seed(seed)))

    @classmethod
    def given(cls, counter: str, depth: int, width: int, epsilon_window: float, seed: int) -> Self:
        """As they are."""
        for name, value, most in (("depth", depth, 64), ("width", width, 1 << 24)):
            if not ticks.is_whole(value):
                raise ValueError(f"{name} must be an integer, got {value!r}")
            if not 1 <= value <= most:
                raise ValueError(f"{name} must lie in [1, {most}], got {value}")
        window = require_share("epsilon_window", epsilon_window)
        if window < 1e-6:
            raise ValueError(f"epsilon_window must be at least 1e-6, got {window}")
        return cls.of(Given(_known(counter), int(depth), int(width), window, require_seed(seed)))

    @property
    def delta_hash(self) -> float:
        """The probability with which collisions may spoil the lower end of an answer."""
        return self.delta / 2 if self.delta_window else self.delta

    @property
    def share(self) -> float:
        """The s that all rows exceed with probability delta_hash at most (Markov).

        In rows of one or two columns it is 1 or more: then nothing is known of the collisions.
        """
        collision = math.ceil(2**32 / self.width) / 2**32
        return float(collision * self.delta_hash ** (-1 / self.depth))

    def reach(self, drift: Drift) -> float:
        """The relative error when the counters have drifted by merging.

        (1 + e_w) (f + s (N - f)) - f is largest at f = N or at f = 0; of products the square.
        """
        factor = 1 + drift.epsilon(self.epsilon_window)
        if isinstance(self.origin, Asked) and self.origin.products:
            factor *= factor
        return max(factor - 1, factor * self.share)

    def confidence(self, counters: int) -> float:
        """Of an answer that reads so many counters of cells; 0 if nothing is left of it."""
        return max(0.0, 1 - self.delta_hash - counters * self.delta_window)


def _known(counter: str) -> Counter:
    if counter not in get_args(Counter):
        raise ValueError(f"counter must be one of {', '.join(get_args(Counter))}, got {counter!r}")
    return cast(Counter, counter)


def require_seed(seed: int) -> int:
    """`seed` as an int of 64 bits."""
    if not ticks.is_whole(seed):
        raise ValueError(f"seed must be an integer, got {seed!r}")
    if not 0 <= seed < _SEED_LIMIT:
        raise ValueError(f"seed must lie in [0, 2**64), got {seed}")
    return int(seed)
