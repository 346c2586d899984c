"""Merged, joined and gathered: intervals that hold for the union, at every moment and afterwards.

Sites' streams are parts of one program, so that ties across sites, silences and weights are common.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import (
    EcmSketch,
    Gathered,
    Wave,
    epsilon_for_levels,
    published_epsilon_for_levels,
)
from streamgauge.sim.exact import ExactWindow
from streamgauge.traces.families import FAMILIES, edge_ranges, zipf
from tests import arrivals
from tests.statistics import assert_failures_fit

seeds = st.integers(0, 2**32 - 1)
STREAMS = [name for name in FAMILIES if name != "F13 churn"]


def asked_ranges(ticks, window, now):
    """Where answers are worst: around the last arrivals, and around those at the window's end."""
    oldest = ticks[np.searchsorted(ticks, now - window) :][:20]
    return sorted({1, window, *edge_ranges(np.concatenate([oldest, ticks[-20:]]), window, now)})


def assert_wave(wave, ticks, weights, now, ranges):
    for last in ranges:
        truth = int(weights[(ticks > now - last) & (ticks <= now)].sum())
        value, low, high, confidence = wave.estimate(last, now)
        assert confidence == 1
        assert low <= truth <= high
        assert abs(value - truth) <= wave.epsilon * truth


def parts_of(program, sites):
    """Each site's part of the program, in batches as they come."""
    items, ticks, weights = program.arrivals()
    site = np.random.default_rng(program.seed).integers(0, sites, ticks.size)
    return [
        arrivals.Arrivals(items[site == k], ticks[site == k], weights[site == k])
        for k in range(sites)
    ]


def tree(kind, parts, fan):
    """Merged in levels of at most `fan` at a time; the root and how many levels there were."""
    levels = 0
    while len(parts) > 1:
        parts = [kind.merge(parts[i : i + fan]) for i in range(0, len(parts), fan)]
        levels += 1
    return parts[0], levels


