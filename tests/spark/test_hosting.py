"""A hosted site says the same however its stream is cut, and as the protocol says it.

Seen to catch: events of one time taken in the order in which tasks deliver them, silences looked at
only in the batch after them, the look at the very tick of an event, every second look skipped, the
last look before the window has emptied, and the clock left behind after a long silence
(test_batches_tasks_and_order_do_not_matter); late events counted since ever instead of this time
(test_late_events_are_counted_where_they_are_late); clocks of ticks that are not milliseconds
(test_the_watermark_moves_by_a_row_of_its_own); the newest row itself as the measure of what is
early (test_a_row_far_ahead_of_its_chunk_is_early).
"""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamgauge as sg
from streamgauge import wire
from streamgauge.protocols import periodic
from streamgauge.protocols.periodic import Site
from streamgauge.spark.hosting import Hosting, StreamPacking
from streamgauge.spark.packing import Packing
from tests import arrivals

EPSILON = 0.2


def hosting(window, epsilon, wake):
    template = sg.EcmSketch(window=window, epsilon=epsilon, delta=0.1, seed=3, late="drop")
    return Hosting(template.to_bytes(), EPSILON, wake, "integers", calendar=False)


def by_the_book(host, items, ticks, weights, end):
    """Event by event, and look by look at every silence."""
    site = Site(sg.EcmSketch.from_bytes(host.template), EPSILON)
    sent = []

    def look(before):
        while site.sketch.now + host.wake < before:
            sent.extend(site.advance(site.sketch.now + host.wake))

    for event in range(ticks.size):
        if site.sketch.now is not None:
            look(int(ticks[event]))
        one = slice(event, event + 1)
        sent.extend(site.update(items[one], ticks[one], weights[one])[1])
    look(end)
    return site.to_bytes(), [wire.encode(send.message) for send in sent]


def cells_of(rng, items, ticks, weights):
    """The cells of a batch's packed rows, when several tasks have had its rows in any order."""
    task = rng.integers(0, 3, ticks.size)
    order = rng.permutation(ticks.size)
    cells = ([], [], [])
    for one in range(3):
        mine = order[task[order] == one]
        columns = {"item": items[mine], "time": ticks[mine], "weight": weights[mine]}
        batch = pa.RecordBatch.from_pydict({"site": pa.array(["a"] * mine.size), **columns})
        for packed in Packing(rows=50)([batch]):
            for cell, name in zip(cells, ("items", "times", "weights"), strict=True):
                cell.extend(packed.column(name).to_pylist())
    return cells


@given(
    arrivals.programs(max_size=400),
    st.integers(0, 12),
    st.sampled_from([0.3, 1, 2, 7, 40]),
    st.randoms(use_true_random=False),
)
def test_batches_tasks_and_order_do_not_matter(program, batches, looks, random):
    wake = max(1, int(program.window / looks))
    host = hosting(program.window, program.epsilon, wake)
    rng = np.random.default_rng(random.randrange(2**32))
    items, ticks, weights = program.arrivals()
    order = np.lexsort((weights, items, ticks))
    items, ticks, weights = items[order], ticks[order], weights[order]
    if ticks.size == 0:
        return
    end = int(ticks[-1]) + random.choice([0, 1, wake, wake + 1, 3 * program.window])
    between = np.flatnonzero(np.diff(ticks)) + 1  # a batch of the source has all of a time
    cuts = np.sort(rng.choice(between, min(batches, between.size), replace=False)).tolist()

    state, said, due = None, [], None
    for begin, stop in zip([0, *cuts], [*cuts, ticks.size], strict=True):
        if due is not None and rng.random() < 0.7:  # Spark's watermark passes, and fires a timer
            passed = int(rng.integers(due, ticks[begin] + 1)) if due < ticks[begin] else due
            if due < passed:
                step = host.watch(state, passed)
                state, due = step.state, step.wake
                said += step.messages
        part = slice(begin, stop)
        step = host.feed(state, cells_of(rng, items[part], ticks[part], weights[part]))
        state, due = step.state, step.wake
        said += step.messages
        assert step.now == ticks[stop - 1]
        assert step.late == 0
    if due is not None and due < end:
        step = host.watch(state, end)
        state = step.state
        said += step.messages
    expected, sent = by_the_book(host, items, ticks, weights, end)
    assert said == sent
    if due is None:  # nothing is left to look at, only the book goes on
        site = Site.from_bytes(state)
        site.sketch.advance(Site.from_bytes(expected).sketch.now)
        state = site.to_bytes()
    assert state == expected


