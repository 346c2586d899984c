"""Figure 5 of the ECM-sketch paper: observed error against memory, over each counter.

One site, epsilon from 0.05 to 0.3, delta 0.15. `memory` is that of the arrays, `wire` the length
of the bytes. Beside our three counters stand the two structures of the paper as it describes them,
in its 32-bit addressing, by formula and so without errors of their own:

    histogram, dense    room for k + 1 buckets of size 1, k = ceil(1 / epsilon), and ceil(k / 2) + 1
                        of every larger size up to the fullest cell's: a stamp each, and a count
                        for each size
    wave as published   l levels of ceil(M / 2) entries and one of M, M = ceil(1 / epsilon) + 1 and
                        l = ceil(log2(epsilon u)), each a stamp and a rank, for an upper bound u of
                        1000 events in each tick of the window, the paper's for wc98

At the paper's own sizes these give the memory that it states, see the rows of "wc98". Its
randomized waves hold 6 / epsilon**2 stamps, without proof; ours the proved 36 / epsilon**2.
"""

import math
from typing import NamedTuple

from benches import observed, tables, traces
from benches.observed import DELTA, EPSILONS, JOIN, POINT, SEED
from benches.traces import Trace
from streamgauge import EcmSketch
from streamgauge.sketches.exphistgrid import buckets
from streamgauge.sketches.sizes import Sizes

DENSE, PUBLISHED = "histogram, dense", "wave as published"
EVENTS_A_TICK = 1000  # the bound for waves as published
WC98_WINDOW, WC98_RATE = 2_000_000, 137  # the paper's window in s, events a second
WC98_BYTES = {DENSE: 22_000, PUBLISHED: 50_000, "randomized": 48_800_000}  # at epsilon 0.15
GOALS = {"wave": "at most 1.1", "randomized": "at least 10"}


class Row(NamedTuple):
    """One structure at one epsilon. `ratio` is of `memory` to that of the dense histograms."""

    trace: str
    query: str
    epsilon: float
    structure: str
    memory: int
    wire: int | None
    ratio: float
    goal: str
    paper_memory: int | None
    paper_ratio: float | None
    average: float | None
    maximum: float | None
    beyond: float | None  # share of the queries whose error is above epsilon
    queries: int | None


def measure(scale: float) -> tables.Table:
    """All rows; `scale` shrinks the traces."""
    rows = _at_the_papers_sizes()
    for trace in traces.load(scale)[0]:
        questions = observed.asked(trace)
        for epsilon in EPSILONS:
            rows += _rows(trace, questions, POINT, epsilon)
            rows += _rows(trace, questions, JOIN, epsilon)
    about = {
        "seed": str(SEED),
        **traces.about(scale),
        "delta": str(DELTA),
        "point queries": f"at most {observed.MOST} items a range",
    }
    return tables.Table(rows, about)


def _at_the_papers_sizes() -> list[Row]:
    epsilon = 0.15
    sizes = Sizes.asked("exphist", epsilon, DELTA, SEED)
    count = WC98_WINDOW * WC98_RATE // sizes.width
    dense = dense_bytes(sizes, levels_of(count, buckets(epsilon)))
    waves = published_bytes(sizes, WC98_WINDOW)
    return [
        Row(
            "wc98", POINT, epsilon, name, memory, None, memory / dense, "",
            WC98_BYTES[name], WC98_BYTES[name] / WC98_BYTES[DENSE], None, None, None, None,
        )
        for name, memory in ((DENSE, dense), (PUBLISHED, waves))
    ]  # fmt: skip


def _rows(trace: Trace, questions: list[observed.Asked], query: str, epsilon: float) -> list[Row]:
    """The paper leaves self-joins over randomized waves out."""
    counters = ["exphist", "wave", "randomized"][: 3 if query == POINT else 2]
    sketches = {}
    for counter in counters:
        sketch = observed.new(query, counter, epsilon, trace.window)
        sketch.update(trace.items, trace.ticks)
        sketches[counter] = sketch
    sizes = sketches["exphist"].sizes
    dense = dense_bytes(sizes, sketches["exphist"]._spread_log().cells.levels)
    waves = published_bytes(sizes, trace.window)

    def formula(name: str, memory: int, paper: float | None) -> Row:
        return Row(
            trace.name, query, epsilon, name, memory, None, memory / dense, "",
            None, paper, None, None, None, None,
        )  # fmt: skip

    def measured(counter: str, sketch: EcmSketch) -> Row:
        found = observed.errors(sketch, query, questions, trace.now)
        paper = WC98_BYTES[counter] / WC98_BYTES[DENSE] if counter == "randomized" else None
        return Row(
            trace.name, query, epsilon, counter, sketch.nbytes, len(sketch.to_bytes()),
            sketch.nbytes / dense, GOALS.get(counter, ""), None, paper, *found,
        )  # fmt: skip

    formulas = [formula(DENSE, dense, None), formula(PUBLISHED, waves, 3)]
    return formulas + [measured(counter, sketch) for counter, sketch in sketches.items()]


def levels_of(count: int, k: int) -> int:
    """How many sizes of buckets a histogram of `count` arrivals has."""
    levels, room = 1, k + 1
    while room < count:
        room += ((k + 1) // 2 + 1) << levels
        levels += 1
    return levels


def dense_bytes(sizes: Sizes, levels: int) -> int:
    """See the head of the file."""
    k = buckets(sizes.epsilon_window)
    stamps = k + 1 + (levels - 1) * ((k + 1) // 2 + 1)
    return sizes.depth * sizes.width * (4 * stamps + 4 * levels)


def published_bytes(sizes: Sizes, window: int) -> int:
    """See the head of the file (Gibbons & Tirthapura 2002, section 3)."""
    epsilon = sizes.epsilon_window
    most = math.ceil(1 / epsilon) + 1
    levels = max(0, math.ceil(math.log2(epsilon * EVENTS_A_TICK * window)))
    return sizes.depth * sizes.width * 8 * (levels * math.ceil(most / 2) + most)


if __name__ == "__main__":
    tables.command("papers_ecm_memory", measure)
