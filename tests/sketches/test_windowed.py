"""The windowed count-min sketches by themselves. Their promises: guarantees/test_windowed.py."""

import doctest
import itertools
import math

import numpy as np
import pytest

import streamgauge as sg
from streamgauge import (
    Buffer,
    CountMin,
    NotMergeable,
    PerfectWindowSketch,
    ProportionalWindowSketch,
    SimpleWindowSketch,
    SplitterWindowSketch,
    WireError,
)
from streamgauge.sketches import countmin, proportional, splitter
from streamgauge.sketches.door import Admitted
from streamgauge.traces.papers import shifts
from tests import arrivals

HEURISTIC = (SimpleWindowSketch, ProportionalWindowSketch, SplitterWindowSketch)
WINDOWED = (PerfectWindowSketch, *HEURISTIC)
MERGING = (PerfectWindowSketch, SimpleWindowSketch, ProportionalWindowSketch)
SIZES = {"epsilon": 0.1, "delta": 0.1, "seed": 7}

every_window = pytest.mark.parametrize("kind", WINDOWED)
every_merging = pytest.mark.parametrize("kind", MERGING)


@pytest.mark.parametrize("module", [countmin, proportional, splitter])
def test_the_examples(module):
    names = {"sg": sg, **vars(module)}
    assert doctest.testmod(module, extraglobs=names).failed == 0


@pytest.mark.parametrize(("epsilon", "width"), [(0.5, 6), (0.1, 28), (0.01, 272)])
@pytest.mark.parametrize(("delta", "depth"), [(0.5, 1), (0.25, 2), (0.1, 4), (2**-8, 8)])
def test_sizes_are_those_of_the_paper(epsilon, width, delta, depth):
    sizes = CountMin(epsilon=epsilon, delta=delta, seed=1).sizes
    assert (sizes.depth, sizes.width, sizes.cells) == (depth, width, depth * width)
    assert CountMin(epsilon=epsilon, delta=delta, seed=1).nbytes == 8 * sizes.cells


@every_window
@pytest.mark.parametrize("window", [100, "90 s", sg.arrivals(5)])
def test_repr_can_be_written_again(kind, window):
    sketch = kind(window=window, late="drop", **SIZES)
    written, _, _ = repr(sketch).partition(";")
    again = eval(written + ")", {**vars(sg), kind.__name__: kind, "arrivals": sg.arrivals})
    assert again.to_bytes() == sketch.to_bytes()
    plain = CountMin(**SIZES)
    assert eval(repr(plain), {"CountMin": CountMin}).to_bytes() == plain.to_bytes()


@every_window
def test_one_question_and_many(kind):
    sketch = kind(window="1 min", **SIZES)
    with Buffer(sketch) as buffer:
        for second, item in enumerate(["a", "b", "a"], 1):
            buffer.update(item, np.datetime64(second, "s"), 5)
    many = sketch.estimate(["a", "b", "never"], np.datetime64(5, "s"))
    assert [found.value for found in many] == [10, 5, 0]
    assert sketch.estimate("a").value == sketch.estimate(b"a").value == 10
    assert sketch.estimate([]) == []
    assert (sketch.now, sketch.window, sketch.arrivals) == (3000, 60_000, 15)
    confidence = 0.9 if kind is PerfectWindowSketch else 0.0
    for found in many:
        assert found.confidence == confidence
        assert math.isnan(found.low) == (confidence == 0) == math.isnan(found.high)
    assert sketch.values().shape == (4, 28)
    assert sketch.values().sum(axis=1).tolist() == [15] * 4
    assert not sketch.values(np.datetime64(1, "h")).any()


def test_estimates_are_rounded_half_up():
    sketch = ProportionalWindowSketch(window=4, **SIZES)
    sketch.update([1, 2, 2], [4, 4, 4])
    found = [sketch.estimate(1, now).value for now in (5, 6, 7, 8)]
    assert found == [1, 1, 0, 0]  # 0.75, 0.5, 0.25, 0
    assert sketch.estimate(2, 5).value == 2  # 1.5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilon": 0}, "epsilon must lie in"),
        ({"epsilon": 1e-7}, "epsilon must be at least"),
        ({"delta": 1.0}, "delta must lie in"),
        ({"delta": 1e-19}, "delta must be at least"),
        ({"seed": -1}, "seed must lie in"),
        ({"seed": 1.5}, "seed must be an integer"),
        ({"window": 0}, "window must be at least 1 tick"),
        ({"late": "wait"}, "late must be one of"),
        ({"mu": 0}, "mu must be positive"),
        ({"mu": math.inf}, "mu must be positive"),
        ({"mu": "1"}, "mu must be a positive number"),
        ({"tau": 1.1}, "tau must be positive and at most 1"),
        ({"tau": math.nan}, "tau must be positive"),
    ],
)
def test_bad_parameters_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        SplitterWindowSketch(**({"window": 100} | SIZES | given))


