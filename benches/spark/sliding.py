"""Sliding answers on Spark: one pass through a sketch against Spark's own windows.

Total, self-join and the frequencies of 20 items, of the last hour, for each of 32 sites, every
minute of two hours. All read the same cached DataFrame and sum their result up in the JVM. A case
is cold when it runs for the first time in its session.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from benches import tables
from streamgauge import EcmSketch, Frequency, SelfJoin, Total
from streamgauge import spark as sgs
from streamgauge.sim import exact
from streamgauge.sliding import sliding
from streamgauge.spark import columns
from streamgauge.spark.packing import Packing
from streamgauge.traces.generate import digest
from streamgauge.traces.workloads import two_hours

ROWS = 2_000_000
SEED = 5
HOUR, MINUTE = 3_600_000, 60_000
ITEMS = [0, 1, 2, 3, 4, 6, 9, 14, 22, 34, 53, 83, 129, 201, 314, 490, 765, 1193, 1862, 999_999]
ASK = [Total(), SelfJoin(), *(Frequency(item) for item in ITEMS)]
EVENTS = {"site": "site", "item": "item", "time": "ts"}

OURS = "sgs.sliding epsilon 0.01 delta 0.01"
WINDOWS = "groupBy(window('1 hour', '1 minute'), site, item).count()"
ROLLING = "counts per site, item and minute, then rolling sums"
GOAL = 25
ROUNDS = 7

Trace = Mapping[str, NDArray[Any]]
Seconds = dict[str, list[float]]


class Result(NamedTuple):
    """A case and its baseline, or how many of the answers to one kind of question were right."""

    name: str
    baseline: str
    cold_s: float | None
    warm_s: float | None  # the median of `runs`
    best_s: float | None
    krows_per_s: float | None  # warm
    ratio: float | None  # of the warm times
    cold_ratio: float | None
    goal: str
    runs: int | None
    answers: int | None
    holding: float | None  # share of the answers whose interval holds the truth


def measure(scale: float) -> tables.Table:
    """All cases; `scale` shrinks the number of rows."""
    trace = two_hours(seed=SEED, rows=max(100, round(scale * ROWS)))
    with tempfile.TemporaryDirectory() as folder:
        df = loaded(trace, Path(folder))
        seconds = _seconds(df, trace, 1 if scale < 1 else ROUNDS)
        answers = _ours(df).toArrow()
        df.unpersist()
    size = len(trace["ts"])
    held = _held(trace, answers)
    results = [
        _timed(OURS, WINDOWS, seconds, size, f"at least {GOAL}"),
        _timed(OURS, ROLLING, seconds, size),
        *(_timed(name, "", seconds, size) for name in seconds if name != OURS),
    ]
    for name, right in held.items():
        blank = dict.fromkeys(Result._fields)
        shown = {"name": f"answers to {name}", "baseline": "the truth", "goal": ""}
        results.append(Result(**blank | shown | {"answers": len(right), "holding": np.mean(right)}))
    about = {
        "seed": str(SEED),
        "trace": f"two_hours rows={size}: 32 sites, Zipf 1.1; sha256 {digest(trace)}",
        "pyspark": version("pyspark"),
        "session": "local[2], 4 GB, 2 shuffle partitions",
    }
    return tables.Table(results, about)


def _session(folder: Path) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    sgs.use_java()
    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "4g",
        "spark.local.dir": str(folder),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
    }
    return SparkSession.builder.master("local[2]").config(map=options).getOrCreate()


def loaded(trace: Trace, folder: Path) -> DataFrame:
    """The trace, cached, in eight partitions in order of time."""
    spark = _session(folder)
    cuts = np.linspace(0, len(trace["ts"]), 9).astype(int).tolist()
    for part, (begin, end) in enumerate(pairwise(cuts)):
        rows = {name: column[begin:end] for name, column in trace.items()}
        pq.write_table(pa.table(rows), folder / f"{part}.parquet")
    df = spark.read.parquet(str(folder))
    df = df.select("site", "item", sf.timestamp_millis("ts").alias("ts")).cache()
    df.count()
    return df


def _seconds(df: DataFrame, trace: Trace, rounds: int) -> Seconds:
    """The times of every case; the first is its cold one, of ours in a session just started."""
    cases: dict[str, Callable[[], object]] = {
        OURS: lambda: _ours(df).agg(sf.count("*"), sf.sum("low"), sf.max("time")).first(),
        ROLLING: lambda: rolling(df).agg(sf.count("*"), sf.sum("self_join")).first(),
        "of it: the greatest time, in the JVM": lambda: _ours(df),
        "of it: rows to Python": lambda: _counted(df).first(),
        "of it: rows to Python and packed": lambda: _packed(df).first(),
        "of it: the sketches, in one thread without Spark": lambda: _alone(trace),
    }
    seconds: Seconds = {name: [_time(run)] for name, run in cases.items()}
    seconds[WINDOWS] = [_time(lambda: _windows(df).first())]
    for _ in range(rounds):
        for name, run in cases.items():
            seconds[name].append(_time(run))
    seconds[WINDOWS].append(_time(lambda: _windows(df).first()))
    return seconds


def _time(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _template() -> EcmSketch:
    return EcmSketch(window="1 hour", epsilon=0.01, delta=0.01, seed=7)


def _ours(df: DataFrame) -> DataFrame:
    return sgs.sliding(df, _template(), ASK, every="1 minute", **EVENTS)


def _windows(df: DataFrame) -> DataFrame:
    window = sf.window("ts", "1 hour", "1 minute")
    return df.groupBy(window, "site", "item").count().agg(sf.count("*"), sf.sum("count"))


def rolling(df: DataFrame) -> DataFrame:
    """What a good Spark engineer writes: exact totals, self-joins and frequencies at every minute.

    An item's count rises in the minute of its rows and falls an hour later. Its running sum is its
    frequency, whose squares' differences are summed by site and minute, and summed up again.
    """
    minute = sf.ceil(sf.unix_millis("ts") / MINUTE)
    counts = df.groupBy("site", "item", minute.alias("minute")).count()
    leaving = counts.select(
        "site", "item", (sf.col("minute") + 60).alias("minute"), -sf.col("count")
    )
    changes = (
        counts.union(leaving).groupBy("site", "item", "minute").agg(sf.sum("count").alias("by"))
    )
    item = Window.partitionBy("site", "item").orderBy("minute")
    now = sf.sum("by").over(item)
    asked = sf.when(sf.col("item").isin(ITEMS), sf.struct("item", "now"))
    steps = (
        changes.withColumn("now", now)
        .groupBy("site", "minute")
        .agg(
            sf.sum("by").alias("by"),
            sf.sum(sf.col("now") ** 2 - (sf.col("now") - sf.col("by")) ** 2).alias("squares"),
            sf.collect_list(asked).alias("frequencies"),
        )
    )
    site = Window.partitionBy("site").orderBy("minute")
    return steps.select(
        "site",
        "minute",
        sf.sum("by").over(site).alias("total"),
        sf.sum("squares").over(site).alias("self_join"),
        "frequencies",
    )


def _counted(df: DataFrame) -> DataFrame:
    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"n": [sum(len(batch) for batch in batches)]})

    return (
        columns.events(df, _template(), **EVENTS).rows.mapInArrow(count, "n long").agg(sf.sum("n"))
    )


def _packed(df: DataFrame) -> DataFrame:
    events = columns.events(df, _template(), **EVENTS)
    packed = events.rows.mapInArrow(Packing(), columns.packed_schema(events))
    return packed.agg(sf.sum("events"), sf.sum(sf.length("items")))


def by_site(trace: Trace) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
    """Each site with its items and times in ms."""
    for site in np.unique(trace["site"]).tolist():
        rows = np.flatnonzero(trace["site"] == site)
        yield site, trace["item"][rows], trace["ts"][rows]


def _alone(trace: Trace) -> None:
    for _, items, ms in by_site(trace):
        sliding(_template(), items, ms.view("datetime64[ms]"), ASK, "1 minute")


def _held(trace: Trace, answers: pa.Table) -> dict[str, NDArray[np.bool_]]:
    """Whether the interval of each answer holds the truth, by kind of question."""
    found = answers.to_pandas().sort_values("time").groupby(["site", "query"], sort=False)
    held: dict[str, list[NDArray[np.bool_]]] = {}
    for site, items, ms in by_site(trace):
        steps = found.get_group((site, str(Total())))["time"].to_numpy("datetime64[ms]")
        truth = exact.sliding(items, ms, steps.view(np.int64), last=HOUR, asked=ITEMS)
        exactly = [truth.totals, truth.self_joins, *truth.frequencies.T]
        for query, real in zip(ASK, exactly, strict=True):
            given = found.get_group((site, str(query)))
            inside = (given["low"] <= real) & (real <= given["high"])
            held.setdefault(type(query).__name__, []).append(inside.to_numpy())
    return {kind: np.concatenate(parts) for kind, parts in held.items()}


def _timed(name: str, baseline: str, seconds: Seconds, rows: int, goal: str = "") -> Result:
    cold, *warm = seconds[name]
    median = statistics.median(warm)
    ratio = cold_ratio = None
    if baseline:
        ratio = statistics.median(seconds[baseline][1:]) / median
        cold_ratio = seconds[baseline][0] / cold
    return Result(
        name, baseline, cold, median, min(warm), rows / median / 1000,
        ratio, cold_ratio, goal, len(warm), None, None,
    )  # fmt: skip


if __name__ == "__main__":
    tables.command("spark_sliding", measure)
