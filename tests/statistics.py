"""Testing a claim of the form "this fails with probability at most delta"."""

from scipy.stats import binom

# How likely a true claim is to be refused, per test. Seeds are fixed in the tests: a test that
# passes once passes for ever, so this is the chance of an unlucky choice, not of a flaky run.
FALSE_ALARM = 1e-6


def most_failures(delta: float, trials: int) -> int:
    """The largest number of failures in `trials` that does not yet refute the rate `delta`."""
    return int(binom.isf(FALSE_ALARM, trials, delta))


def assert_failures_fit(delta: float, failures: int, trials: int) -> None:
    """Refuse the claim if this many failures or more come with probability below FALSE_ALARM.

    A trial is a fresh seed with one question, or one joint event, declared beforehand: answers
    of one seed are not independent. True rates mostly lie far below delta, so this catches gross
    errors only.
    """
    if not 0 <= failures <= trials:
        raise ValueError(f"failures must lie in [0, trials = {trials}], got {failures}")
    limit = most_failures(delta, trials)
    assert failures <= limit, (
        f"{failures} of {trials} trials failed; at a rate of {delta} at most {limit} would"
    )
