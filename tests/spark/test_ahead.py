"""Which times are believed."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.spark.ahead import latest

DAY = 86_400


def believed(times, max_ahead=DAY):
    """`latest` of these times, in stretches as the JVM makes them, in any order."""
    times = np.array(sorted(times), np.int64)
    stretches = np.unique(times // max_ahead, return_inverse=True)[1]
    parts = [times[stretches == stretch] for stretch in np.unique(stretches)[::-1]]
    return latest(*(np.array([f(part) for part in parts]) for f in (min, max, len)), max_ahead)


def defined(times, max_ahead):
    """The same from the definition, one row at a time."""
    times = sorted(times)
    for i in range(1, len(times)):
        if times[i] - times[i - 1] > max_ahead and 1000 * (len(times) - i) < len(times):
            return times[i - 1]
    return times[-1]


def test_a_single_row_dated_2262_is_not_believed():
    assert believed([*range(2000), 9_214_646_400]) == 1999


def test_among_few_rows_a_single_one_is_a_thousandth():
    """1 of 1000 is not fewer than a thousandth. Seen failing with `<=`."""
    assert believed([*range(999), 10**9]) == 10**9
    assert believed([*range(1000), 10**9]) == 999


def test_who_resumes_after_a_silence_is_believed():
    assert believed([*range(2000), *range(10**9, 10**9 + 3)]) == 10**9 + 2


def test_a_gap_of_exactly_max_ahead_is_bridged():
    """Seen failing with `>=`, and with gaps between the stretches' beginnings."""
    assert believed([*range(2000), 1999 + DAY]) == 1999 + DAY
    assert believed([*range(2000), 2000 + DAY]) == 1999


def test_it_is_the_first_gap_that_counts():
    assert believed([*range(5000), 10**9, 2 * 10**9]) == 4999


def test_a_row_far_behind_all_others_changes_nothing():
    assert believed([-(10**12), *range(2000)]) == 1999


def test_the_whole_range_of_int64_is_one_long_gap():
    """Seen failing with signed distances, which wrap around."""
    assert believed([-(2**63)] * 2000 + [2**63 - 1], max_ahead=10**6) == -(2**63)


def test_one_row():
    assert believed([7]) == 7


@given(
    gaps=st.lists(st.tuples(st.integers(0, 25), st.integers(1, 3000)), min_size=1, max_size=12),
    max_ahead=st.integers(1, 12),
    start=st.integers(-20, 20),
)
def test_stretches_say_the_same_as_rows(gaps, max_ahead, start):
    times = np.repeat(start + np.cumsum([gap for gap, _ in gaps]), [rows for _, rows in gaps])
    assert believed(times.tolist(), max_ahead) == defined(times.tolist(), max_ahead)
