"""What 100 000 sketches of 100 events each cost: the normal case on Spark, where a key is a site.

Memory is what the process grew by, per sketch, with everything that Python needs around the arrays.
"""

import gc
import os
import resource
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import thread_time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benches import tables
from streamgauge import EcmSketch

SEED = 13
SITES = 100_000
EVENTS = 100
WINDOW = 1_000_000
MOST_BYTES, MOST_MEMORY = 2000, 10_000


class Small(NamedTuple):
    """Many sketches of few events: the means over all of them."""

    name: str
    sketches: int
    events: int
    bytes: float
    bytes_goal: str
    memory: float
    memory_goal: str
    microseconds: float


def measure(scale: float) -> tables.Table:
    """All rows; `scale` shrinks the number of sketches."""
    sites = max(2, round(scale * SITES))
    rng = np.random.default_rng(SEED)
    kinds = {
        "random 64-bit items": rng.integers(-(1 << 63), 1 << 63, (64, EVENTS)),
        "10 items": rng.integers(0, 10, (64, EVENTS)),
    }
    # A process for each, or the second would live in what the first has left.
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as fresh:
        rows = [
            fresh.submit(_measured, epsilon, kind, items, sites).result()
            for epsilon in (0.1, 0.01)
            for kind, items in kinds.items()
        ]
    about = {
        "seed": str(SEED),
        "trace": f"{EVENTS} events at random ticks of a window of {WINDOW}",
        "clock": "seconds that the one thread ran on a core, template to filled sketch",
    }
    return tables.Table(rows, about)


def _measured(epsilon: float, kind: str, items: NDArray[np.int64], sites: int) -> Small:
    template = EcmSketch(window=WINDOW, epsilon=epsilon, delta=0.01, seed=SEED)
    ticks = np.sort(np.random.default_rng(SEED).integers(0, WINDOW, EVENTS))
    template.fresh().update(items[0], ticks)
    gc.collect()
    before, began = _resident(), thread_time()
    sketches = []
    for site in range(sites):
        sketch = template.fresh()
        sketch.update(items[site % len(items)], ticks)
        sketches.append(sketch)
    spent = thread_time() - began
    grown = _resident() - before
    sizes = [len(sketch.to_bytes()) for sketch in sketches[: len(items)]]
    return Small(
        f"EcmSketch epsilon {epsilon} delta 0.01, {kind}",
        sites,
        EVENTS,
        sum(sizes) / len(sizes),
        f"at most {MOST_BYTES}",
        grown / sites,
        f"at most {MOST_MEMORY}",
        1e6 * spent / sites,
    )


def _resident() -> int:
    """Bytes of memory that the process holds."""
    pages = Path("/proc/self/statm")
    if pages.exists():
        return int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    tables.command("small", measure)
