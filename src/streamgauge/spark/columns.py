"""Which columns of a DataFrame are its events, checked before any job starts."""

import difflib
from collections.abc import Collection
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from streamgauge.items import Kind
from streamgauge.sketches.ecm import EcmSketch

_WHOLE = (ByteType, ShortType, IntegerType, LongType)
_TEXT = (StringType, BinaryType)
_MOMENTS = (TimestampType, TimestampNTZType)
_FLAT = (*_WHOLE, *_TEXT, *_MOMENTS, BooleanType, DateType, DayTimeIntervalType, DecimalType)
_SITES = (*_FLAT, DoubleType, FloatType)


class Events(NamedTuple):
    """A DataFrame of nothing but events, as packing.Packing takes them, and what they were."""

    rows: DataFrame  # site, item, time and maybe weight
    kind: Kind  # of the items; text is hashed by the JVM
    site: StructField  # the user's name and type
    item: str  # the user's names
    weight: str
    time: DataType


def events(  # noqa: PLR0917  (what every door of this folder takes)
    df: DataFrame, template: EcmSketch, site: Any, item: Any, time: Any, weight: Any = None
) -> Events:
    """The rows of `df` as events for sketches like `template`."""
    if not isinstance(df, DataFrame):
        raise ValueError(f"df must be a Spark DataFrame, got {type(df).__name__}")
    require_empty(template)
    given = {"site": site, "item": item, "time": time}
    if weight is not None:
        given["weight"] = weight
    columns = {role: column(df, role, of) for role, of in given.items()}
    fields = dict(zip(columns, df.select(*columns.values()).schema.fields, strict=True))

    _require("site", fields["site"], _SITES, "of a type that is not nested")
    _require("item", fields["item"], _WHOLE + _TEXT, "integers or text")
    if template.tick is None:
        rule = "integers, since the window is a number of ticks"
        _require("time", fields["time"], _WHOLE, rule)
        columns["time"] = columns["time"].cast("bigint")
    else:
        rule = "timestamps, since the window is a duration"
        _require("time", fields["time"], _MOMENTS, rule)
    if "weight" in fields:
        _require("weight", fields["weight"], _WHOLE, "integers")
        columns["weight"] = columns["weight"].cast("bigint")

    kind: Kind = "integers"
    word = columns["item"].cast("bigint")
    if isinstance(fields["item"].dataType, _TEXT):
        kind = "text"
        # The hash of NULL would be the seed.
        word = sf.when(columns["item"].isNotNull(), sf.xxhash64(columns["item"]))
    columns["item"] = word
    rows = df.select(*(column.alias(role) for role, column in columns.items()))
    names = {role: field.name for role, field in fields.items()}
    moment = rows.schema["time"].dataType
    return Events(rows, kind, fields["site"], names["item"], names.get("weight", ""), moment)


def packed_schema(found: Events) -> StructType:
    """The schema of the rows that packing.Packing makes of these events."""
    schema = StructType([StructField("site", found.site.dataType)]).add("newest", found.time)
    for count in ("events", "nulls", "early"):
        schema.add(count, LongType())
    for cells in ("items", "times", "weights"):
        schema.add(cells, BinaryType())
    return schema


def column(df: DataFrame, role: str, given: Any) -> Column:
    """The column that the argument `role` names: by a str as in PySpark, or itself."""
    if isinstance(given, Column):
        return given
    if not isinstance(given, str):
        raise ValueError(f"{role} must be a column or the name of one, got {given!r}")
    if given in df.columns:  # even if the name has a dot in it
        return sf.col("`" + given.replace("`", "``") + "`")
    outermost = given.partition(".")[0].strip("`").lower()
    if outermost not in {name.lower() for name in df.columns}:
        close = difflib.get_close_matches(given, df.columns, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(
            f"{role} must be a column, got {given!r}; {hint}There is: {', '.join(df.columns)}"
        )
    return sf.col(given)


def require_empty(template: EcmSketch) -> None:
    """Refuse what is not the specification of a sketch."""
    if not isinstance(template, EcmSketch):
        raise ValueError(f"template must be an empty EcmSketch, got {template!r}")
    if template.now is not None:
        raise ValueError(f"template must be an empty sketch, got {template}")
    if template.door.counts_arrivals:
        raise ValueError(
            f"template must have a window of time, as rows have no order, got {template}"
        )


def require_free(site: StructField, taken: Collection[str]) -> None:
    """Refuse a site column whose name the result needs for another column."""
    if site.name.lower() in taken:
        raise ValueError(
            f"site must not be called as one of the columns {', '.join(taken)}, "
            f"got {site.name!r} (an alias gives it another name)"
        )


def _require(role: str, field: StructField, known: tuple[type[DataType], ...], rule: str) -> None:
    if not isinstance(field.dataType, known):
        raise ValueError(
            f"{role} must be {rule}, got column {field.name!r} of type "
            f"{field.dataType.simpleString()}"
        )
