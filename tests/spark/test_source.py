"""The replay source: every row once, by a clock that waits, and the same again after a crash."""

import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.spark import source
from streamgauge.spark.source import ReplayReader, ReplaySource

NAMES = {"site": "router", "item": "flow", "time": "when"}


@pytest.fixture
def options(tmp_path):
    rows = 40
    table = pa.table(
        {
            "when": pa.array(range(1, rows + 1), pa.timestamp("s")),
            "router": [f"r{i % 3}" for i in range(rows)],
            "flow": range(rows),
        }
    )
    pq.write_table(table, tmp_path / "trace.parquet", row_group_size=7)
    return {"path": str(tmp_path / "trace.parquet"), **NAMES}


def reader(options, **more):
    return ReplayReader(source.settings({**options, **more}))


def flows(reader, start, end):
    """The rows of a batch, as executors read it, from the pickled reader and its parts."""
    parts = reader.partitions({"time": start}, {"time": end})
    copy = pickle.loads(pickle.dumps(reader))
    batches = [batch for part in parts for batch in copy.read(pickle.loads(pickle.dumps(part)))]
    return [flow for batch in batches for flow in batch.column("item").to_pylist()]


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_batches_hold_every_row_once(options, partitions):
    replay = reader(options, step=3, partitions=partitions)
    start, got, batches = replay.initialOffset(), [], 0
    while (end := replay.latestOffset(start, None)) != start:
        assert len(replay.partitions(start, end)) <= partitions
        got += flows(replay, start["time"], end["time"])
        start, batches = end, batches + 1
    assert got == list(range(40))
    assert batches == 14


def test_without_a_step_there_is_one_batch(options):
    replay = reader(options)
    assert flows(replay, 1_000_000, replay.due(1_000_000, 0.0)) == list(range(40))


def test_the_same_offsets_hold_the_same_rows_whoever_asks(options):
    """What Spark does after a crash: another process, the offsets from its log."""
    assert flows(reader(options), 5_000_000, 9_000_001) == [4, 5, 6, 7, 8]
    later = reader(options, speed=2, step=1, partitions=3)
    assert flows(later, 5_000_000, 9_000_001) == [4, 5, 6, 7, 8]


def test_the_clock_runs_at_the_speed_and_begins_a_second_in(options):
    replay = reader(options, speed=2)
    second = 1_000_000
    assert replay.due(second, 100.0) == 3 * second
    assert replay.due(3 * second, 100.0) == 3 * second
    assert replay.due(3 * second, 101.5) == 6 * second
    assert replay.due(6 * second, 1000.0) == 40 * second + 1


def test_the_clock_waits_for_a_spark_that_is_slow(options):
    """Seen failing without the wait: after a cold start of ten seconds, one huge batch."""
    replay = reader(options, speed=2, step=4)
    second = 1_000_000
    assert replay.due(second, 100.0) == 3 * second
    assert replay.due(3 * second, 110.0) == 7 * second
    assert replay.due(7 * second, 110.5) == 8 * second


def test_a_replay_can_begin_anywhere(options):
    """After a restart the clock begins where Spark's log of offsets ends."""
    assert reader(options, speed=1).due(20_000_000, 5.0) == 21_000_000


def test_a_part_of_the_trace_can_be_replayed(options):
    replay = reader(options, seconds=10)
    assert flows(replay, 1_000_000, replay.due(1_000_000, 0.0)) == list(range(10))


def test_everything_is_available_now(options):
    replay = reader(options, speed=0.001)
    replay.prepareForTriggerAvailableNow()
    assert replay.due(1_000_000, 0.0) == 40_000_001


def test_integers_of_no_known_unit_are_the_offset(options, tmp_path):
    table = pa.table({"when": [5, 6, 9], "router": [1, 1, 2], "flow": ["a", "b", "c"]})
    pq.write_table(table, tmp_path / "integers.parquet")
    options["path"] = str(tmp_path / "integers.parquet")
    replay = reader(options, step=2)
    assert replay.initialOffset() == {"time": 5}
    assert replay.due(5, 0.0) == 7
    assert flows(replay, 5, 7) == ["a", "b"]
    assert ReplaySource(options).schema() == "site BIGINT, item STRING, time BIGINT"
    assert ReplaySource({**options, "unit": "s"}).schema().endswith("time TIMESTAMP")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"speed": "fast"}, "option speed must be a positive number, got 'fast'"),
        ({"step": "0"}, "option step must be a positive number, got '0'"),
        ({"seconds": "nan"}, "option seconds must be a positive number, got 'nan'"),
        ({"partitions": "-1"}, "option partitions must be a positive number, got '-1'"),
        ({"time": "wen"}, "there is no column 'wen' for time; did you mean 'when'"),
    ],
)
def test_options_that_say_nothing_are_refused(options, wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        source.settings({**options, **wrong})


def test_a_trace_must_be_named():
    with pytest.raises(ValueError, match="option path must be given"):
        source.settings({})


def test_spark_reads_the_columns_under_their_roles(spark, options):
    """Errors are told at once, and not by a worker's traceback."""
    stream = source.replay(spark, options["path"], **NAMES)
    assert stream.isStreaming
    kinds = [(field.name, field.dataType.simpleString()) for field in stream.schema]
    assert kinds == [("site", "string"), ("item", "bigint"), ("time", "timestamp")]
    with pytest.raises(ValueError, match="there is no column 'rooter' for site; did you mean"):
        source.replay(spark, options["path"], **{**NAMES, "site": "rooter"})