def test_an_emptied_site_needs_no_further_look():
    """Seen failing with `wake` always set: a timer for ever, for every site there ever was."""
    host = hosting(100, 0.1, wake=10)
    items, ticks = np.arange(50), np.arange(50)
    step = host.feed(None, cells_of(np.random.default_rng(1), items, ticks, np.ones(50, np.int64)))
    assert step.wake == 59
    messages = step.messages
    step = host.watch(step.state, 100)
    assert (step.now, step.wake) == (99, 109)
    messages += step.messages
    step = host.watch(step.state, 10**12)
    assert step.wake is None
    coordinator = periodic.Coordinator(sg.EcmSketch.from_bytes(host.template), host.epsilon)
    for message in messages + step.messages:
        coordinator.receive("a", wire.decode(message, periodic.MESSAGES))
    assert coordinator.sites["a"].total().high == 0


def test_late_events_are_counted_where_they_are_late():
    host = hosting(100, 0.1, wake=10)
    cells = [np.array(column, np.int64).tobytes() for column in ([1, 2, 3], [50, 60, 60])]
    step = host.feed(None, ([cells[0]], [cells[1]], [None]))
    assert step.late == 0
    cells = [np.array(column, np.int64).tobytes() for column in ([1, 2, 3], [50, 59, 60])]
    step = host.feed(step.state, ([cells[0]], [cells[1]], [None]))
    assert step.late == 2
    step = host.feed(step.state, ([cells[0][16:]], [cells[1][16:]], [None]))
    assert step.late == 0


def stream_packed(packing, rows, time):
    columns = zip(*rows, strict=True)
    kinds = (pa.string(), pa.int64(), pa.int64())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    arrays[2] = arrays[2].cast(time)
    batch = pa.RecordBatch.from_arrays(arrays, names=["site", "item", "time"])
    return [row for packed in packing([batch]) for row in packed.to_pylist()]


@pytest.mark.parametrize(
    ("time", "calendar", "clock"),
    [
        (pa.int64(), False, 7000),
        (pa.timestamp("us"), True, 7),
        (pa.timestamp("us", "UTC"), True, 7),
    ],
)
def test_the_watermark_moves_by_a_row_of_its_own(time, calendar, clock):
    rows = [("a", 1, 5), ("b", 1, 7), (None, 1, 9), ("b", None, 8)]
    *packed, moving = stream_packed(StreamPacking(Packing(), None, calendar), rows, time)
    assert [row["clock"] for row in packed] == [None, None, None]
    assert [row["site"] for row in packed] == ["a", "b", ""]
    assert [row["nameless"] for row in packed] == [False, False, True]
    assert [row["nulls"] for row in packed] == [0, 1, 1]
    assert moving["nameless"]
    assert pa.scalar(moving["clock"], pa.timestamp("us", "UTC")).value == clock
    assert (moving["events"], moving["items"]) == (0, None)


def test_a_chunk_without_events_moves_no_watermark():
    (row,) = stream_packed(StreamPacking(Packing(), None, False), [("a", None, 5)], pa.int64())
    assert (row["clock"], row["nulls"]) == (None, 1)


def test_a_tick_beyond_spark_s_clock_is_refused():
    rows = [("a", 1, 1 << 53)]
    with pytest.raises(ValueError, match=r"must lie in \(-2\*\*53, 2\*\*53\) ticks, got 9007"):
        stream_packed(StreamPacking(Packing(), None, False), rows, pa.int64())


@pytest.mark.parametrize(("size", "refused"), [(1, 0), (2, 1), (500, 1), (3000, 3)])
def test_a_row_far_ahead_of_its_chunk_is_early(size, refused):
    """At most one in a thousand, or one; then it is the stream that has moved on."""
    for far, early in ((refused, refused), (refused + 1, 0)):
        times = [10] * (size - far) + [111] * min(far, size)
        rows = [("a", 1, time) for time in times]
        packed = stream_packed(StreamPacking(Packing(), 100, False), rows, pa.int64())
        expected = early if size > far else 0
        assert sum(row["early"] for row in packed) == expected
        assert sum(row["events"] for row in packed) == len(rows) - expected
    rows = [("a", 1, 10)] * (size - refused) + [("a", 1, 110)] * refused
    packed = stream_packed(StreamPacking(Packing(), 100, False), rows, pa.int64())
    assert sum(row["early"] for row in packed) == 0
