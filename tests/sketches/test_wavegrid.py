"""The grid as an owner: sizes, layouts, what it remembers of the first arrival."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import EcmSketch
from streamgauge.sketches.door import Admitted
from streamgauge.sketches.wavegrid import WaveGrid, kept_ranks


@given(st.floats(1e-6, 1, exclude_max=True))
def test_the_fewest_ranks_are_kept_whose_bound_is_epsilon(epsilon):
    """Seen to catch: one rank too many is kept; one rank too few is kept."""
    kept, slack = kept_ranks(epsilon), 1 + Fraction(1, 2**40)
    assert Fraction(1, 2 * kept - 1) <= Fraction(epsilon) * slack
    assert kept == 2 or (kept > 2 and Fraction(1, 2 * kept - 3) * slack > Fraction(epsilon))


@pytest.mark.parametrize(
    ("epsilon", "kept"), [(1 - 2**-53, 2), (0.5, 2), (0.1, 6), (0.01, 51), (1e-6, 500_001)]
)
def test_kept_ranks_of_common_epsilons(epsilon, kept):
    assert kept_ranks(epsilon) == kept


@pytest.mark.parametrize(("window", "code"), [(2**30, "i4"), (2**30 + 1, "i8")])
def test_windows_beyond_2_30_ticks_take_int64(window, code):
    assert WaveGrid(1, 2, window)._stamps.dtype == code


def test_memory_is_that_of_the_arrays():
    """8 bytes of count, and per level as many stamps of 4 bytes as `kept` rounded up to 2**k."""
    grid = WaveGrid(30, 6, 100)
    assert grid.nbytes == 30 * (8 + 4 * 8)
    grid.insert_run(Admitted(np.full(7, 5), None, None, None, 0))
    assert grid.levels == 2
    assert grid.nbytes == 30 * (8 + 2 * 4 * 8)


def test_levels_grow_with_the_logarithm_of_what_a_window_holds():
    for rate, levels in ((1, 6), (64, 12), (4096, 18)):
        grid = WaveGrid(1, 6, 100)
        for tick in range(300):
            grid.insert_run(Admitted(np.array([tick]), np.array([rate]), None, None, 0))
        assert grid.levels == levels


def test_more_memory_than_allowed_is_refused_before_it_is_taken():
    with pytest.raises(OverflowError, match=r"^4194304 waves of 1 levels of 1024 slots need more"):
        WaveGrid(1 << 22, 1000, 100)
    with pytest.raises(OverflowError, match=r"a larger epsilon or delta needs less$"):
        EcmSketch(window=2**40, epsilon=1e-5, delta=0.01, seed=1)


def test_while_the_first_arrival_is_in_range_the_count_is_exact():
    """Just in range, just out of it, and nothing in range.

    Seen to catch: the first arrival is in the range when it has just left; the first arrival is
    forgotten.
    """
    grid = WaveGrid(1, 2, 100)
    grid.insert_run(Admitted(np.array([5, 6]), np.array([1, 10**6]), None, None, 0))
    cells = np.zeros(3, np.int64)
    low, high, _ = grid.spans(cells, np.array([4, 5, 6]))
    assert (low[0], high[0]) == (1 + 10**6, 1 + 10**6)
    assert low[1] < 10**6 <= high[1]
    assert (low[2], high[2]) == (0, 0)


def test_a_first_arrival_that_left_the_window_is_forgotten():
    grid = WaveGrid(1, 2, 100)
    grid.insert_run(Admitted(np.array([5, 60]), None, None, None, 0))
    assert grid.state(104) == (grid.state(60))
    assert grid.state(104).first == 5
    assert grid.state(105).first is None
    assert grid.state(None).first is None
