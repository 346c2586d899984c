"""A Spark data source that replays a recorded trace as if it happened now.

    stream = sgs.replay(spark, "trace.parquet", site="router", item="src", time="ts", speed=60)

or, once ReplaySource is registered, `spark.readStream.format("streamgauge-replay")` with the same
options. The stream has the columns site, item, time and, if one is named, weight; the options say
what the file calls them. A trace is a Parquet file, or a folder of them in the order of their
names, sorted by time. Timestamps become TIMESTAMP (naive ones are UTC); integers stay BIGINT, or
become TIMESTAMP if `unit` says what they count since the epoch: s, ms, us or ns.

The offset of the stream is the trace's own time in microseconds, or its integer: a batch is the
rows of [start, end). Nothing else is kept, so what Spark logs of a batch says all of it, and after
a crash the same batch holds the same rows. All rows are delivered: one without a time belongs to
the time before it, and is counted where it is of no use.

    speed       seconds (or integers) of the trace in a second; without it the rows come at once
    step        the longest part of the trace in one batch, in seconds (or integers)
    seconds     how much of the trace, from its beginning, in seconds (or integers); all by default
    partitions  tasks that share a batch, 1 by default

The replay begins a second in. When it falls behind by more than a step, its clock waits for Spark.
"""

import itertools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from streamgauge.traces.timeline import Timeline

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "streamgauge-replay"

_TYPES = {"int64": "BIGINT", "string": "STRING", "binary": "BINARY"}

Offset = dict[str, Any]


class Settings(NamedTuple):
    """What the options say; `speed` and `step` are in the trace's own unit of time."""

    timeline: Timeline
    end: int
    speed: float | None
    step: int | None
    partitions: int


def replay(
    spark: SparkSession,
    path: str | Path,
    *,
    site: str,
    item: str,
    time: str,
    weight: str | None = None,
    unit: str | None = None,
    speed: float | None = None,
    step: float | None = None,
    seconds: float | None = None,
    partitions: int = 1,
) -> DataFrame:
    """The trace as a stream of the columns site, item, time and maybe weight."""
    given: dict[str, Any] = {"site": site, "item": item, "time": time, "weight": weight}
    given |= {"path": str(Path(path).resolve()), "unit": unit, "speed": speed, "step": step}
    given |= {"seconds": seconds, "partitions": partitions}
    options = {name: str(value) for name, value in given.items() if value is not None}
    settings(options)  # a mistake is told here, and not by a worker's traceback
    spark.dataSource.register(ReplaySource)
    return spark.readStream.format(NAME).options(**options).load()


class Part(InputPartition):
    """What one task reads: the rows of [low, high)."""

    def __init__(self, low: int, high: int) -> None:
        super().__init__(None)
        self.low, self.high = low, high


class ReplaySource(DataSource):
    """The format streamgauge-replay."""

    @classmethod
    def name(cls) -> str:
        """How it is called in `readStream.format`."""
        return NAME

    def schema(self) -> str:
        """Its columns, which take a look at the file."""
        fields = settings(self.options).timeline.schema
        return ", ".join(f"{f.name} {_TYPES.get(str(f.type), 'TIMESTAMP')}" for f in fields)

    def streamReader(self, schema: Any) -> "ReplayReader":
        """What Spark talks to."""
        return ReplayReader(settings(self.options))


class ReplayReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Says how far the replay is, and reads what lies between two offsets."""

    def __init__(self, settings: Settings) -> None:
        self._timeline, self._end, self._speed, self._step, self._partitions = settings
        self._clock: tuple[float, int] | None = None  # a moment of ours and the trace's time then

    def initialOffset(self) -> Offset:
        """Where a new query begins."""
        return {"time": self._timeline.first}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """How far the rows go that are due by now."""
        return {"time": self.due(start["time"], time.monotonic())}

    def due(self, start: int, now: float) -> int:
        """The end of the batch that begins at `start`, by a clock that reads `now` seconds."""
        furthest = self._end if self._step is None else min(self._end, start + self._step)
        if self._speed is None:
            return furthest
        if self._clock is None:
            self._clock = now - 1, start
        begun, then = self._clock
        due = then + int((now - begun) * self._speed)
        if due > furthest:
            self._clock = now, furthest
        return max(start, min(due, furthest))

    def prepareForTriggerAvailableNow(self) -> None:
        """The whole trace is there already."""
        self._speed = None

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The batch as equal parts of its time."""
        low, high = start["time"], end["time"]
        cuts = [low + (high - low) * i // self._partitions for i in range(self._partitions + 1)]
        return [Part(a, b) for a, b in itertools.pairwise(cuts) if a < b]

    def read(self, partition: Part) -> Iterator["pa.RecordBatch"]:  # type: ignore[override]
        """The rows of a part, on an executor."""
        return self._timeline.between(partition.low, partition.high)

    def commit(self, end: Offset) -> None:
        """There is nothing that could be thrown away."""

    def stop(self) -> None:
        """There is nothing open."""


def settings(options: Any) -> Settings:
    """What a query's options say; ValueError for what they cannot say."""
    if "path" not in options:
        raise ValueError("option path must be given: the trace, a Parquet file or a folder of them")
    columns = {role: options.get(role, role) for role in ("site", "item", "time")}
    if "weight" in options:
        columns["weight"] = options["weight"]
    timeline = Timeline(options["path"], columns, options.get("unit"))
    second = timeline.second
    speed, step, seconds = (_positive(options, name) for name in ("speed", "step", "seconds"))
    partitions = int(_positive(options, "partitions") or 1)
    return Settings(
        timeline,
        timeline.end(seconds),
        None if speed is None else speed * second,
        None if step is None else max(1, int(step * second)),
        max(1, partitions),
    )


def _positive(options: Any, name: str) -> float | None:
    if name not in options:
        return None
    try:
        number = float(options[name])
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise ValueError(f"option {name} must be a positive number, got {options[name]!r}")
    return number
