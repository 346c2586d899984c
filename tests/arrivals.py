"""Streams for property tests.

Lists drawn by hypothesis are too short to fill a level of a sketch or to cross a window twice:
planted bugs survived hundreds of them. So hypothesis draws what a stream is like (shape, rate,
window, seed) and numpy makes thousands of arrivals from that; drawn lists are for edge cases.

    @given(arrivals.programs())
    def test_a_promise(program):
        items, ticks, weights = program.arrivals()
        sketch = Sketch(window=program.window, epsilon=program.epsilon)
        for batch in arrivals.cut(program.seed, items, ticks, weights): ...
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

Ints = NDArray[np.int64]
EPSILONS = (0.5, 0.2, 0.1, 0.05, 0.01)


class Arrivals(NamedTuple):
    """What `update` takes; ticks do not decrease, weights may be 0."""

    items: Ints
    ticks: Ints
    weights: Ints


def steady(rng, window, rate, size):
    """`rate` arrivals a tick on average."""
    return np.floor(np.cumsum(rng.exponential(1 / rate, size)))


def ties(rng, window, rate, size):
    """All arrivals of a twentieth of a window share its first tick."""
    coarse = max(1, window // 20)
    return coarse * (steady(rng, window, rate, size) // coarse)


def bursts(rng, window, rate, size):
    """Steady, but every tenth stretch of 50 arrivals falls into one tick."""
    gaps = np.diff(steady(rng, window, rate, size), prepend=0)
    gaps[rng.random(-(-size // 50)).repeat(50)[:size] < 0.1] = 0
    return np.cumsum(gaps)


def long_gaps(rng, window, rate, size):
    """Steady, with now and then a gap of up to three windows."""
    jumps = (rng.random(size) < 0.02) * rng.integers(1, 3 * window + 1, size)
    return steady(rng, window, rate, size) + np.cumsum(jumps)


def at_the_edge(rng, window, rate, size):
    """Gaps of exactly a window and one tick more or less, among gaps of 0 and 1."""
    near = rng.integers(0, 2, size)
    far = window + rng.integers(-1, 2, size)
    return np.cumsum(np.where(rng.random(size) < 0.98, near, far))


def doubling(rng, window, rate, size):
    """1, 2, 4, ... 512 arrivals in ticks an eighth of a window apart, and again."""
    together = 2 ** (np.arange(size) % 10)
    return np.repeat((1 + window // 8) * np.arange(size), together)[:size]


def silence(rng, window, rate, size):
    """Six steady stretches, each after more than a window without arrivals."""
    stretch = np.arange(size) // (1 + size // 6)
    return steady(rng, window, rate, size) + (1 + window + rng.integers(0, window)) * stretch


SHAPES = (steady, ties, bursts, long_gaps, at_the_edge, doubling, silence)


def _zipf(rng, size):
    return rng.zipf(1.3, size) % 1000


def _few(rng, size):
    return rng.integers(0, 5, size)


def _one(rng, size):
    return np.zeros(size)


def _distinct(rng, size):
    return rng.permutation(size)


@dataclass(frozen=True)
class Program:
    """A long stream by its parameters, so that a failing example can be read."""

    shape: str
    popularity: str
    seed: int
    rate: float
    window: int
    epsilon: float
    size: int
    heaviest: int  # 1: every weight is 1; else weights are 0 .. heaviest
    start: int

    def arrivals(self) -> Arrivals:
        rng = np.random.default_rng(self.seed)
        shape = next(shape for shape in SHAPES if shape.__name__ == self.shape)
        ticks = self.start + shape(rng, self.window, self.rate, self.size).astype(np.int64)
        items = POPULARITIES[self.popularity](rng, self.size).astype(np.int64)
        lightest = 1 if self.heaviest == 1 else 0
        return Arrivals(items, ticks, rng.integers(lightest, self.heaviest + 1, self.size))


POPULARITIES = {"zipf": _zipf, "few": _few, "one": _one, "distinct": _distinct}


@dataclass(frozen=True)
class DrawnProgram:
    """A short stream written out: (ticks since the arrival before, item, weight)."""

    window: int
    epsilon: float
    seed: int
    events: list[tuple[int, int, int]]

    def arrivals(self) -> Arrivals:
        gaps, items, weights = np.array(self.events, np.int64).reshape(-1, 3).T
        return Arrivals(items, np.cumsum(gaps), weights)


def long_programs(max_size: int = 3000) -> st.SearchStrategy[Program]:
    return st.builds(
        Program,
        shape=st.sampled_from([shape.__name__ for shape in SHAPES]),
        popularity=st.sampled_from(sorted(POPULARITIES)),
        seed=st.integers(0, 2**32 - 1),
        rate=st.sampled_from([0.02, 0.5, 1, 10, 300]),
        window=st.sampled_from([1, 2, 7, 64, 1000, 100_000]),
        epsilon=st.sampled_from(EPSILONS),
        size=st.integers(1, max_size),
        heaviest=st.sampled_from([1, 1, 3, 1000]),
        start=st.sampled_from([1, 0, -5000, 2**40]),
    )


@st.composite
def drawn_programs(draw: st.DrawFn) -> DrawnProgram:
    window = draw(st.integers(1, 20))
    edges = [0, 1, max(0, window - 1), window, window + 1, 3 * window]
    gap = st.one_of(st.sampled_from(edges), st.integers(0, 3 * window))
    event = st.tuples(gap, st.integers(0, 3), st.integers(0, 4))
    return DrawnProgram(
        window=window,
        epsilon=draw(st.sampled_from(EPSILONS)),
        seed=draw(st.integers(0, 100)),
        events=draw(st.lists(event, max_size=40)),
    )


def programs(max_size: int = 3000) -> st.SearchStrategy[Program | DrawnProgram]:
    return st.one_of(drawn_programs(), long_programs(max_size))


def cut(seed: int, items: Ints, ticks: Ints, weights: Ints) -> Iterator[Arrivals]:
    """The same stream in batches of 0, 1 or many arrivals, each of them an own copy."""
    rng = np.random.default_rng(seed)
    begin = 0
    while begin < ticks.size:
        end = begin + int(rng.choice([0, 1, 2, rng.integers(1, 1000)]))
        yield Arrivals(*(column[begin:end].copy() for column in (items, ticks, weights)))
        begin = end
