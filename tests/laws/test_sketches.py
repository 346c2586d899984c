"""What holds for every sketch: every law is tested on each of them."""

import hashlib
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge import (
    DyadicEcmSketch,
    EcmSketch,
    ExponentialHistogram,
    HeavyHitterSketch,
    PerfectWindowSketch,
    ProportionalWindowSketch,
    RandomizedWave,
    SimpleWindowSketch,
    SplitterWindowSketch,
    Wave,
)
from streamgauge.estimate import Estimate
from tests import arrivals
from tests.kernels.drive import stretched

COUNTERS = (Wave, ExponentialHistogram, RandomizedWave)  # of all events, whatever their items
HEURISTIC = (SimpleWindowSketch, ProportionalWindowSketch, SplitterWindowSketch)
WINDOWED = (PerfectWindowSketch, *HEURISTIC)  # asked for the whole window only

MAKERS = {
    "Wave": partial(Wave, epsilon=0.2),
    "ExponentialHistogram": partial(ExponentialHistogram, epsilon=0.2),
    # which counts by samples from the 101st event on
    "RandomizedWave": partial(RandomizedWave, epsilon=0.6, delta=0.2, seed=7, site="law"),
    "EcmSketch": partial(EcmSketch, epsilon=0.2, delta=0.3, seed=7),
    "EcmSketch of exponential histograms": partial(
        EcmSketch, epsilon=0.2, delta=0.3, seed=7, counter="exphist"
    ),
    "EcmSketch of randomized waves": partial(
        EcmSketch, epsilon=0.9, delta=0.6, seed=7, counter="randomized", site="law"
    ),
    "HeavyHitterSketch": partial(HeavyHitterSketch, epsilon=0.2),
    "DyadicEcmSketch": partial(DyadicEcmSketch, bits=12, epsilon=0.5, delta=0.6, seed=7),
    **{kind.__name__: partial(kind, epsilon=0.2, delta=0.3, seed=7) for kind in WINDOWED},
}


def new(kind, program, **changed):
    return MAKERS[kind](window=program.window, **changed)


def feed(sketch, items, ticks, weights=None):
    if isinstance(sketch, COUNTERS):
        sketch.update(ticks, weights)
    else:
        sketch.update(items, ticks, weights)


def answers(sketch, items, last=None, now=None):
    if isinstance(sketch, COUNTERS):
        return [sketch.estimate(last, now)]
    if isinstance(sketch, DyadicEcmSketch):
        found = [sketch.total(last, now), sketch.range(3, 2000, last, now)]
        if found[0].high:
            found.append(sketch.quantile(0.3, last, now).rank)
        return [*found, *sketch.estimate(items, last, now)]
    if isinstance(sketch, WINDOWED):
        total = round(sketch.values(now)[0].sum(), 6)
        found = [Estimate(total, total, total, 1.0), *sketch.estimate(items, now)]
        return [each._replace(low=0, high=each.value) for each in found]
    found = [sketch.total(last, now), *sketch.estimate(items, last, now)]
    return found if getattr(sketch, "sites", ()) else [*found, sketch.self_join(last, now)]


every_sketch = pytest.mark.parametrize("kind", MAKERS)
programs = arrivals.programs() | stretched()
seeds = st.integers(0, 2**32 - 1)


@every_sketch
@given(program=programs, cut=seeds, late=st.sampled_from(["drop", "clamp"]), shuffle=st.booleans())
def test_a_batch_means_what_its_events_mean_one_by_one(kind, program, cut, late, shuffle):
    """However a stream is cut, and with late events among its own: the same bytes.

    Seen to catch: a late event is one that is before the batch; the late events of a batch count as
    one.
    """
    events = program.arrivals()
    if shuffle:
        rng = np.random.default_rng(cut)
        near = np.argsort(np.arange(events.ticks.size) + rng.integers(0, 5, events.ticks.size))
        events = arrivals.Arrivals(*(column[near] for column in events))
    whole, parts = new(kind, program, late=late), new(kind, program, late=late)
    feed(whole, *events)
    for batch in arrivals.cut(cut, *events):
        feed(parts, *batch)
    assert parts.to_bytes() == whole.to_bytes()


@every_sketch
@given(program=programs, cut=seeds)
def test_time_may_pass_in_any_steps(kind, program, cut):
    """Silent ticks told or left untold between the batches: the same bytes."""
    told, untold = new(kind, program), new(kind, program)
    rng = np.random.default_rng(cut)
    for batch in arrivals.cut(cut, *program.arrivals()):
        if batch.ticks.size and told.now is not None:
            told.advance(int(rng.integers(told.now, int(batch.ticks[0]) + 1)))
        feed(told, *batch)
        feed(untold, *batch)
    assert told.to_bytes() == untold.to_bytes()


@every_sketch
@given(program=programs)
def test_a_weight_is_as_many_events(kind, program):
    """Seen to catch: a weight is written as the newest rank of each level alone."""
    items, ticks, weights = program.arrivals()
    weights = np.minimum(weights, 20)
    weighted, repeated = new(kind, program), new(kind, program)
    feed(weighted, items, ticks, weights)
    feed(repeated, items.repeat(weights), ticks.repeat(weights))
    for sketch in (weighted, repeated):
        sketch.advance(int(ticks.max(initial=0)))
    if weights.any() or isinstance(weighted, COUNTERS):
        assert weighted.to_bytes() == repeated.to_bytes()


