"""Observed errors of sketches as section 7.1 of the ECM-sketch paper defines them.

At the time t of the last arrival the ranges are (t - 10**i, t] and the whole window, and in each
range the questions are its self-join and one point query for each distinct item in it (of more
than MOST items as many drawn by seed). The errors are relative to the N arrivals in the range:

    |f' - f| / N   of a point query,   |F' - F| / N**2   of a self-join.

Averages are over all queries of all ranges.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benches.traces import Trace
from streamgauge import EcmSketch

MOST = 10_000
SEED = 7
DELTA = 0.15
EPSILONS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
POINT, JOIN = "point", "self-join"


class Asked(NamedTuple):
    """The questions about one range, and the truth."""

    last: int
    items: NDArray[np.int64]
    counts: NDArray[np.int64]
    total: int
    self_join: int


class Errors(NamedTuple):
    """Of all queries of one kind; `beyond` is the share of them above the bound."""

    average: float
    maximum: float
    beyond: float
    queries: int


def asked(trace: Trace) -> list[Asked]:
    """The questions about a trace, by brute force."""
    rng = np.random.default_rng(SEED)
    lasts = [10**i for i in range(20) if 10**i < trace.window] + [trace.window]
    found = []
    for last in lasts:
        inside = trace.ticks > trace.now - last
        items, counts = np.unique(trace.items[inside], return_counts=True)
        if items.size > MOST:
            drawn = np.sort(rng.choice(items.size, MOST, replace=False))
        else:
            drawn = np.arange(items.size)
        squares = int((counts.astype(np.int64) ** 2).sum())
        found.append(Asked(last, items[drawn], counts[drawn], int(counts.sum()), squares))
    return found


def errors(sketch: EcmSketch, query: str, questions: Sequence[Asked], now: int) -> Errors:
    """How far the sketch's answers are from the truth."""
    parts = []
    for each in questions:
        if query == POINT:
            answers = np.array([e.value for e in sketch.estimate(each.items, each.last, now)])
            parts.append(np.abs(answers - each.counts) / each.total)
        else:
            answer = sketch.self_join(each.last, now).value
            parts.append(np.array([abs(answer - each.self_join) / each.total**2]))
    every = np.concatenate(parts)
    beyond = float(np.mean(every > sketch.epsilon))
    return Errors(float(every.mean()), float(every.max()), beyond, every.size)


def new(
    query: str, counter: str, epsilon: float, window: int, site: int | None = None
) -> EcmSketch:
    """A sketch sized for one kind of query."""
    make = EcmSketch if query == POINT else EcmSketch.for_inner_product
    return make(window=window, epsilon=epsilon, delta=DELTA, seed=SEED, counter=counter, site=site)  # type: ignore[operator]
