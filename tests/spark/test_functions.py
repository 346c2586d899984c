"""Columns and SQL give the answers that the sketches in them give."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql.functions import lit

from streamgauge import EcmSketch
from streamgauge import spark as sgs
from streamgauge.spark import functions

NOON = np.datetime64("2026-01-01T12:00", "ms")


def sketch_of(items, seed):
    sketch = EcmSketch(window="1 hour", epsilon=0.1, delta=0.1, seed=7)
    times = NOON + np.sort(np.random.default_rng(seed).integers(0, 3_600_000, len(items)))
    sketch.update(items, times)
    sketch.advance(NOON + 3_600_000)
    return sketch


NUMBERS = [sketch_of(np.random.default_rng(seed).zipf(1.3, 2000) % 50, seed) for seed in (1, 2)]
TEXT = sketch_of([f"10.0.0.{n % 7}" for n in range(2000)], 3)


@pytest.fixture(scope="module")
def df(spark):
    """Eight rows that ask two sketches for items, and two rows without a sketch or an item."""
    data = [sketch.to_bytes() for sketch in NUMBERS] * 4
    table = pa.table(
        {
            "id": range(10),
            "sketch": [*data, None, data[0]],
            "item": [1, 2, 3, 4, 1, 10**12, -5, 4, 1, None],
            "last": ["10 min", "10 min", "10 min", None, None, None, "1 h", "1 h", "1 h", "1 h"],
        }
    )
    df = spark.createDataFrame(table).coalesce(1).cache()
    df.createOrReplaceTempView("asked")
    sgs.register(spark)
    yield df
    df.unpersist()


def given(df, *columns):
    rows = sorted(df.select("id", *columns).collect())
    return [[answer and tuple(answer) for answer in row[1:]] for row in rows]


def test_answers_are_those_of_the_sketch_and_null_where_there_is_none(df):
    """Seen failing with the answers of a batch's sketches in the order of the sketches."""
    got = given(
        df,
        sgs.estimate("sketch", "item", "10 min"),
        sgs.estimate(df.sketch, df.item, df["last"]),
        sgs.total("sketch", datetime.timedelta(minutes=20)),
        sgs.self_join("sketch"),
        sgs.self_join("sketch", df["last"], NOON + np.timedelta64(70, "m")),
    )
    for row, answers in zip(sorted(df.collect()), got, strict=True):
        sketch = None if row.sketch is None else EcmSketch.from_bytes(row.sketch)
        asked = sketch is not None and row.item is not None
        assert answers == [
            sketch.estimate(row.item, "10 min") if asked else None,
            sketch.estimate(row.item, row.last) if asked else None,
            sketch and sketch.total("20 min"),
            sketch and sketch.self_join(),
            sketch and sketch.self_join(row.last, NOON + np.timedelta64(70, "m")),
        ]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu"])
def test_now_is_an_instant_and_without_a_zone_it_is_utc(spark, df, zone):
    later = datetime.datetime(2026, 1, 1, 13, 30)
    five = datetime.timezone(datetime.timedelta(hours=5))
    elsewhere = datetime.datetime(2026, 1, 1, 18, 30, tzinfo=five)
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        got = given(
            df.where("id = 0"),
            sgs.total("sketch", now=later),
            sgs.total("sketch", now=elsewhere),
            sgs.total("sketch", now=np.datetime64(later)),
        )
        (sql,) = spark.sql(
            "SELECT sg_total(sketch, NULL, timestamp_ntz'2026-01-01 13:30:00'),"
            "  sg_total(sketch, now => timestamp'2026-01-01 13:30:00Z') FROM asked WHERE id = 0"
        ).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    expected = NUMBERS[0].total(now=np.datetime64(later))
    assert expected.high < NUMBERS[0].total().low
    assert {*got[0], *map(tuple, sql)} == {tuple(expected)}


def test_sql_asks_in_select_and_where(spark, df):
    rows = spark.sql(
        "SELECT id, sg_estimate(sketch, 1) AS whole,"
        "  sg_estimate(sketch, 1Y, '10 min').high AS high,"
        "  sg_total(sketch, '20 min').value AS total, sg_self_join(sketch, NULL).low AS low"
        " FROM asked WHERE sg_estimate(sketch, item, last).low > 20"
    ).collect()
    expected = [
        row.id
        for row in df.dropna(subset=["sketch", "item"]).collect()
        if EcmSketch.from_bytes(row.sketch).estimate(row.item, row.last).low > 20
    ]
    assert 0 < len(expected) < 8
    assert sorted(row.id for row in rows) == sorted(expected)
    for row in rows:
        sketch = NUMBERS[row.id % 2]
        assert tuple(row.whole) == sketch.estimate(1)
        assert row.high == sketch.estimate(1, "10 min").high
        assert (row.total, row.low) == (sketch.total("20 min").value, sketch.self_join().low)


