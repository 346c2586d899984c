"""What is checked by the million: one seed is one stream, and every promise is asked of it.

`make test` runs fixed slices of these (test_campaigns.py), `make prove` goes on for hours and keeps
count in benches/results/prove. A certain promise that fails is an AssertionError and the seed its
reproduction; of the probable ones the failures are counted, one event declared for each seed.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import streamgauge as sg
from streamgauge import wire
from streamgauge.protocols import periodic
from streamgauge.protocols.messages import COORDINATOR, SiteName
from streamgauge.sim.exact import ExactWindow
from streamgauge.sim.network import Delay, Faults
from streamgauge.sim.world import Monitor, Stream, World
from tests import arrivals

DELTA = 0.05


class Checked(NamedTuple):
    """What one seed has shown: certain answers, all right, and probable ones that failed."""

    certain: int
    probable: int
    failed: int


def stream(rng: np.random.Generator, size: int) -> arrivals.Program:
    """A stream of any shape: ties, bursts, gaps, silences, weights, windows from 1 to 100 000."""
    return arrivals.Program(
        shape=rng.choice([shape.__name__ for shape in arrivals.SHAPES]),
        popularity=rng.choice(sorted(arrivals.POPULARITIES)),
        seed=int(rng.integers(1 << 32)),
        rate=float(rng.choice([0.02, 0.5, 1, 10, 300])),
        window=int(rng.choice([1, 2, 7, 64, 1000, 100_000])),
        epsilon=float(rng.choice(arrivals.EPSILONS)),
        size=size,
        heaviest=int(rng.choice([1, 1, 3, 1000])),
        start=int(rng.choice([1, 0, -5000, 2**40])),
    )


def wave(seed: int) -> Checked:
    """After every arrival, ranges at the edges of old arrivals and at random; then silence."""
    rng = np.random.default_rng(seed)
    program = stream(rng, 1500)
    _, ticks, weights = program.arrivals()
    summed = np.concatenate([[0], np.cumsum(weights)])
    window = program.window
    counted = sg.Wave(window=window, epsilon=program.epsilon)
    answers = 0
    for i in range(ticks.size + 20):
        arrived = min(i + 1, ticks.size)
        if i < ticks.size:
            counted.update(ticks[i : i + 1], weights[i : i + 1])
            now = int(ticks[i])
        else:
            now += 1 + window // 10
            counted.advance(now)
        edges = now - rng.choice(ticks[:arrived], 10) + rng.integers(-1, 2, 10)
        ranges = np.concatenate([edges, rng.integers(1, window + 1, 5), [1, window]])
        ranges = ranges[(ranges >= 1) & (ranges <= window)]
        truth = summed[arrived] - summed[np.searchsorted(ticks[:arrived], now - ranges, "right")]
        for last, true in zip(ranges.tolist(), truth.tolist(), strict=True):
            value, low, high, _ = counted.estimate(last)
            assert low <= true <= high, (seed, now, last, true, low, high)
            assert abs(value - true) <= program.epsilon * true, (seed, now, last, true, value)
            answers += 1
    return Checked(answers, 0, 0)


def ecm(seed: int) -> Checked:
    """All items of the window after every batch; at the end one item or the self-join may fail."""
    rng = np.random.default_rng(seed)
    program = stream(rng, 3000)
    epsilon = max(program.epsilon, 0.05)
    sketch = sg.EcmSketch(window=program.window, epsilon=epsilon, delta=DELTA / 2, seed=seed)
    exact = ExactWindow(program.window)
    items, ticks, weights = program.arrivals()
    last = int(rng.integers(1, program.window + 1))
    declared = int(rng.choice(items))
    answers = 0
    for batch in arrivals.cut(seed, items, ticks, weights):
        sketch.update(batch.items, batch.ticks, batch.weights)
        exact.update(batch.items.tolist(), batch.ticks, batch.weights)
        if sketch.now is None:
            continue
        counts = exact.frequencies(last)
        asked = [*list(counts)[:200], -1]
        for item, found in zip(asked, sketch.estimate(asked, last), strict=True):
            assert counts.get(item, 0) <= found.high, (seed, item, last)
        total, joined = sketch.total(last), sketch.self_join(last)
        assert total.low <= exact.total(last) <= total.high, (seed, last)
        assert exact.self_join(last) <= joined.high * (1 + 1e-12), (seed, last)
        answers += len(asked) + 3
    found, true = sketch.estimate(declared, last), exact.frequency(declared, last)
    failed = found.low > true or abs(found.value - true) > (epsilon + 2**-30) * exact.total(last)
    failed_join = joined.low > exact.self_join(last) * (1 + 1e-12)
    return Checked(answers, 1, int(failed or failed_join))


def periodic_protocol(seed: int) -> Checked:
    """Three sites; at random moments the coordinator's answers against the union of all events."""
    rng = np.random.default_rng(seed)
    program = stream(rng, 1200)
    share = float(rng.choice([0.02, 0.1, 0.4]))
    template = sg.EcmSketch(window=program.window, epsilon=0.1, delta=DELTA, seed=seed)
    coordinator = periodic.Coordinator(template, share)
    sites = [periodic.Site(template, share) for _ in range(3)]
    exact = ExactWindow(program.window)
    answers = 0

    def deliver(name, sends):
        for send in sends:
            coordinator.receive(name, wire.decode(wire.encode(send.message), periodic.MESSAGES))

    for batch in arrivals.cut(seed, *program.arrivals()):
        if batch.ticks.size == 0:
            continue
        now = int(batch.ticks[-1])
        for name, site in enumerate(sites):
            own = [column[name::3] for column in batch]
            taken = 0
            while taken < own[0].size:
                consumed, sends = site.update(*(column[taken:] for column in own))
                deliver(name, sends)
                taken += consumed
            deliver(name, site.advance(now))
        exact.update(batch.items.tolist(), batch.ticks, batch.weights)
        last = int(rng.integers(1, program.window + 1))
        total = coordinator.answer(sg.Total(last), now).estimate
        assert total.low <= exact.total(last) <= total.high, (seed, now, last)
        for item in batch.items[-3:].tolist():
            found = coordinator.answer(sg.Frequency(item, last), now).estimate
            assert exact.frequency(item, last) <= found.high, (seed, now, item, last)
        joined = coordinator.answer(sg.SelfJoin(last), now).estimate
        assert exact.self_join(last) <= joined.high * (1 + 1e-12), (seed, now, last)
        answers += 2 + min(3, batch.items.size)
    return Checked(answers, 1, int(joined.low > exact.self_join(last) * (1 + 1e-12)))


