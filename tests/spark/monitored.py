"""The query that several tests run: in the shared session, and in processes that are killed."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import streamgauge as sg
from streamgauge.spark import source, streaming

START = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z in microseconds
SECONDS = 40
EPSILON = 0.2
TEMPLATE = sg.EcmSketch(window="10 s", epsilon=0.2, delta=0.1, seed=5, tick="10 ms", late="drop")
QUERIES = (sg.Frequency("hot"), sg.Total(), sg.SelfJoin(last="5 s"))


def write_trace(path):
    """Three sites, of which one falls silent half way, and some rows without site or item."""
    rng = np.random.default_rng(11)
    times = START + np.sort(rng.integers(0, SECONDS * 1_000_000, 6000))
    site = rng.integers(0, 3, times.size)
    site[(site == 2) & (times > START + SECONDS * 500_000)] = 0
    item = np.array(["hot", "b", "c", "d", "e"])[np.minimum(rng.geometric(0.3, times.size) - 1, 4)]
    table = pa.table(
        {
            "when": pa.array(times).cast(pa.timestamp("us")),
            "router": pa.array([f"r{s}" for s in site], mask=rng.random(times.size) < 0.01),
            "flow": pa.array(item, mask=rng.random(times.size) < 0.01),
        }
    )
    pq.write_table(table, path, row_group_size=1000)
    return path


def monitored(spark, trace, folder, sink):
    """The trace in batches of 5 s of its time, as fast as they come."""
    stream = source.replay(
        spark, trace, site="router", item="flow", time="when", step=5, partitions=2
    )
    return streaming.monitor(
        stream,
        QUERIES,
        template=TEMPLATE,
        epsilon=EPSILON,
        site="site",
        item="item",
        time="time",
        checkpoint=folder / "checkpoint",
        sink=sink,
        trigger=None,
    )
