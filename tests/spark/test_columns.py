"""What cannot be an event is refused before a job starts, by argument, rule and value."""

# ruff: noqa: E501  (a case is one line)

import pytest

from streamgauge import EcmSketch, Frequency, SelfJoin, Total
from streamgauge import spark as sgs

CALENDAR = EcmSketch(window="1 hour", epsilon=0.1, delta=0.1, seed=7)
TICKS = EcmSketch(window=3600, epsilon=0.1, delta=0.1, seed=7)
USED = EcmSketch(window=3600, epsilon=0.1, delta=0.1, seed=7)
USED.advance(5)

WITH = {"site": "router", "item": "src", "time": "ts"}


@pytest.fixture(scope="module")
def df(spark):
    """Rows that fail as soon as a job touches them."""
    return spark.sql(
        "SELECT cast(raise_error('a job ran') AS string) AS router, 7L AS src, 'x' AS name, 1.5D AS share,"
        "  true AS flag, timestamp'2026-01-01' AS ts, timestamp_ntz'2026-01-01' AS wall,"
        "  date'2026-01-01' AS day, 5 AS tick, '5' AS text_tick, array(1) AS list,"
        "  map('a', 1) AS pairs, struct(1 AS a) AS pair, cast(3 AS decimal(20)) AS wide, NULL AS no"
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"site": "ruoter"}, "site must be a column, got 'ruoter'; did you mean 'router'? There is: router, src,"),
        ({"item": "nothing.like.it"}, "item must be a column, got 'nothing.like.it'; There is: router, src, name"),
        ({"time": 5}, "time must be a column or the name of one, got 5"),
        ({"weight": "weights"}, "weight must be a column, got 'weights'; There is: router"),
        ({"site": "list"}, "site must be of a type that is not nested, got column 'list' of type array<int>"),
        ({"site": "pairs"}, "site must be of a type that is not nested, got column 'pairs' of type map<string,int>"),
        ({"site": "no"}, "site must be of a type that is not nested, got column 'no' of type void"),
        ({"item": "share"}, "item must be integers or text, got column 'share' of type double"),
        ({"item": "flag"}, "item must be integers or text, got column 'flag' of type boolean"),
        ({"item": "wide"}, "item must be integers or text, got column 'wide' of type decimal(20,0)"),
        ({"item": "pair"}, "item must be integers or text, got column 'pair' of type struct<a:int>"),
        ({"time": "day"}, "time must be timestamps, since the window is a duration, got column 'day' of type date"),
        ({"time": "name"}, "time must be timestamps, since the window is a duration, got column 'name' of type string"),
        ({"time": "tick"}, "time must be timestamps, since the window is a duration, got column 'tick' of type int"),
        ({"template": TICKS}, "time must be integers, since the window is a number of ticks, got column 'ts' of type timestamp"),
        ({"template": TICKS, "time": "text_tick"}, "time must be integers, since the window is a number of ticks, got column 'text_tick'"),
        ({"weight": "share"}, "weight must be integers, got column 'share' of type double"),
        ({"template": USED}, "template must be an empty sketch, got EcmSketch(window=3600"),
        ({"template": "1 hour"}, "template must be an empty EcmSketch, got '1 hour'"),
        ({"max_ahead": "1 fortnight"}, "max_ahead must be a duration such as"),
        ({"max_ahead": 5}, "max_ahead must be a duration such as \"10 min\", got 5"),
        ({"max_ahead": "100 ns"}, "max_ahead must be a whole number of ticks of 1 us, got '100 ns'"),
        ({"template": TICKS, "time": "tick", "max_ahead": "2 days"}, "max_ahead must be a number of ticks, as the window is, got '2 days'"),
        ({"df": [1, 2]}, "df must be a Spark DataFrame, got list"),
    ],
)  # fmt: skip
def test_both_doors_name_what_they_refuse(df, given, sentence):
    given = {"df": df, "template": CALENDAR} | WITH | given
    rest = {name: given[name] for name in given if name not in ("df", "template")}
    with pytest.raises(ValueError) as refused:
        sgs.sketch(given["df"], given["template"], **rest)
    assert sentence in str(refused.value)
    with pytest.raises(ValueError) as refused:
        step = "1 minute" if given["template"] is CALENDAR else 60
        sgs.sliding(given["df"], given["template"], [Total()], every=step, **rest)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"ask": []}, "ask must be a list of queries such as Total(), got []"),
        ({"ask": Total()}, "ask must be a list of queries such as Total(), got Total(last=None)"),
        ({"ask": "total()"}, "ask must be a list of queries such as Total(), got 'total()'"),
        ({"ask": [Total(), "total()"]}, "ask must hold queries such as Total(), got 'total()'"),
        ({"ask": [Total]}, "ask must hold queries such as Total(), got <class"),
        ({"ask": [SelfJoin("2 hours")]}, "last must not exceed the window of 1 h, got 2 h"),
        ({"ask": [Total(5)]}, "last must be a duration such as \"10 min\", got 5"),
        ({"ask": [Frequency("x")]}, "ask must go with the items, but column 'src' holds integers, got frequency(item='x')"),
        ({"ask": [Frequency(7)], "item": "name"}, "ask must go with the items, but column 'name' holds text, got frequency(item=7)"),
        ({"ask": [Frequency(1.5)]}, "item must be integers or text, got float 1.5"),
        ({"every": "0 s"}, "every must be at least 1 tick"),
        ({"every": "1500 us"}, "every must be a whole number of ticks of 1 ms, got '1500 us'"),
        ({"every": 60}, "every must be a duration such as \"10 min\", got 60"),
        ({"template": TICKS, "time": "tick"}, "every must be a number of ticks, as the window is, got '1 minute'"),
    ],
)  # fmt: skip
def test_sliding_names_what_it_cannot_answer(df, given, sentence):
    given = {"template": CALENDAR, "ask": [Total()]} | WITH | given
    with pytest.raises(ValueError) as refused:
        sgs.sliding(df, **given)
    assert sentence in str(refused.value)


def test_steps_that_a_timestamp_cannot_show_are_refused(df):
    fine = EcmSketch(window="1 ms", epsilon=0.1, delta=0.1, seed=7, tick="100 ns")
    sentence = "every must be a whole number of microseconds, got '1500 ns'"
    with pytest.raises(ValueError, match=sentence):
        sgs.sliding(df, fine, [Total()], every="1500 ns", **WITH)


@pytest.mark.parametrize("name", ["sketch", "Events", "nulls", "early"])
def test_a_site_may_not_take_the_name_of_another_column(df, name):
    renamed = df.withColumnRenamed("router", name)
    with pytest.raises(ValueError, match="site must not be called as one of the columns sketch,"):
        sgs.sketch(renamed, CALENDAR, **WITH | {"site": name})


def test_a_site_may_not_take_the_name_of_a_column_of_answers(df):
    with pytest.raises(ValueError, match=r"got 'time' \(an alias gives it another name"):
        sgs.sliding(df.withColumnRenamed("router", "time"), CALENDAR, [Total()],
                    **WITH | {"site": "time"})  # fmt: skip


def test_a_stream_is_refused(spark):
    stream = spark.readStream.format("rate").load()
    given = {"site": "value", "item": "value", "time": "timestamp"}
    with pytest.raises(ValueError, match="df must have an end, got a stream"):
        sgs.sketch(stream, CALENDAR, **given)
