"""How fast grids of window counters take events: waves beside exponential histograms.

The grids are those of an ECM-sketch with delta 0.1, the stream is that of benches/speed/ecm.py,
and all counters are compiled and promise the same error. The literal exponential histogram
(benches/literal.py) does what its paper says, deletions and a cascade of joined buckets at every
arrival; streamgauge's own leaves the deletions to the cascade; the wave knows each arrival's slot.
"""

from time import thread_time

import numpy as np
from numpy.typing import NDArray

from benches import stream, tables
from benches.literal import LiteralGrid
from benches.rounds import Timing, take_turns
from benches.stream import PER_TICK, Stream
from streamgauge import seeds
from streamgauge.sketches.door import Admitted
from streamgauge.sketches.exphistgrid import ExpHistGrid, buckets
from streamgauge.sketches.wavegrid import WaveGrid, kept_ranks

SEED = 7
WINDOW = 2_000_000
ITEMS, EXPONENT = 100_000, 1.1
ROWS = 3
WIDTHS = {0.1: 30, 0.01: 275}
ROUNDS = 61


def measure(scale: float) -> tables.Table:
    """All rows; `scale` shrinks the window and the work alike."""
    drawn = stream.ranks(_part(scale, 4_000_000), ITEMS, EXPONENT, SEED)
    pool = stream.integers(ITEMS, SEED)[drawn]
    rows = [row for epsilon in WIDTHS for row in _updates(scale, epsilon, pool)]
    about = {
        "seed": str(SEED),
        "trace": stream.described(pool, ITEMS, EXPONENT),
        "clock": "seconds that the one thread ran on a core",
        "window": f"{_part(scale, WINDOW)} ticks",
    }
    return tables.Table(rows, about)


def _part(scale: float, size: int) -> int:
    return max(1, round(scale * size))


def _updates(scale: float, epsilon: float, pool: NDArray[np.int64]) -> list[Timing]:
    window, width = _part(scale, WINDOW), WIDTHS[epsilon]
    row_seeds = seeds.expand(SEED, 3 * ROWS).reshape(ROWS, 3)
    sizes = f"{ROWS} x {width} of epsilon {epsilon}"
    literal = f"literal exponential histograms {sizes}"
    exphist, wave = f"exponential histograms {sizes}", f"waves {sizes}"
    grids: dict[str, LiteralGrid | ExpHistGrid | WaveGrid] = {
        literal: LiteralGrid(ROWS * width, buckets(epsilon), window, window * PER_TICK),
        exphist: ExpHistGrid(ROWS * width, buckets(epsilon), window),
        wave: WaveGrid(ROWS * width, kept_ranks(epsilon), window),
    }
    against = {literal: {}, exphist: {literal: None}, wave: {literal: 8, exphist: None}}
    cases = []
    for name, grid in grids.items():

        def update(
            items: NDArray[np.int64],
            ticks: NDArray[np.int64],
            grid: LiteralGrid | ExpHistGrid | WaveGrid = grid,
        ) -> None:
            words = items.view(np.uint64)
            if isinstance(grid, LiteralGrid):
                grid.insert(row_seeds, words, ticks)
            else:
                grid.insert(row_seeds, words, Admitted(ticks, None, None, None, 0))

        events = Stream()
        events.fill(update, pool, window)
        many = _part(scale, 1_000_000)
        cases.append(events.case(name, update, pool, events=many, against=against[name]))
    return take_turns(cases, _part(scale, ROUNDS), clock=thread_time)


if __name__ == "__main__":
    tables.command("counters", measure)
