from fractions import Fraction
from math import comb

import pytest

from tests.statistics import FALSE_ALARM, assert_failures_fit, most_failures


@pytest.mark.parametrize(
    ("delta", "trials", "limit"),
    [
        (0.01, 200, 12),
        (0.01, 400, 16),
        (0.01, 1000, 28),
        (0.05, 200, 27),
        (0.05, 400, 44),
        (0.05, 1000, 86),
        (0.1, 200, 43),
        (0.1, 400, 71),
    ],
)
def test_one_failure_over_the_limit_is_refused(delta, trials, limit):
    """Critical values of the specification. Seen to catch `<` for `<=` and a tail of 1e-5."""
    assert_failures_fit(delta, limit, trials)
    with pytest.raises(AssertionError, match=f"{limit + 1} of {trials} trials failed"):
        assert_failures_fit(delta, limit + 1, trials)


@pytest.mark.parametrize("delta", [Fraction(1, 100), Fraction(1, 10), Fraction(1, 2)])
@pytest.mark.parametrize("trials", [1, 7, 150])
def test_the_limit_is_the_exact_binomial_tail(delta, trials):
    def more_than(failures):
        return sum(
            comb(trials, k) * delta**k * (1 - delta) ** (trials - k)
            for k in range(failures + 1, trials + 1)
        )

    limit = most_failures(float(delta), trials)
    assert more_than(limit) <= FALSE_ALARM < more_than(limit - 1)


def test_more_failures_than_trials_is_a_mistake_of_the_test():
    with pytest.raises(ValueError, match="failures must lie in"):
        assert_failures_fit(0.1, 11, 10)
