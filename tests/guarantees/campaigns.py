"""What is checked by the million: one seed is one stream, and every promise is asked of it.

`make test` runs fixed slices of these (test_campaigns.py), `make prove` goes on for hours and keeps
count in benches/results/prove. A certain promise that fails is an AssertionError and the seed its
reproduction; of the probable ones the failures are counted, one event declared for each seed.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import streamgauge as sg
from streamgauge import wire
from streamgauge.protocols import periodic
from streamgauge.protocols.messages import COORDINATOR, SiteName
from streamgauge.sim.exact import ExactWindow
from streamgauge.sim.network import Delay, Faults
from streamgauge.sim.world import Monitor, Stream, World
from streamgauge.traces import families
from streamgauge.traces.families import FAMILIES, edge_ranges
from tests import arrivals

DELTA = 0.05

Ints = NDArray[np.int64]


class Checked(NamedTuple):
    """What one seed has shown: certain answers, all right, and probable ones that failed."""

    certain: int
    probable: int
    failed: int


Campaign = Callable[[int], Checked]


class Trace(NamedTuple):
    """A stream with the window and the error that it is to be tried with."""

    window: int
    epsilon: float
    events: arrivals.Arrivals

    def part(self, which: NDArray[np.bool_]) -> arrivals.Arrivals:
        """Some of its events."""
        return arrivals.Arrivals(*(column[which] for column in self.events))


def stream(rng: np.random.Generator, size: int) -> Trace:
    """Of any shape, or of one of the families F1 to F12; weights up to 1000, windows to 100 000."""
    window = int(rng.choice([1, 2, 7, 64, 1000, 100_000]))
    epsilon, heaviest = float(rng.choice(arrivals.EPSILONS)), int(rng.choice([1, 1, 3, 1000]))
    if rng.integers(2):
        family = rng.choice([name for name in FAMILIES if name != "F13 churn"])
        items, ticks, _ = FAMILIES[family](max(window, 64), size, int(rng.integers(1 << 32)))
        weights = rng.integers(1, heaviest + 1, ticks.size)
        return Trace(max(window, 64), epsilon, arrivals.Arrivals(items, ticks, weights))
    program = arrivals.Program(
        shape=rng.choice([shape.__name__ for shape in arrivals.SHAPES]),
        popularity=rng.choice(sorted(arrivals.POPULARITIES)),
        seed=int(rng.integers(1 << 32)),
        rate=float(rng.choice([0.02, 0.5, 1, 10, 300])),
        window=window,
        epsilon=epsilon,
        size=size,
        heaviest=heaviest,
        start=int(rng.choice([1, 0, -5000, 2**40])),
    )
    return Trace(window, epsilon, program.arrivals())


def ranges_at(rng: np.random.Generator, ticks: Ints, now: int, window: int) -> list[int]:
    """Ranges that begin around ten of these ticks, five at random, the least and the longest."""
    edges = now - rng.choice(ticks, 10) + rng.integers(-1, 2, 10)
    ranges = np.concatenate([edges, rng.integers(1, window + 1, 5), [1, window]])
    return np.unique(ranges[(ranges >= 1) & (ranges <= window)]).tolist()


def assert_counts(counter: Any, events: arrivals.Arrivals, ranges: list[int], seed: int) -> int:
    """All of these ranges; how many answers that were."""
    _, ticks, weights = events
    summed = np.concatenate([[0], np.cumsum(weights)])
    for last in ranges:
        true = int(summed[-1] - summed[np.searchsorted(ticks, counter.now - last, "right")])
        value, low, high, _ = counter.estimate(last)
        assert low <= true <= high, (seed, counter.now, last, true, low, high)
        assert abs(value - true) <= counter.epsilon * true, (seed, counter.now, last, true, value)
    return len(ranges)


def counter(kind: type[sg.Wave] | type[sg.ExponentialHistogram]) -> Campaign:
    """After every arrival, ranges at the edges of old arrivals and at random; then silence."""

    def run(seed: int) -> Checked:
        rng = np.random.default_rng(seed)
        trace = stream(rng, 1500)
        ticks, weights = trace.events.ticks, trace.events.weights
        counted = kind(window=trace.window, epsilon=trace.epsilon)
        answers = 0
        for i in range(ticks.size + 20):
            if i < ticks.size:
                counted.update(ticks[i : i + 1], weights[i : i + 1])
            else:
                counted.advance(counted.now + 1 + trace.window // 10)
            came = arrivals.Arrivals(*(column[: i + 1] for column in trace.events))
            ranges = ranges_at(rng, came.ticks, counted.now, trace.window)
            answers += assert_counts(counted, came, ranges, seed)
        return Checked(answers, 0, 0)

    return run


def merged_counters(seed: int) -> Checked:
    """Up to 64 sites in up to four levels, or parts of one stream; then it goes on by itself."""
    rng = np.random.default_rng(seed)
    kind = (sg.Wave, sg.ExponentialHistogram)[seed % 2]
    trace = stream(rng, 3000)
    ticks = trace.events.ticks
    sites, fan = int(rng.choice([2, 5, 16, 64])), int(rng.choice([3, 4, 64]))
    if rng.integers(4):
        site = rng.integers(0, sites, ticks.size)
    else:
        site, fan = np.sort(rng.integers(0, sites, ticks.size)), 0
    level = []
    for each in range(sites):
        part = kind(window=trace.window, epsilon=trace.epsilon)
        part.update(*trace.part(site == each)[1:])
        level.append(part)
    union = level[0]
    if fan == 0:
        for part in level[1:]:
            union = kind.concat(union, part)
    while fan and len(level) > 1:
        level = [kind.merge(level[i : i + fan]) for i in range(0, len(level), fan)]
        union = level[0]
    answers = 0
    events = trace.events
    for _ in range(5):
        answers += assert_counts(union, events, _all_edges(rng, union, events), seed)
        more = union.now + np.sort(rng.integers(0, 1 + trace.window // 3, 50))
        union.update(more)
        fresh = arrivals.Arrivals(more, more, np.ones_like(more))
        events = arrivals.Arrivals(*map(np.concatenate, zip(events, fresh, strict=True)))
    return Checked(answers, 0, 0)


def _all_edges(rng: np.random.Generator, union: Any, events: arrivals.Arrivals) -> list[int]:
    """Ranges around each of some hundred arrivals of the window."""
    inside = events.ticks[np.searchsorted(events.ticks, union.now - union.window) :]
    some = inside if inside.size <= 100 else rng.choice(inside, 100)
    return [*edge_ranges(some, union.window, union.now), union.window]


def ecm(counter: str, *, most_sites: int = 1) -> Campaign:
    """All items of the window; at the end one item or the self-join may fail.

    One site is asked after every batch. Sketches of several are merged in one to four levels, every
    other one from its bytes, joined with a later part, and asked at the end, beside all of them as
    they are.
    """

    def run(seed: int) -> Checked:
        rng = np.random.default_rng(seed)
        trace = stream(rng, 3000 if counter != "randomized" else 1000)
        epsilon = max(trace.epsilon, 0.3 if counter == "randomized" else 0.05)
        given = {"window": trace.window, "epsilon": epsilon, "delta": DELTA / 2, "seed": seed}
        given["counter"] = counter
        last = int(rng.integers(1, trace.window + 1))
        declared = int(rng.choice(trace.events.items))
        exact = ExactWindow(trace.window)
        answers = 0
        if most_sites == 1:
            sketch = sg.EcmSketch(**given)
            for batch in arrivals.cut(seed, *trace.events):
                sketch.update(*batch)
                exact.update(batch.items.tolist(), batch.ticks, batch.weights)
                if sketch.now is not None:
                    answers += _assert_sketch(sketch, exact, last, seed)
        else:
            sites = int(rng.choice([2, 5, most_sites]))
            fan = int(rng.choice([3, 4, 64]))
            cut = trace.events.ticks.size * 3 // 4
            site = rng.integers(0, sites, trace.events.ticks.size)
            site[cut:] = sites
            parts = []
            for each in range(sites + 1):
                name = each if counter == "randomized" else None
                parts.append(sg.EcmSketch(**given, site=name))
                parts[-1].update(*trace.part(site == each))
            *level, later = parts
            while len(level) > 1:
                level = [sg.EcmSketch.merge(level[i : i + fan]) for i in range(0, len(level), fan)]
                level[::2] = [sg.EcmSketch.from_bytes(each.to_bytes()) for each in level[::2]]
            sketch = sg.EcmSketch.concat(level[0], later)
            exact.update(trace.events.items.tolist(), *trace.events[1:])
            for each in {1, last, trace.window}:
                answers += _assert_sketch(sketch, exact, each, seed)
                answers += _assert_sketch(sg.Gathered(parts), exact, each, seed)
        found, true = sketch.estimate(declared, last), exact.frequency(declared, last)
        off = abs(found.value - true) > (sketch.epsilon + 2**-30) * exact.total(last)
        failed = not found.low <= true <= found.high or off
        joined = sketch.self_join(last)
        if joined.confidence >= 1 - DELTA / 2:
            failed |= joined.low > exact.self_join(last) * (1 + 1e-12)
        return Checked(answers, 1, int(failed))

    return run


def _assert_sketch(
    sketch: sg.EcmSketch | sg.Gathered, exact: ExactWindow, last: int, seed: int
) -> int:
    """The total and, unless the counters are probable, every upper end."""
    total = sketch.total(last)
    assert total.low <= exact.total(last) <= total.high, (seed, last)
    one = sketch.sketches[0] if isinstance(sketch, sg.Gathered) else sketch
    if one.sites:
        return 1
    counts = exact.frequencies(last)
    asked = [*list(counts)[:200], -1]
    for item, found in zip(asked, sketch.estimate(asked, last), strict=True):
        assert counts.get(item, 0) <= found.high, (seed, item, last)
    assert exact.self_join(last) <= sketch.self_join(last).high, (seed, last)
    return len(asked) + 2


def arrivals_window(seed: int) -> Checked:
    """Windows that count arrivals, weights up to 1000, asked after every batch."""
    rng = np.random.default_rng(seed)
    trace = stream(rng, 500)
    counter = ("wave", "exphist")[seed % 2]
    window = sg.arrivals(trace.window)
    sketch = sg.EcmSketch(window=window, epsilon=0.1, delta=DELTA, seed=seed, counter=counter)
    exact, answers = ExactWindow(trace.window), 0
    last = int(rng.integers(1, trace.window + 1))
    for batch in arrivals.cut(seed, *trace.events):
        sketch.update(batch.items, weights=batch.weights)
        ones = batch.items.repeat(batch.weights)
        exact.update(ones.tolist(), (exact.now or 0) + 1 + np.arange(ones.size))
        if sketch.arrivals:
            answers += _assert_sketch(sketch, exact, last, seed)
    return Checked(answers, 1, int(sketch.self_join(last).low > exact.self_join(last)))


def randomized_wave(seed: int) -> Checked:
    """One question, of up to 64 sites."""
    rng = np.random.default_rng(seed)
    trace = stream(rng, 20_000)
    sites = int(rng.choice([1, 1, 4, 64]))
    site = rng.integers(0, sites, trace.events.ticks.size)
    parts = []
    for each in range(sites):
        given = {"window": trace.window, "epsilon": 0.5, "delta": DELTA, "seed": seed}
        parts.append(sg.RandomizedWave(**given, site=each))
        parts[-1].update(*trace.part(site == each)[1:])
    union = sg.RandomizedWave.merge(parts)
    last = int(rng.integers(1, trace.window + 1))
    inside = trace.events.ticks > union.now - last
    true = int(trace.events.weights[inside].sum())
    value, low, high, confidence = union.estimate(last)
    if confidence == 1:
        assert value == low == high == true, (seed, last, true)
    return Checked(int(confidence == 1), 1, int(not low <= true <= high))


def dyadic(seed: int) -> Checked:
    """Certain ends of ranges, ranks and items after every batch; one range may fail."""
    rng = np.random.default_rng(seed)
    trace = stream(rng, 2000)
    bits = int(rng.choice([4, 10, 32]))
    items = np.abs(trace.events.items) % (1 << min(bits, 12))
    epsilon = max(trace.epsilon, 0.1)
    given = {"bits": bits, "window": trace.window, "epsilon": epsilon, "delta": DELTA}
    sketch, exact = sg.DyadicEcmSketch(**given, seed=seed), ExactWindow(trace.window)
    lo, hi = np.sort(rng.integers(0, 1 << min(bits, 12), 2)).tolist()
    last, answers = int(rng.integers(1, trace.window + 1)), 0
    for batch in arrivals.cut(seed, items, *trace.events[1:]):
        sketch.update(*batch)
        exact.update(batch.items.tolist(), batch.ticks, batch.weights)
        if sketch.now is None:
            continue
        counts = exact.frequencies(last)
        total, found = sketch.total(last), sketch.range(lo, hi, last)
        true = sum(count for item, count in counts.items() if lo <= item <= hi)
        assert total.low <= exact.total(last) <= total.high, (seed, last)
        assert true <= found.high, (seed, lo, hi, last)
        asked = [*list(counts)[:100], 0]
        for item, each in zip(asked, sketch.estimate(asked, last), strict=True):
            assert counts.get(item, 0) <= each.high, (seed, item, last)
        answers += 2 + len(asked)
    failed = found.low > true or abs(found.value - true) > (epsilon + 2**-20) * exact.total(last)
    return Checked(answers, 1, int(failed))


def periodic_protocol(seed: int) -> Checked:
    """Three sites; at random moments the coordinator's answers against the union of all events."""
    rng = np.random.default_rng(seed)
    trace = stream(rng, 1200)
    share = float(rng.choice([0.02, 0.1, 0.4]))
    template = sg.EcmSketch(window=trace.window, epsilon=0.1, delta=DELTA, seed=seed)
    coordinator = periodic.Coordinator(template, share)
    sites = [periodic.Site(template, share) for _ in range(3)]
    exact = ExactWindow(trace.window)
    answers = 0

    def deliver(name, sends):
        for send in sends:
            coordinator.receive(name, wire.decode(wire.encode(send.message), periodic.MESSAGES))

    for batch in arrivals.cut(seed, *trace.events):
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
        last = int(rng.integers(1, trace.window + 1))
        total = coordinator.answer(sg.Total(last), now).estimate
        assert total.low <= exact.total(last) <= total.high, (seed, now, last)
        for item in batch.items[-3:].tolist():
            found = coordinator.answer(sg.Frequency(item, last), now).estimate
            assert exact.frequency(item, last) <= found.high, (seed, now, item, last)
        joined = coordinator.answer(sg.SelfJoin(last), now).estimate
        assert exact.self_join(last) <= joined.high * (1 + 1e-12), (seed, now, last)
        answers += 2 + min(3, batch.items.size)
    return Checked(answers, 1, int(joined.low > exact.self_join(last) * (1 + 1e-12)))


