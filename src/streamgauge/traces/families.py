"""The stream families F1 to F13, on which every windowed structure is tested and measured.

A family is a function of the window, the number of arrivals and a seed. Each makes the streams
that are hard in one way; what is worth asking while they run is said in their docstrings. Ticks
start at 1 and do not decrease. Unless a family says otherwise it spans three windows, so that
most arrivals expire, and weights are None (every weight is 1).
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgauge.traces.zipf import zipf as draw_zipf

Ints = NDArray[np.int64]


class Stream(NamedTuple):
    """Arrivals in order of their ticks."""

    items: Ints
    ticks: Ints
    weights: Ints | None = None


def uniform(window: int, size: int, seed: int) -> Stream:
    """F1: all of 1000 items equally often, at random ticks."""
    rng = np.random.default_rng(seed)
    return Stream(rng.integers(0, 1000, size), _random_ticks(rng, window, size))


def zipf(window: int, size: int, seed: int, exponent: float = 1.2) -> Stream:
    """F2: few frequent items and many rare ones."""
    rng = np.random.default_rng(seed)
    return Stream(draw_zipf(rng, size, 1000, exponent), _random_ticks(rng, window, size))


def bursts(window: int, size: int, seed: int) -> Stream:
    """F3: 1, 2, 10 or 1000 arrivals in one tick, then a gap of 1 .. 2 windows."""
    rng = np.random.default_rng(seed)
    in_burst = rng.choice([1, 2, 10, 1000], size)
    starts = np.cumsum(rng.integers(1, 2 * window + 1, size))
    return Stream(draw_zipf(rng, size, 1000, 1.2), np.repeat(starts, in_burst)[:size])


def silence(window: int, size: int, seed: int) -> Stream:
    """F4: busy times between silences longer than the window, with one arrival alone in each.

    Ask also two windows after the end: nothing may be left.
    """
    rng = np.random.default_rng(seed)
    gaps = rng.integers(0, 2, size)
    busy = 2 + size // 8
    for alone in (0, 1):
        gaps[alone::busy] = rng.integers(window + 1, 3 * window + 1, gaps[alone::busy].size)
    return Stream(draw_zipf(rng, size, 100, 1.2), np.cumsum(gaps))


def one_item(window: int, size: int, seed: int) -> Stream:
    """F5: all arrivals are of one item."""
    rng = np.random.default_rng(seed)
    return Stream(np.full(size, rng.integers(1000)), _random_ticks(rng, window, size))


def all_distinct(window: int, size: int, seed: int) -> Stream:
    """F6: no item comes twice."""
    rng = np.random.default_rng(seed)
    return Stream(rng.permutation(size), _random_ticks(rng, window, size))


def ties(window: int, size: int, seed: int) -> Stream:
    """F7: eight arrivals in every tick that has any, of four items, most of them repeated."""
    rng = np.random.default_rng(seed)
    ticks = np.repeat(_random_ticks(rng, window, 1 + size // 8), 8)[:size]
    return Stream(rng.integers(0, 4, size), ticks)


def drift(window: int, size: int, seed: int) -> Stream:
    """F8: another set of items every third of a window."""
    rng = np.random.default_rng(seed)
    ticks = _random_ticks(rng, window, size)
    return Stream(draw_zipf(rng, size, 100, 1.2) + 100 * (ticks // max(1, window // 3)), ticks)


def apart(window: int, size: int, seed: int) -> Stream:
    """F9: ticks at least 3 apart, so that the edges of `edge_ranges` tell all arrivals apart.

    Ask after every arrival for every one of them. The span is 3 to 5 ticks an arrival, whatever
    the window.
    """
    rng = np.random.default_rng(seed)
    return Stream(rng.integers(0, 3, size), np.cumsum(rng.integers(3, 6, size)))


def edge_ranges(ticks: Ints, window: int, now: int) -> list[int]:
    """The ranges up to the window that begin one tick before, at or after one of the ticks."""
    edges = (np.asarray(ticks)[:, None] + [-1, 0, 1]).ravel()
    ranges = np.unique(now - edges)
    return [int(last) for last in ranges if 1 <= last <= window]


def stopped(window: int, size: int, seed: int) -> Stream:
    """F10: one window of arrivals and no more. Ask at every later tick until all have expired."""
    rng = np.random.default_rng(seed)
    return Stream(draw_zipf(rng, size, 100, 1.2), np.sort(rng.integers(1, window + 1, size)))


def accelerating(window: int, size: int, seed: int) -> Stream:
    """F11: item 0 has come t**1.45 times by t, other items fill the rest of a constant rate.

    The slow growth of its rate keeps Splitter's neighbours similar enough to merge for ever.
    """
    rng = np.random.default_rng(seed)
    elapsed = np.arange(size) / max(1, size)
    others = rng.integers(1, 1000, size)
    items = np.where(rng.random(size) < elapsed**0.45, 0, others)
    return Stream(items, 1 + (3 * window * elapsed).astype(np.int64))


def slot_thief(window: int, size: int, seed: int, slots: int = 10) -> Stream:
    """F12: the stream that empties the slots of the ESS-sketch as published, one by one.

    In every round of the second half an old item's slot of the sketch has just expired, x comes
    c times into the empty slot and is evicted by a fresh item. So x ends with a frequency of
    (slots - 1) * c and an estimate of 0. The first item is the steady one, the last is x; the
    two halves are one window apart and hold at most `size` arrivals together.
    """
    rounds = slots - 1
    c = min(window, size // 2) // (2 * rounds) - 1
    if c < 1:
        raise ValueError(f"{slots} slots need window and size / 2 of {4 * rounds} or more")
    names = np.random.default_rng(seed).permutation(2 * rounds + 2)
    steady, x, old, fresh = names[0], names[-1], names[1 : 1 + rounds], names[1 + rounds : -1]
    before = [np.repeat([item, steady], c + 1) for item in old]
    after = [np.repeat([steady, x, item], [c + 1, c, 1]) for item in fresh]
    half = np.arange(1, 2 * rounds * (c + 1) + 1)
    return Stream(np.concatenate(before + after), np.concatenate([half, window + half]))


def churn(window: int, size: int, seed: int) -> Stream:
    """F13: each insertion (weight 1) is deleted (-1) some time later; for turnstile structures."""
    rng = np.random.default_rng(seed)
    inserted = _random_ticks(rng, window, (size + 1) // 2)
    deleted = inserted + rng.integers(0, window + 1, inserted.size)
    items = draw_zipf(rng, inserted.size, 1000, 1.2)
    ticks = np.concatenate([inserted, deleted])
    order = np.argsort(ticks, kind="stable")[:size]  # stable: in a tick, insertions come first
    weights = np.repeat([1, -1], inserted.size)
    return Stream(np.concatenate([items, items])[order], ticks[order], weights[order])


FAMILIES: dict[str, Callable[[int, int, int], Stream]] = {
    "F1 uniform": uniform,
    "F2 zipf 0.8": partial(zipf, exponent=0.8),
    "F2 zipf 1.2": partial(zipf, exponent=1.2),
    "F2 zipf 2.0": partial(zipf, exponent=2.0),
    "F3 bursts": bursts,
    "F4 silence": silence,
    "F5 one item": one_item,
    "F6 all distinct": all_distinct,
    "F7 ties": ties,
    "F8 drift": drift,
    "F9 apart": apart,
    "F10 stopped": stopped,
    "F11 accelerating": accelerating,
    "F12 slot thief": slot_thief,
    "F13 churn": churn,
}


def _random_ticks(rng: np.random.Generator, window: int, size: int) -> Ints:
    return np.sort(rng.integers(1, 3 * window + 1, size))
