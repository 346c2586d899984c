"""The wave by itself. Its promise is tested in guarantees/test_wave.py."""

import doctest

import numpy as np
from hypothesis import given

from streamgauge import Wave
from streamgauge.sketches import wave as module
from streamgauge.sketches.wavegrid import Spans
from tests import arrivals


def test_the_example():
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


def test_parameters_can_be_read():
    wave = Wave(window="1 min", tick="1 s", epsilon=0.2, late="drop")
    assert (wave.window, wave.epsilon, wave.now, wave.late_events) == (60, 0.2, None, 0)
    wave.update(np.array([5, 6, 4], "M8[s]"))
    assert (wave.now, wave.late_events) == (6, 1)
    assert wave.nbytes == 8 + 4 * 4


@given(arrivals.programs(max_size=500))
def test_what_remains_is_what_later_questions_find(program):
    """Seen to catch: what remains is that of a tick before."""
    wave = Wave(window=program.window, epsilon=program.epsilon)
    _, ticks, weights = program.arrivals()
    wave.update(ticks, weights)
    if wave.now is None:
        return
    moments = wave.now + np.unique(np.linspace(0, program.window, 7).astype(np.int64))
    found = [wave.estimate(now=int(moment)) for moment in moments]
    low, high, _ = wave.remaining(moments)
    assert low.tolist() == [estimate.low for estimate in found]
    assert high.tolist() == [estimate.high for estimate in found]
    assert isinstance(wave.remaining(moments), Spans)


def test_a_wave_of_a_grid_is_a_copy():
    wave = Wave(window=100, epsilon=0.1)
    wave.update([1, 2, 3])
    copy = Wave.of(wave.epsilon, wave.door, wave._grid)
    before = copy.to_bytes()
    assert before == wave.to_bytes()
    wave.update([90])
    wave.advance(200)
    assert copy.to_bytes() == before
    copy.update([4])
    assert wave.now == 200