def test_matrices_that_are_too_large_are_refused():
    with pytest.raises(OverflowError, match="cells are more than"):
        SimpleWindowSketch(window=100, epsilon=1e-6, delta=1e-9, seed=1)


@every_window
def test_bad_batches_change_nothing(kind):
    sketch = kind(window=100, **SIZES)
    sketch.update([1, 2], [1, 2])
    before = sketch.to_bytes()
    for items, times, weights in [
        ([1], [1, 2], None),
        ([1], [0], None),
        (["a"], [3], None),
        ([1.5], [3], None),
        ([1], [3], [-1]),
        ([1], [3], [1.5]),
    ]:
        with pytest.raises(ValueError):
            sketch.update(items, times, weights)
    with pytest.raises(ValueError, match="items must be integers"):
        sketch.estimate("a")
    with pytest.raises(OverflowError, match="arrivals must stay below"):
        sketch.update([1, 1], [3, 3], [2**53 - 1, 2])
    with pytest.raises(ValueError, match="now must not"):
        sketch.advance(1)
    assert sketch.to_bytes() == before


def test_batches_longer_than_a_chunk_are_counted_to_their_end():
    """Seen to catch: the last chunk of words without weights is left out."""
    items = np.arange(5000)
    once, weighted = CountMin(**SIZES), CountMin(**SIZES)
    once.update(items)
    weighted.update(items, np.full(5000, 2))
    assert np.array_equal(2 * once.values(), weighted.values())
    assert once.values().sum(axis=1).tolist() == [5000] * 4


