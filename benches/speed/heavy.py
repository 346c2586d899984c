"""How fast a HeavyHitterSketch takes events and answers, and how large it is.

The window is full before anything is timed, and holds one event a tick. What a user would write
instead is a Counter over the events of the window, kept exactly; the limit is a count-min sketch
of the same epsilon that forgets nothing.
"""

import math
from collections import Counter
from collections.abc import Callable
from time import thread_time
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benches import countmin, stream, tables
from benches.rounds import Case, Timing, take_turns
from streamgauge import HeavyHitterSketch, seeds
from streamgauge.items import words

SEED = 7
WINDOW = 1_000_000
ITEMS, EXPONENT = 100_000, 1.1
BATCH = 100_000
ROUNDS = 31
ROWS = 3  # of the count-min sketch, as delta 0.05 asks


class Row(NamedTuple):
    """A timing, or a number of bytes with what it should be at most."""

    name: str
    baseline: str
    unit: str
    median: float
    best: float
    ratio: float | None
    ratio_of_best: float | None
    goal: str
    rounds: int


def measure(scale: float) -> tables.Table:
    """All rows; `scale` shrinks the window and the work alike."""
    drawn = stream.ranks(_part(scale, 4_000_000), ITEMS, EXPONENT, SEED)
    pool = stream.integers(ITEMS, SEED)[drawn]
    distinct = stream.integers(_part(scale, 8_000_000), SEED + 1)
    timings = [
        *_updates(scale, 0.1, "Zipf 1.1", pool, goal=1 / 20),
        *_updates(scale, 0.01, "Zipf 1.1", pool, goal=1 / 20),
        *_updates(scale, 0.001, "Zipf 1.1", pool, goal=1 / 14),
        *_updates(scale, 0.1, "all distinct", distinct, goal=None),
        *_updates(scale, 0.01, "all distinct", distinct, goal=1 / 30),
        *_updates(scale, 0.001, "all distinct", distinct, goal=None),
        *_text(scale, drawn),
        *_answers(scale, pool),
    ]
    rows = [Row(*timing) for timing in timings] + _sizes(scale, pool)
    about = {
        "seed": str(SEED),
        "trace": stream.described(pool, ITEMS, EXPONENT),
        "clock": "seconds that the one thread ran on a core",
        "window": f"{_part(scale, WINDOW)} ticks of one event",
    }
    return tables.Table(rows, about)


def _part(scale: float, size: int) -> int:
    return max(1, round(scale * size))


class _Events:
    """A pool round and round, one event a tick for ever."""

    def __init__(self, pool: Any) -> None:
        self.pool, self.tick = pool, 0

    def take(self, size: int) -> tuple[Any, NDArray[np.int64]]:
        """The next items and their ticks."""
        begin = self.tick % max(1, len(self.pool) - size)
        ticks = np.arange(self.tick + 1, self.tick + size + 1)
        self.tick += size
        return self.pool[begin : begin + size], ticks


def _filled(scale: float, epsilon: float, pool: Any) -> tuple[HeavyHitterSketch, _Events]:
    """A sketch that has seen twice its window."""
    window = _part(scale, WINDOW)
    sketch, events = HeavyHitterSketch(window=window, epsilon=epsilon), _Events(pool)
    while events.tick < 2 * window:
        sketch.update(*events.take(min(BATCH, window, len(pool))))
    return sketch, events


