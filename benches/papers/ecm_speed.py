"""Table 3 of the ECM-sketch paper: updates and point queries a second, over each counter.

One site, epsilon = delta = 0.1 (the paper calls its rates indicative and does not say for which
they are). Updates come in batches of 100000, after the rest of the trace; point queries ask the
last window for 10000 items at once and one by one. What the paper printed for wc98 ran on another
machine and in Java: it stands here for orders of magnitude only. Its randomized waves hold a sixth
of the stamps, see ecm_memory.py.
"""

from collections.abc import Callable
from functools import partial
from time import thread_time
from typing import NamedTuple

from benches import tables, traces
from benches.rounds import Case, take_turns
from benches.traces import Trace
from streamgauge import EcmSketch

SEED = 7
EPSILON = DELTA = 0.1
BATCH, ITEMS, ONE_BY_ONE = 100_000, 10_000, 200
ROUNDS = 15

# Table 3 on wc98: updates and queries a second.
PAPER = {
    "exphist": (4_343_095, 1_641_935),
    "wave": (6_067_130, 1_850_909),
    "randomized": (70_468, 11_905),
}


class Rate(NamedTuple):
    """How often a second, median and best of the rounds; `paper` is on wc98 itself."""

    trace: str
    what: str
    counter: str
    median: float
    best: float
    paper: int | None
    rounds: int


def measure(scale: float) -> tables.Table:
    """All rows; `scale` shrinks the traces and the work alike."""
    rows = [row for trace in traces.load(scale)[0] for row in _rates(trace, scale)]
    about = {
        "seed": str(SEED),
        **traces.about(scale),
        "epsilon, delta": f"{EPSILON}, {DELTA}",
        "clock": "seconds that the one thread ran on a core",
    }
    return tables.Table(rows, about)


def _rates(trace: Trace, scale: float) -> list[Rate]:
    cases: list[Case] = []
    for counter in PAPER:
        cases += _cases(trace, counter, scale)
    timings = take_turns(cases, max(1, round(scale * ROUNDS)), clock=thread_time)
    rows = []
    for case, timing in zip(cases, timings, strict=True):
        what, counter = case.name.split(" over ")
        printed = PAPER[counter] if trace.name == "wc98day" else (None, None)
        paper = printed[what != "updates"]
        rows.append(
            Rate(trace.name, what, counter, timing.median, timing.best, paper, timing.rounds)
        )
    return rows


def _cases(trace: Trace, counter: str, scale: float) -> list[Case]:
    events = min(max(1, round(scale * (BATCH if counter == "randomized" else 10 * BATCH))),
                 trace.items.size // 2)  # fmt: skip
    before = trace.items.size - events
    sketch = EcmSketch(
        window=trace.window, epsilon=EPSILON, delta=DELTA, seed=SEED, counter=counter
    )  # type: ignore[arg-type]
    sketch.update(trace.items[:before], trace.ticks[:before])
    data = sketch.to_bytes()
    sketch.update(trace.items[before:], trace.ticks[before:])
    batches = [
        (trace.items[at : at + BATCH], trace.ticks[at : at + BATCH])
        for at in range(before, trace.items.size, BATCH)
    ]
    many = trace.items[-max(1, round(scale * ITEMS)) :]
    few = many[: max(1, round(scale * ONE_BY_ONE))].tolist()

    def update(filled: EcmSketch) -> None:
        for items, ticks in batches:
            filled.update(items, ticks)

    def fill() -> tuple[EcmSketch]:
        return (EcmSketch.from_bytes(data),)

    def rate(
        what: str, run: Callable[..., object], amount: int, **more: Callable[..., object]
    ) -> Case:
        return Case(f"{what} over {counter}", run, unit="/s", amount=amount, **more)

    return [
        rate("updates", update, events, prepare=fill),
        rate("point queries at once", partial(sketch.estimate, many), many.size),
        rate("point queries one by one", lambda: [sketch.estimate(item) for item in few], len(few)),
    ]


if __name__ == "__main__":
    tables.command("papers_ecm_speed", measure)