@every_merging
@pytest.mark.parametrize("seed", range(20))
def test_merging_is_the_sketch_of_all_events(kind, seed):
    """In order of time, whatever the parts' clocks are; the parts stay as they are.

    Seen to catch: counts are added as of the parts' own clocks; what has expired is queued.
    """
    rng = np.random.default_rng(seed)
    window = int(rng.choice([1, 5, 50]))
    streams = [
        (rng.integers(0, 9, 30), np.sort(rng.integers(-80, 80, 30)), rng.integers(0, 4, 30))
        for _ in range(3)
    ]
    sketches = []
    for stream in streams:
        sketches.append(kind(window=window, **SIZES))
        sketches[-1].update(*stream)
    before = [sketch.to_bytes() for sketch in sketches]
    merged = kind.merge([sketches[0], before[1], sketches[2]])
    assert [sketch.to_bytes() for sketch in sketches] == before
    items, ticks, weights = (np.concatenate(column) for column in zip(*streams, strict=True))
    order = np.argsort(ticks, kind="stable")
    whole = kind(window=window, **SIZES)
    whole.update(items[order], ticks[order], weights[order])
    assert merged.to_bytes() == whole.to_bytes()
    assert merged.nbytes <= whole.nbytes + 100 * 24
    for later in (0, 1, window // 2, window + 1):
        assert np.array_equal(merged.values(80 + later), whole.values(80 + later))


@every_merging
def test_what_is_not_mergeable_says_why(kind):
    sketch = kind(window=100, **SIZES)
    for changed in ({"window": 101}, {"seed": 8}, {"epsilon": 0.2}, {"delta": 0.2}):
        other = kind(**({"window": 100} | SIZES | changed))
        with pytest.raises(NotMergeable, match=f"specified alike, got {next(iter(changed))}"):
            kind.merge([sketch, other])
    text = kind(window=100, **SIZES)
    text.update(["a"], [1])
    sketch.update([1], [1])
    with pytest.raises(NotMergeable, match="all of integers or all of text"):
        kind.merge([sketch, text])
    counting = kind(window=sg.arrivals(100), **SIZES)
    with pytest.raises(NotMergeable, match="windows that count arrivals"):
        kind.merge([counting, counting])
    with pytest.raises(ValueError, match="at least one"):
        kind.merge([])
    assert kind.merge([sketch]).to_bytes() == sketch.to_bytes()


def test_plain_sketches_merge_by_addition():
    events = arrivals.Program("steady", "zipf", 1, 1, 10, 0.1, 500, 3, 0).arrivals()
    parts = [CountMin(**SIZES) for _ in range(2)]
    whole = CountMin(**SIZES)
    for at, part in enumerate(parts):
        part.update(events.items[at::2], events.weights[at::2])
    whole.update(events.items, events.weights)
    assert CountMin.merge([parts[0], parts[1].to_bytes()]).to_bytes() == whole.to_bytes()
    assert CountMin.from_bytes(whole.to_bytes()).values().tolist() == whole.values().tolist()
    with pytest.raises(NotMergeable, match="specified alike"):
        CountMin.merge([whole, CountMin(**(SIZES | {"seed": 8}))])
    with pytest.raises(ValueError, match="at least one"):
        CountMin.merge([])
    with pytest.raises(ValueError, match="items must be integers, as those before"):
        whole.update(["a"])
    with pytest.raises(OverflowError, match="arrivals must stay below"):
        whole.update([1, 2], [2**53 - 1, 2**53 - 1])


@every_window
def test_windows_of_arrivals_take_no_times_and_keep_their_clock(kind):
    sketch = kind(window=sg.arrivals(3), **SIZES)
    with pytest.raises(ValueError, match="times must be left out"):
        sketch.update([1], [1])
    sketch.update([1, 2], weights=[2, 5])
    assert sketch.now == 7
    assert kind.from_bytes(sketch.to_bytes()).values().tolist() == sketch.values().tolist()
    with pytest.raises(ValueError, match="now must be 7"):
        sketch.estimate(1, now=8)


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("times", [False, True])
def test_tuning_measures_and_keeps_to_the_memory(text, times):
    """The error it names is that of a sketch built so; less memory makes for no smaller error.

    Seen to catch: the first window is measured too; twice the memory is allowed.
    """
    items = shifts(kind="zipf1", window=4000, period=800, items=100)["item"]
    moments = np.arange(items.size) // 4 if times else None
    given = {"window": 1000 if times else sg.arrivals(4000), **SIZES}
    sample = [f"item {item}" for item in items] if text else items
    errors = []
    for memory in (60_000, 30_000, 20_000):
        found = SplitterWindowSketch.tune(sample, moments, memory=memory, **given)
        assert found.nbytes <= memory
        assert SplitterWindowSketch.tune(sample, moments, memory=memory, **given) == found
        errors.append(found.error)
    assert errors == sorted(errors)
    assert errors[0] < errors[-1]
    sketch = SplitterWindowSketch(mu=found.mu, tau=found.tau, **given)
    perfect = PerfectWindowSketch(**given)
    cuts = [items.size * i // 64 for i in range(65)]
    measured, held = [], 0
    for begin, end in itertools.pairwise(cuts):
        for each in (sketch, perfect):
            each.update(sample[begin:end], None if moments is None else moments[begin:end])
        if end > 4000:
            asked = [f"item {item}" for item in range(100)] if text else np.arange(100)
            pairs = zip(sketch.estimate(asked), perfect.estimate(asked), strict=True)
            measured.append(np.mean([abs(mine.value - its.value) for mine, its in pairs]))
            held = max(held, 32 * (sketch.sizes.cells + sketch.subcells))
    assert held == found.nbytes
    assert found.error == pytest.approx(np.mean(measured), rel=1e-12)


@pytest.mark.parametrize("window", [1, 63, 64, 65, 100, 1000])
def test_a_splitter_of_time_knows_how_many_arrivals_its_window_holds(window):
    """With those of at most a 64th of the window's ticks besides, before each event of any batch.

    Seen to catch: the oldest slot is left out when its first tick leaves the window.
    """
    rng = np.random.default_rng(window)
    ticks = np.sort(rng.integers(-2 * window, 2 * window, 500))
    weights = rng.integers(1, 5, 500)
    recent, at = splitter._Recent(window), 0
    for batch in arrivals.cut(1, ticks, ticks, weights):
        if batch.ticks.size:
            events = Admitted(batch.ticks, batch.weights, None, None, 0)
            for present in recent.take(events).tolist():
                age = ticks[at] - ticks[:at]
                most = weights[:at][age < window + -(-window // 64) - 1].sum()
                assert weights[:at][age < window].sum() <= present <= most
                at += 1
    assert at == 500


def test_tuning_refuses_what_it_cannot_use():
    given = {"window": sg.arrivals(100), **SIZES}
    with pytest.raises(ValueError, match="sample must be longer than the window"):
        SplitterWindowSketch.tune([1] * 100, memory=10**6, **given)
    with pytest.raises(ValueError, match="sample must be longer than the window"):
        SplitterWindowSketch.tune([], memory=10**6, **given)
    with pytest.raises(ValueError, match="memory must be at least"):
        SplitterWindowSketch.tune([1] * 1000, memory=100, **given)
    with pytest.raises(ValueError, match="times must be as many as items"):
        SplitterWindowSketch.tune([1], [1, 2], memory=100, **(given | {"window": 5}))


def test_bytes_of_other_kinds_are_not_read():
    images = [kind(window=100, **SIZES).to_bytes() for kind in WINDOWED]
    for kind in WINDOWED:
        for image in images:
            if kind(window=100, **SIZES).to_bytes() != image:
                with pytest.raises(WireError, match="type"):
                    kind.from_bytes(image)
