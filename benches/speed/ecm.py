"""How fast an ECM-sketch and a wave take events, integers and text, and answer.

The window is full before anything is timed, unless a row says "first": a sketch that has stopped
growing is what a long stream meets.
"""

from collections.abc import Callable
from copy import copy
from functools import partial
from importlib.metadata import version
from time import thread_time
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from benches import countmin, stream, tables
from benches.rounds import Case, Timing, take_turns
from benches.scan import frequencies
from benches.stream import Stream
from streamgauge import Buffer, EcmSketch, Wave, seeds
from streamgauge.items import words

SEED = 7
WINDOW = 2_000_000
ITEMS, EXPONENT = 100_000, 1.1
DELTA = 0.1
ROUNDS = 61


def measure(scale: float) -> tables.Table:
    """All rows; `scale` shrinks the window and the work alike."""
    drawn = stream.ranks(_part(scale, 4_000_000), ITEMS, EXPONENT, SEED)
    pool = stream.integers(ITEMS, SEED)[drawn]
    rows = [
        *_updates(scale, 0.1, pool, over_loop=10, over_limit=0.22),
        *_updates(scale, 0.01, pool, over_loop=None, over_limit=0.2),
        *_answers(scale, pool),
        *_text(scale, drawn),
    ]
    about = {
        "seed": str(SEED),
        "trace": stream.described(pool, ITEMS, EXPONENT),
        "clock": "seconds that the one thread ran on a core",
        "window": f"{_part(scale, WINDOW)} ticks, delta {DELTA}",
        "datasketches": version("datasketches"),
        "xxhash": version("xxhash"),
    }
    return tables.Table(rows, about)


def _part(scale: float, size: int) -> int:
    return max(1, round(scale * size))


def _updates(
    scale: float,
    epsilon: float,
    pool: NDArray[np.int64],
    over_loop: float | None,
    over_limit: float | None,
) -> list[Timing]:
    window, many = _part(scale, WINDOW), _part(scale, 1_000_000)
    new = partial(EcmSketch, window=window, epsilon=epsilon, delta=DELTA, seed=SEED)
    sketch, events = new(), Stream()
    events.fill(sketch.update, pool, window)
    wave, moments = Wave(window=window, epsilon=epsilon), Stream()
    moments.fill(lambda _, ticks: wave.update(ticks), pool, window)
    # weights would fill the sketch of the other cases further
    heavy, later = EcmSketch.from_bytes(sketch.to_bytes()), copy(events)
    buffered = EcmSketch.from_bytes(sketch.to_bytes())

    peer = datasketches.count_min_sketch(sketch.depth, sketch.width, SEED)
    plain = pool[: _part(scale, 200_000)].tolist()
    counts = np.zeros((sketch.depth, sketch.width), np.uint32)
    row_seeds = seeds.expand(SEED, 3 * sketch.depth).reshape(sketch.depth, 3)
    weights = np.random.default_rng(SEED).integers(1, 101, many)

    def loop(items: list[int], _: object) -> None:
        update = peer.update
        for item in items:
            update(item)

    def limit(items: NDArray[np.int64], _: object) -> None:
        countmin.update(counts, row_seeds, items.view(np.uint64))

    buffer = Buffer(buffered)

    def single(items: list[int], ticks: NDArray[np.int64]) -> None:
        update = buffer.update
        for item, tick in zip(items, ticks.tolist(), strict=True):
            update(item, tick)
        buffer.flush()

    def weighted(items: NDArray[np.int64], ticks: NDArray[np.int64]) -> None:
        heavy.update(items, ticks, weights[: items.size])

    sizes = f"{sketch.depth} x {sketch.width}"
    one_by_one = f"datasketches count_min_sketch.update {sizes}"
    forgetless = f"count-min without a window {sizes}"
    ecm = f"EcmSketch.update epsilon {epsilon}"
    full = f"{ecm} batches of 100000"
    goals = {one_by_one: over_loop, forgetless: over_limit}
    beside = {full: None}
    cases = [
        Stream().case(one_by_one, loop, plain, events=_part(scale, 100_000)),
        Stream().case(forgetless, limit, pool, events=many),
        events.case(full, sketch.update, pool, events=many, against=goals),
        *(
            events.case(
                f"{ecm} batches of {batch}", sketch.update, pool,
                events=_part(scale, total), batch=batch, against=beside,
            )
            for batch, total in {10_000: 1_000_000, 100: 50_000, 1: 1000}.items()
        ),
        copy(later).case(
            f"Buffer.update epsilon {epsilon} one by one", single, plain,
            events=_part(scale, 100_000), against={one_by_one: 0.2, full: None},
        ),
        later.case(
            f"{ecm} weights 1 to 100", weighted, pool, events=_part(scale, 100_000), against=beside
        ),
        Stream().case(
            f"{ecm} the first 1000000 events",
            lambda items, ticks: new().update(items, ticks),
            pool, events=many, batch=many, against=beside,
        ),
        moments.case(
            f"Wave.update epsilon {epsilon} batches of 100000",
            lambda _, ticks: wave.update(ticks), pool, events=many,
        ),
    ]  # fmt: skip
    return take_turns(cases, _part(scale, ROUNDS), clock=thread_time)


