"""The driver itself, with a protocol whose every message must arrive exactly once.

Seen to catch: a machine kept without its ends, ends kept without their machine, a site that does
not read again what it took after its snapshot (all in test_nothing_is_lost_and_nothing_twice).
"""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamgauge as sg
from streamgauge.protocols.messages import COORDINATOR, Answer, Leave, Send
from streamgauge.sim.network import Delay, Faults, Livelock
from streamgauge.sim.world import Monitor, Stream, World


class Said(msgspec.Struct, frozen=True, array_like=True, tag=1):
    item: int


class Heard(msgspec.Struct, frozen=True, array_like=True, tag=2):
    item: int


class _Log:
    """A machine that is nothing but the list of what it was told."""

    def __init__(self):
        self.told = []

    def to_bytes(self):
        return msgspec.msgpack.encode(self.told)

    @classmethod
    def from_bytes(cls, data):
        machine = cls()
        machine.told = msgspec.msgpack.decode(data)
        return machine

    def advance(self, now):
        return []


class Parrot(_Log):
    """Says every third item."""

    def update(self, items, times, weights=None):
        thirds = np.flatnonzero(items % 3 == 0)
        if thirds.size == 0:
            return items.size, []
        return int(thirds[0]) + 1, [Send(COORDINATOR, Said(int(items[thirds[0]])))]

    def receive(self, message):
        self.told.append(message.item)
        return []

    def leave(self):
        return [Send(COORDINATOR, Leave(1))]


class Ear(_Log):
    """Notes who said what, and says that it has."""

    def join(self, site, now=None):
        return []

    def hear(self, site, now):
        return []

    def receive(self, site, message):
        if isinstance(message, Leave):
            self.told.append([site, -1])
            return []
        self.told.append([site, message.item])
        return [Send(site, Heard(message.item))]

    def answer(self, query, now=None):
        return Answer(sg.Estimate(0, 0, 0, 0), None, 0)


PARROTS = Monitor("parrots", Parrot, Ear, Said | Heard | Leave)


def streams(rng, size=300):
    return {
        name: Stream(rng.integers(0, 10**6, size), np.sort(rng.integers(0, 1000, size)))
        for name in range(3)
    }


@given(st.integers(0, 10**6), st.sampled_from([Delay(), Delay(4, 4), Delay(0, 30)]))
@settings(max_examples=40)
def test_nothing_is_lost_and_nothing_twice(seed, delay):
    plan = Faults.drawn(seed, [0, 1, 2], 0, 1000, coordinator=COORDINATOR)
    given_streams = streams(np.random.default_rng(seed))
    world = World(PARROTS, given_streams, delay=delay, faults=plan, seed=seed, beat=50)
    for now in range(25, 1026, 25):
        world.run(now)
    world.settle(1025)
    silent, left = {site for site, _ in plan.silences}, {site for site, _ in plan.leaves}
    for site, stream in world.streams.items():
        if site in silent:
            continue
        said = [item for item in stream.items.tolist() if item % 3 == 0]
        heard = [item for name, item in world.coordinator.machine.told if name == site]
        assert heard == said + ([-1] if site in left else [])
        if site not in left:
            assert world.sites[site].machine.told == said


def test_a_reliable_network_needs_no_sessions():
    given_streams = streams(np.random.default_rng(1))
    world = World(PARROTS, given_streams, delay=Delay(3, 3))
    for now in range(10, 1011, 10):
        world.run(now)
    assert world.settle(1010) <= 7
    kinds = world.network.by_kind()
    said = sum(int(np.sum(stream.items % 3 == 0)) for stream in given_streams.values())
    assert set(kinds) == {"Said", "Heard"}
    assert kinds["Said"].messages == kinds["Heard"].messages == said


class Echo(Ear):
    """Answers what is said with what makes it be said again."""

    def receive(self, site, message):
        return [Send(site, Heard(message.item))]


class Stubborn(Parrot):
    def receive(self, message):
        return [Send(COORDINATOR, Said(message.item))]


def test_a_livelock_is_an_error_that_names_the_seed():
    world = World(Monitor("echo", Stubborn, Echo, Said | Heard), streams(np.random.default_rng(1)))
    with pytest.raises(Livelock, match="no end of messages at tick 500; echo, seed 0"):
        world.run(500)


def test_a_plan_that_goes_on_is_not_settled():
    plan = Faults(joins=((1, 900),))
    world = World(PARROTS, streams(np.random.default_rng(1)), faults=plan)
    with pytest.raises(ValueError, match="now must not be before the plan's end, got 500"):
        world.settle(500)