PATIENCE = 40


def faults(seed: int) -> Checked:
    """The periodic protocol while all goes wrong: messages lost and doubled, crashes, partitions.

    When it is quiet again the answers are within their bounds, who was cut off for good is named
    and nobody else, and the coordinator has the very sketch of each site's last report.
    """
    rng = np.random.default_rng(seed)
    program = stream(rng, 800)
    events = program.arrivals()
    names: list[SiteName] = [0, 1, 2, 3]
    of = rng.integers(0, len(names), events.ticks.size)
    streams = {name: Stream(*(column[of == name] for column in events)) for name in names}
    begin, end = int(events.ticks[0]), int(events.ticks[-1]) + 10 * PATIENCE
    plan = Faults.drawn(seed, names, begin, end, coordinator=COORDINATOR)
    share = float(rng.choice([0.02, 0.1, 0.4]))
    template = sg.EcmSketch(window=program.window, epsilon=0.1, delta=DELTA, seed=seed)
    monitor = Monitor(
        "periodic",
        lambda: periodic.Site(template, share),
        lambda: periodic.Coordinator(template, share, PATIENCE),
        periodic.MESSAGES,
    )
    delay = [Delay(), Delay(3, 3), Delay(0, 10)][rng.integers(3)]
    world = World(monitor, streams, delay=delay, faults=plan, seed=seed, beat=PATIENCE // 4)
    ends = np.unique(np.linspace(begin, end, 40).astype(np.int64)).tolist()
    for now in ends:
        world.run(now)
    world.settle(end)

    exact = ExactWindow(program.window)
    there = [np.concatenate(column) for column in zip(*world.streams.values(), strict=True)]
    order = np.argsort(there[1], kind="stable")
    exact.update(there[0][order].tolist(), there[1][order], there[2][order])
    exact.advance(end)
    silent = {site for site, _ in plan.silences}
    found = world.answer(sg.Total(), end)
    assert set(found.silent) == silent, seed
    last = int(rng.integers(1, program.window + 1))
    total = world.answer(sg.Total(last), end).estimate
    assert total.low <= exact.total(last) <= total.high, (seed, last)
    assert (total.high == np.inf) == bool(silent), seed
    for item in events.items[-3:].tolist():
        frequency = world.answer(sg.Frequency(item, last), end).estimate
        assert exact.frequency(item, last) <= frequency.high, (seed, item, last)
    joined = world.answer(sg.SelfJoin(last), end).estimate
    assert exact.self_join(last) <= joined.high * (1 + 1e-12), (seed, last)
    coordinator = world.coordinator.machine
    for name, host in world.sites.items():
        if host.has_left:
            assert name not in coordinator.sites, seed
        elif name not in silent:
            assert coordinator.number(name) == host.machine.number, seed
            if host.machine.number:
                total = coordinator.sites[name].total_wave()
                assert total.to_bytes() == host.machine.reported.to_bytes(), seed
    return Checked(6 + len(names), 1, int(joined.low > exact.self_join(last) * (1 + 1e-12)))


CAMPAIGNS: dict[str, Callable[[int], Checked]] = {
    "wave": wave,
    "ecm": ecm,
    "periodic": periodic_protocol,
    "faults": faults,
}