def residues(rng: np.random.Generator, window: int, size: int, epsilon: float) -> families.Stream:
    """Before the range, three arrivals of as many items as the tables hold; then all distinct."""
    many = min(6 * round(1 / epsilon), size // 6)
    rests = np.tile(np.arange(many), 3)
    flood = many + rng.permutation(size - rests.size)
    ticks = np.sort(rng.integers(1, 2 * window + 1, size))
    return families.Stream(np.concatenate([rests, flood]), ticks)


def hiding(rng: np.random.Generator, window: int, size: int, epsilon: float) -> families.Stream:
    """Item 0 comes just as often as the others, all new, purge what there is of it."""
    flood = 1 + rng.permutation(size)
    every = max(2, round(0.7 / epsilon))
    items = np.where(np.arange(size) % every == 0, 0, flood)
    return families.Stream(items, np.sort(rng.integers(1, 3 * window + 1, size)))


def fading(rng: np.random.Generator, window: int, size: int, epsilon: float) -> families.Stream:
    """Item 0 comes once between two purges, which take it; then only others do.

    In one window: marks of 60 ticks are more than a level keeps, and most of its losses were early.
    """
    size = max(size, round(900 / epsilon))
    place = np.arange(size)
    early = (place < 0.85 * size) & (place % (2 * math.ceil(3 / epsilon) - 1) == 0)
    flood = 1 + rng.permutation(size)
    return families.Stream(np.where(early, 0, flood), 1 + place * window // size)


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


PATIENCE = 40


def faults(seed: int) -> Checked:
    """The periodic protocol while all goes wrong: messages lost and doubled, crashes, partitions.

    When it is quiet again the answers are within their bounds, who was cut off for good is named
    and nobody else, and the coordinator has the very sketch of each site's last report.
    """
    rng = np.random.default_rng(seed)
    trace = stream(rng, 800)
    events = trace.events
    names: list[SiteName] = [0, 1, 2, 3]
    of = rng.integers(0, len(names), events.ticks.size)
    streams = {name: Stream(*(column[of == name] for column in events)) for name in names}
    begin, end = int(events.ticks[0]), int(events.ticks[-1]) + 10 * PATIENCE
    plan = Faults.drawn(seed, names, begin, end, coordinator=COORDINATOR)
    share = float(rng.choice([0.02, 0.1, 0.4]))
    template = sg.EcmSketch(window=trace.window, epsilon=0.1, delta=DELTA, seed=seed)
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

    exact = ExactWindow(trace.window)
    there = [np.concatenate(column) for column in zip(*world.streams.values(), strict=True)]
    order = np.argsort(there[1], kind="stable")
    exact.update(there[0][order].tolist(), there[1][order], there[2][order])
    exact.advance(end)
    silent = {site for site, _ in plan.silences}
    found = world.answer(sg.Total(), end)
    assert set(found.silent) == silent, seed
    last = int(rng.integers(1, trace.window + 1))
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


CAMPAIGNS: dict[str, Campaign] = {
    "wave": counter(sg.Wave),
    "exphist": counter(sg.ExponentialHistogram),
    "randomized_wave": randomized_wave,
    "merged_counters": merged_counters,
    "ecm": ecm("wave"),
    "ecm_exphist": ecm("exphist"),
    "ecm_randomized": ecm("randomized"),
    "ecm_merged": ecm("wave", most_sites=64),
    "ecm_exphist_merged": ecm("exphist", most_sites=64),
    "ecm_randomized_merged": ecm("randomized", most_sites=8),
    "arrivals": arrivals_window,
    "dyadic": dyadic,
    "periodic": periodic_protocol,
    "faults": faults,
    "heavy": heavy,
}
