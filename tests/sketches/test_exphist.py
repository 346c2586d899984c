"""The exponential histogram by itself. Its promise is tested in guarantees/test_exphist.py."""

import doctest

import numpy as np
import pytest
from msgspec import structs

from streamgauge import ExponentialHistogram, wire
from streamgauge.sketches import exphist as module
from streamgauge.sketches.exphist import _Header
from streamgauge.sketches.wavegrid import GridState
from streamgauge.wire import WireError


def test_the_example():
    assert doctest.testmod(module).failed == 0


def test_parameters_can_be_read():
    histogram = ExponentialHistogram(window="1 min", tick="1 s", epsilon=0.5, late="drop")
    assert (histogram.window, histogram.epsilon, histogram.tick) == (60, 0.5, 10**9)
    histogram.update(np.array([5, 6, 4], "M8[s]"))
    assert (histogram.now, histogram.late_events) == (6, 1)
    assert histogram.nbytes == 8 + 4 + 4 + 4 * 4


@pytest.mark.parametrize("epsilon", [0, 1, -0.1, 9e-7, "0.1", True])
def test_what_no_histogram_can_be_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must"):
        ExponentialHistogram(window=10, epsilon=epsilon)


def test_more_than_2_53_arrivals_are_refused_and_nothing_has_changed():
    histogram = ExponentialHistogram(window=10, epsilon=0.1)
    histogram.update([1], [2**53 - 1])
    before = histogram.to_bytes()
    with pytest.raises(OverflowError, match=r"arrivals must stay below 2\*\*53"):
        histogram.update([2])
    assert histogram.to_bytes() == before


def test_the_papers_guess_is_half_of_the_oldest_bucket():
    """k = 2: 9 arrivals are buckets of 1, 1, 1, 2, 4. Seen to catch: half of a bucket of size 1."""
    histogram = ExponentialHistogram(window=100, epsilon=0.5)
    histogram.update(range(1, 10))
    assert [segment.size for segment in histogram.segments()] == [1, 1, 1, 2, 4]
    for last, middle, half in ((1, 1, 1), (3, 3, 3), (4, 4.5, 4), (5, 4.5, 4), (6, 7.5, 7)):
        assert histogram.estimate(last).value == middle
        assert histogram.half_bucket_estimate(last).value == half
    assert histogram.half_bucket_estimate(9) == histogram.estimate(9) == (9, 9, 9, 1)


@pytest.mark.parametrize(
    ("levels", "first", "message"),
    [
        (5, 1, "5 levels, but live are 4"),
        (3, 1, "no exponential histograms have this content"),
        (4, 9, "the first arrival came at 9, but some have expired"),
        (4, 21, "the first arrival at 21 is not in the window"),
        (4, -80, "the first arrival at -80 is not in the window"),
    ],
)
def test_what_does_not_fit_together_is_refused(levels, first, message):
    """Seen to catch: levels or first arrivals not compared with the buckets."""
    histogram = ExponentialHistogram(window=100, epsilon=0.5)
    histogram.update(range(1, 21))
    header, payload = wire.unframe(histogram.to_bytes(), wire.EXPHIST, _Header)
    assert (header.grid.levels, header.grid.first) == (4, 1)
    changed = structs.replace(header, grid=GridState(levels, first))
    with pytest.raises(WireError, match=message):
        ExponentialHistogram.from_bytes(wire.frame(wire.EXPHIST, changed, bytes(payload)))


def test_a_stamp_that_has_left_the_window_is_refused():
    """Seen to catch: stamps that are not compared with the window."""
    histogram = ExponentialHistogram(window=100, epsilon=0.5)
    histogram.update([1, 50])
    header, payload = wire.unframe(histogram.to_bytes(), wire.EXPHIST, _Header)
    for window in (50, 49):
        door = structs.replace(header.door, window=window)
        data = wire.frame(wire.EXPHIST, structs.replace(header, door=door), bytes(payload))
        if window == 50:
            assert ExponentialHistogram.from_bytes(data).to_bytes() == data
        else:
            with pytest.raises(WireError, match="stamps outside the window"):
                ExponentialHistogram.from_bytes(data)


def test_an_empty_one_has_neither_levels_nor_a_first_arrival():
    empty = ExponentialHistogram(window=100, epsilon=0.5)
    header, payload = wire.unframe(empty.to_bytes(), wire.EXPHIST, _Header)
    for levels, first in ((2, None), (1, 0)):
        changed = structs.replace(header, grid=GridState(levels, first))
        with pytest.raises(WireError, match="nothing ever arrived"):
            ExponentialHistogram.from_bytes(wire.frame(wire.EXPHIST, changed, bytes(payload)))
