"""Sketches and sliding answers of a whole DataFrame, site by site.

The tasks that read the rows pack them by site (packing.py), the packed rows are shuffled, and one
task sees all events of a site, sorts them by time and feeds them to one sketch. That task needs
some 50 bytes for each of the site's rows, so a site's share is bounded by an executor's memory.

Before, a job in the JVM finds the greatest time: the DataFrame is read twice, unless it is cached.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from streamgauge import items as item_words
from streamgauge import sliding as stream
from streamgauge import ticks as time_ticks
from streamgauge.items import Kind
from streamgauge.queries import Frequency, Query
from streamgauge.sketches.ecm import EcmSketch
from streamgauge.spark import columns, packing
from streamgauge.spark.ahead import latest
from streamgauge.spark.columns import Events

_COUNTS = ("events", "nulls", "early")
_BOUNDS = ("value", "low", "high", "confidence")
_DAY = "1 day"
_MOST_STRETCHES = 1_000_000  # of `max_ahead` that the driver looks through

OfSite = Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]


def sketch(
    df: DataFrame,
    template: EcmSketch,
    *,
    site: Any,
    item: Any,
    time: Any,
    weight: Any = None,
    max_ahead: Any = _DAY,
) -> DataFrame:
    """A sketch of each site's events: one row with site, sketch, events, nulls and early.

    Columns are given by name or as Columns. Items are integers or text. Times are timestamps, of
    which those without a zone count as UTC, or integers if the template's window is a number of
    ticks. The sketch is, byte for byte, what a copy of the empty `template` becomes by `update`
    with the site's events in order of time and `advance` to the greatest time of all sites.

    `events` counts the rows that are in the sketch, `nulls` those left out because item, time or
    weight was null, `early` those left out by `max_ahead`. Rows without a site are the `nulls` of
    a row whose site and sketch are NULL.

    Rows are too far ahead, and left out, if a gap longer than `max_ahead` separates them from all
    earlier ones and fewer than one row in a thousand lies beyond it: one row dated 2262 must not
    empty every window, and a stream that resumes after a silence must not be refused. None takes
    all rows. A day means nothing to a window in ticks: there the default is None.

    The greatest time takes one small job, which runs at once.
    """
    events = _events(df, template, site, item, time, weight)
    columns.require_free(events.site, ("sketch", *_COUNTS))
    schema = StructType([events.site]).add("sketch", "binary")
    for count in _COUNTS:
        schema.add(count, "long")
    end = _greatest_time(events, template, max_ahead)
    return _per_site(events, end, _sketching(template, events, end), schema)


def sliding(
    df: DataFrame,
    template: EcmSketch,
    ask: Sequence[Query],
    *,
    site: Any,
    item: Any,
    time: Any,
    weight: Any = None,
    every: Any = "1 minute",
    max_ahead: Any = _DAY,
) -> DataFrame:
    """The answers to `ask` at every step of each site's stream, while its rows pass once.

    A row is an answer: site, time, query (its text form), value, low, high, confidence. Steps are
    the multiples of `every` at which the site's window holds an event; an answer is about
    `(time - last, time]`. The rest is as for `sketch`, which also counts the rows left out.

    The twin of `groupBy(window(...))`, which copies a row into each of the windows that hold it.
    """
    events = _events(df, template, site, item, time, weight)
    columns.require_free(events.site, ("time", "query", *_BOUNDS))
    _require_answerable(ask, template, events)
    _require_step(every, template)
    schema = StructType([events.site]).add("time", events.time).add("query", "string")
    for bound in _BOUNDS:
        schema.add(bound, "double")
    end = _greatest_time(events, template, max_ahead)
    return _per_site(events, end, _stepping(template, events, list(ask), every), schema)


def _events(  # noqa: PLR0917  (as columns.events)
    df: DataFrame, template: EcmSketch, site: Any, item: Any, time: Any, weight: Any
) -> Events:
    events = columns.events(df, template, site, item, time, weight)
    if df.isStreaming:
        raise ValueError("df must have an end, got a stream")
    return events


def _require_answerable(ask: Any, template: EcmSketch, events: Events) -> None:
    if not isinstance(ask, list | tuple) or not ask:
        raise ValueError(f"ask must be a list of queries such as Total(), got {ask!r}")
    for query in ask:
        if not isinstance(query, Query):
            raise ValueError(f"ask must hold queries such as Total(), got {query!r}")
        template.door.range(query.last, None)
        if isinstance(query, Frequency):
            _, kind = item_words.words([query.item], "item")
            if kind != events.kind:
                raise ValueError(
                    f"ask must go with the items, but column {events.item!r} holds "
                    f"{events.kind}, got {query}"
                )


def _require_step(every: Any, template: EcmSketch) -> None:
    step = time_ticks.span(every, template.tick, "every")
    if template.tick is not None and step * template.tick % 1000:
        raise ValueError(f"every must be a whole number of microseconds, got {every!r}")


def _greatest_time(events: Events, template: EcmSketch, max_ahead: Any) -> int | None:
    """The greatest time that is not too far ahead; None if there is no event at all."""
    calendar = template.tick is not None
    if not calendar and max_ahead == _DAY:
        max_ahead = None
    time = sf.unix_micros("time") if calendar else sf.col("time")
    stretch = sf.lit(0)
    if max_ahead is not None:
        # Durations are in microseconds here, as Spark's timestamps are.
        length = time_ticks.span(max_ahead, 1000 if calendar else None, "max_ahead")
        stretch = sf.try_subtract(time, sf.pmod(time, sf.lit(length)))
    whole = events.rows
    for column in whole.columns:
        whole = whole.where(sf.col(column).isNotNull())
    found = (
        whole.groupBy(stretch.alias("stretch"))
        .agg(sf.min(time).alias("first"), sf.max(time).alias("last"), sf.count("*").alias("rows"))
        .limit(_MOST_STRETCHES + 1)
        .toArrow()
    )
    if len(found) > _MOST_STRETCHES:
        raise ValueError(
            f"max_ahead must be longer: there are rows in more than {_MOST_STRETCHES} stretches "
            f"of {max_ahead!r}"
        )
    if not len(found):
        return None
    first, last, rows = (found.column(name).to_numpy() for name in ("first", "last", "rows"))
    end = int(last.max()) if max_ahead is None else latest(first, last, rows, length)
    ends = np.array([first.min(), end])
    ticks = time_ticks.numbers(ends.view("M8[us]") if calendar else ends, template.tick, "time")
    time_ticks.require_in_range(ticks, "time")
    return end


def _per_site(events: Events, end: int | None, of_site: OfSite, schema: StructType) -> DataFrame:
    pack = packing.Packing(latest=end, weight=events.weight)
    packed = events.rows.mapInArrow(pack, columns.packed_schema(events))
    return packed.groupBy("site").applyInArrow(of_site, schema)


def _sketching(template: EcmSketch, events: Events, end: int | None) -> OfSite:
    blank, kind, calendar = template.to_bytes(), events.kind, template.tick is not None
    name = events.site.name

    def of_site(site: tuple[pa.Scalar, ...], packed: pa.Table) -> pa.Table:
        given = _unpack(packed, kind, calendar)
        sketch = EcmSketch.from_bytes(blank)
        if given.times.size:
            sketch.update(*given)
        if end is not None:
            sketch.advance(np.datetime64(end, "us") if calendar else end)
        data = sketch.to_bytes() if site[0].is_valid else None
        sums = {count: [pc.sum(packed.column(count)).as_py()] for count in _COUNTS}
        row = {"sketch": pa.array([data], pa.binary()), **sums}
        return _returned(pa.table({name: packed["site"].slice(0, 1), **row}), packed)

    return of_site


def _stepping(template: EcmSketch, events: Events, ask: Sequence[Query], every: Any) -> OfSite:
    blank, kind, tick = template.to_bytes(), events.kind, template.tick
    name, texts = events.site.name, pa.array(map(str, ask), pa.string())

    def of_site(site: tuple[pa.Scalar, ...], packed: pa.Table) -> pa.Table:
        given = _unpack(packed, kind, tick is not None)
        sketch = EcmSketch.from_bytes(blank)
        steps, answers = stream.sliding(sketch, given.items, given.times, ask, every, given.weights)
        if not steps.size:
            return pa.table({})
        times = pa.array(steps if tick is None else _microseconds(steps, tick))
        times = times.cast(packed.schema.field("newest").type)
        result = {
            name: pa.repeat(site[0], steps.size * len(answers)),
            "time": pa.concat_arrays([times] * len(answers)),
            "query": texts.take(pa.array(np.repeat(np.arange(len(answers)), steps.size))),
            "value": np.concatenate([found.value for found in answers]),
            "low": np.concatenate([found.low for found in answers]),
            "high": np.concatenate([found.high for found in answers]),
            "confidence": np.repeat([found.confidence for found in answers], steps.size),
        }
        return _returned(pa.table(result), packed)

    return of_site


def _unpack(packed: pa.Table, kind: Kind, calendar: bool) -> packing.Events:
    return packing.unpack(packed["items"], packed["times"], packed["weights"], kind, calendar)


def _returned(result: pa.Table, packed: pa.Table) -> pa.Table:
    """`result` with the types that Spark takes back, which are not all those that it hands out."""
    large = pa.types.is_large_binary(packed.schema.field("items").type)
    kinds = [_taken_back(kind, large) for kind in result.schema.types]
    return result.cast(pa.schema(zip(result.column_names, kinds, strict=True)))


def _taken_back(kind: pa.DataType, large: bool) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp("us", "UTC")  # whatever the session's zone
    if large and pa.types.is_string(kind):
        return pa.large_string()
    if large and pa.types.is_binary(kind):
        return pa.large_binary()
    return kind


def _microseconds(ticks: NDArray[np.int64], tick: int) -> NDArray[np.int64]:
    whole, rest = divmod(tick, 1000)
    return ticks * whole + ticks * rest // 1000