@given(arrivals.programs(), st.integers(1, 16), st.sampled_from([2, 4, 16]), st.integers(0, 500))
def test_merged_waves_enclose_the_union_and_go_on(program, sites, fan, more):
    """In trees of one to four levels, at once, after a silence, and with arrivals of its own.

    Seen to catch: what was merged does not know that it drifted; the halves of a segment are
    placed the other way round.
    """
    waves = []
    for part in parts_of(program, sites):
        wave = Wave(window=program.window, epsilon=program.epsilon)
        wave.update(part.ticks, part.weights)
        waves.append(wave)
    before = [wave.to_bytes() for wave in waves]
    merged, levels = tree(Wave, waves, fan)
    assert [wave.to_bytes() for wave in waves] == before
    assert merged.levels <= levels
    assert merged.epsilon <= (1 + program.epsilon) ** (levels + 1) - 1 + 1e-12
    _, ticks, weights = program.arrivals()
    if merged.now is None:
        return
    ranges = asked_ranges(ticks, program.window, merged.now)
    assert_wave(merged, ticks, weights, merged.now, ranges)
    rng = np.random.default_rng(more)
    fresh = merged.now + np.sort(rng.integers(0, 1 + program.window // 2, more))
    merged = Wave.from_bytes(merged.to_bytes())
    merged.update(fresh)
    ticks, weights = np.append(ticks, fresh), np.append(weights, np.ones_like(fresh))
    for now in (merged.now, merged.now + program.window // 3):
        assert_wave(merged, ticks, weights, now, asked_ranges(ticks, program.window, now))


@pytest.mark.parametrize("epsilon", [0.5, 0.1])
@pytest.mark.parametrize("family", STREAMS)
def test_every_range_of_merged_waves(family, epsilon):
    """All ranges at many moments: flat, and in two levels.

    Seen to catch: what was merged does not know that it drifted; a level of merging forgets the
    drift of those below; the halves of a segment are placed the other way round.
    """
    window = 100
    streams = [FAMILIES[family](window, 300, seed).ticks for seed in range(4)]
    union = np.sort(np.concatenate(streams))
    for now in np.linspace(union[0], union[-1] + window, 60).astype(int).tolist():
        waves = []
        for ticks in streams:
            wave = Wave(window=window, epsilon=epsilon)
            wave.update(ticks[ticks <= now])
            wave.advance(now)
            waves.append(wave)
        flat = Wave.merge([wave.to_bytes() for wave in waves])
        deep = Wave.merge([Wave.merge(waves[:2]), Wave.merge(waves[2:])])
        ones = np.ones_like(union)
        for wave in (flat, deep):
            assert wave.now == now
            assert_wave(wave, union, ones, now, range(1, window + 1))


@given(arrivals.programs(), seeds, st.integers(1, 6))
def test_joined_waves_enclose_the_whole_stream(program, cut, parts):
    """Seen to catch: what was merged does not know that it drifted."""
    _, ticks, weights = program.arrivals()
    cuts = np.sort(np.random.default_rng(cut).integers(0, ticks.size + 1, parts - 1))
    joined = None
    for begin, end in zip([0, *cuts.tolist()], [*cuts.tolist(), ticks.size], strict=True):
        wave = Wave(window=program.window, epsilon=program.epsilon)
        wave.update(ticks[begin:end], weights[begin:end])
        joined = wave if joined is None else Wave.concat(joined, wave)
    # However many parts there are: at most one of them is cut by a question.
    assert joined.epsilon <= (1 + program.epsilon) ** 2 - 1 + 1e-12
    if joined.now is not None:
        ranges = asked_ranges(ticks, program.window, joined.now)
        assert_wave(joined, ticks, weights, joined.now, ranges)


def sketches_of(program, sites, **changed):
    given = {"window": program.window, "epsilon": 0.3, "delta": 0.3, "seed": 5} | changed
    sketches = []
    for part in parts_of(program, sites):
        sketch = EcmSketch(**given)
        sketch.update(*part)
        sketches.append(sketch)
    return sketches


def assert_encloses(sketch, exact, items, now, ranges):
    """What is certain of one sketch is certain of the union."""
    for last in ranges:
        total, joined = sketch.total(last, now), sketch.self_join(last, now)
        assert total.low <= exact.total(last, now) <= total.high
        assert exact.self_join(last, now) <= joined.high
        truth = exact.frequencies(last, now)
        for item, found in zip(items, sketch.estimate(items, last, now), strict=True):
            assert found.low <= found.value <= found.high
            assert truth.get(item, 0) <= found.high


@given(arrivals.programs(), st.integers(1, 8), st.sampled_from([2, 8]))
def test_merged_and_gathered_sketches_enclose_the_union(program, sites, fan):
    """In trees and side by side, from objects and from bytes, now and later.

    Seen to catch: what was merged does not know that it drifted; events of small sketches are
    merged into other cells.
    """
    sketches = sketches_of(program, sites)
    items, ticks, weights = program.arrivals()
    exact = ExactWindow(program.window)
    exact.update(items.tolist(), ticks, weights)
    asked = [*np.unique(items)[:10].tolist(), 12345]
    merged, _ = tree(EcmSketch, sketches, fan)
    gathered = Gathered(sketches)
    if exact.now is None:
        return
    ranges = asked_ranges(ticks, program.window, exact.now)[:20]
    for union in (merged, gathered, EcmSketch.from_bytes(merged.to_bytes())):
        for now in (exact.now, exact.now + program.window // 2):
            assert_encloses(union, exact, asked, now, ranges)


@pytest.mark.parametrize("sites", [3, 20])
def test_sketches_that_are_merged_small_and_large(sites):
    """Logs and grids together, and the result takes events of its own."""
    rng = np.random.default_rng(sites)
    exact, sketches, everything = ExactWindow(1000), [], []
    for _ in range(sites):
        size = int(rng.choice([0, 3, 40, 3000]))
        items, ticks = rng.integers(0, 30, size), np.sort(rng.integers(0, 1500, size))
        sketch = EcmSketch(window=1000, epsilon=0.1, delta=0.1, seed=1)
        sketch.update(items, ticks)
        sketches.append(sketch)
        everything.append(np.stack([ticks, items]))
    union = np.concatenate(everything, axis=1)
    ticks, items = union[:, np.argsort(union[0], kind="stable")]
    exact.update(items.tolist(), ticks)
    merged = EcmSketch.merge(sketches)
    assert merged.arrivals == ticks.size
    merged.update(items, np.full(items.size, 1600))
    exact.update(items.tolist(), np.full(items.size, 1600))
    assert_encloses(merged, exact, list(range(31)), None, range(1, 1001, 37))


@given(arrivals.programs(), seeds)
def test_joined_sketches_enclose_the_whole_stream(program, cut):
    """Seen to catch: what was merged does not know that it drifted."""
    items, ticks, weights = program.arrivals()
    at = int(np.random.default_rng(cut).integers(0, ticks.size + 1))
    parts = []
    for part in (slice(at), slice(at, None)):
        parts.append(EcmSketch(window=program.window, epsilon=0.3, delta=0.3, seed=5))
        parts[-1].update(items[part], ticks[part], weights[part])
    joined, exact = EcmSketch.concat(*parts), ExactWindow(program.window)
    exact.update(items.tolist(), ticks, weights)
    if exact.now is not None:
        asked = [*np.unique(items)[:10].tolist(), 12345]
        ranges = asked_ranges(ticks, program.window, exact.now)[:20]
        assert_encloses(joined, exact, asked, None, ranges)


@pytest.mark.parametrize("kind", ["merged", "gathered"])
@pytest.mark.parametrize("exponent", [0.8, 1.2, 2.0])
def test_an_item_of_the_union_is_found_within_its_interval(kind, exponent):
    """One item and one range for each seed; four sites, two levels.

    Seen to catch: the share of collisions is taken of the lower end of the total.
    """
    window, delta, trials, failures = 100, 0.3, 300, 0
    for trial in range(trials):
        items, ticks, _ = zipf(window, 800, trial, exponent)
        exact, sketches = ExactWindow(window), []
        for site in range(4):
            sketch = EcmSketch(window=window, epsilon=0.1, delta=delta, seed=trial)
            sketch.update(items[site::4], ticks[site::4])
            sketches.append(sketch)
        exact.update(items.tolist(), ticks)
        union = tree(EcmSketch, sketches, 2)[0] if kind == "merged" else Gathered(sketches)
        item, last = (trial % 20) ** 2, window // (1 + trial % 3)
        found, truth = union.estimate(item, last), exact.frequency(item, last)
        missed = found.low > truth
        if kind == "merged":
            missed |= abs(found.value - truth) > union.epsilon * exact.total(last)
        failures += missed
    assert_failures_fit(delta, failures, trials)


@given(st.floats(1e-6, 0.99), st.integers(0, 8))
def test_epsilon_for_levels_is_the_inverse_of_what_levels_cost(epsilon, levels):
    each = epsilon_for_levels(epsilon, levels)
    assert (1 + each) ** (levels + 1) - 1 == pytest.approx(epsilon, rel=1e-9)
    published = published_epsilon_for_levels(epsilon, levels)
    assert levels * published * (1 + published) + published == pytest.approx(epsilon, rel=1e-6)
    assert published >= each * (1 - 1e-9)
