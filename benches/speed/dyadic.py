"""What a dyadic sketch of IPv4 addresses costs: memory, updates, and every question.

The sketch is DyadicEcmSketch, `levels` the other design (docs/decisions/0004). The window holds
10**7 events; a stream of distinct addresses is the worst for the lists of the buckets.
"""

from collections.abc import Callable
from functools import partial
from time import thread_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benches import countmin, stream, tables
from benches.levels import LevelSketch
from benches.rounds import Case, Timing, take_turns
from streamgauge import DyadicEcmSketch, seeds

SEED = 7
EVENTS = 10_000_000
ITEMS, EXPONENT = 1_000_000, 1.1
SIZES: dict[str, Any] = {"bits": 32, "epsilon": 0.05, "delta": 0.05, "seed": SEED}
BATCH = 100_000
ROUNDS = 21


def measure(scale: float) -> tables.Table:
    """All rows; `scale` shrinks the stream and the work alike."""
    events = max(1, round(scale * EVENTS))
    rng = np.random.default_rng(SEED)
    drawn = stream.ranks(events, ITEMS, EXPONENT, SEED)
    zipf = rng.integers(0, 1 << 32, ITEMS)[drawn]
    distinct = rng.integers(0, 1 << 32, events)
    new = partial(DyadicEcmSketch, window=2 * events, **SIZES)
    levels = LevelSketch(window=2 * events, **SIZES)
    held = {
        f"DyadicEcmSketch of {ITEMS} addresses": _filled(new(), zipf),
        "DyadicEcmSketch of distinct addresses": _filled(new(), distinct),
        "waves a level": _filled(levels, zipf),
    }
    rows = [
        Timing(
            f"memory of {name}", "", "MB", each.nbytes / 1e6, each.nbytes / 1e6, None, None, "", 1
        )
        for name, each in held.items()
    ]
    first, *_ = held.values()
    rows += _updates(scale, held, zipf, distinct)
    rows += _answers(scale, first, zipf)
    about = {
        "seed": str(SEED),
        "trace": stream.described(zipf, ITEMS, EXPONENT) + "; here one event a tick",
        "clock": "seconds that the one thread ran on a core",
        "window": f"{2 * events} ticks with {events} events",
        "sizes": str(first.sizes),
    }
    return tables.Table(rows, about)


def _filled(sketch: Any, items: NDArray[np.int64]) -> Any:
    for at in range(0, items.size, BATCH):
        part = items[at : at + BATCH]
        sketch.update(part, np.arange(at, at + part.size))
    return sketch


def _updates(
    scale: float, held: dict[str, Any], zipf: NDArray[np.int64], distinct: NDArray[np.int64]
) -> list[Timing]:
    row_seeds = seeds.expand(SEED, 9).reshape(3, 3)
    counts = np.zeros((3, 58), np.uint32)
    many = max(1, round(scale * 1_000_000))

    def limit(items: NDArray[np.int64], _: Any) -> None:
        countmin.update(counts, row_seeds, items.view(np.uint64))

    plain = "count-min without a window 3 x 58"
    cases = [_case(plain, limit, zipf, many, {})]
    for (name, sketch), pool in zip(held.items(), (zipf, distinct, zipf), strict=True):
        goal = None if isinstance(sketch, LevelSketch) else 1 / 400
        size = many // 10 or 1 if isinstance(sketch, LevelSketch) else many
        cases.append(_case(f"update {name}", sketch.update, pool, size, {plain: goal}))
    return take_turns(cases, max(1, round(scale * ROUNDS)), clock=thread_time)


def _case(
    name: str,
    update: Callable[[Any, Any], None],
    pool: NDArray[np.int64],
    size: int,
    against: dict[str, float | None],
) -> Case:
    """The events that follow those which filled the window."""
    size, clock = min(size, pool.size), pool.size

    def run() -> None:
        nonlocal clock
        begin = clock % max(1, pool.size - size)
        for at in range(0, size, BATCH):
            part = pool[begin + at : begin + min(size, at + BATCH)]
            update(part, np.arange(clock, clock + part.size))
            clock += part.size

    return Case(name, run, unit="M events/s", amount=size / 1e6, against=against)


def _answers(scale: float, sketch: DyadicEcmSketch, zipf: NDArray[np.int64]) -> list[Timing]:
    last = max(1, sketch.window // 5)
    some = zipf[:1000]
    questions: dict[str, Callable[[], Any]] = {
        "total": lambda: sketch.total(last),
        "estimate of one item": lambda: sketch.estimate(int(zipf[0]), last),
        "estimate of 1000 items": lambda: sketch.estimate(some, last),
        "range": lambda: sketch.range(10**9, 2 * 10**9, last),
        "quantile": lambda: sketch.quantile(0.5, last),
        "heavy_hitters .05": lambda: sketch.heavy_hitters(0.05, last),
        "hierarchical_heavy_hitters .05": lambda: sketch.hierarchical_heavy_hitters(0.05, last),
        "max_frequency": lambda: sketch.max_frequency(last),
        "to_bytes": sketch.to_bytes,
    }
    cases = [Case(name, call) for name, call in questions.items()]
    return take_turns(cases, max(1, round(scale * ROUNDS)), clock=thread_time)


if __name__ == "__main__":
    tables.command("dyadic", measure)
