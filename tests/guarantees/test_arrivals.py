"""Windows that count arrivals: a tick is the number of one, a weight of c is c of them in a row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import EcmSketch, Wave, WireError, arrivals, sliding
from streamgauge.queries import Frequency, SelfJoin, Total
from streamgauge.sim.exact import ExactWindow
from tests import arrivals as streams

seeds = st.integers(0, 2**32 - 1)
windows = st.sampled_from([1, 2, 7, 60, 1000, 2**31])


def new(window, **changed):
    given = {"window": arrivals(window), "epsilon": 0.3, "delta": 0.3, "seed": 5} | changed
    return EcmSketch(**given)


def stream(seed, size, heaviest):
    rng = np.random.default_rng(seed)
    items = rng.choice([3, 40]) + rng.zipf(rng.choice([1.2, 2.0]), size) % 50
    return items, rng.integers(0, heaviest + 1, size)


def cut(seed, items, weights):
    for batch in streams.cut(seed, items, np.zeros_like(items), weights):
        yield batch.items, batch.weights


@given(seeds, st.integers(0, 1500), st.sampled_from([1, 3, 50]), windows)
def test_answers_enclose_the_last_arrivals(seed, size, heaviest, window):
    """Certain ends and exact totals, after every batch.

    Seen to catch: all arrivals of an event share its tick; the log answers for the expired part of
    its oldest entry.
    """
    sketch, exact = new(window), ExactWindow(window)
    rng = np.random.default_rng(seed)
    came = 0
    for items, weights in cut(seed, *stream(seed, size, heaviest)):
        sketch.update(items, weights=weights)
        one_by_one = items.repeat(weights)
        exact.update(one_by_one.tolist(), came + 1 + np.arange(one_by_one.size))
        came += one_by_one.size
        if came == 0:
            continue
        assert sketch.now == sketch.arrivals == came
        for last in {1, window, *rng.integers(1, min(window, came + 2) + 1, 3).tolist()}:
            assert sketch.total(last) == (min(last, came), min(last, came), min(last, came), 1)
            assert sketch.self_join(last).high >= exact.self_join(last)
            counts = exact.frequencies(last)
            asked = [*range(3, 12), 77]
            for item, found in zip(asked, sketch.estimate(asked, last), strict=True):
                assert found.high >= counts.get(item, 0)
                assert found.value >= 0.7 * counts.get(item, 0)


@given(seeds, st.integers(1, 1500), st.sampled_from([6, 60]), windows)
def test_a_weight_is_as_many_arrivals_in_a_row_however_cut(seed, size, heaviest, window):
    """Equal bytes after every batch, also after a restart.

    Seen to catch: all arrivals of an event share its tick; ranks that an event pushes out are
    held against its last arrival; the log answers for the expired part of its oldest entry.
    """
    items, weights = stream(seed, size, heaviest)
    weights[0] = 1
    whole, repeated, parts = new(window), new(window), new(window)
    whole.update(items, weights=weights)
    for some, often in cut(seed + 1, items, weights):
        parts.update(some, weights=often)
        repeated.update(some.repeat(often))
        if parts.arrivals:
            assert parts.to_bytes() == repeated.to_bytes()
        parts = EcmSketch.from_bytes(parts.to_bytes())
    assert whole.to_bytes() == parts.to_bytes()


@given(seeds, st.integers(1, 800), st.sampled_from([7, 60, 1000]))
def test_it_is_a_window_of_ticks_that_are_numbered(seed, size, window):
    """Every answer, once both are grids: a log keeps more arrivals of a row than of numbers."""
    items, weights = stream(seed, size, 40)
    counted = new(window, delta=0.1)
    numbered = EcmSketch(window=window, epsilon=0.3, delta=0.1, seed=5)
    counted.update(items, weights=weights)
    ones = items.repeat(weights)
    numbered.update(ones, 1 + np.arange(ones.size))
    if numbered.nbytes == counted.nbytes:
        for last in {1, window // 2, window}:
            assert counted.total(last).low <= numbered.total(last).high
            ours, theirs = (s.estimate(items, last) for s in (counted, numbered))
            for one, other in zip(ours, theirs, strict=True):
                assert one.high <= other.high
                assert one.low >= other.low


def test_a_weight_of_trillions_is_no_more_work():
    """The rings of a wave are written once, whatever the weight."""
    sketch = new(10**12)
    sketch.update([1, 2, 1], weights=[2**50, 10**11, 2**40])
    assert sketch.total().value == 10**12
    found = sketch.estimate([1, 2, 3])
    assert found[0].low <= 10**12 <= found[0].high
    assert found[1].high == 0
    assert sketch.estimate(1, last=5).high == 5
    image = sketch.to_bytes()
    assert EcmSketch.from_bytes(image).to_bytes() == image


def test_steps_of_arrivals():
    """`sliding` steps every so many arrivals."""
    rng = np.random.default_rng(1)
    items = rng.integers(0, 9, 3000)
    ask = [Total(), Frequency(3, last=50), SelfJoin()]
    steps = sliding.sliding(new(200), items, None, ask, 100)
    exact = ExactWindow(200)
    exact.update(items.tolist(), 1 + np.arange(3000))
    assert steps.ticks.tolist()[:3] == [100, 200, 300]
    at = steps.ticks.tolist().index(3000)
    assert steps.answers[0].value[at] == 200
    assert steps.answers[1].high[at] >= exact.frequency(3, 50)
    assert steps.answers[2].high[at] >= exact.self_join()


def test_bad_input_names_the_rule():
    for number in (0, -1, 2**62, 1.5, "1 hour", None, True):
        with pytest.raises(ValueError, match="number must be"):
            arrivals(number)
    with pytest.raises(ValueError, match="tick goes with a window that is a duration"):
        new(10, tick="1 s")
    sketch = new(10)
    with pytest.raises(ValueError, match="times must be left out"):
        sketch.update([1], [1])
    sketch.update([1, 2, 3])
    with pytest.raises(ValueError, match="now must be 3, the number of arrivals"):
        sketch.advance(4)
    with pytest.raises(ValueError, match="now must be 3, the number of arrivals"):
        sketch.total(now=4)
    with pytest.raises(ValueError, match="last must not exceed the window of 10 arrivals, got 11"):
        sketch.total(last=11)
    with pytest.raises(OverflowError, match="2\\*\\*53"):
        sketch.update([1] * 300, weights=[2**53 - 1] * 300)
    with pytest.raises(ValueError, match="weights must lie in"):
        sketch.update([1], weights=[-1])
    assert sketch.now == sketch.arrivals == 3
    assert repr(sketch).startswith("EcmSketch(window=arrivals(10), ")


def test_a_wave_would_have_nothing_to_say():
    with pytest.raises(ValueError, match="window must be a number of ticks or a duration, got 100"):
        Wave(window=arrivals(100), epsilon=0.1)


def test_logs_that_no_arrivals_leave_are_refused():
    """Entries with a hole between them, or longer than the window."""
    sketch = new(10, epsilon=0.1, delta=0.1)
    sketch.update([1, 2, 3], weights=[2, 1, 2])
    image = sketch.to_bytes()
    assert EcmSketch.from_bytes(image).to_bytes() == image
    for at, value in [(-1, 3), (-2, 2), (-3, 200)]:
        bad = bytearray(image)
        bad[at] = value
        with pytest.raises(WireError):
            EcmSketch.from_bytes(bytes(bad))
