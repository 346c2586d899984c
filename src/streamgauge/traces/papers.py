"""Generated traces shaped like those of the papers, which cannot be had any more.

Their definitions were fixed before any protocol was built and are not tuned; the digests in
tests/traces/test_generate.py pin every row. So the order of the random draws matters here: a
change that looks harmless changes the trace. Columns are ts (int64), site (int16), item (int64)
and, where there are deletions, op (int8: 1, -1 or 0).
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streamgauge.traces.zipf import zipf

Columns = dict[str, NDArray[np.generic]]

DAY = 86_400  # seconds, the unit of ts in the wc98 traces
WEEK_REQUESTS = 50_000_000
OSDF = "osdf_caches_2025_08.parquet"


def wc98day(
    *, seed: int = 7, requests: int = 14_000_000, objects: int = 30_000, start: int = 0
) -> Columns:
    """One day of requests at a resolution of 1 s: 4 sites, two matches, a drifting popularity.

    The rate is a daily wave with two match peaks; the sites' shares wave with their own phase.
    Popularity is Zipf-Mandelbrot 1.1, tilted per site, moved every 10 minutes by an
    Ornstein-Uhlenbeck walk, and raised for 40 hot objects while a match is on.
    """
    rng = np.random.default_rng(seed)
    minutes = np.arange(1440)
    match = np.exp(-(((minutes - 870) / 70.0) ** 2)) + np.exp(-(((minutes - 1200) / 70.0) ** 2))
    rate = 1 + 0.6 * np.sin(2 * np.pi * (minutes - 540) / 1440) + 1.2 * match
    rate /= rate.sum()
    share = np.array([0.4, 0.3, 0.2, 0.1])[:, None]
    phase = 60 * np.array([0, 2, 4, 8])[:, None]
    share = share * (1 + 0.3 * np.sin(2 * np.pi * (minutes - 540 - phase) / 1440))
    share /= share.sum(0)
    sites = len(share)

    log_popularity = -1.1 * np.log(np.arange(1, objects + 1) + 2)
    tilt = rng.normal(0, 0.2, (sites, objects))
    walk = rng.normal(0, 1, objects)
    keep = np.exp(-10 / 360.0)
    hot = rng.integers(20, 2000, 40)
    ts, site, item = [], [], []
    for begin in range(0, 1440, 10):
        block = slice(begin, begin + 10)
        walk = keep * walk + np.sqrt(1 - keep * keep) * rng.normal(0, 1, objects)
        for j in range(sites):
            log_weight = log_popularity + tilt[j] + 0.3 * walk
            log_weight[hot] += np.log(1 + 10 * match[begin])
            cumulated = np.cumsum(np.exp(log_weight))
            cumulated /= cumulated[-1]
            arrivals = rng.poisson(requests * rate[block] * share[j, block])
            ts += [
                60 * minute + np.floor(60 * rng.random(n))
                for minute, n in zip(minutes[block], arrivals, strict=True)
            ]
            n = arrivals.sum()
            item.append(np.minimum(np.searchsorted(cumulated, rng.random(n)), objects - 1))
            site.append(np.full(n, j))
    seconds = np.concatenate(ts)
    order = np.argsort(seconds, kind="stable")
    return {
        "ts": seconds[order].astype(np.int64) + start,
        "site": np.concatenate(site)[order].astype(np.int16),
        "item": np.concatenate(item)[order].astype(np.int64),
    }


def wc98week(*, seed: int = 7) -> Columns:
    """Seven such days in a row, the weekend at 0.7 of the rate."""
    shares = [1.0, 1.0, 1.0, 1.0, 1.0, 0.7, 0.7]
    days = [
        wc98day(seed=seed + day, requests=int(WEEK_REQUESTS * share / 6.4), start=DAY * day)
        for day, share in enumerate(shares)
    ]
    return {name: np.concatenate([day[name] for day in days]) for name in days[0]}


def stable(
    *, seed: int = 11, sites: int = 16, window: int = 1_000_000, items: int = 20_000
) -> Columns:
    """Three count-based windows of a stationary Zipf 1.1 stream, equal sites."""
    rng = np.random.default_rng(seed)
    size = 3 * window
    return {
        "ts": np.arange(size, dtype=np.int64),
        "site": rng.integers(0, sites, size).astype(np.int16),
        "item": zipf(rng, size, items, 1.1),
    }


def bursty(
    *, seed: int = 12, sites: int = 16, window: int = 1_000_000, items: int = 20_000
) -> Columns:
    """`stable` with bursts: every 20 000 events a random item gets 30 % of the next 2 000."""
    columns = stable(seed=seed, sites=sites, window=window, items=items)
    rng = np.random.default_rng(seed + 1000)
    item = columns["item"]
    for begin in range(20_000, item.size, 20_000):
        burst = item[begin : begin + 2_000]
        hit = rng.random(burst.size) < 0.3
        burst[hit] = rng.integers(0, items)
    return columns


def churn(
    *,
    seed: int = 13,
    sites: int = 16,
    streams: int = 3,
    items: int = 1000,
    z: float = 1.0,
    updates: int = 1_000_000,
    multiset: int = 0,
) -> Columns:
    """Insertions and deletions of Zipf(z) items; item + items * stream is the column `item`.

    An item absent at its site and stream is inserted. A present one is deleted with probability
    0.55 and else left alone (the reading in which a stream is a set) or, with multiset=1,
    inserted once more.
    """
    rng = np.random.default_rng(seed)
    site = rng.integers(0, sites, updates)
    stream = rng.integers(0, streams, updates)
    item = zipf(rng, updates, items, z)
    leaves = rng.random(updates) < 0.55
    op = np.empty(updates, np.int8)
    present = [0] * (sites * streams * items)
    cells = ((site * streams + stream) * items + item).tolist()
    for update, (cell, leave) in enumerate(zip(cells, leaves.tolist(), strict=True)):
        change = 1 if present[cell] == 0 else -1 if leave else multiset
        present[cell] += change
        op[update] = change
    return {
        "ts": np.arange(updates, dtype=np.int64),
        "site": site.astype(np.int16),
        "item": item + items * stream,
        "op": op,
    }


def shifts(
    *,
    kind: str = "zipf1",
    seed: int = 14,
    window: int = 50_000,
    items: int = 1000,
    width: int = 2,
    period: int = 10_000,
    reset: int = 4,
) -> Columns:
    """A distribution that moves right by `width` every `period` samples, `reset` times over."""
    rng = np.random.default_rng(seed)
    size = 3 * window
    match kind:
        case "uniform":
            base = rng.integers(0, items, size)
        case "normal":
            drawn = np.rint(rng.normal(items / 2, items / 8, size))
            base = np.clip(drawn, 0, items - 1).astype(np.int64)
        case "zipf1":
            base = zipf(rng, size, items, 1.0)
        case "zipf2":
            base = zipf(rng, size, items, 2.0)
        case _:
            raise ValueError(f"kind must be uniform, normal, zipf1 or zipf2, got {kind!r}")
    moves = (np.arange(size) // period) % (reset + 1)
    return {"ts": np.arange(size, dtype=np.int64), "item": (base + width * moves) % items}


def ddos(data: Path, *, seed: int = 15) -> Columns:
    """A real access log with an attack on one item (0) in its last third, slowly ramping up.

    `data` is the folder that holds the log of the Open Science Data Federation's caches; ts is
    in microseconds. Real rows 360 000, attack rows 40 000.
    """
    import pyarrow.parquet as pq

    log = Path(data) / OSDF
    if not log.exists():
        raise FileNotFoundError(f"ddos needs the real trace {OSDF}, which is not in {data}")
    table = pq.read_table(log, columns=["ts", "site", "object"]).slice(0, 360_000)
    objects = table["object"].combine_chunks().dictionary_encode().indices.to_numpy()
    ts, site = table["ts"].to_numpy(), table["site"].to_numpy()

    rng = np.random.default_rng(seed)
    attacks = 40_000
    attacked = 240_000 + (120_000 * np.sort(rng.random(attacks) ** 0.8)).astype(np.int64)
    order = np.argsort(np.concatenate([np.arange(ts.size), attacked]), kind="stable")
    return {
        "ts": np.concatenate([ts, ts[np.minimum(attacked, ts.size - 1)]])[order],
        "site": np.concatenate([site, rng.integers(0, 33, attacks).astype(np.int16)])[order],
        "item": np.concatenate([objects.astype(np.int64) + 1, np.zeros(attacks, np.int64)])[order],
    }
