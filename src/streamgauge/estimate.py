"""What every question is answered with: a value and the interval in which the truth lies."""

from typing import NamedTuple


class Estimate(NamedTuple):
    """A value with `low <= truth <= high`, which holds with probability `confidence`.

    confidence 1.0 is certain, between 0 and 1 probable. 0.0 marks a heuristic: nothing is
    proved, and `low` and `high` are nan, for an interval that cannot be held is not shown.
    """

    value: float
    low: float
    high: float
    confidence: float


class ItemEstimate(NamedTuple):
    """An item, as it was given, with its estimate."""

    item: int | str | bytes
    estimate: Estimate


class TopItem(NamedTuple):
    """An item, as it was given, with its estimate, and whether it is certainly among the first."""

    item: int | str | bytes
    estimate: Estimate
    certain: bool
