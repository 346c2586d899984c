"""What holds for every protocol: every law is tested on each of them. A new one is one more Case.

Seen to catch: a byte not counted (test_every_byte_reported_is_a_byte_delivered), what sites hold
back not added to `high` (test_every_order_of_messages_ends_quiet_and_right), patience that never
ends (test_whatever_goes_wrong_ends_quiet_and_right), a batch or a reply that comes again taken
(test_a_message_that_comes_again_changes_nothing).
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamgauge as sg
from streamgauge import wire
from streamgauge.protocols import periodic, polling, shipping
from streamgauge.protocols.messages import COORDINATOR, ProtocolError
from streamgauge.sim.exact import ExactWindow
from streamgauge.sim.network import Delay, Faults
from streamgauge.sim.world import Monitor, Stream, World
from tests import arrivals


def template(window):
    return sg.EcmSketch(window=window, epsilon=0.2, delta=0.2, seed=5)


class Case(NamedTuple):
    """A protocol with the parameters that its laws are tested with."""

    name: str
    module: Any
    site: Callable[[int], Any]  # of a window
    coordinator: Callable[..., Any]  # of a window and, by name, patience

    def monitor(self, window, patience=None):
        return Monitor(
            self.name,
            lambda: self.site(window),
            lambda: self.coordinator(window, patience=patience),
            self.module.MESSAGES,
        )


def shipped(packing):
    return Case(
        f"shipping {packing}",
        shipping,
        lambda window: shipping.Site(window, batch=20, wait=7, packing=packing),
        lambda window, **options: shipping.Coordinator(window, batch=20, **options),
    )


PROTOCOLS = [
    Case(
        "periodic",
        periodic,
        lambda window: periodic.Site(template(window), 0.1),
        lambda window, **options: periodic.Coordinator(template(window), 0.1, **options),
    ),
    Case(
        "polling",
        polling,
        lambda window: polling.Site(template(window)),
        lambda window, **options: polling.Coordinator(template(window), 1, **options),
    ),
    shipped("raw"),
    shipped("deflated"),
]
every_protocol = pytest.mark.parametrize("case", PROTOCOLS, ids=lambda case: case.name)
QUESTIONS = [sg.Total(), sg.Frequency(1), sg.SelfJoin()]
seeds = st.integers(0, 2**32 - 1)
delays = st.sampled_from([Delay(), Delay(5, 5), Delay(0, 20)])
programs = arrivals.long_programs(max_size=600)


def streams_of(program, sites=3):
    events = program.arrivals()
    of = np.random.default_rng(program.seed).integers(0, sites, events.ticks.size)
    return {name: Stream(*(column[of == name] for column in events)) for name in range(sites)}


def ticks_of(program, parts=12):
    ticks = program.arrivals().ticks
    return np.unique(np.linspace(ticks[0], ticks[-1] + 5, parts).astype(np.int64)).tolist()


def require_bounds(world, now, window):
    """The answers against all that happened at the sites while they were there."""
    exact = ExactWindow(window)
    columns = [np.concatenate(each) for each in zip(*world.streams.values(), strict=True)]
    order = np.argsort(columns[1], kind="stable")
    exact.update(*(column[order] for column in (columns[0], columns[1], columns[2])))
    exact.advance(now)
    truths = [exact.total(), exact.frequency(1), exact.self_join()]
    for query, truth in zip(QUESTIONS, truths, strict=True):
        estimate = world.answer(query, now).estimate
        assert truth <= estimate.high * (1 + 1e-12), query
        if estimate.confidence == 1:
            assert estimate.low <= truth, query


@every_protocol
@given(program=programs, delay=delays, seed=seeds)
@settings(max_examples=30)
def test_every_order_of_messages_ends_quiet_and_right(case, program, delay, seed):
    world = World(case.monitor(program.window), streams_of(program), delay=delay, seed=seed)
    for now in ticks_of(program):
        world.run(now)
    world.settle(now)
    require_bounds(world, now, program.window)
    assert world.answer(sg.Total(), now).in_flight == 0


@every_protocol
@given(program=programs, delay=delays, seed=seeds)
@settings(max_examples=30)
def test_whatever_goes_wrong_ends_quiet_and_right(case, program, delay, seed):
    """Who is cut off for good is silent, and nobody else is."""
    ticks = ticks_of(program)
    end = ticks[-1] + 100
    plan = Faults.drawn(seed, [0, 1, 2], ticks[0], end, coordinator=COORDINATOR)
    monitor = case.monitor(program.window, patience=20)
    world = World(monitor, streams_of(program), delay=delay, faults=plan, seed=seed, beat=5)
    for now in [*ticks, end]:
        world.run(now)
    world.settle(end)
    require_bounds(world, end, program.window)
    assert set(world.answer(sg.Total(), end).silent) == {site for site, _ in plan.silences}


@every_protocol
@given(program=programs, seed=seeds, has_faults=st.booleans())
@settings(max_examples=20)
def test_every_byte_reported_is_a_byte_delivered(case, program, seed, has_faults):
    """Against a count of its own of what the network hands over, link by link."""
    count, size = Counter(), Counter()

    def log(delivery):
        count[delivery.sender, delivery.receiver] += 1
        size[delivery.sender, delivery.receiver] += len(delivery.data)

    faults = Faults(seed, drop=0.1, duplicate=0.1) if has_faults else None
    world = World(case.monitor(program.window), streams_of(program), faults=faults, log=log)
    for now in ticks_of(program):
        world.run(now)
    world.settle(now)
    for found, expected in ((world.network.messages, count), (world.network.bytes, size)):
        links = Counter()
        for (sender, receiver, _), number in found.items():
            links[sender, receiver] += number
        assert links == expected
    assert world.network.traffic() == (count.total(), size.total())
    kinds = world.network.by_kind()
    assert sum(kind.bytes for kind in kinds.values()) == size.total()
    assert sum(kind.messages for kind in kinds.values()) == count.total()


def told(case, program, cut, restore):
    """All that a site says and a coordinator becomes, with the stream cut in some way."""
    site, coordinator = case.site(program.window), case.coordinator(program.window)
    said = []
    rng = np.random.default_rng(cut)

    def deliver(sends):
        while sends:
            replies = []
            for to, message in sends:
                data = wire.encode(message)
                said.append(data)
                again = wire.decode(data, case.module.MESSAGES)
                if to == COORDINATOR:
                    replies += coordinator.receive(7, again)
                else:
                    replies += site.receive(again)
            sends = replies

    coordinator.join(7)
    for items, ticks, weights in arrivals.cut(cut, *program.arrivals()):
        taken = 0
        while taken < ticks.size:
            consumed, sends = site.update(items[taken:], ticks[taken:], weights[taken:])
            deliver(sends)
            taken += consumed
            if restore and rng.random() < 0.2:
                site = type(site).from_bytes(site.to_bytes())
                coordinator = type(coordinator).from_bytes(coordinator.to_bytes())
    now = int(program.arrivals().ticks[-1])
    deliver(site.advance(now))
    deliver(coordinator.advance(now))
    deliver(site.leave())
    return said, site.to_bytes(), coordinator.to_bytes()


@every_protocol
@given(program=arrivals.long_programs(max_size=700), seed=seeds)
@settings(max_examples=30)
def test_neither_batches_nor_snapshots_matter(case, program, seed):
    plain = told(case, program, seed, restore=False)
    assert told(case, program, seed + 1, restore=False) == plain
    assert told(case, program, seed, restore=True) == plain


@every_protocol
@given(program=programs, seed=seeds)
@settings(max_examples=20)
def test_a_message_that_comes_again_changes_nothing(case, program, seed):
    """Or it is refused, and changes nothing."""
    rng = np.random.default_rng(seed)
    log = []
    world = World(case.monitor(program.window), streams_of(program), log=log.append)
    for now in ticks_of(program):
        world.run(now)
    world.settle(now)
    machine = world.coordinator.machine
    before = machine.to_bytes()
    arrived = [each for each in log if each.receiver == COORDINATOR]
    for at in rng.integers(0, len(arrived), 20) if arrived else []:
        again = wire.decode(arrived[at].data, case.module.MESSAGES)
        try:
            assert machine.receive(arrived[at].sender, again) == []
        except ProtocolError:
            pass
        assert machine.to_bytes() == before


@every_protocol
@given(program=programs)
@settings(max_examples=20)
def test_no_news_costs_no_bytes(case, program):
    """A question is news: who is polled has been asked."""
    world = World(case.monitor(program.window), streams_of(program))
    now = ticks_of(program)[-1]
    for _ in range(4):
        world.run(now)
        now += program.window
    quiet = world.network.traffic()
    for _ in range(10):
        now += 1 + program.window // 2
        world.run(now)
    kinds = {"Poll", "Reply"}
    asked = [found for kind, found in world.network.by_kind().items() if kind in kinds]
    if not asked:
        assert world.network.traffic() == quiet


@every_protocol
@given(noise=st.binary(max_size=80), seed=seeds)
@settings(max_examples=50)
def test_hostile_bytes_give_wire_error(case, noise, seed):
    rng = np.random.default_rng(seed)
    site, coordinator = case.site(50), case.coordinator(50, patience=3)
    coordinator.join(7)
    _, sends = site.update(np.arange(30) % 5, np.arange(30))
    for send in sends:
        coordinator.receive(7, send.message)
    sends += site.leave()
    for machine in (site, coordinator):
        data = bytearray(machine.to_bytes())
        data[rng.integers(len(data))] = rng.integers(256)
        for hostile in (noise, bytes(data), bytes(data[: rng.integers(len(data))])):
            try:
                found = type(machine).from_bytes(hostile)
            except wire.WireError:
                continue
            assert type(machine).from_bytes(found.to_bytes()).to_bytes() == found.to_bytes()
    for send in sends:
        data = bytearray(wire.encode(send.message))
        data[rng.integers(len(data))] = rng.integers(256)
        try:
            coordinator.receive(7, wire.decode(bytes(data), case.module.MESSAGES))
        except (wire.WireError, ProtocolError):
            continue
        assert type(coordinator).from_bytes(coordinator.to_bytes()).to_bytes()
