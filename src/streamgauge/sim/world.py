"""Sites, their streams and a coordinator on a network: the driver of the simulator.

Time moves in steps that the caller makes (`run`). In a step each site is fed what its stream has
until then, in pieces that end where it speaks; then the network delivers what is due, until
nothing moves; then all look at the clock, and once more. What happens inside of a step between two
sites is in no other order than that: a step is the grain of the network's time.

On a network that can be relied upon, messages travel bare. Where there are faults each link has a
session at both ends (protocols/session.py), and every machine is kept in snapshots with its ends,
at moments drawn from the plan's seed: a crash takes away what came later. A stream can be read
again from any event on, as a log can, and time that passed while a site was down passes for it
afterwards.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from streamgauge import wire
from streamgauge.protocols.messages import COORDINATOR, Answer, Send, SiteName
from streamgauge.protocols.session import End, Frame
from streamgauge.queries import Query
from streamgauge.sim.network import Delay, Delivery, Faults, Livelock, Network

_PIECE = 1 << 14  # events at most that a site is offered: when it speaks, the rest comes again
_ROUNDS = 1000  # of delivering at one tick, or of waiting for an answer: more is no end
_KEPT = 0.5  # how probable it is that a machine is kept at a moment where it could be


class SiteMachine(Protocol):
    """What every protocol's site does."""

    def update(self, items: Any, times: Any, weights: Any = None) -> tuple[int, list[Send]]: ...
    def advance(self, now: Any) -> list[Send]: ...
    def receive(self, message: Any) -> list[Send]: ...
    def leave(self) -> list[Send]: ...
    def renew(self) -> list[Send]: ...
    def to_bytes(self) -> bytes: ...


class CoordinatorMachine(Protocol):
    """What every protocol's coordinator does."""

    def join(self, site: SiteName, now: int | None = None) -> list[Send]: ...
    def hear(self, site: SiteName, now: int) -> list[Send]: ...
    def receive(self, site: SiteName, message: Any) -> list[Send]: ...
    def advance(self, now: Any) -> list[Send]: ...
    def answer(self, query: Query, now: Any = None) -> Answer: ...
    def to_bytes(self) -> bytes: ...


class Monitor(NamedTuple):
    """A protocol as it is run: how its machines begin, and what they say."""

    name: str
    site: Callable[[], SiteMachine]
    coordinator: Callable[[], CoordinatorMachine]
    messages: Any


class Stream(NamedTuple):
    """One site's events, in order of time."""

    items: Any
    ticks: NDArray[np.int64]
    weights: NDArray[np.int64] | None = None


@dataclass
class _Host:
    """A machine with its ends, and what is kept of them."""

    machine: Any
    ends: dict[SiteName, End] = field(default_factory=dict)
    position: int = 0  # in its stream
    stride: int = 64  # events that it is offered next: twice what it took when it spoke
    clock: int | None = None  # the tick up to which the machine has been fed and has spoken
    has_left: bool = False
    heard: dict[SiteName, int] = field(default_factory=dict)
    is_up: bool = True
    kept: tuple[Any, ...] = ()

    def keep(self) -> None:
        """A snapshot, of everything at once."""
        ends = {peer: end.to_bytes() for peer, end in self.ends.items()}
        rest = (self.position, self.clock, self.has_left, dict(self.heard))
        self.kept = (self.machine.to_bytes(), ends, *rest)
        self.saved()

    def saved(self) -> None:
        """Let out what waited for that."""
        for end in self.ends.values():
            end.saved()

    def restore(self) -> None:
        """Whatever came after the snapshot is gone."""
        machine, ends, self.position, self.clock, self.has_left, heard = self.kept
        self.machine = type(self.machine).from_bytes(machine)
        self.ends = {peer: End.from_bytes(end) for peer, end in ends.items()}
        self.heard = dict(heard)


