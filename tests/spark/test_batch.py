"""A DataFrame's sketches and sliding answers are those of its rows, fed to a sketch here."""

import datetime

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql.functions import col, concat, count, count_if, expr, lit
from pyspark.sql.functions import window as window_of

from streamgauge import EcmSketch, Frequency, SelfJoin, Total
from streamgauge import spark as sgs
from streamgauge.items import words
from streamgauge.sim import exact
from streamgauge.sliding import sliding

START = 1_767_225_600_000  # 2026-01-01T00:00:00Z in ms
MINUTE = 60_000
DAY = 86_400_000
SITES = ("berlin", "東京", "", "São Paulo")
WITH = {"site": "router", "item": "src", "time": "ts"}


def template(**changes):
    given = {"window": "1 hour", "epsilon": 0.1, "delta": 0.1, "seed": 7}
    return EcmSketch(**given | changes)


def rows_of(size=4000, length=2 * 60 * MINUTE, seed=1):
    """router, src, ts (ms) and bytes, in no order; one router has half of the rows."""
    rng = np.random.default_rng(seed)
    return {
        "router": np.array(SITES, object)[rng.choice(4, size, p=[0.5, 0.3, 0.15, 0.05])],
        "src": rng.zipf(1.3, size) % 100,
        "ts": START + rng.integers(0, length, size) // 20 * 20,  # many at the same time
        "bytes": rng.integers(0, 4, size),
    }


def text(numbers):
    return np.array([f"10.0.0.{number}" for number in numbers], object)


def frame(spark, rows, *, ts="timestamp_millis(ts) AS ts"):
    """The rows as a DataFrame whose ts is a TIMESTAMP."""
    table = pa.table({name: pa.array(column) for name, column in rows.items()})
    return spark.createDataFrame(table).selectExpr(*(set(table.column_names) - {"ts"}), ts)


def fed(rows, site, end, *, weight=None, **changes):
    """The bytes of a sketch that takes the site's rows here; `end` is the greatest time of all."""
    mine = rows["router"] == site
    order = np.argsort(rows["ts"][mine], kind="stable")
    sketch = template(**changes)
    items, times = rows["src"][mine][order], rows["ts"][mine][order]
    if sketch.tick is not None:
        times, end = times.view("datetime64[ms]"), np.datetime64(int(end), "ms")
    if items.dtype == object:
        items = items.tolist()
    sketch.update(items, times, None if weight is None else rows[weight][mine][order])
    sketch.advance(end)
    return sketch.to_bytes()


def sketches(df):
    return {row[0]: bytes(row.sketch) for row in df.collect()}


@pytest.mark.parametrize("kind", ["integers", "text"])
def test_a_sites_sketch_is_what_its_rows_make_here_in_whatever_parts_they_come(spark, kind):
    """Seen failing with rows unsorted, and with clocks left at each site's own last row."""
    rows = rows_of()
    if kind == "text":
        rows["src"] = text(rows["src"])
    end = rows["ts"].max()
    expected = {site: fed(rows, site, end, weight="bytes") for site in SITES}
    df = frame(spark, rows).cache()
    for parts in (df.coalesce(1), df.repartition(5), df.orderBy("src", "ts"), df.orderBy("ts")):
        got = sgs.sketch(parts, template(), **WITH, weight="bytes")
        assert sketches(got) == expected
    df.unpersist()


def test_a_window_in_ticks_takes_integers_of_any_width(spark):
    rows = rows_of(length=30_000)
    rows["ts"] -= START
    expected = {site: fed(rows, site, rows["ts"].max(), window=5000) for site in SITES}
    df = frame(spark, rows, ts="cast(ts AS int) AS ts").withColumn("src", col("src").cast("short"))
    assert sketches(sgs.sketch(df, template(window=5000), **WITH)) == expected


def test_python_arrow_and_spark_agree_on_text(spark):
    texts = ["10.0.0.1", "", "Zürich", "東京", "a" * 31, "b" * 32, "c" * 1000, "nul\0byte", "👋🏽"]
    here = words(texts)[0]
    assert np.array_equal(words(pa.array(texts))[0], here)
    for kind in ("string", "binary", "string COLLATE UTF8_LCASE"):
        df = spark.createDataFrame(pa.table({"src": texts}))
        df = df.selectExpr("'a' AS router", f"cast(src AS {kind}) AS src", "1 AS ts")
        (row,) = sgs.sketch(df, template(window=10), **WITH).collect()
        sketch = EcmSketch.from_bytes(row.sketch)
        assert [found.high for found in sketch.estimate(texts)] == [1] * len(texts)
        there = df.selectExpr("xxhash64(cast(src AS binary)) AS word").toArrow()["word"]
        assert set(there.to_numpy().view(np.uint64)) == set(here)


