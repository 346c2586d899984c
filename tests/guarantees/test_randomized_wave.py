"""RandomizedWave: exact while few events are in range, probable beyond, the same when merged.

Trials have a seed of their own and one question, declared before it: see tests/statistics.py.
Errors of three standard deviations and more are rare at these sizes, so whatever makes a proof
void without making errors much larger is asked for by itself: the sizes, and the independence.
"""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from streamgauge import RandomizedWave, kernels
from streamgauge.sim.exact import ExactWindow
from streamgauge.sketches.randomizedgrid import capacity_for, copies_for
from streamgauge.traces.families import FAMILIES
from tests import arrivals
from tests.statistics import assert_failures_fit

WINDOW = 100
TRIALS = 400


def new(seed, **changed):
    given = {"window": WINDOW, "epsilon": 0.3, "delta": 0.05, "seed": seed}
    return RandomizedWave(**(given | changed))


@cache
def stream(family, seed):
    return FAMILIES[family](WINDOW, 20_000, seed).ticks


def misses(wave, truth, found):
    """What is certain is asserted; whether the interval or the value misses the truth."""
    value, low, high, confidence = found
    assert low <= value <= high
    if truth <= capacity_for(wave.epsilon):
        assert found == (truth, truth, truth, 1)
    assert high <= (1 + 2**-40) * value / (1 - wave.epsilon)
    assert low >= (1 - 2**-40) * value / (1 + wave.epsilon)
    assert confidence == (1 if low == high else 1 - wave.delta)
    return not (low <= truth <= high and abs(value - truth) <= wave.epsilon * truth)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.05), (0.3, 0.01), (0.3, 0.25), (0.9, 0.2)])
@pytest.mark.parametrize("family", ["F1 uniform", "F3 bursts", "F7 ties", "F11 accelerating"])
def test_one_question_of_each_seed(family, epsilon, delta):
    """Of 20 000 arrivals in three windows, of bursts of up to 1000 in a tick.

    Seen to catch: coins hashed from the tick, answers that forget what a level has lost, estimates
    of half the size, a capacity of 6 / epsilon**2 (by the width of its intervals).
    """
    failures = 0
    for trial in range(TRIALS):
        ticks = stream(family, trial % 20)
        wave = new(trial, epsilon=epsilon, delta=delta)
        wave.update(ticks)
        last = WINDOW // (1 + trial % 3)
        truth = int(np.count_nonzero(ticks > ticks[-1] - last))
        failures += misses(wave, truth, wave.estimate(last))
    assert_failures_fit(delta, failures, TRIALS)