@every_sketch
@given(program=programs, cut=seeds, stop=st.floats(0, 1))
def test_from_its_bytes_a_sketch_lives_on_as_if_nothing_had_been(kind, program, cut, stop):
    """The same bytes and answers at once, and the same bytes after any future.

    Seen to catch: the first arrival is not written to the bytes.
    """
    events = program.arrivals()
    half = int(stop * events.ticks.size)
    sketch = new(kind, program)
    feed(sketch, *(column[:half] for column in events))
    data = sketch.to_bytes()
    copy = type(sketch).from_bytes(data)
    assert copy.to_bytes() == data
    now = (sketch.now or 0) + program.window // 3
    asked = np.unique(events.items)[:5]
    for last in (1, 1 + program.window // 2, program.window):
        assert answers(copy, asked, last, now) == answers(sketch, asked, last, now)
    for batch in arrivals.cut(cut, *(column[half:] for column in events)):
        feed(sketch, *batch)
        feed(copy, *batch)
        copy = type(copy).from_bytes(copy.to_bytes())
    assert copy.to_bytes() == sketch.to_bytes()
    assert answers(copy, asked) == answers(sketch, asked)


@every_sketch
@given(program=programs)
def test_everything_expires(kind, program):
    """One tick before a window has passed the newest event is there, then nothing is.

    Seen to catch: an event just a range old is in the range; the newest tick is not in the range;
    the log answers for what has expired.
    """
    items, ticks, _ = program.arrivals()
    sketch = new(kind, program)
    feed(sketch, items, ticks)
    if not ticks.size:
        return
    asked = np.unique(items)
    sketch.advance(sketch.now + program.window - 1)
    if not isinstance(sketch, HEURISTIC):
        assert answers(sketch, asked)[0].high >= 1
    if isinstance(sketch, ProportionalWindowSketch):  # which forgets by the end of the next stretch
        sketch.advance(sketch.now + program.window)
    for forget in (sketch.now + 1, sketch.now + 2**41):
        assert {answer[:3] for answer in answers(sketch, asked, None, forget)} == {(0, 0, 0)}
    sketch.advance(sketch.now + 1)
    assert {answer[:3] for answer in answers(sketch, asked)} == {(0, 0, 0)}


@every_sketch
@given(program=programs, last=st.floats(0, 1), ahead=st.integers(0, 10))
def test_a_question_changes_nothing(kind, program, last, ahead):
    sketch = new(kind, program)
    feed(sketch, *program.arrivals())
    before, memory = sketch.to_bytes(), sketch.nbytes
    now = (sketch.now or 0) + ahead * program.window
    asked = (np.arange(5), max(1, int(last * program.window)), now)
    assert answers(sketch, *asked) == answers(sketch, *asked)
    assert (sketch.to_bytes(), sketch.nbytes) == (before, memory)


@every_sketch
@given(program=programs)
def test_the_callers_arrays_are_neither_kept_nor_altered(kind, program):
    events = program.arrivals()
    mine = arrivals.Arrivals(*(column.copy() for column in events))
    sketch = new(kind, program, late="clamp")
    feed(sketch, *mine)
    assert all(map(np.array_equal, mine, events))
    before = sketch.to_bytes()
    for column in mine:
        np.add(column, 1, out=column)
    assert sketch.to_bytes() == before
    frozen = arrivals.Arrivals(*(column.copy() for column in events))
    for column in frozen:
        column.flags.writeable = False
    again = new(kind, program, late="clamp")
    feed(again, *frozen)
    assert again.to_bytes() == before


@given(program=arrivals.programs(max_size=300))
@settings(max_examples=20)
@pytest.mark.parametrize("kind", ["EcmSketch", "HeavyHitterSketch"])
def test_an_item_is_the_same_however_it_comes(kind, program):
    items, ticks, weights = program.arrivals()
    texts = [f"item {item}" for item in items.tolist()]
    images = set()
    for same in (
        texts,
        [text.encode() for text in texts],
        np.array(texts, object),
        pa.array(texts, pa.string()),
        pa.array(texts, pa.string()).dictionary_encode(),
    ):
        sketch = new(kind, program)
        sketch.update(same, pa.array(ticks), pa.array(weights))
        images.add(sketch.to_bytes())
    assert len(images) == 1


def life():
    """Names the bytes of one of each that have seen much."""
    rng = np.random.default_rng(1)
    items, ticks = rng.zipf(1.3, 3000) % 100, np.sort(rng.integers(0, 10**6, 3000))
    counters = [kind(window=10**5, epsilon=0.1) for kind in (Wave, ExponentialHistogram)]
    counters.append(RandomizedWave(window=10**5, epsilon=0.5, delta=0.1, seed=7, site="a"))
    sketch = EcmSketch(window=10**5, epsilon=0.1, delta=0.1, seed=7)
    for counter in counters:
        counter.update(ticks)
    heavy = HeavyHitterSketch(window=10**5, epsilon=0.1)
    for each in (sketch, heavy):
        each.update([f"item {item}" for item in items], ticks)
    dyadic = DyadicEcmSketch(bits=9, window=10**5, epsilon=0.5, delta=0.6, seed=7)
    dyadic.update(items * items % 512, ticks, items)
    windowed = [kind(window=10**5, epsilon=0.1, delta=0.1, seed=7) for kind in WINDOWED]
    for each in windowed:
        each.update(items, ticks)
    images = [each.to_bytes() for each in (*counters, sketch, heavy, dyadic, *windowed)]
    return hashlib.sha256(b"".join(images)).hexdigest()


def test_another_process_writes_the_same_bytes():
    """Whatever its PYTHONHASHSEED. Seen to catch: text is hashed by Python."""
    statement = "from tests.laws.test_sketches import life; print(life())"
    environment = {**os.environ, "PYTHONHASHSEED": "1234"}
    done = subprocess.run(
        [sys.executable, "-c", statement],
        cwd=Path(__file__).parents[2],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == life()
