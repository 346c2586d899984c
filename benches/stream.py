"""The stream of the speed benches: items from a pool drawn once, at ticks that go on for ever."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benches.rounds import Case
from streamgauge.traces.generate import digest
from streamgauge.traces.zipf import zipf

PER_TICK = 137  # events a second of the World Cup 98 logs, on average


class Stream:
    """Events, PER_TICK of them in each tick from tick 1 on; the caller says of which items."""

    def __init__(self) -> None:
        self.events = 0

    def take(self, pool: Any, size: int) -> tuple[Any, NDArray[np.int64]]:
        """The next events; their items are a slice of the pool, another one each time."""
        begin = self.events % max(1, len(pool) - size)
        ticks = 1 + np.arange(self.events, self.events + size) // PER_TICK
        self.events += size
        return pool[begin : begin + size], ticks

    def fill(self, update: Callable[[Any, Any], None], pool: Any, window: int) -> None:
        """Feed a sketch the next `window` ticks."""
        end = self.events + window * PER_TICK
        while self.events < end:
            update(*self.take(pool, min(len(pool), end - self.events)))

    def case(
        self,
        name: str,
        update: Callable[[Any, Any], Any],
        pool: Any,
        *,
        events: int,
        batch: int = 100_000,
        against: Mapping[str, float | None] = MappingProxyType({}),
    ) -> Case:
        """Time `update(items, ticks)` on the next events, cut into batches."""
        batch = min(batch, events)
        size = events - events % batch

        def cut() -> tuple[list[tuple[Any, NDArray[np.int64]]]]:
            items, ticks = self.take(pool, size)
            cuts = [slice(at, at + batch) for at in range(0, size, batch)]
            return ([(items[each], ticks[each]) for each in cuts],)

        def run(batches: list[tuple[Any, NDArray[np.int64]]]) -> None:
            for items, ticks in batches:
                update(items, ticks)

        return Case(name, run, cut, "M events/s", size / 1e6, against)


def ranks(size: int, items: int, exponent: float, seed: int) -> NDArray[np.int64]:
    """Draws from a Zipf distribution over 0 .. items - 1."""
    return zipf(np.random.default_rng(seed), size, items, exponent)


def integers(items: int, seed: int) -> NDArray[np.int64]:
    """Random 64-bit items."""
    return np.random.default_rng(seed).integers(-(1 << 63), 1 << 63, items)


def described(pool: NDArray[np.int64], items: int, exponent: float) -> str:
    """A line for a table's lead that names the stream for good."""
    sha = digest({"ts": 1 + np.arange(pool.size) // PER_TICK, "item": pool})
    return (
        f"Zipf {exponent} over {items} random 64-bit items, {PER_TICK} events a tick, "
        f"{pool.size} draws round and round; sha256 of their ts and item {sha}"
    )