def test_a_null_in_sql_gives_a_null(spark, df):
    (row,) = spark.sql(
        "SELECT sg_total(NULL), sg_self_join(NULL, '1 min'), sg_estimate(sketch, NULL),"
        "  sg_estimate(NULL, 1, NULL, NULL) FROM asked WHERE id = 1"
    ).collect()
    assert list(row) == [None] * 4


def test_text_is_asked_for_by_text(spark):
    df = spark.createDataFrame(pa.table({"sketch": [TEXT.to_bytes()], "name": ["10.0.0.6"]}))
    columns = ["name", lit("10.0.0.1"), lit("nobody")]
    (row,) = df.select(*(sgs.estimate("sketch", column) for column in columns)).collect()
    assert list(map(tuple, row)) == TEXT.estimate(["10.0.0.6", "10.0.0.1", "nobody"])


def test_windows_in_ticks_are_asked_in_ticks(spark):
    sketch = EcmSketch(window=100, epsilon=0.1, delta=0.1, seed=7)
    sketch.update([1, 1, 2], [5, 50, 60])
    spark.createDataFrame(pa.table({"sketch": [sketch.to_bytes()]})).createOrReplaceTempView("t")
    (row,) = spark.table("t").select(sgs.estimate("sketch", lit(1), 30, 79)).collect()
    assert tuple(row[0]) == sketch.estimate(1, 30, 79)
    (row,) = spark.sql("SELECT sg_total(sketch, 30), sg_total(sketch, 30, 79L) FROM t").collect()
    assert list(map(tuple, row)) == [sketch.total(30), sketch.total(30, 79)]


def test_an_executors_sentence_reaches_the_driver(spark, df):
    with pytest.raises(PythonException) as refused:
        spark.sql("SELECT sg_total(sketch, '2 hours') FROM asked WHERE id < 2").collect()
    assert "last must not exceed the window of 1 h, got 2 h" in str(refused.value)


SKETCH = NUMBERS[0].to_bytes()


@pytest.mark.parametrize(
    ("function", "arguments", "sentence"),
    [
        ("sg_total", [b"hello"], "the sketch column must hold sketches: truncated: 5 bytes"),
        ("sg_total", [7], "the sketch column must hold sketches: bytes expected, got int"),
        ("sg_self_join", [SKETCH[:-1]], "the sketch column must hold sketches: truncated"),
        ("sg_total", [SKETCH, "soon"], 'last must be a duration such as "10 min" (units'),
        ("sg_total", [SKETCH, 5], 'last must be a duration such as "10 min", got 5'),
        ("sg_self_join", [SKETCH, None, datetime.datetime(2020, 1, 1)], "now must not be before"),
        ("sg_estimate", [SKETCH, "x"], "must be integers, as those before, got text"),
        ("sg_estimate", [SKETCH, Decimal("1.5")], "got an Arrow array of decimal128(2, 1)"),
        ("sg_estimate", [SKETCH, True], "must be integers or text, got an Arrow array of bool"),
    ],
)
def test_an_executors_error_says_what_is_wrong(function, arguments, sentence):
    with pytest.raises(ValueError) as refused:
        getattr(functions, function)(*(pa.array([argument]) for argument in arguments))
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"sketch": b"SG"}, "sketch must be a column or the name of one, got b'SG'"),
        ({"item": 7}, "item must be a column or the name of one, got 7"),
        ({"last": "soon"}, "last must be a duration such as"),
        ({"last": 0}, "last must be at least 1 tick"),
        ({"last": True}, "last must be a duration such as"),
        ({"now": "noon"}, "now must be datetimes"),
    ],
)
def test_what_can_be_judged_without_a_sketch_is_refused_at_once(spark, arguments, sentence):
    with pytest.raises(ValueError) as refused:
        sgs.estimate(**{"sketch": "sketch", "item": "item"} | arguments)
    assert sentence in str(refused.value)
