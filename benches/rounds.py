"""Times cases in turn, round after round, so that they share the machine's good and bad moments.

Two times that were taken a minute apart say little on a machine that others use. Here every
round runs each case once, in an order shuffled anew, and a ratio is taken within each round.
"""

import gc
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Case:
    """One thing to time.

    `run` gets as arguments what `prepare`, which is not timed, returned just before, and does
    `amount` of something. A unit that ends in "/s" is a rate, "ms" is the time for an amount of
    one. `against` names the cases to compare with and the ratio to reach, at least that for a
    rate, at most that for a time; None where there is no goal.
    """

    name: str
    run: Callable[..., Any]
    prepare: Callable[[], tuple[Any, ...]] = tuple
    unit: str = "ms"
    amount: float = 1
    against: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def is_rate(self) -> bool:
        """More is better."""
        return self.unit.endswith("/s")

    def value(self, seconds: float) -> float:
        """What a run of so many seconds is in the case's unit."""
        return self.amount / seconds if self.is_rate else 1000 * seconds / self.amount


class Timing(NamedTuple):
    """A case beside one of those it is compared with.

    `ratio` is the median of the rounds' ratios. `ratio_of_best` compares the best of each, which
    is nearest to what both take on a quiet machine.
    """

    name: str
    baseline: str
    unit: str
    median: float
    best: float
    ratio: float | None
    ratio_of_best: float | None
    goal: str
    rounds: int


def take_turns(
    cases: Sequence[Case],
    rounds: int,
    *,
    warm_up: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Timing]:
    """Run every case once a round; one Timing for each case and baseline, in order.

    Cases that keep to one thread may be timed by `time.thread_time`: while that thread has to
    wait for a core it stands still, which else would hit the longer cases more than the shorter.
    """
    order = list(cases)
    shuffle = random.Random(0).shuffle
    values: dict[str, list[float]] = {case.name: [] for case in cases}
    for turn in range(warm_up + rounds):
        shuffle(order)
        gc.collect()
        for case in order:
            value = case.value(_seconds(case, clock))
            if turn >= warm_up:
                values[case.name].append(value)
    units = {case.name: case.unit for case in cases}
    return [
        _compared(case, baseline, values, units)
        for case in cases
        for baseline in (case.against or [""])
    ]


def _seconds(case: Case, clock: Callable[[], float]) -> float:
    arguments = case.prepare()
    gc.disable()
    try:
        start = clock()
        case.run(*arguments)
        return clock() - start
    finally:
        gc.enable()


def _compared(
    case: Case, baseline: str, values: Mapping[str, list[float]], units: Mapping[str, str]
) -> Timing:
    best = max if case.is_rate else min
    own = values[case.name]
    ratio = ratio_of_best = None
    goal = ""
    if baseline:
        if units[baseline] != case.unit:
            raise ValueError(f"{case.name} is in {case.unit}, {baseline} in {units[baseline]}")
        other = values[baseline]
        ratio = statistics.median(a / b for a, b in zip(own, other, strict=True))
        ratio_of_best = best(own) / best(other)
        wanted = case.against[baseline]
        if wanted is not None:
            goal = f"at {'least' if case.is_rate else 'most'} {wanted:g}"
    return Timing(
        case.name, baseline, case.unit, statistics.median(own), best(own),
        ratio, ratio_of_best, goal, len(own),
    )  # fmt: skip