@given(arrivals.programs(), st.data())
def test_exact_as_long_as_few_events_are_in_range(program, data):
    """Whatever was in range before, and asked now or later.

    Seen to catch: one stamp fewer for each list, rings that overwrite what is in the window.
    """
    epsilon = max(program.epsilon, 0.2)
    wave = RandomizedWave(window=program.window, epsilon=epsilon, delta=0.3, seed=program.seed)
    exact = ExactWindow(program.window)
    few = 0
    for items, ticks, weights in arrivals.cut(program.seed, *program.arrivals()):
        wave.update(ticks, weights)
        exact.update(items, ticks, weights)
        if wave.now is None:
            continue
        now = wave.now + data.draw(st.sampled_from([0, 0, 1, program.window // 2, program.window]))
        for last in {1, data.draw(st.integers(1, program.window)), program.window}:
            truth = exact.total(last, now)
            found = wave.estimate(last, now)
            if truth <= capacity_for(epsilon):
                assert found == (truth, truth, truth, 1)
                few += 1
            else:
                assert found.low > capacity_for(epsilon)
                assert found.high <= wave._grid.counts[0]


@pytest.mark.parametrize("epsilon", [0.001, 0.01, 0.05, 0.1, 1 / 3, 0.5, 0.7, 0.75, 0.999])
def test_the_capacity_is_what_the_proof_needs(epsilon):
    """Chebyshev at all levels and the chance that the right one overflows: a quarter together.

    Seen to catch: 32 / epsilon**2, 36 / epsilon**2 without the least of 72.
    """
    capacity = capacity_for(epsilon)
    assert 8 / (Fraction(epsilon) ** 2 * capacity) + Fraction(2, capacity) <= Fraction(1, 4)
    assert capacity <= max(72, 36 / epsilon**2 + 1)


@pytest.mark.parametrize("delta", [0.3, 0.25, 0.2, 0.1, 0.05, 0.01, 1e-3, 1e-4, 1e-9, 1e-18])
def test_the_copies_are_the_fewest_that_keep_delta(delta):
    """Against scipy's binomial distribution.

    Seen to catch: two copies fewer.
    """
    copies = copies_for(delta)
    assert copies % 2 == 1
    assert binom.sf((copies + 1) // 2 - 1, copies, 0.25) <= delta
    assert copies == 1 or binom.sf((copies - 1) // 2 - 1, copies - 2, 0.25) > delta


def test_the_table_of_copies():
    assert [copies_for(delta) for delta in (0.1, 0.05, 0.01, 1e-3, 1e-4)] == [7, 9, 19, 33, 49]


def test_the_errors_of_copies_are_independent():
    """The variance of the copies' mean is a copy's variance through their number.

    A copy's relative variance is at most 2**l / n, and 4 / capacity at its level. Of T seeds the
    mean squared error is within 1 + 7 sqrt(2 / T) of its expectation with all but certainty.

    Seen to catch: all copies tossing the coins of the first.
    """
    arrived = 20_000
    squared, squared_mean = 0.0, 0.0
    for trial in range(TRIALS):
        wave = new(trial)
        wave.update(np.arange(arrived) // (arrived // WINDOW))
        grid = wave._grid
        guesses = np.empty(grid.copies)
        kernels.randomized.estimates(
            *grid._rings(), grid._levels, grid.copies, grid.capacity, 0, 0, guesses
        )
        errors = guesses / arrived - 1
        squared += np.mean(errors**2) / TRIALS
        squared_mean += np.mean(errors) ** 2 / TRIALS
    slack = 1 + 7 * np.sqrt(2 / TRIALS)
    assert squared <= slack * 4 / grid.capacity
    assert squared_mean <= slack * squared / grid.copies


@pytest.mark.parametrize("sites", [2, 8])
def test_merged_sites_answer_as_one_wave_over_all_would(sites):
    """All sites see the same stream, which is the worst for coins that are not their own.

    Seen to catch: one stamp fewer kept of each list.
    """
    delta, each = 0.05, 6400 // sites
    failures = np.zeros(2, int)
    for trial in range(TRIALS):
        ticks = np.sort(np.random.default_rng(trial).integers(1, WINDOW + 1, each))
        parts = [new(trial, epsilon=0.5, delta=delta, site=site) for site in range(sites)]
        for part in parts:
            part.update(ticks)
        merged = RandomizedWave.merge(parts)
        alone = new(trial, epsilon=0.5, delta=delta)
        alone.update(ticks.repeat(sites))
        merged.advance(WINDOW)
        alone.advance(WINDOW)
        for i, wave in enumerate((merged, alone)):
            failures[i] += misses(wave, each * sites, wave.estimate())
    for count in failures.tolist():
        assert_failures_fit(delta, count, TRIALS)


def test_the_errors_of_sites_are_independent():
    """Of 32 sites that all see the same stream: the variance of the union is that of one wave.

    Seen to catch: coins that are seeded without the site.
    """
    sites, each, trials = 32, 200, 100
    squared = 0.0
    for trial in range(trials):
        parts = [new(trial, delta=0.25, site=site) for site in range(sites)]
        for part in parts:
            part.update(np.arange(each) // 2)
        error = RandomizedWave.merge(parts).estimate().value / (sites * each) - 1
        squared += error**2 / trials
    assert squared <= (1 + 7 * np.sqrt(2 / trials)) * 4 / capacity_for(0.3)


def test_parts_of_different_rates_and_clocks_merged_in_a_tree():
    """Eight sites of 10 to 10 000 arrivals, merged pairwise, from bytes; then they go on.

    Seen to catch: lists joined out of order, a union that counts the first part only, answers that
    forget what a level has lost.
    """
    delta, failures = 0.05, np.zeros(2, int)
    for trial in range(TRIALS // 2):
        rng = np.random.default_rng(trial)
        streams = [np.sort(rng.integers(1, 3 * WINDOW, 10 ** (1 + i // 2))) for i in range(8)]
        parts = []
        for site, ticks in enumerate(streams):
            part = new(trial, delta=delta, site=f"site {site}")
            part.update(ticks)
            parts.append(part)
        while len(parts) > 1:
            parts = [
                RandomizedWave.merge([ours.to_bytes(), theirs])
                for ours, theirs in zip(parts[::2], parts[1::2], strict=True)
            ]
        merged, last = parts[0], WINDOW // (1 + trial % 3)
        ticks = np.concatenate(streams)
        truth = int(np.count_nonzero(ticks > ticks.max() - last))
        failures[0] += misses(merged, truth, merged.estimate(last))
        later = np.arange(merged.now, merged.now + WINDOW // 2).repeat(30)
        merged.update(later)
        ticks = np.concatenate([ticks, later])
        truth = int(np.count_nonzero(ticks > ticks.max() - last))
        failures[1] += misses(merged, truth, merged.estimate(last))
    for count in failures.tolist():
        assert_failures_fit(delta, count, TRIALS // 2)
