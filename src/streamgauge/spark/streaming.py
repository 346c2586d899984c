"""A protocol run by Spark: its sites as keyed state, its coordinator on the driver.

    stream --pack--> mapInArrow --by site--> transformWithState --> foreachBatch --> answers
             rows      packed rows     periodic.Site     messages     the Desk

A message travels as its bytes from the task that hosts its site to the driver, once a micro-batch.
After a batch the coordinator has every message sent before, so an answer at the newest event's
time holds for all the events so far. Beside its messages a site hands over a row of counts per
batch, among them its clock; no answer depends on them but for the moment it is given for.

A crash repeats at most the batch that was not committed. Its rows are those that Spark's log of
offsets says, so the sites do the same again from the same state, and the Desk knows whether it has
already had the batch.
"""

import json
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import IntegralType, StringType

from streamgauge import items as item_words
from streamgauge import ticks as time_ticks
from streamgauge.items import Kind
from streamgauge.queries import Frequency, Query
from streamgauge.sketches.door import require_share
from streamgauge.sketches.ecm import EcmSketch
from streamgauge.spark import columns
from streamgauge.spark.answers import Folder
from streamgauge.spark.desk import Desk, Row, Traffic, Update
from streamgauge.spark.hosting import Hosting, Step, StreamPacking
from streamgauge.spark.packing import Packing

Sink = Callable[[Update], None] | str | Path

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_PACKED = (
    "nameless BOOLEAN, clock TIMESTAMP, events BIGINT, nulls BIGINT, early BIGINT, "
    "items BINARY, times BINARY, weights BINARY"
)
_SAID = "message BINARY, now BIGINT, events BIGINT, late BIGINT, nulls BIGINT, early BIGINT"


def monitor(
    stream: DataFrame,
    queries: Sequence[Query],
    *,
    template: EcmSketch,
    epsilon: float,
    site: Any,
    item: Any,
    time: Any,
    weight: Any = None,
    checkpoint: str | Path,
    sink: Sink,
    delay: Any = None,
    wake: Any = None,
    max_ahead: Any = None,
    trigger: str | None = "1 second",
) -> StreamingQuery:
    """Keep the answers to `queries` about all sites of a stream, and start it.

    Each site keeps a sketch like the empty `template` and reports it when `epsilon` of its window
    has changed (protocols/periodic.py). `sink` is called with an Update after every batch, or is a
    folder for JSON lines (answers.py). The checkpoint is a folder of this machine; a query that is
    started again from it goes on where it was. `trigger` is how often there is a batch; None takes
    what there is and stops.

    Rows without a site, item, time or weight are left out and counted. The template must say
    `late="drop"`: an event older than its site's clock is left out and counted as late. A site
    counts as silent when its newest event is `delay` older than the newest of all; then it looks
    every `wake` whether enough has expired. Both are a tenth of the window unless given. With
    `max_ahead`, a row that is so much later than 999 of 1000 rows of its task's part of the batch
    (all but one, where there are fewer) is left out and counted as early, so that no single row of
    the year 2262 makes all others late.

    What of this costs an answer its promise is in the counts of the Update: an answer holds for
    the events that were taken.
    """
    events = columns.events(stream, template, site, item, time, weight)
    if not stream.isStreaming:
        raise ValueError("stream must be a streaming DataFrame, got one that ends: see sgs.sketch")
    if template.door.late != "drop":
        raise ValueError(f'template must have late="drop", got late={template.door.late!r}')
    if not isinstance(events.site.dataType, IntegralType | StringType):
        kind = events.site.dataType.simpleString()
        raise ValueError(
            f"site must be integers or text, got column {events.site.name!r} of type {kind}"
        )
    session = stream.sparkSession
    if session.conf.get(_PROVIDER) != _ROCKSDB:
        raise ValueError(f"{_PROVIDER} must be {_ROCKSDB}, got {session.conf.get(_PROVIDER)}")
    if not isinstance(queries, Sequence) or not queries:
        raise ValueError(f"queries must be a list of questions, got {queries!r}")
    for query in queries:
        _require_answerable(query, template, events.kind)

    tick = 1_000_000 if template.tick is None else template.tick  # a mere tick counts as 1 ms
    tenth = max(1, template.window // 10)
    hosting = Hosting(
        template.fresh().to_bytes(),
        require_share("epsilon", epsilon),
        tenth if wake is None else time_ticks.span(wake, template.tick, "wake"),
        events.kind,
        template.tick is not None,
    )
    lag = tenth if delay is None else time_ticks.span(delay, template.tick, "delay")
    ahead = None
    if max_ahead is not None:
        ahead = time_ticks.span(max_ahead, template.tick, "max_ahead")
        ahead = ahead if template.tick is None else ahead * template.tick // 1000

    folder = _folder_of(checkpoint)
    keeper = _Keeper(Desk(template, epsilon, queries), folder, sink)
    site_type = "STRING" if isinstance(events.site.dataType, StringType) else "BIGINT"
    packing = StreamPacking(Packing(weight=events.weight), ahead, template.tick is not None)
    hosted = (
        events.rows.withColumn("site", sf.col("site").cast(site_type))
        .mapInArrow(packing, f"site {site_type}, {_PACKED}")
        .withWatermark("clock", f"{-(-lag * tick // 1_000_000)} milliseconds")
        .groupBy("site", "nameless")
        .transformWithStateInPandas(
            _Host(hosting, tick), f"site {site_type}, {_SAID}", "Append", "EventTime"
        )
    )
    writer = hosted.writeStream.foreachBatch(keeper).option("checkpointLocation", str(folder))
    if trigger is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=trigger).start()