def _updates(
    scale: float, epsilon: float, name: str, pool: NDArray[np.int64], goal: float | None
) -> list[Timing]:
    batch = _part(scale, BATCH)
    sketch, events = _filled(scale, epsilon, pool)
    heavy, later = _filled(scale, epsilon, pool)
    width = math.ceil(math.e / epsilon)
    counts = np.zeros((ROWS, width), np.uint32)
    row_seeds = seeds.expand(SEED, 3 * ROWS).reshape(ROWS, 3)
    weights = np.random.default_rng(SEED).integers(1, 101, batch)
    skewed = name.startswith("Zipf")

    def limit(items: NDArray[np.int64], _: object) -> None:
        countmin.update(counts, row_seeds, items.view(np.uint64))

    def weighted(items: NDArray[np.int64], ticks: NDArray[np.int64]) -> None:
        heavy.update(items, ticks, weights)

    at = f"epsilon {epsilon} {name}"
    forgetless = f"count-min without a window {ROWS} x {width} {name}"
    update = f"HeavyHitterSketch.update {at}"
    cases = [
        _rate(forgetless, limit, _Events(pool), batch),
        _rate(update, sketch.update, events, batch, {forgetless: goal}),
        _rate(
            f"{update} weights 1 to 100", weighted, later, batch, {update: 0.15 if skewed else None}
        ),
    ]
    return take_turns(cases, _part(scale, ROUNDS), clock=thread_time)


def _rate(
    name: str,
    update: Callable[..., Any],
    events: _Events,
    size: int,
    against: dict[str, float | None] | None = None,
) -> Case:
    return Case(name, update, lambda: events.take(size), "M events/s", size / 1e6, against or {})


def _text(scale: float, drawn: NDArray[np.int64]) -> list[Timing]:
    """Addresses of about 13 bytes."""
    batch = _part(scale, BATCH)
    octets = np.random.default_rng(SEED).integers(0, 256, (ITEMS, 4)).tolist()
    texts = pa.array([".".join(map(str, each)) for each in octets]).take(pa.array(drawn))
    same = words(texts)[0]  # so that only the way to the words and their text differs
    numbers, counted = _filled(scale, 0.01, same)
    text, read = _filled(scale, 0.01, texts)
    update = "HeavyHitterSketch.update epsilon 0.01 of"
    integers = f"{update} the same as integers"
    cases = [
        _rate(integers, numbers.update, counted, batch),
        _rate(f"{update} Arrow text of 13 bytes", text.update, read, batch, {integers: 0.2}),
    ]
    return take_turns(cases, _part(scale, ROUNDS), clock=thread_time)


def _answers(scale: float, pool: NDArray[np.int64]) -> list[Timing]:
    """Questions about the whole window."""
    sketch, events = _filled(scale, 0.01, pool)
    window = sketch.window
    kept = np.resize(pool, events.tick)[-window:].tolist()
    item = kept[0]
    exact = "Counter over the exact window"
    ask = "HeavyHitterSketch epsilon 0.01"
    cases = [
        Case(exact, lambda: Counter(kept)),
        _repeated(
            f"{ask} heavy_hitters(0.02)", lambda: sketch.heavy_hitters(0.02), 20, exact, 0.01
        ),
        _repeated(f"{ask} top(10)", lambda: sketch.top(10), 20, exact, 0.01),
        _repeated(f"{ask} estimate of one item", lambda: sketch.estimate(item), 200, exact, 1e-4),
    ]
    return take_turns(cases, _part(scale, 15), clock=thread_time)


def _repeated(name: str, call: Callable[[], Any], times: int, baseline: str, goal: float) -> Case:
    return Case(
        name, lambda: [call() for _ in range(times)], amount=times, against={baseline: goal}
    )


def _sizes(scale: float, pool: NDArray[np.int64]) -> list[Row]:
    rows = []
    for epsilon in (0.1, 0.01, 0.001):
        sketch, _ = _filled(scale, epsilon, pool)
        goals = (300_000, 45_000) if epsilon == 0.01 else (None, None)
        sizes = (sketch.nbytes, len(sketch.to_bytes()))
        for name, size, goal in zip(("in memory", "to_bytes"), sizes, goals, strict=True):
            at_most = f"at most {goal}" if goal else ""
            rows.append(
                Row(
                    f"HeavyHitterSketch epsilon {epsilon} {name}", "", "bytes",
                    size, size, None, None, at_most, 1,
                )
            )  # fmt: skip
    return rows


if __name__ == "__main__":
    tables.command("heavy", measure)