def test_what_is_left_out_is_counted(spark):
    """Seen failing with nulls of the weight counted as 0, and without the row of no site."""
    df = spark.sql(
        "SELECT * FROM VALUES ('a', 1, 10, 1), ('a', NULL, 11, 1), ('a', 1, NULL, 1),"
        "  ('a', 1, 12, NULL), ('a', 1, 12, 0), ('b', NULL, 99, 1), (NULL, 1, 99, 1),"
        "  (NULL, NULL, 13, 1) AS t(router, src, ts, bytes)"
    )
    got = sgs.sketch(df, template(window=100), **WITH, weight="bytes").collect()
    counts = {row.router: (row.events, row.nulls, row.early) for row in got}
    assert counts == {"a": (2, 3, 0), "b": (0, 1, 0), None: (0, 2, 0)}
    found = {row.router: row.sketch and EcmSketch.from_bytes(row.sketch) for row in got}
    assert found[None] is None
    assert found["a"].total() == (1, 1, 1, 1)
    assert found["a"].now == found["b"].now == 12  # 99 was not an event's


def test_a_row_dated_2262_does_not_empty_the_windows(spark):
    """Seen failing with max_ahead=None."""
    rows = rows_of()
    far = {"router": SITES[3], "src": 1, "ts": 9_214_646_400_000, "bytes": 1}
    df = frame(spark, {name: np.append(column, far[name]) for name, column in rows.items()})
    end = rows["ts"].max()
    got = sgs.sketch(df, template(), **WITH).collect()
    assert {row.router: row.early for row in got} == dict.fromkeys(SITES, 0) | {SITES[3]: 1}
    assert {row.router: bytes(row.sketch) for row in got} == {
        site: fed(rows, site, end) for site in SITES
    }
    everything = sgs.sketch(df, template(), **WITH, max_ahead=None).collect()
    assert {EcmSketch.from_bytes(row.sketch).total().high for row in everything} == {0, 1}


