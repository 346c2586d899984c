"""Questions to a column of sketches: as Columns, and as functions of SQL.

    per_site.select("router", estimate("sketch", sf.lit("10.0.0.1"), last="10 min"))

    SELECT router FROM per_site WHERE sg_estimate(sketch, '10.0.0.1', '10 min').low > 100

Within an Arrow batch a sketch is decoded once, and asked once for all items of its rows.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.functions import arrow_udf

from streamgauge import ticks as time_ticks
from streamgauge.estimate import Estimate
from streamgauge.sketches import ecm
from streamgauge.sketches.ecm import EcmSketch
from streamgauge.wire import WireError


def estimate(sketch: Any, item: Any, last: Any = None, now: Any = None) -> Column:
    """How often `item` occurred in `(now - last, now]`: a struct of value, low, high, confidence.

    A str names a column, so a constant item is `sf.lit("10.0.0.1")`. `last` and `now` are
    constants or Columns, None for the whole window and for the sketch's own clock. The answer is
    NULL where the sketch or the item is.
    """
    return _ask(sg_estimate, _named("sketch", sketch), _named("item", item), *_span(last, now))


def total(sketch: Any, last: Any = None, now: Any = None) -> Column:
    """How many events there were in `(now - last, now]`; see `estimate`."""
    return _ask(sg_total, _named("sketch", sketch), *_span(last, now))


def self_join(sketch: Any, last: Any = None, now: Any = None) -> Column:
    """The sum over all items of their squared frequency in `(now - last, now]`; see `estimate`."""
    return _ask(sg_self_join, _named("sketch", sketch), *_span(last, now))


def register(spark: SparkSession) -> None:
    """Give SQL the functions sg_estimate(sketch, item), sg_total(sketch), sg_self_join(sketch).

    Each takes two arguments more: `last`, text such as '10 min' or a number of ticks, and `now`.
    """
    for function in (sg_estimate, sg_total, sg_self_join):
        spark.udf.register(function.__name__, _udf(function))


def _ask(function: Callable[..., pa.Array], *columns: Column) -> Column:
    answer: Column = _udf(function)(*columns)
    return answer


def _udf(function: Callable[..., pa.Array]) -> Any:
    answer = ", ".join(f"{bound} double" for bound in Estimate._fields)
    # The stubs want the kind of function, which at run time is taken from the type hints.
    return arrow_udf(function, answer)  # type: ignore[call-overload]


def _named(role: str, given: Any) -> Column:
    if isinstance(given, str):
        return sf.col(given)
    if not isinstance(given, Column):
        raise ValueError(f"{role} must be a column or the name of one, got {given!r}")
    return given


def _span(last: Any, now: Any) -> tuple[Column, Column]:
    """`last` and `now` as columns; constants are judged here, on the driver."""
    if time_ticks.is_whole(last):
        last = time_ticks.span(int(last), None, "last")
    elif not isinstance(last, Column) and last is not None:
        last = time_ticks.spell(time_ticks.nanoseconds(last, "last"))
    if time_ticks.is_whole(now):
        now = time_ticks.instant(now, None, "now")
    elif not isinstance(now, Column) and now is not None:
        now = sf.timestamp_micros(sf.lit(time_ticks.instant(now, 1000, "now")))
    return sf.lit(last), sf.lit(now)  # of a Column, itself


# What runs on the executors, by the names that SQL gives it. An argument that SQL left out is None,
# a NULL written there is an array of the type null.


def sg_estimate(
    sketch: pa.Array, item: pa.Array, last: pa.Array = None, now: pa.Array = None
) -> pa.Array:
    answers = _unanswered(len(sketch))
    for found, rows, *span in _questions(pc.if_else(item.is_valid(), sketch, None), last, now):
        bounds = ecm.frequencies([found], item.take(pa.array(rows)), *span)
        for answer, bound in zip(answers, bounds, strict=True):
            answer[rows] = bound
    return _structs(answers)


def sg_total(sketch: pa.Array, last: pa.Array = None, now: pa.Array = None) -> pa.Array:
    answers = _unanswered(len(sketch))
    for found, rows, *span in _questions(sketch, last, now):
        answers[:, rows] = np.array(found.total(*span))[:, None]
    return _structs(answers)


def sg_self_join(sketch: pa.Array, last: pa.Array = None, now: pa.Array = None) -> pa.Array:
    answers = _unanswered(len(sketch))
    for found, rows, *span in _questions(sketch, last, now):
        answers[:, rows] = np.array(found.self_join(*span))[:, None]
    return _structs(answers)


def _questions(
    sketch: pa.Array, last: pa.Array, now: pa.Array
) -> Iterator[tuple[EcmSketch, NDArray[np.int64], Any, Any]]:
    """Each distinct question: the sketch, the rows that ask it, `last` and `now`."""
    calendar = now is not None and pa.types.is_timestamp(now.type)
    columns = {"sketch": sketch, "last": last, "now": now.cast(pa.int64()) if calendar else now}
    absent = pa.nulls(len(sketch))
    asked = pa.table({name: absent if of is None else of for name, of in columns.items()})
    asked = asked.append_column("row", pa.array(np.arange(len(sketch))))
    distinct = asked.group_by(list(columns), use_threads=False).aggregate([("row", "list")])
    for question in distinct.to_pylist():
        data, length, moment = (question[name] for name in columns)
        if data is None:
            continue
        try:
            found = EcmSketch.from_bytes(data)
        except WireError as error:
            raise ValueError(f"the sketch column must hold sketches: {error}") from None
        if calendar and moment is not None:
            moment = np.datetime64(moment, "us")
        yield found, np.array(question["row_list"]), length, moment


def _unanswered(rows: int) -> NDArray[np.float64]:
    return np.full((len(Estimate._fields), rows), np.nan)


def _structs(answers: NDArray[np.float64]) -> pa.Array:
    """NULL where a row has no answer; a bound that is nan is NULL in its answer."""
    fields = [pa.array(answer, from_pandas=True) for answer in answers]
    unanswered = pa.array(np.isnan(answers[0]))
    return pa.StructArray.from_arrays(fields, list(Estimate._fields), mask=unanswered)
