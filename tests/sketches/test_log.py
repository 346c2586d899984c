"""The log of a small sketch: which event ends it, and that it is exact until then."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import EcmSketch
from streamgauge.sim.exact import ExactWindow
from streamgauge.sketches.door import Admitted
from streamgauge.sketches.log import Log
from tests import arrivals

programs = arrivals.programs(max_size=400)


def literal(limit, window, items, ticks, weights):
    """Event by event: the live entries, and the first event that is one too many."""
    entries = []
    for event, (item, tick, weight) in enumerate(zip(items, ticks, weights, strict=True)):
        if entries and entries[-1][:2] == (item, tick):
            entries[-1] = (item, tick, entries[-1][2] + weight)
            continue
        entries = [entry for entry in entries if entry[1] > tick - window]
        if len(entries) == limit:
            return entries, event
        entries.append((item, tick, weight))
    return entries, len(items)


@given(programs, st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_it_takes_events_up_to_the_first_that_is_one_too_many(program, limit, cut):
    """However the stream is cut. Seen to catch: the log counts the entries that expired."""
    events = program.arrivals()
    items, ticks, weights = (column[events.weights > 0] for column in events)
    expected, event = literal(
        limit, program.window, items.tolist(), ticks.tolist(), weights.tolist()
    )
    log, taken = Log(limit, program.window), 0
    for part in arrivals.cut(cut, items, ticks, weights):
        took = log.take(part.items.astype(np.uint64), Admitted(*part[1:], None, None, 0))
        taken += took
        if took < part.ticks.size:
            break
    assert taken == event
    columns = (log.words.astype(np.int64), log.ticks, log.weights)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected


def small(program):
    """A sketch so wide that it keeps a log of 1024 entries."""
    return EcmSketch(window=program.window, epsilon=0.02, delta=0.05, seed=program.seed)


@given(programs, st.data())
def test_the_cells_of_a_log_are_exact(program, data):
    """`value` and `high` exceed an item's frequency by collisions only; the total is exact.

    Seen to catch: the log answers for what has expired.
    """
    items, ticks, weights = program.arrivals()
    sketch, exact = small(program), ExactWindow(program.window)
    sketch.update(items, ticks, weights)
    exact.update(items, ticks, weights)
    if sketch.now is None:
        return
    last = data.draw(st.integers(1, program.window))
    now = sketch.now + data.draw(st.sampled_from([0, 1, program.window]))
    assert sketch.total(last, now)[:3] == (exact.total(last, now),) * 3
    truth = exact.frequencies(last, now)
    asked = np.unique(items)
    cells = sketch.cells_of(asked.astype(np.uint64))
    counts = np.zeros(sketch.depth * sketch.width, np.int64)
    for item, at in zip(asked.tolist(), cells.T, strict=True):
        counts[at] += truth.get(item, 0)
    for found, at in zip(sketch.estimate(asked, last, now), cells.T, strict=True):
        assert found.value == found.high == counts[at].min()


def test_a_key_with_few_events_is_small():
    """Bytes are words of 8, gaps of 4 (the longest here), weights of 1 and the header."""
    sketch = EcmSketch(window="1 hour", epsilon=0.01, delta=0.01, seed=1)
    rng = np.random.default_rng(1)
    items = rng.integers(0, 2**63, 100)
    times = np.datetime64("2026-01-01") + np.sort(rng.integers(0, 3_600_000, 100)).astype("m8[ms]")
    sketch.update(items, times)
    assert sketch.nbytes == 100 * 24
    assert len(sketch.to_bytes()) < 100 * (8 + 4 + 1) + 110


@pytest.mark.parametrize(("share", "limit"), [(0.5, 3), (0.1, 90), (0.01, 1024)])
def test_a_log_takes_no_more_memory_than_one_level_of_the_grid(share, limit):
    sketch = EcmSketch(window=10**6, epsilon=share, delta=share, seed=1)
    sketch.update(np.arange(limit), range(limit))
    assert sketch.nbytes == 24 * limit
    sketch.update(limit, limit)
    assert sketch.nbytes > 24 * limit
