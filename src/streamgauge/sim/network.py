"""Bytes from end to end: late, in another order than that of other links, twice, or not at all.

Within a link what was sent first arrives first, unless it is lost. Everything is drawn from one
seed, so a run that fails is its seed. What arrives is counted here and nowhere else, by link and
by kind; a message to every site counts once for each. What is lost costs nobody anything here, but
sending it again does.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamgauge import ticks
from streamgauge.protocols.messages import SiteName


class Livelock(RuntimeError):
    """Messages beget messages for ever; the text names the seed."""


@dataclass(frozen=True, slots=True)
class Delay:
    """How many ticks a message is on its way: drawn from `shortest` to `longest`."""

    shortest: int = 0
    longest: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.shortest <= self.longest:
            raise ValueError(
                f"a delay must go from at least 0 up, got {self.shortest} to {self.longest}"
            )

    @classmethod
    def parse(cls, text: str, tick: int | None = None) -> "Delay":
        """`instant`, `fixed:LENGTH` or `random:LENGTH-LENGTH`, in ticks or as durations."""
        kind, _, rest = text.partition(":")
        parts = rest.split("-") if kind == "random" else [rest, rest]
        if kind == "instant" and not rest:
            return cls()
        if kind not in ("fixed", "random") or len(parts) != 2 or not all(parts):
            raise ValueError(
                f"network must be instant, fixed:LENGTH or random:LENGTH-LENGTH, got {text!r}"
            )
        return cls(*(ticks.length(part, tick, "network") for part in parts))


class Crash(NamedTuple):
    """An end loses its memory at tick `at` and is back, from its snapshot, at tick `back`."""

    who: SiteName  # or COORDINATOR
    at: int
    back: int


class Partition(NamedTuple):
    """Between two ticks nothing passes between these sites and the coordinator."""

    begin: int
    end: int
    sites: tuple[SiteName, ...]


@dataclass(frozen=True, slots=True)
class Faults:
    """What goes wrong, and when. A site that is silenced is cut off for ever, alive or not."""

    seed: int = 0
    drop: float = 0.0
    duplicate: float = 0.0
    crashes: tuple[Crash, ...] = ()
    partitions: tuple[Partition, ...] = ()
    joins: tuple[tuple[SiteName, int], ...] = ()
    leaves: tuple[tuple[SiteName, int], ...] = ()
    silences: tuple[tuple[SiteName, int], ...] = ()

    @classmethod
    def drawn(
        cls,
        seed: int,
        sites: list[SiteName],
        begin: int,
        end: int,
        *,
        coordinator: SiteName,
        drop: float = 0.1,
        duplicate: float = 0.05,
    ) -> "Faults":
        """A plan for a run from `begin` to `end`, by the end of which all but silence is mended.

        Every site crashes once or twice, and so does the coordinator; two partitions; of four
        sites about one each joins late, leaves early or falls silent.
        """
        rng = np.random.default_rng(seed)
        length = max(1, end - begin)

        def moment(low: float, high: float) -> int:
            return begin + int(length * rng.uniform(low, high))

        crashes = []
        for who in [*sites, coordinator]:
            for _ in range(rng.integers(1, 3)):
                at = moment(0, 0.8)
                crashes.append(Crash(who, at, at + int(length * rng.uniform(0, 0.1))))
        partitions = []
        for _ in range(2):
            at = moment(0, 0.7)
            cut = tuple(site for site in sites if rng.random() < 0.5)
            partitions.append(Partition(at, at + int(length * rng.uniform(0, 0.2)), cut))
        fates = dict(zip(sites, rng.integers(0, 12, len(sites)).tolist(), strict=True))
        fated = [[site for site in sites if fates[site] in some] for some in ((0, 1, 2), (3, 4, 5))]
        return cls(
            seed,
            drop,
            duplicate,
            tuple(crashes),
            tuple(partitions),
            tuple((site, moment(0, 0.5)) for site in fated[0]),
            tuple((site, moment(0.5, 0.9)) for site in fated[1]),
            tuple((site, moment(0.1, 0.5)) for site in sites if fates[site] in (6, 7)),
        )


class Delivery(NamedTuple):
    """What arrived."""

    at: int
    sender: SiteName
    receiver: SiteName
    data: bytes


class Traffic(NamedTuple):
    """Messages and their bytes."""

    messages: int = 0
    bytes: int = 0


class Network:
    """All links between the coordinator and its sites; `kind` names what bytes are about."""

    def __init__(
        self,
        kind: Callable[[bytes], str],
        delay: Delay = Delay(),
        faults: Faults = Faults(),
        *,
        seed: int = 0,
        log: Callable[[Delivery], None] | None = None,
    ) -> None:
        self._kind, self._delay, self._faults, self._log = kind, delay, faults, log
        self._rng = np.random.default_rng([seed, faults.seed])
        self._queue: list[tuple[int, int, Delivery]] = []
        self._last: dict[tuple[SiteName, SiteName], int] = {}
        self._sent = 0
        self.messages: Counter[tuple[SiteName, SiteName, str]] = Counter()
        self.bytes: Counter[tuple[SiteName, SiteName, str]] = Counter()

    @property
    def is_empty(self) -> bool:
        """Nothing is on its way."""
        return not self._queue

    @property
    def next(self) -> int | None:
        """When the next bytes arrive."""
        return self._queue[0][0] if self._queue else None

    def send(self, sender: SiteName, receiver: SiteName, data: bytes, now: int) -> None:
        """Put bytes on their way."""
        faults = self._faults
        copies = 1
        if faults.drop or faults.duplicate:
            lost, again = self._rng.random(2)
            copies = int(lost >= faults.drop) + int(again < faults.duplicate)
        ends = {sender, receiver}
        if any(p.begin <= now < p.end and ends & set(p.sites) for p in faults.partitions):
            copies = 0
        if any(site in ends and now >= at for site, at in faults.silences):
            copies = 0
        for _ in range(copies):
            at = now + self._delay.shortest
            if self._delay.longest > self._delay.shortest:
                spread = self._delay.longest - self._delay.shortest
                at += int(self._rng.integers(0, spread + 1))
            at = max(at, self._last.get((sender, receiver), at))
            self._last[sender, receiver] = at
            self._sent += 1
            heapq.heappush(self._queue, (at, self._sent, Delivery(at, sender, receiver, data)))

    def due(self, now: int, there: Callable[[SiteName], bool]) -> Iterator[Delivery]:
        """What arrives up to `now`, in order; who is not `there` gets nothing."""
        while self._queue and self._queue[0][0] <= now:
            delivery = heapq.heappop(self._queue)[2]
            if not there(delivery.receiver):
                continue
            key = (delivery.sender, delivery.receiver, self._kind(delivery.data))
            self.messages[key] += 1
            self.bytes[key] += len(delivery.data)
            if self._log is not None:
                self._log(delivery)
            yield delivery

    def traffic(self) -> Traffic:
        """Of all links and kinds."""
        return Traffic(self.messages.total(), self.bytes.total())

    def by_kind(self) -> dict[str, Traffic]:
        """Of all links."""
        kinds = sorted({kind for *_, kind in self.messages})
        return {
            name: Traffic(
                sum(n for (*_, kind), n in self.messages.items() if kind == name),
                sum(n for (*_, kind), n in self.bytes.items() if kind == name),
            )
            for name in kinds
        }