class World:
    """A run of one protocol over several streams; with faults None the network loses nothing."""

    def __init__(
        self,
        monitor: Monitor,
        streams: Mapping[SiteName, Stream],
        *,
        delay: Delay = Delay(),  # noqa: B008 (frozen)
        faults: Faults | None = None,
        seed: int = 0,
        beat: int | None = None,
        log: Callable[[Delivery], None] | None = None,
    ) -> None:
        self._monitor, self._seed, self._beat = monitor, seed, beat
        self._retry = 2 * delay.longest + 1  # there and back
        self._has_sessions = faults is not None
        self._faults = faults = Faults() if faults is None else faults
        self._joins, self._leaves = dict(faults.joins), dict(faults.leaves)
        self._rng = np.random.default_rng([seed, faults.seed, 1])
        self.network = Network(self._kind, delay, faults, seed=seed, log=log)
        self.streams = {site: self._while_there(site, given) for site, given in streams.items()}
        self._plan = sorted(self._orders(), key=lambda order: order[0])
        self.sites: dict[SiteName, _Host] = {}
        self.coordinator = _Host(monitor.coordinator())
        for site in self.streams:
            if site not in self._joins:
                self._meet(site)
                self._join(site)
        self.coordinator.keep()

    def _while_there(self, site: SiteName, stream: Stream) -> Stream:
        begin, end = 0, stream.ticks.size
        if site in self._joins:
            begin = int(np.searchsorted(stream.ticks, self._joins[site]))
        if site in self._leaves:
            end = int(np.searchsorted(stream.ticks, self._leaves[site]))
        weights = None if stream.weights is None else stream.weights[begin:end]
        return Stream(stream.items[begin:end], stream.ticks[begin:end], weights)

    def _orders(self) -> Iterator[tuple[int, str, SiteName]]:
        for site, at in self._faults.joins:
            yield at, "join", site
        for crash in self._faults.crashes:
            yield crash.at, "crash", crash.who
            yield crash.back, "restart", crash.who

    def run(self, now: int) -> None:
        """All that happens up to the tick `now`."""
        while self._plan and self._plan[0][0] <= now:
            self._obey(*self._plan.pop(0))
        self._feed(now)
        self._exchange(now)
        for site, host in self._awake():
            if host.clock is None or host.clock < now:
                host.clock = now
                self._say(site, host, host.machine.advance(now), now)
        if self.coordinator.is_up:
            sends = self.coordinator.machine.advance(now)
            self._say(COORDINATOR, self.coordinator, sends, now)
        self._exchange(now)

    def settle(self, now: int) -> int:
        """Let the network's time go on from `now`, but not the streams', until all is quiet.

        Returns the ticks that it took.
        """
        if self._plan:
            raise ValueError(f"now must not be before the plan's end, got {now}: {self._plan}")
        self.run(now)
        for passed in range(_ROUNDS * self._retry):
            if self._is_quiet(now):
                return passed
            self._exchange(now + 1 + passed)
        raise Livelock(f"no end {1 + passed} ticks after tick {now}; {self._reproduction()}")

    def answer(self, query: Query, now: int) -> Answer:
        """The coordinator's, at the tick `now`."""
        answer: Answer = self.coordinator.machine.answer(query, now)
        return answer

    def _is_quiet(self, now: int) -> bool:
        """All that was said has arrived, and the coordinator knows that there is no more."""
        if not self._has_sessions:
            return self.network.is_empty
        cut = {site for site, _ in self._faults.silences}
        for site, host in self.sites.items():
            end = self.coordinator.ends.get(site)
            if site in cut:
                continue
            if end is None or host.ends[COORDINATOR].is_talking or end.is_talking:
                return False
            if self._beat and not host.has_left and self.coordinator.heard.get(site, now - 1) < now:
                return False
        return True

    def _obey(self, at: int, order: str, who: SiteName) -> None:
        host = self.coordinator if who == COORDINATOR else self.sites.get(who)
        if order == "join":
            self._join(who)
            if not self._has_sessions:
                self.coordinator.machine.join(who, at)
        elif host is not None:  # else it is not there yet
            host.is_up = order == "restart"
            if host.is_up:
                host.restore()

    def _join(self, site: SiteName) -> None:
        host = _Host(self._monitor.site())
        if self._has_sessions:
            host.ends[COORDINATOR] = self._end()
        host.keep()
        self.sites[site] = host

    def _meet(self, site: SiteName) -> None:
        """The coordinator hears of a site for the first time."""
        if self._has_sessions:
            self.coordinator.ends[site] = self._end()
        self.coordinator.machine.join(site)

    def _end(self) -> End:
        return End(epoch=1, retry=self._retry, beat=self._beat)

    def _awake(self) -> list[tuple[SiteName, _Host]]:
        return [each for each in self.sites.items() if each[1].is_up and not each[1].has_left]

    def _feed(self, now: int) -> None:
        for site, host in self._awake():
            stream = self.streams[site]
            end = int(np.searchsorted(stream.ticks, now, "right"))
            while host.position < end:
                piece = slice(host.position, min(host.position + host.stride, end))
                weights = None if stream.weights is None else stream.weights[piece]
                consumed, sends = host.machine.update(
                    stream.items[piece], stream.ticks[piece], weights
                )
                host.position += consumed
                host.stride = min(_PIECE, 2 * max(consumed, 32) if sends else 2 * host.stride)
                if sends:
                    self._say(site, host, sends, int(stream.ticks[host.position - 1]))
            if self._leaves.get(site, now + 1) <= now:
                host.has_left = True
                self._say(site, host, host.machine.leave(), now)

    def _say(self, name: SiteName, host: _Host, sends: Iterable[Send], at: int) -> None:
        for to, message in sends:
            data = wire.encode(message)
            if not self._has_sessions:
                self.network.send(name, to, data, at)
            elif to in host.ends:
                host.ends[to].send([data])

    def _exchange(self, now: int) -> None:
        """Deliver until nothing is due any more."""
        for _ in range(_ROUNDS):
            moved = self._has_sessions and self._send_frames(now)
            for delivery in list(self.network.due(now, self._is_there)):
                self._deliver(delivery, now)
                moved = True
            if not moved:
                return
        raise Livelock(f"no end of messages at tick {now}; {self._reproduction()}")

    def _send_frames(self, now: int) -> bool:
        sent = False
        for name, host in [*self.sites.items(), (COORDINATOR, self.coordinator)]:
            if not host.is_up:
                continue
            if not self._faults.crashes:
                host.saved()
            elif self._rng.random() < _KEPT:
                host.keep()
            for peer, end in host.ends.items():
                for frame in end.frames(now, host.clock):
                    self.network.send(name, peer, frame, now)
                    sent = True
        return sent

    def _is_there(self, name: SiteName) -> bool:
        return (self.coordinator if name == COORDINATOR else self.sites[name]).is_up

    def _deliver(self, delivery: Delivery, now: int) -> None:
        _, sender, receiver, data = delivery
        host = self.coordinator if receiver == COORDINATOR else self.sites[receiver]
        if not self._has_sessions:
            self._take(host, sender, receiver, data, now)
            return
        if sender not in host.ends:
            self._meet(sender)
        got = host.ends[sender].receive(data, now)
        for message in got.messages:
            self._take(host, sender, receiver, message, now)
        if got.heard is not None and receiver == COORDINATOR:
            host.heard[sender] = max(got.heard, host.heard.get(sender, got.heard))
            self._say(receiver, host, host.machine.hear(sender, got.heard), now)

    def _take(
        self, host: _Host, sender: SiteName, receiver: SiteName, data: bytes, now: int
    ) -> None:
        message = wire.decode(data, self._monitor.messages)
        if receiver == COORDINATOR:
            sends = host.machine.receive(sender, message)
        else:
            sends = host.machine.receive(message)
        self._say(receiver, host, sends, now)

    def _kind(self, data: bytes) -> str:
        """What bytes on the network are about."""
        if self._has_sessions:
            frame: Frame = wire.decode(data, Frame)
            if frame.message is None:
                return "empty frame"
            data = frame.message
        return kind(wire.decode(data, self._monitor.messages))

    def _reproduction(self) -> str:
        return f"{self._monitor.name}, seed {self._seed}, {self._faults}"


def kind(message: Any) -> str:
    """A message's type, and its encoding if there are several."""
    encoding = getattr(message, "encoding", None)
    return type(message).__name__ + (f" of {encoding}" if encoding else "")
