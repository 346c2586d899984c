"""Generated traces of many sites on the wall clock: what the demo shows, what the Spark bench runs.

Columns are ts (int64, milliseconds since the epoch, never decreasing), site (int16), item (int64).
"""

import numpy as np

from streamgauge.traces.papers import Columns
from streamgauge.traces.zipf import zipf

EPOCH = 1_767_225_600_000  # 2026-01-01T00:00:00Z


def hot_burst(
    *,
    seed: int = 1,
    sites: int = 8,
    seconds: int = 600,
    rate: int = 2_000,
    items: int = 10_000,
    hot: int = 4_242,
    hot_sites: int = 2,
) -> Columns:
    """`rate` events a second over all sites, Zipf 1.1, and one item that becomes hot for a while.

    From half to 7/10 of the time, item `hot` (popular before only as its rank says) takes 40 %
    of what arrives at the first `hot_sites` sites.
    """
    rng = np.random.default_rng(seed)
    size, length = seconds * rate, 1000 * seconds
    ts = np.sort(rng.integers(0, length, size))
    site = rng.integers(0, sites, size).astype(np.int16)
    item = zipf(rng, size, items, 1.1)
    burst = (ts >= length * 5 // 10) & (ts < length * 7 // 10) & (site < hot_sites)
    item[burst & (rng.random(size) < 0.4)] = hot
    return {"ts": EPOCH + ts, "site": site, "item": item}


def two_hours(
    *, seed: int = 5, rows: int = 2_000_000, sites: int = 32, items: int = 1_000_000
) -> Columns:
    """Two hours of stationary traffic, Zipf 1.1 over a million items, equal sites."""
    rng = np.random.default_rng(seed)
    return {
        "ts": EPOCH + np.sort(rng.integers(0, 2 * 3_600_000, rows)),
        "site": rng.integers(0, sites, rows).astype(np.int16),
        "item": zipf(rng, rows, items, 1.1),
    }
