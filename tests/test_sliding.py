"""Sliding answers: those that each question gives by itself, at the steps that hold an event."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamgauge as sg
from streamgauge import sliding as module
from streamgauge.sim import exact
from streamgauge.sliding import sliding
from tests import arrivals


def asked(items, window):
    some = [int(item) for item in items[:: max(1, items.size // 3)]]
    last = 1 + window // 3
    return [
        sg.Total(),
        sg.SelfJoin(last),
        *(sg.Frequency(item) for item in some),
        sg.Frequency(-1, last),
        sg.SelfJoin(),
        sg.Total(last),
    ]


def template(program, epsilon=None):
    return sg.EcmSketch(
        window=program.window, epsilon=epsilon or program.epsilon, delta=0.2, seed=program.seed
    )


def steps_for(program, ticks):
    """A step length that gives at most some hundred steps."""
    span = int(ticks[-1] - ticks[0]) + program.window if ticks.size else 1
    return max(1, program.window // 7, span // 200)


@given(arrivals.programs(max_size=1500), st.sampled_from([1, 100, 1 << 18]))
def test_a_step_answers_as_the_question_does(program, block):
    """To the last bit, whatever the blocks.

    Seen to catch: a followed bracket stands though its ranks are not kept; the first block of steps
    answers for all; a range is taken for the window.
    """
    items, ticks, weights = program.arrivals()
    ask, every = asked(items, program.window), steps_for(program, ticks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK_CELLS", block)
        found = sliding(template(program), items, ticks, ask, every, weights)
    sketch, begin = template(program), 0
    for i, step in enumerate(found.ticks.tolist()):
        end = int(np.searchsorted(ticks, step, "right"))
        sketch.update(items[begin:end], ticks[begin:end], weights[begin:end])
        begin = end
        for query, answers in zip(ask, found.answers, strict=True):
            one = sg.Estimate(answers.value[i], answers.low[i], answers.high[i], answers.confidence)
            assert one == query.answer(sketch, step)


@given(arrivals.programs(max_size=1500))
def test_certain_bounds_hold_at_every_step(program):
    """Seen to catch: a range is taken for the window."""
    items, ticks, weights = program.arrivals()
    ask = asked(items, program.window)
    found = sliding(template(program), items, ticks, ask, steps_for(program, ticks), weights)
    for query, answers in zip(ask, found.answers, strict=True):
        last = query.last or program.window
        frequent = [query.item] if isinstance(query, sg.Frequency) else []
        truth = exact.sliding(
            items.tolist(), ticks, found.ticks, last=last, asked=frequent, weights=weights
        )
        if isinstance(query, sg.Total):
            assert np.all(answers.low <= truth.totals)
            assert np.all(truth.totals <= answers.high)
        elif isinstance(query, sg.SelfJoin):
            assert np.all(truth.self_joins <= answers.high * (1 + 1e-12))
        else:
            assert np.all(truth.frequencies[:, 0] <= answers.high)


@given(arrivals.programs(max_size=300))
def test_steps_are_those_whose_window_holds_an_event(program):
    """All of them and no others.

    Seen to catch: the last step before a silence is lost; a step is given once the last event has
    left.
    """
    items, ticks, weights = program.arrivals()
    every = steps_for(program, ticks)
    found = sliding(template(program, 0.5), items, ticks, [sg.Total()], every, weights)
    ticks = ticks[weights > 0]
    if ticks.size == 0:
        assert found.ticks.size == 0
        return
    first, final = int(ticks[0]) // every, int(ticks[-1] + program.window) // every + 1
    holds = [
        step
        for step in range(first * every, final * every, every)
        if np.any((ticks <= step) & (ticks > step - program.window))
    ]
    assert found.ticks.tolist() == holds


def test_text_and_calendars():
    empty = sg.EcmSketch(window="1 hour", epsilon=0.1, delta=0.1, seed=1)
    times = np.array(["2026-01-01T00:59:30", "2026-01-01T01:00:00"], "datetime64[s]")
    found = sliding(empty, ["a", "b"], times, [sg.Frequency("a", "1 min")], "1 min")
    ends = found.ticks.astype("datetime64[ms]")
    assert (ends[0], ends[-1]) == (times[1], np.datetime64("2026-01-01T01:59:00"))
    assert found.answers[0].value.tolist() == [1] + [0] * 59


def test_bad_input_is_refused():
    empty = sg.EcmSketch(window=100, epsilon=0.1, delta=0.1, seed=1)
    with pytest.raises(ValueError, match=r"every must be at least 1 tick .*, got 0"):
        sliding(empty, [1], [1], [sg.Total()], 0)
    with pytest.raises(ValueError, match="last must not exceed the window of 100 ticks, got 101"):
        sliding(empty, [1], [1], [sg.Total(101)], 10)
    with pytest.raises(ValueError, match="times must be as many as items, got 2 for 1"):
        sliding(empty, [1], [1, 2], [sg.Total()], 10)
    with pytest.raises(ValueError, match="items must be integers, as those before, got text"):
        sliding(empty, [1], [1], [sg.Frequency("a")], 10)
    empty.update([1], [1])
    with pytest.raises(ValueError, match="template must be an empty sketch, got EcmSketch"):
        sliding(empty, [1], [1], [sg.Total()], 10)


def test_more_arrivals_than_can_be_counted_are_refused():
    """Seen to catch: no room is asked for."""
    empty = sg.EcmSketch(window=100, epsilon=0.1, delta=0.1, seed=1)
    with pytest.raises(OverflowError, match=r"arrivals must stay below 2\*\*53, got 0 and"):
        sliding(empty, [1] * 4000, range(4000), [sg.Total()], 1, [2**52] * 4000)


def test_more_steps_than_anybody_reads_are_refused():
    empty = sg.EcmSketch(window=2**61, epsilon=0.1, delta=0.1, seed=1)
    with pytest.raises(ValueError, match=r"every must give at most 67108864 steps, got 1 ticks"):
        sliding(empty, [1], [1], [sg.Total()], 1)
