"""The grid as an owner: sizes, layouts, what it remembers of the first arrival."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.sketches.exphistgrid import ExpHistGrid, buckets
from tests.kernels.drive import SEEDS, admitted


@given(st.floats(1e-6, 1, exclude_max=True))
def test_k_is_the_least_whose_bound_is_epsilon(epsilon):
    """Seen to catch: 1 / epsilon rounded down."""
    k, slack = buckets(epsilon), 1 + Fraction(1, 2**40)
    assert Fraction(1, k) <= Fraction(epsilon) * slack
    assert k == 2 or Fraction(1, k - 1) * slack > Fraction(epsilon)


@pytest.mark.parametrize(
    ("epsilon", "k"), [(1 - 2**-53, 2), (0.5, 2), (0.1, 10), (0.07, 15), (0.01, 100), (1e-6, 10**6)]
)
def test_k_of_common_epsilons(epsilon, k):
    assert buckets(epsilon) == k


@pytest.mark.parametrize(("window", "code"), [(2**30, "i4"), (2**30 + 1, "i8")])
def test_windows_beyond_2_30_ticks_take_int64(window, code):
    assert ExpHistGrid(1, 2, window)._stamps.dtype == code


def test_memory_is_that_of_the_arrays():
    """8 bytes of count; per level 8 of head and 8 slots of 4 bytes, level 0 has 16."""
    grid = ExpHistGrid(30, 10, 100)
    assert grid.nbytes == 30 * (8 + 8 + 4 * 16)
    grid.insert_run(admitted(np.full(11, 5)))
    assert grid.levels == 1
    grid.insert_run(admitted(np.full(1, 5)))
    assert grid.levels == 2
    assert grid.nbytes == 30 * (8 + 16 + 4 * 24)


@pytest.mark.parametrize("weighted", [False, True])
def test_levels_grow_with_the_logarithm_of_what_a_window_holds(weighted):
    """However long the stream: what leaves the top level has expired.

    Seen to catch: a level more at every bucket that leaves the top one.
    """
    for rate, levels in ((1, 5), (64, 11), (4096, 17)):
        grid = ExpHistGrid(1, 10, 100)
        for tick in range(1000):
            ticks, weights = np.array([tick]), np.array([rate])
            grid.insert_run(admitted(ticks, weights) if weighted else admitted(ticks.repeat(rate)))
        assert grid.levels == levels


def test_more_memory_than_allowed_is_refused_before_it_is_taken():
    with pytest.raises(OverflowError, match=r"^4194304 exponential histograms of 1 levels with k"):
        ExpHistGrid(1 << 22, 1000, 100)


def test_while_the_first_arrival_is_in_range_the_count_is_exact():
    """Seen to catch: "nothing has expired" taken for "nothing straddles"."""
    grid = ExpHistGrid(1, 2, 100)
    grid.insert_run(admitted(np.array([5, 6]), np.array([1, 10**6])))
    low, high, _ = grid.spans(np.zeros(3, np.int64), np.array([4, 5, 6]))
    assert (low[0], high[0]) == (1 + 10**6, 1 + 10**6)
    assert low[1] < 10**6 <= high[1]
    assert (low[2], high[2]) == (0, 0)


def test_a_first_arrival_that_left_the_window_is_forgotten():
    grid = ExpHistGrid(1, 2, 100)
    assert grid.state(5).first is None
    grid.insert_run(admitted(np.array([5, 60])))
    assert grid.state(104) == grid.state(60)
    assert grid.state(104).first == 5
    assert grid.state(105).first is None
    assert grid.state(None).first is None


def test_arrivals_at_consecutive_ticks_came_first_at_the_first_of_them():
    """Also if they are more than int32 counts. Seen to catch: `first` at the newest arrival."""
    for size in (7, 2**40):
        for rows in (None, SEEDS[:1]):
            grid = ExpHistGrid(1, 2, 100)
            events = admitted(np.array([10]), np.array([size]), step=1)
            if rows is None:
                grid.insert_run(events)
            else:
                grid.insert(rows, np.zeros(1, np.uint64), events)
            assert grid.first == 11 - size
            low, high, _ = grid.spans(np.zeros(1, np.int64), np.array([7]))
            assert low <= 3 <= high
