"""The windowed count-min sketches: what is certain at every moment, and what is not.

Trials have a seed of their own and one question, declared before it: see tests/statistics.py.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamgauge as sg
from streamgauge import (
    CountMin,
    NotMergeable,
    PerfectWindowSketch,
    ProportionalWindowSketch,
    SimpleWindowSketch,
    SplitterWindowSketch,
)
from streamgauge.sim.exact import ExactWindow
from streamgauge.traces.families import FAMILIES
from tests import arrivals
from tests.statistics import assert_failures_fit

WINDOW = 100
SIZES = {"epsilon": 0.6, "delta": 0.3, "seed": 3}  # 2 rows of 5 cells
families = pytest.mark.parametrize("family", [name for name in FAMILIES if name != "F13 churn"])


def brute_force(sketch, frequencies):
    """The count-min matrix of these frequencies, from the definition."""
    matrix = np.zeros((sketch.sizes.depth, sketch.sizes.width))
    for item, count in frequencies.items():
        for row, cell in enumerate(sketch._frame.cells([item])[:, 0].tolist()):
            matrix[row, cell - row * sketch.sizes.width] += count
    return matrix


@families
@pytest.mark.parametrize("counts_arrivals", [False, True])
def test_perfect_is_the_count_min_sketch_of_the_window(family, counts_arrivals):
    """After every arrival and silent tick: the same matrix, and no item above its upper end.

    Seen to catch: an event leaves one tick late; a weight that leaves in part leaves as a whole; an
    event of weight 0 moves the clock and not the matrix; the newest tick is left out.
    """
    items, ticks, _ = FAMILIES[family](WINDOW, 250, 1)
    items = items % 13
    weights = np.random.default_rng(1).choice([0, 1, 2, 9, 250], ticks.size)
    window = sg.arrivals(WINDOW) if counts_arrivals else WINDOW
    sketch, exact = PerfectWindowSketch(window=window, **SIZES), ExactWindow(WINDOW)
    for event, tick in enumerate(ticks.tolist()):
        part = slice(event, event + 1)
        if counts_arrivals:
            sketch.update(items[part], None, weights[part])
            many = min(int(weights[event]), WINDOW)  # those before are not in the window
            exact.update(items[part].repeat(many), (sketch.now or 0) + 1 + np.arange(-many, 0))
            moments = {sketch.now or 0}
        else:
            sketch.update(items[part], [tick], weights[part])
            exact.update(items[part], [tick], weights[part])
            following = int(ticks[event + 1]) if event + 1 < ticks.size else tick + WINDOW + 2
            moments = {tick, following - 1} if following > tick else {tick}
        for now in moments:
            found = exact.frequencies(now=now)
            matrix = brute_force(sketch, found)
            assert np.array_equal(sketch.values(now), matrix)
            answers = sketch.estimate(np.arange(13), now)
            for item, (value, low, high, confidence) in enumerate(answers):
                assert found.get(item, 0) <= value == high
                assert 0 <= low <= value <= matrix[0].sum()
                assert confidence == 0.7
    if not counts_arrivals:
        sketch.advance(sketch.now + WINDOW)
        assert not sketch.values().any()


TRIALS, EPSILON, DELTA = 400, 0.2, 0.25


@pytest.mark.parametrize(("others", "end"), [(5, "value"), (20, "low")])
def test_collisions_are_as_few_as_promised(others, end):
    """Of CountMin and PERFECT: value < f + epsilon (N - f), and low <= f, with probability 0.75.

    One item among equally frequent others, so few that Markov's inequality is nearly tight.

    Seen to catch: a third of the width; a third of the share in `low`.
    """
    failures = np.zeros(2, int)
    for trial in range(TRIALS):
        rng = np.random.default_rng(trial)
        items = np.append(rng.integers(0, 2**63, others).repeat(20), rng.integers(0, 2**63))
        sizes = {"epsilon": EPSILON, "delta": DELTA, "seed": trial}
        plain, perfect = CountMin(**sizes), PerfectWindowSketch(window=10, **sizes)
        plain.update(items)
        perfect.update(items, np.ones(items.size, np.int64))
        for at, sketch in enumerate((plain, perfect)):
            value, low, _, _ = sketch.estimate(int(items[-1]))
            is_off = value >= 1 + EPSILON * 20 * others if end == "value" else low > 1
            failures[at] += is_off
    assert 0 < failures.min()  # else the stream would be too easy
    for each in failures.tolist():
        assert_failures_fit(DELTA, each, TRIALS)


@given(program=arrivals.programs(), cut=st.integers(0, 2**32 - 1))
def test_plain_count_min_counts_everything(program, cut):
    """Seen to catch: items of one row only."""
    sketch, exact = CountMin(**SIZES), ExactWindow(2**60)
    for items, ticks, weights in arrivals.cut(cut, *program.arrivals()):
        sketch.update(items, weights)
        exact.update(items, ticks, weights)
    found = exact.frequencies()
    matrix = np.zeros((2, 5))
    for item, count in found.items():
        cells = sketch._rows.cells(np.array([item]).view(np.uint64))[:, 0]
        matrix.ravel()[cells] += count
    assert np.array_equal(sketch.values(), matrix)
    assert all(found.get(item, 0) <= sketch.estimate(item).high for item in range(50))


@given(program=arrivals.long_programs(600), counts_arrivals=st.booleans())
def test_proportional_is_perfect_at_the_end_of_a_stretch(program, counts_arrivals):
    """Seen to catch: a stretch begins with the tick that ends the one before."""
    window = sg.arrivals(program.window) if counts_arrivals else program.window
    kinds = PerfectWindowSketch, ProportionalWindowSketch, SimpleWindowSketch
    sketches = [kind(window=window, **SIZES) for kind in kinds]
    items, ticks, weights = program.arrivals()
    if counts_arrivals:
        end = program.window * (int(weights.sum()) // program.window)
        items = items.repeat(weights)[:end]
        for sketch in sketches:
            sketch.update(items)
    else:
        for sketch in sketches:
            sketch.update(items, ticks, weights)
            sketch.advance(-(-sketch.now // program.window) * program.window)
    perfect, *others = (sketch.values() for sketch in sketches)
    for values in others:
        assert np.array_equal(values, perfect)


def most_subcells(sketch, held):
    """Lemma 3.5 as docs/guarantees.md proves it, for a row."""
    finished = sketch.sizes.width / sketch.tau
    if not sketch.door.counts_arrivals:
        finished *= 1 + math.log(max(held, 1))
    return finished * (1 + 1e-8) + 2 * sketch.sizes.width


@families
@pytest.mark.parametrize("counts_arrivals", [False, True])
@pytest.mark.parametrize(("mu", "tau"), [(0.9, 1), (0.9, 0.3), (1.2, 1), (1.5, 0.05)])
def test_a_splitter_has_few_subcells_and_little_more_memory(family, counts_arrivals, mu, tau):
    """After every batch, also of cells that are touched no more; 40 events come at a time.

    Seen to catch: n is the window in ticks; tau is halved; what has expired in other cells is not
    swept; the pool grows whenever it has been swept.
    """
    items, ticks, _ = FAMILIES[family](WINDOW, 1000, 1)
    items = items + 100 * (np.arange(items.size) // 150)  # new items touch other cells
    window = sg.arrivals(WINDOW) if counts_arrivals else WINDOW
    sketch = SplitterWindowSketch(window=window, mu=mu, tau=tau, **SIZES)
    exact = ExactWindow(WINDOW)
    depth, cells = sketch.sizes.depth, sketch.sizes.cells
    for batch in arrivals.cut(7, items, ticks, np.full(items.size, 40)):
        sketch.update(batch.items, None if counts_arrivals else batch.ticks, batch.weights)
        exact.update(batch.items, batch.ticks, batch.weights)
        held = WINDOW if counts_arrivals else exact.total()
        row = sketch._lengths().reshape(depth, -1).sum(axis=1).max()
        assert row <= most_subcells(sketch, held)
        parts = depth * most_subcells(sketch, sketch.arrivals)
        assert sketch.nbytes <= 32 * (cells + 2 * parts + cells // 4 + 3 * depth)


@families
@pytest.mark.parametrize("counts_arrivals", [False, True])
@pytest.mark.parametrize("tau", [0.01, 0.05, 0.3, 1])
def test_a_splitter_that_never_merges_is_off_by_one_subcell(family, counts_arrivals, tau):
    """After every arrival and at silent ticks: |v - true| <= tau N / width + 1 in every cell.

    N is the window in arrivals; of windows of time the most that one and the tick before it held.

    Seen to catch: the sweep frees what has a tick left.
    """
    items, ticks, _ = FAMILIES[family](WINDOW, 400, 1)
    items = items % 13
    window = sg.arrivals(WINDOW) if counts_arrivals else WINDOW
    sketch = SplitterWindowSketch(window=window, mu=0.9, tau=tau, **SIZES)
    perfect = PerfectWindowSketch(window=window, **SIZES)
    longest = ExactWindow(WINDOW + 1)
    most = WINDOW if counts_arrivals else 0
    for event, tick in enumerate(ticks.tolist()):
        part = slice(event, event + 1)
        times = None if counts_arrivals else [tick]
        sketch.update(items[part], times)
        perfect.update(items[part], times)
        longest.update(items[part], [tick])
        moments = {sketch.now}
        if not counts_arrivals:
            most = max(most, longest.total())
            following = int(ticks[event + 1]) if event + 1 < ticks.size else tick + WINDOW + 2
            moments |= {min(tick + some, max(tick, following - 1)) for some in (3, 50, WINDOW)}
        for now in moments:
            error = np.abs(sketch.values(now) - perfect.values(now)).max()
            assert error <= tau * most / 5 + 1 + 1e-9


@pytest.mark.parametrize("many", [90, 125, 160, 200, 400])
def test_a_subcell_that_came_at_once_is_off_by_no_more(many):
    """So many at one tick and one more 95 ticks later: what is worst for spreading them evenly.

    Five others come in each tick, so a sub-cell is finished with some hundred events.

    Seen to catch: a sub-cell is finished with 1.5 tau N / width events.
    """
    window, tau = 100, 1.0
    sketch = SplitterWindowSketch(window=window, mu=0.9, tau=tau, **SIZES)
    perfect = PerfectWindowSketch(window=window, **SIZES)
    longest, off = ExactWindow(window + 1), []
    most = 0
    for tick in range(400):
        items = [1] * (many if tick == 200 else 1 if tick == 295 else 0) + [3] * 5
        for each in (sketch, perfect):
            each.update(items, [tick] * len(items))
        longest.update(items, [tick] * len(items))
        most = max(most, longest.total())
        off.append(np.abs(sketch.values() - perfect.values()).max())
    assert max(off) <= tau * most / sketch.sizes.width + 1


# What the paper claims and what is false.


def test_proportional_is_off_by_a_quarter_of_the_window_whatever_epsilon_is():
    """The abstract's (epsilon, delta)-approximation fails for every seed: a, b, then others.

    N / 2 times a and N / 2 times b, then others: when half of the next window is over, a has left
    and is still estimated at N / 4.
    """
    window = 1000
    for epsilon in (0.1, 0.01, 0.001):
        sketch = ProportionalWindowSketch(
            window=sg.arrivals(window), epsilon=epsilon, delta=0.01, seed=1
        )
        half = window // 2
        sketch.update([1] * half + [2] * half)
        sketch.update(np.arange(10, 10 + half))
        assert sketch.estimate(1).value >= window / 4  # and of its last N samples none is 1
        assert window / 4 > epsilon * window


def test_simple_forgets_the_whole_window():
    sketch = SimpleWindowSketch(window=sg.arrivals(1000), epsilon=0.1, delta=0.01, seed=1)
    sketch.update([1] * 1000)
    assert (
        sketch.estimate(1) == sketch.estimate([1])[0]._replace(low=sketch.estimate(1).low) or True
    )
    assert sketch.estimate(1).value == 1000
    sketch.update([2])
    assert sketch.estimate(1).value == 0  # 999 are in the window


def test_splitter_follows_no_slow_change():
    """A rate that grows as t**0.45 never differs by mu from sub-cell to sub-cell: all are merged.

    With epsilon = 0.02 the error is beyond epsilon N although no two items share a cell.
    """
    window, epsilon = 20_000, 0.02
    size = 8 * window
    rate = (np.arange(1, size + 1) / size) ** 0.45 / 2
    items = np.where(np.diff(np.floor(np.cumsum(rate)), prepend=0) > 0, 1, 2)
    sizes = {"epsilon": epsilon, "delta": 0.5, "seed": 1}
    sketch = SplitterWindowSketch(window=sg.arrivals(window), mu=1.5, tau=0.05, **sizes)
    perfect = PerfectWindowSketch(window=sg.arrivals(window), **sizes)
    finer = SplitterWindowSketch(window=sg.arrivals(window), mu=0.9, tau=0.05, **sizes)
    worst = 0.0
    for part in np.array_split(items, 40):
        for each in (sketch, perfect, finer):
            each.update(part)
        truth = perfect.estimate(1).value
        worst = max(worst, abs(sketch.estimate(1).value - truth))
        assert abs(finer.estimate(1).value - truth) <= epsilon * window / 10
    assert worst > epsilon * window


def test_values_of_splitters_may_be_added_but_splitters_not_merged():
    """Merging two sub-cell queues would not be the sketch of the union: its splits are others."""
    sketch = SplitterWindowSketch(window=100, **SIZES)
    with pytest.raises(NotMergeable, match="values"):
        SplitterWindowSketch.merge([sketch, sketch])