class _Host(StatefulProcessor):
    """Hosts the site of each key: its state is the site's bytes and the timer that is set."""

    def __init__(self, hosting: Hosting, tick: int) -> None:
        self._hosting = hosting
        self._tick = tick  # nanoseconds

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState("site", "site BINARY, timer BIGINT")

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,
    ) -> Iterator[Any]:
        import pandas as pd

        frame = pd.concat(list(rows), ignore_index=True)
        counts = {name: int(frame[name].sum()) for name in ("events", "nulls", "early")}
        frame = frame[frame["events"] > 0]
        if frame.empty:
            yield _said(key, None, counts)
            return
        state, timer = self._state.get() or (None, None)
        cells = frame["items"].tolist(), frame["times"].tolist(), frame["weights"].tolist()
        step = self._hosting.feed(None if state is None else bytes(state), cells)
        self._keep(step, timer)
        yield _said(key, step, counts)

    def handleExpiredTimer(
        self,
        key: Any,
        timerValues: Any,
        expiredTimerInfo: Any,
    ) -> Iterator[Any]:
        state, _ = self._state.get() or (b"", None)
        passed = timerValues.getCurrentWatermarkInMs() * 1_000_000 // self._tick
        step = self._hosting.watch(bytes(state), passed)
        self._keep(step, None)
        yield _said(key, step, {"events": 0, "nulls": 0, "early": 0})

    def _keep(self, step: Step, timer: int | None) -> None:
        """One timer at a time; it comes early for a site that has had events since."""
        if timer is None and step.wake is not None:
            timer = -(-(step.wake + 1) * self._tick // 1_000_000)
            self._handle.registerTimer(timer)
        self._state.update((step.state, timer))

    def close(self) -> None:
        pass


def _said(key: Any, step: Step | None, counts: dict[str, int]) -> Any:
    """The rows a site sends: its messages, and last its counts."""
    import pandas as pd

    rows: list[dict[str, Any]] = [{"message": message} for message in step.messages] if step else []
    rows.append({"now": step.now if step else None, "late": step.late if step else 0, **counts})
    frame = pd.DataFrame(rows, columns=["message", "now", "events", "late", "nulls", "early"])
    site, nameless = key
    frame.insert(0, "site", None if nameless else site)
    return frame.astype({name: "Int64" for name in frame.columns[2:]})


class _Keeper:
    """What Spark calls with every batch, at least once."""

    def __init__(self, desk: Desk, checkpoint: Path, sink: Sink) -> None:
        self._desk = desk
        self._checkpoint = checkpoint
        self._sink = sink if callable(sink) else Folder(Path(sink), desk.moment)
        desk.resume(checkpoint / "coordinator", _query_id(checkpoint))

    def __call__(self, df: DataFrame, batch: int) -> None:
        with _Shortened():
            table = (
                df.toArrow()
            )  # also when it comes again: with it Spark commits the sites' states
            if batch > self._desk.batch:
                self._sink(self._desk.take(batch, _rows(table)))
                self._desk.keep(self._checkpoint / "coordinator", _query_id(self._checkpoint))


def _rows(table: pa.Table) -> Iterator[Row]:
    for row in table.to_pylist():
        counts = {name: row[name] or 0 for name in ("events", "late", "nulls", "early")}
        yield Row(row["site"], row["message"], row["now"], Traffic(**counts))


class _Shortened:
    """Gives any error a short text: Spark matches it with a regular expression that recurses."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            at = traceback.extract_tb(trace)[-1]
            text = f"{type(error).__name__}: {error}"
            raise RuntimeError(f"{text[:400]} ({Path(at.filename).name}:{at.lineno})") from None


def _query_id(checkpoint: Path) -> str:
    """Spark's id of the query that the checkpoint belongs to; empty before the first start."""
    path = checkpoint / "metadata"
    return str(json.loads(path.read_text())["id"]) if path.exists() else ""


def _folder_of(checkpoint: str | Path) -> Path:
    text = str(checkpoint).removeprefix("file://")
    if "://" in text:
        raise ValueError(f"checkpoint must be a folder of this machine, got {checkpoint!r}")
    folder = Path(text).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _require_answerable(query: Query, template: EcmSketch, kind: Kind) -> None:
    if not isinstance(query, Query):
        raise ValueError(f"queries must be questions, got {query!r}")
    template.door.range(query.last, None)
    if isinstance(query, Frequency):
        _, asked = item_words.words([query.item], "item of a query")
        if asked != kind:
            raise ValueError(f"item of {query} must be {kind}, as the stream's items, got {asked}")
