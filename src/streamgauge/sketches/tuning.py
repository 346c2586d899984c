"""Which mu and tau suit a stream: the open question of Rivetti, Busnel & Mostefaoui (2015, IV-C).

Every pair of `MUS` and `TAUS` goes through a sample, in 64 batches of equal size. After each batch,
once a window has passed, the estimates of all items of the sample are compared with PERFECT's. Of
the pairs that never held more bytes of cells and live sub-cells than are allowed, the one with the
least mean absolute error is chosen; of equals the one that held the least.
"""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from streamgauge import items as item_words
from streamgauge import ticks
from streamgauge.sketches.countmin import PerfectWindowSketch
from streamgauge.sketches.door import Door
from streamgauge.sketches.frame import Ints
from streamgauge.sketches.spans import Floats

MUS = (0.9, 1.1, 1.25, 1.5, 2.0, 3.0)
TAUS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
BATCHES = 64

_PART_BYTES = 32  # of a cell, and of a sub-cell


class Tuning(NamedTuple):
    """A choice, its mean absolute error on the sample, and the bytes that it held at most."""

    mu: float
    tau: float
    error: float
    nbytes: int


class _Sample(NamedTuple):
    """Events in batches, their distinct items, and the tick when a window has passed."""

    batches: list[tuple[Any, Ints | None]]
    items: Any
    begun: int

    @classmethod
    def of(cls, door: Door, events: Any, times: Any) -> "_Sample":
        words, kind = item_words.words(events, "sample")
        moments = door.ticks(times, words.size, None)
        if moments.size != words.size:
            raise ValueError(f"times must be as many as items, got {moments.size} for {words.size}")
        begun = int(moments[0]) + door.window if moments.size else 0
        cuts = [words.size * i // BATCHES for i in range(BATCHES + 1)]
        batches = [
            (_again(words[a:b], kind), None if door.counts_arrivals else moments[a:b])
            for a, b in itertools.pairwise(cuts)
        ]
        return cls(batches, _again(np.unique(words), kind), begun)

    def through(self, sketch: Any) -> Iterator[Floats]:
        """All items' estimates after each batch."""
        for events, moments in self.batches:
            sketch.update(events, moments)
            if sketch.now is not None and sketch.now >= self.begun:
                yield np.array([found.value for found in sketch.estimate(self.items)])


def _again(words: Any, kind: item_words.Kind | None) -> Any:
    """Words as items."""
    return item_words.Hashed(words) if kind == "text" else words


def tuned(  # noqa: PLR0917  (what tune takes)
    splitter: Any, given: dict[str, Any], door: Door, events: Any, times: Any, memory: int
) -> Tuning:
    """The choice for sketches `splitter(**given, window=..., mu=..., tau=...)`."""
    sample = _Sample.of(door, events, times)
    given = given | {"window": ticks.arrivals(door.window) if door.counts_arrivals else door.window}
    truth = list(sample.through(PerfectWindowSketch(**given)))
    if not truth:
        raise ValueError("sample must be longer than the window")
    tried = [
        _tried(splitter(**given, mu=mu, tau=tau), sample, truth)
        for mu, tau in itertools.product(MUS, TAUS)
    ]
    fitting = [each for each in tried if each.nbytes <= memory]
    if not fitting:
        least = min(each.nbytes for each in tried)
        raise ValueError(f"memory must be at least {least} bytes for this sample, got {memory}")
    return min(fitting, key=lambda each: (each.error, each.nbytes))


def _tried(sketch: Any, sample: _Sample, truth: list[Floats]) -> Tuning:
    held, errors = 0, []
    for exact, found in zip(truth, sample.through(sketch), strict=True):
        errors.append(np.abs(found - exact).mean())
        held = max(held, sketch.subcells)
    nbytes = _PART_BYTES * (sketch.sizes.cells + held)
    return Tuning(sketch.mu, sketch.tau, float(np.mean(errors)), nbytes)