@pytest.mark.parametrize("max_ahead", ["1 day", "3 hours"])
def test_who_resumes_after_a_silence_is_heard(spark, max_ahead):
    rows, later = rows_of(), rows_of(size=5, seed=2)
    later["ts"] += 9 * DAY
    rows = {name: np.concatenate([rows[name], later[name]]) for name in rows}
    df = frame(spark, rows)
    assert sketches(sgs.sketch(df, template(), **WITH, max_ahead=max_ahead)) == {
        site: fed(rows, site, rows["ts"].max()) for site in SITES
    }


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns"])
@pytest.mark.parametrize("max_ahead", [None, "90 minutes"])
def test_times_without_a_zone_count_as_utc_whatever_the_session_says(spark, zone, max_ahead):
    """A day with a change of the clocks in St. John's, in which an hour is missing."""
    rows = rows_of(length=DAY)
    rows["ts"] += 66 * DAY  # 2026-03-08
    expected = {site: fed(rows, site, rows["ts"].max()) for site in SITES}
    instants = frame(spark, rows)
    walls = spark.createDataFrame(
        pa.table({name: pa.array(column) for name, column in rows.items() if name != "ts"})
        .append_column("ts", pa.array(rows["ts"].view("datetime64[ms]"), pa.timestamp("us")))
        .to_pandas(),
        schema="router string, src long, bytes long, ts timestamp_ntz",
    )
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        for df in (instants, walls):
            assert sketches(sgs.sketch(df, template(), **WITH, max_ahead=max_ahead)) == expected
            steps = sgs.sliding(df, template(), [Total()], every="6 hours", **WITH)
            assert steps.schema["time"].dataType == df.schema["ts"].dataType
            got = {str(row.t) for row in steps.selectExpr("unix_micros(time) AS t").collect()}
            assert got == {str(1000 * (START + 66 * DAY + k * DAY // 4)) for k in (1, 2, 3, 4)}
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize(
    ("kind", "sites"),
    [
        ("int", [1, -2, None]),
        ("boolean", [True, False, None]),
        ("date", [datetime.date(2026, 1, 1), datetime.date(1969, 1, 1), None]),
        ("decimal(12,2)", None),
        ("binary", [b"", b"\xff", None]),
    ],
)
def test_the_site_keeps_its_name_and_type(spark, kind, sites):
    name = "the `site`.name"
    quoted = "`" + name.replace("`", "``") + "`"
    if sites is None:
        df = spark.sql(f"SELECT cast(id / 4 AS {kind}) AS {quoted} FROM range(5)")
    else:
        df = spark.createDataFrame([(site,) for site in sites], f"{quoted} {kind}")
    df = df.selectExpr("*", "1 AS src", "2 AS ts")
    got = sgs.sketch(df, template(window=9), site=name, item="src", time="ts")
    assert got.schema[name].dataType == df.schema[name].dataType
    assert {row[0] for row in got.collect()} == {row[0] for row in df.collect()}


def test_sessions_may_want_large_arrow_types(spark):
    """Seen failing with the types that a session has unless told otherwise."""
    before = spark.conf.get("spark.sql.execution.arrow.useLargeVarTypes")
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", True)
    try:
        df = spark.sql("SELECT 'a' AS router, id AS src, id AS ts FROM range(5)")
        (row,) = sgs.sketch(df, template(window=9), **WITH).collect()
        assert EcmSketch.from_bytes(row.sketch).total().value == row.events == 5
        assert sgs.sliding(df, template(window=9), [Total()], every=1, **WITH).count() == 13
    finally:
        spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", before)


def test_columns_may_be_nested_or_computed(spark):
    df = spark.sql("SELECT struct('a' AS name) AS router, id, id AS ts FROM range(10)")
    item, site = col("id") % 2, concat("router.name", lit("!"))
    (row,) = sgs.sketch(
        df, template(window=99), site=site.alias("s"), item=item, time="ts"
    ).collect()
    assert row.s == "a!"
    assert EcmSketch.from_bytes(row.sketch).estimate(1).high == 5
    (row,) = sgs.sketch(df, template(window=99), site="router.name", item="ID", time="ts").collect()
    assert (row.name, row.events) == ("a", 10)


def test_without_rows_there_are_no_sites_and_no_answers(spark):
    df = spark.sql("SELECT 'a' AS router, 1 AS src, 1 AS ts WHERE 1 = 0")
    assert sgs.sketch(df, template(window=9), **WITH).collect() == []
    assert sgs.sliding(df, template(window=9), [Total()], every=1, **WITH).collect() == []


def test_rows_of_nothing_but_nulls_are_an_empty_sketch(spark):
    df = spark.sql("SELECT 'a' AS router, cast(NULL AS string) AS src, 1 AS ts")
    (row,) = sgs.sketch(df, template(window=9), **WITH).collect()
    assert (bytes(row.sketch), row.events, row.nulls) == (template(window=9).to_bytes(), 0, 1)
    assert sgs.sliding(df, template(window=9), [Total()], every=1, **WITH).collect() == []


ASK = [Total(), SelfJoin("10 min"), *(Frequency(item, "20 min") for item in (1, 2, 17, 10**6))]


def answers(df):
    """{(site, query): [(time, value, low, high, confidence) in order of time]}"""
    found = {}
    for row in sorted(df.collect()):
        found.setdefault((row[0], row.query), []).append((row.time, *row[3:]))
    return found


@pytest.mark.parametrize("weight", [None, "bytes"])
def test_sliding_gives_each_sites_answers(spark, weight):
    """Seen failing with the answers of the first query given to all."""
    rows = rows_of()
    df = frame(spark, rows).repartition(3)
    got = answers(sgs.sliding(df, template(), ASK, every="5 min", **WITH, weight=weight))
    assert set(got) == {(site, str(query)) for site in SITES for query in ASK}
    for site in SITES:
        mine = rows["router"] == site
        order = np.argsort(rows["ts"][mine], kind="stable")
        items, ms, heavy = (rows[name][mine][order] for name in ("src", "ts", "bytes"))
        times, weights = ms.view("datetime64[ms]"), heavy if weight else None
        steps = sliding(template(), items, times, ASK, "5 min", weights)
        ends = [datetime.datetime.fromtimestamp(ms / 1000) for ms in steps.ticks.tolist()]
        for query, bounds in zip(ASK, steps.answers, strict=True):
            expected = [tuple(estimate) for estimate in bounds.estimates()]
            given = got[site, str(query)]
            assert [answer[1:] for answer in given] == expected
            assert [answer[0] for answer in given] == ends


def test_the_answers_hold_the_truth(spark):
    """Totals always, the others far more often than delta allows: all of these."""
    rows = rows_of()
    df = frame(spark, rows)
    tight = template(delta=1e-6)
    got = answers(sgs.sliding(df, tight, ASK, every="5 min", **WITH, weight="bytes"))
    for site in SITES:
        mine = rows["router"] == site
        order = np.argsort(rows["ts"][mine], kind="stable")
        items, ms, weights = (rows[name][mine][order] for name in ("src", "ts", "bytes"))
        ends = [round(answer[0].timestamp() * 1000) for answer in got[site, str(ASK[0])]]
        for query in ASK:
            length = {None: 60, "10 min": 10, "20 min": 20}[query.last] * MINUTE
            asked = [query.item] if isinstance(query, Frequency) else []
            truth = exact.sliding(items, ms, ends, last=length, asked=asked, weights=weights)
            column = {Total: truth.totals, SelfJoin: truth.self_joins}.get(type(query))
            column = truth.frequencies[:, 0] if column is None else column
            for (_, value, low, high, _), real in zip(
                got[site, str(query)], column.tolist(), strict=True
            ):
                assert low <= value <= high
                assert low <= real <= high


def test_steps_and_counts_are_those_of_sparks_own_windows(spark):
    """Spark's windows are [start, end); shifted by a microsecond they are our (now - last, now]."""
    rows = rows_of(size=1500, length=5 * 60 * MINUTE)
    rows["ts"][:1000] -= 3 * 60 * MINUTE  # a silence in between
    df = frame(spark, rows)
    window = window_of(col("ts") - expr("interval 1 microsecond"), "1 hour", "10 minutes")
    counts = df.groupBy("router", window).agg(
        count("*").alias("n"), count_if(col("src") == 1).alias("ones")
    )
    expected = {(row.router, row.window.end): (row.n, row.ones) for row in counts.collect()}
    ask = [Total(), Frequency(1)]
    tight = template(epsilon=0.01, delta=1e-6)
    got = answers(sgs.sliding(df, tight, ask, every="10 minutes", **WITH))
    for which, query in enumerate(ask):
        given = {
            (site, answer[0]): answer[2:4] for site in SITES for answer in got[site, str(query)]
        }
        assert given.keys() == expected.keys()
        for key, (low, high) in given.items():
            assert low <= expected[key][which] <= high


def test_sliding_leaves_out_what_sketch_counts(spark):
    rows = rows_of(size=2000)
    extra = {
        "router": [None, "a", "a"],
        "src": [1, None, 1],
        "ts": [START, START, START + 99 * DAY],
    }
    table = pa.table(extra | {"bytes": [1, 1, 1]})
    df = frame(spark, rows)
    odd = spark.createDataFrame(table).selectExpr(
        "router", "src", "bytes", "timestamp_millis(ts) ts"
    )
    ask = [Total()]
    plain = answers(sgs.sliding(df, template(), ask, every="30 min", **WITH))
    assert (
        answers(sgs.sliding(df.unionByName(odd), template(), ask, every="30 min", **WITH)) == plain
    )


def test_a_weight_that_no_sketch_takes_stops_the_job_with_a_sentence(spark):
    df = spark.sql("SELECT 'a' AS router, 1 AS src, 1 AS ts, -3 AS bytes")
    got = sgs.sketch(df, template(window=9), **WITH, weight="bytes")
    sentence = r"weight column 'bytes' must lie in \[0, 2\*\*53\), got -3"
    with pytest.raises(PythonException, match=sentence):
        got.collect()


def test_times_that_a_fine_tick_cannot_count_are_refused_before_the_job(spark):
    df = spark.sql("SELECT 'a' AS router, 1 AS src, timestamp'2262-01-01 00:00:00' AS ts")
    with pytest.raises(ValueError, match=r"time must lie in \[-2\*\*61, 2\*\*61\] ticks of 1 ns"):
        sgs.sketch(df, template(tick="1 ns"), **WITH)


def test_a_max_ahead_that_makes_too_many_stretches_is_refused(spark, monkeypatch):
    from streamgauge.spark import batch

    monkeypatch.setattr(batch, "_MOST_STRETCHES", 50)
    df = spark.sql("SELECT 'a' AS router, 1 AS src, id AS ts FROM range(510)")
    assert sgs.sketch(df, template(window=9), **WITH, max_ahead=11).count() == 1
    with pytest.raises(ValueError, match=r"max_ahead must be longer: .* more than 50 .* of 10"):
        sgs.sketch(df, template(window=9), **WITH, max_ahead=10)
