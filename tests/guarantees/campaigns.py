"""What is checked by the million: one seed is one stream, and every promise is asked of it.

`make test` runs fixed slices of these (test_campaigns.py), `make prove` goes on for hours and keeps
count in benches/results/prove. A certain promise that fails is an AssertionError and the seed its
reproduction; of the probable ones the failures are counted, one event declared for each seed.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import streamgauge as sg
from streamgauge import wire
from streamgauge.protocols import periodic
from streamgauge.sim.exact import ExactWindow
from streamgauge.traces.families import FAMILIES, Stream
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


def residues(rng: np.random.Generator, window: int, size: int, epsilon: float) -> Stream:
    """Before the range, three arrivals of as many items as the tables hold; then all distinct."""
    many = min(6 * round(1 / epsilon), size // 6)
    rests = np.tile(np.arange(many), 3)
    flood = many + rng.permutation(size - rests.size)
    ticks = np.sort(rng.integers(1, 2 * window + 1, size))
    return Stream(np.concatenate([rests, flood]), ticks)


def hiding(rng: np.random.Generator, window: int, size: int, epsilon: float) -> Stream:
    """Item 0 comes just as often as the others, all new, purge what there is of it."""
    flood = 1 + rng.permutation(size)
    every = max(2, round(0.7 / epsilon))
    items = np.where(np.arange(size) % every == 0, 0, flood)
    return Stream(items, np.sort(rng.integers(1, 3 * window + 1, size)))


def fading(rng: np.random.Generator, window: int, size: int, epsilon: float) -> Stream:
    """Item 0 comes once between two purges, which take it; then only others do.

    In one window: marks of 60 ticks are more than a level keeps, and most of its losses were early.
    """
    size = max(size, round(900 / epsilon))
    place = np.arange(size)
    early = (place < 0.85 * size) & (place % (2 * math.ceil(3 / epsilon) - 1) == 0)
    flood = 1 + rng.permutation(size)
    return Stream(np.where(early, 0, flood), 1 + place * window // size)


ATTACKS = {attack.__name__: attack for attack in (residues, hiding, fading)}


def assert_parts_known(
    sketch: sg.HeavyHitterSketch, counts: dict[int, int], last: int, now: int
) -> int:
    """Every item in range, some that are not, and the total; how many answers that were."""
    asked = [*list(counts), -1, -2]
    total = sum(counts.values())
    for item, found in zip(asked, sketch.estimate(asked, last, now), strict=True):
        value, low, high, confidence = found
        assert low <= counts.get(item, 0) <= high, (item, last, now, counts.get(item, 0), found)
        assert high - low <= sketch.epsilon * total, (item, last, now, total, found)
        assert (value, confidence) == ((low + high) / 2, 1.0)
    found = sketch.total(last, now)
    assert found.low <= total <= found.high, (last, now, total, found)
    return len(asked) + 1


def in_trees(kind: type[sg.HeavyHitterSketch], parts: list, depth: int) -> sg.HeavyHitterSketch:
    """The parts merged in a tree of about this depth, bytes at every second level."""
    fan_in = max(2, round(len(parts) ** (1 / depth)))
    level = list(parts)
    while len(level) > fan_in:
        groups = [level[at : at + fan_in] for at in range(0, len(level), fan_in)]
        level = [kind.merge([each.to_bytes() for each in group]) for group in groups]
    return kind.merge(level)


def heavy(seed: int) -> Checked:
    """All items of ranges at old edges, after small batches and silent ticks; sites in a tree."""
    rng = np.random.default_rng(seed)
    window = int(rng.choice([1, 7, 50, 1000, 10**6, 2**33]))
    epsilon = float(rng.choice([0.9, 0.5, 0.3, 0.1, 0.03]))
    size = int(rng.choice([300, 2000, 5000]))
    family = rng.choice([*(name for name in FAMILIES if "F13" not in name), *ATTACKS])
    if family in ATTACKS:
        items, ticks, _ = ATTACKS[family](rng, window, size, epsilon)
    else:
        items, ticks, _ = FAMILIES[family](window if "F12" not in family else 500, size, seed)
    heaviest = int(rng.choice([1, 1, 5, 1000, 10**6, 2**33]))
    weights = rng.integers(1, heaviest + 1, items.size)
    sites = int(rng.choice([1, 2, 5, 16]))
    site = rng.integers(0, sites, items.size)
    parts = [sg.HeavyHitterSketch(window=window, epsilon=epsilon) for _ in range(sites)]
    exact = ExactWindow(window)
    answers = 0
    for begin in range(0, items.size, 97):
        batch = slice(begin, begin + 97)
        exact.update(items[batch], ticks[batch], weights[batch])
        for at, part in enumerate(parts):
            own = site[batch] == at
            part.update(items[batch][own], ticks[batch][own], weights[batch][own])
        sketch = parts[0]
        if sites > 1:
            sketch = in_trees(sg.HeavyHitterSketch, parts, int(rng.integers(1, 5)))
            if rng.random() < 0.3:
                sketch = sketch.flatten()
        arrived = ticks[: batch.stop]
        now = int(arrived[-1]) + int(rng.choice([0, 0, 1, window // 3]))
        edges = now - rng.choice(arrived[-1000:], 4) + rng.integers(-1, 2, 4)
        for last in {window, int(rng.integers(1, window + 1)), *edges.tolist()}:
            if 1 <= last <= window:
                answers += assert_parts_known(sketch, exact.frequencies(last, now), last, now)
    return Checked(answers, 0, 0)


CAMPAIGNS: dict[str, Callable[[int], Checked]] = {
    "wave": wave,
    "ecm": ecm,
    "periodic": periodic_protocol,
    "heavy": heavy,
}