def _answers(scale: float, pool: NDArray[np.int64]) -> list[Timing]:
    cases = [case for epsilon in (0.1, 0.01) for case in _questions(scale, epsilon, pool)]
    return take_turns(cases, _part(scale, ROUNDS), clock=thread_time)


def _questions(scale: float, epsilon: float, pool: NDArray[np.int64]) -> list[Case]:
    """About the last tenth of the window, and bytes."""
    window = _part(scale, WINDOW)
    sketch = EcmSketch(window=window, epsilon=epsilon, delta=DELTA, seed=SEED)
    Stream().fill(sketch.update, pool, window)
    data = sketch.to_bytes()
    last = max(1, window // 10)
    many = pool[: _part(scale, 10_000)]
    few = many[: _part(scale, 200)].tolist()

    at, rate = f"epsilon {epsilon}", "k items/s"
    found = np.empty(many.size)
    grid, cutoff = sketch._held.cells, sketch.now - last

    def scan() -> None:
        arrays = (*grid._arrays(), cutoff - grid._base)
        frequencies(*arrays, sketch._seeds, sketch.width, many.view(np.uint64), found)

    scanned = f"a scan of the cells of 10000 items, {at}"
    goals = {scanned: 1.5, "EcmSketch.estimate epsilon 0.1 10000 items": 0.5}
    return [
        Case(scanned, scan, unit=rate, amount=many.size / 1e3),
        Case(
            f"EcmSketch.estimate {at} one item",
            lambda: [sketch.estimate(item, last) for item in few],
            unit=rate,
            amount=len(few) / 1e3,
        ),
        Case(
            f"EcmSketch.estimate {at} 10000 items",
            lambda: sketch.estimate(many, last),
            unit=rate,
            amount=many.size / 1e3,
            against=goals if epsilon == 0.01 else {scanned: None},
        ),
        _repeated(f"EcmSketch.total {at}", lambda: sketch.total(last)),
        _repeated(f"EcmSketch.self_join {at}", lambda: sketch.self_join(last)),
        _repeated(f"EcmSketch.to_bytes {at}", sketch.to_bytes),
        _repeated(f"EcmSketch.from_bytes {at}", lambda: EcmSketch.from_bytes(data)),
    ]


def _repeated(name: str, call: Callable[[], Any], times: int = 5) -> Case:
    return Case(name, lambda: [call() for _ in range(times)], amount=times)


def _text(scale: float, drawn: NDArray[np.int64]) -> list[Timing]:
    """Addresses of about 13 bytes and links of 45 into a sketch of epsilon 0.1."""
    window, many, few = (_part(scale, size) for size in (WINDOW, 500_000, 100_000))
    octets = np.random.default_rng(SEED).integers(0, 256, (ITEMS, 4)).tolist()
    texts = {
        "13 bytes": [".".join(map(str, each)) for each in octets],
        "45 bytes": [f"https://example.org/path/{i % 977:03}/item?id={i:08}" for i in range(ITEMS)],
    }
    pools = {name: pa.array(distinct).take(pa.array(drawn)) for name, distinct in texts.items()}
    # both sketches see the same words, so only the way to them differs
    same = words(pools["13 bytes"])[0]
    new = partial(EcmSketch, window=window, epsilon=0.1, delta=DELTA, seed=SEED)
    numbers, text = new(), new()
    counted, read = Stream(), Stream()
    counted.fill(numbers.update, same, window)
    read.fill(text.update, pools["13 bytes"], window)

    update = "EcmSketch.update of"
    integers = f"{update} the same as integers"
    cases = [counted.case(integers, numbers.update, same, events=many)]
    for name, pool in pools.items():
        arrow, loop = f"{update} Arrow text of {name}", f"xxh64(str.encode()) loop over {name}"
        goals = {integers: 0.3, loop: 5} if name == "13 bytes" else {integers: None, loop: None}
        first = pool[: 2 * few].to_pylist()
        cases += [
            Stream().case(loop, _hash, first, events=few),
            read.case(arrow, text.update, pool, events=many, against=goals),
            read.case(
                f"{update} a list of str of {name}",
                text.update, first, events=few, against={arrow: None, loop: None},
            ),
        ]  # fmt: skip
    encoded = pools["13 bytes"].dictionary_encode()
    dictionary = f"{update} an Arrow dictionary of 13 bytes"
    cases.append(read.case(dictionary, text.update, encoded, events=many, against={integers: None}))
    return take_turns(cases, _part(scale, ROUNDS), clock=thread_time)


def _hash(items: list[str], _: object) -> list[int]:
    return [xxhash.xxh64(item.encode()).intdigest() for item in items]


if __name__ == "__main__":
    tables.command("ecm", measure)
