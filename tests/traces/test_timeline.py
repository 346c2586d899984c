"""Any two times have exactly the rows between them, and what is no sorted trace is refused."""

import datetime
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgauge.traces import timeline
from streamgauge.traces.timeline import Timeline

COLUMNS = {"site": "router", "item": "src", "time": "ts"}


def table(times, kind=None):
    kind = kind or pa.int64()
    return pa.table(
        {
            "src": pa.array(range(len(times)), pa.int64()),
            "ts": pa.array(times, pa.int64()).cast(kind),
            "router": pa.array([f"r{i % 3}" for i in range(len(times))]),
        }
    )


def write(path, times, kind=None, rows=4):
    pq.write_table(table(times, kind), path, row_group_size=rows)
    return path


def items(batches):
    return [item for batch in batches for item in batch.column("item").to_pylist()]


@pytest.mark.parametrize("rows_of_a_batch", [3, 1 << 16])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    times=st.lists(st.one_of(st.none(), st.integers(-20, 20)), min_size=1, max_size=40),
    cuts=st.lists(st.integers(-25, 25), max_size=5),
    rows=st.integers(1, 9),
    files=st.integers(1, 3),
)
def test_every_row_lies_between_two_times_once(
    tmp_path_factory, monkeypatch, rows_of_a_batch, times, cuts, rows, files
):
    """Seen failing with `last <= low` for `last < low`, and without the rows before any time."""
    monkeypatch.setattr(timeline, "ROWS", rows_of_a_batch)
    known = sorted(time for time in times if time is not None)
    times = [None if time is None else known.pop(0) for time in times]
    folder = tmp_path_factory.mktemp("trace")
    sizes = np.linspace(0, len(times), files + 1).astype(int).tolist()
    for i, (a, b) in enumerate(pairwise(sizes)):
        pq.write_table(table(times).slice(a, b - a), folder / f"{i}.parquet", row_group_size=rows)
    if not any(time is not None for time in times):
        with pytest.raises(ValueError, match="must hold rows with a time, got"):
            Timeline(folder, COLUMNS)
        return
    whole = Timeline(folder, COLUMNS)
    assert whole.rows == len(times)
    ends = [-100, *sorted(cuts), 100]
    parts = [items(whole.between(a, b)) for a, b in pairwise(ends)]
    assert list(chain.from_iterable(parts)) == list(range(len(times)))
    for (low, high), part in zip(pairwise(ends), parts, strict=True):
        timed = [times[item] for item in part if times[item] is not None]
        assert all(low <= time < high for time in timed)
        assert sum(low <= time < high for time in times if time is not None) == len(timed)


@pytest.mark.parametrize(
    ("kind", "unit", "microseconds"),
    [
        (pa.timestamp("s"), None, 7_000_000),
        (pa.timestamp("ms"), None, 7_000),
        (pa.timestamp("us", "Asia/Kathmandu"), None, 7),
        (pa.timestamp("ns"), None, 0),
        (pa.date32(), None, 7 * 86_400_000_000),
        (pa.int64(), "s", 7_000_000),
        (pa.int32(), "ms", 7_000),
        (pa.uint32(), "us", 7),
        (pa.int64(), "ns", 0),
    ],
)
def test_times_of_all_kinds_become_instants(tmp_path, kind, unit, microseconds):
    narrow = pa.array([7, 8], pa.int32())
    times = narrow.cast(kind) if pa.types.is_date(kind) else narrow.cast(pa.int64()).cast(kind)
    pq.write_table(table([7, 8]).set_column(1, "ts", times), tmp_path / "t.parquet")
    trace = Timeline(tmp_path / "t.parquet", COLUMNS, unit)
    assert trace.first == microseconds
    (batch,) = trace.between(trace.first, trace.last + 1)
    assert batch.schema.field("time").type == pa.timestamp("us", "UTC")
    assert batch.column("time")[0].value == microseconds


def test_before_the_epoch_nanoseconds_are_floored(tmp_path):
    """Seen failing with Arrow's own cast, which rounds towards the epoch."""
    trace = Timeline(write(tmp_path / "t.parquet", [-1, 1], pa.timestamp("ns")), COLUMNS)
    assert (trace.first, trace.last) == (-1, 0)


def test_integers_of_no_known_unit_stay_integers(tmp_path):
    trace = Timeline(write(tmp_path / "t.parquet", [3, 9]), COLUMNS)
    assert not trace.has_instants
    assert trace.schema.field("time").type == pa.int64()
    assert trace.show(9) == "9"


def test_columns_of_all_kinds_become_four(tmp_path):
    names = pa.array(["a", "b"])
    columns = {
        "router": names.dictionary_encode(),
        "src": pa.array([2**64 - 1, 1], pa.uint64()),
        "ts": pa.array([1, 2]),
        "n": pa.array([1, 2], pa.int8()),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    trace = Timeline(tmp_path / "t.parquet", {**COLUMNS, "weight": "n"})
    (batch,) = trace.between(1, 3)
    assert batch.schema.types == [pa.string(), pa.int64(), pa.int64(), pa.int64()]
    assert batch.column("item").to_pylist() == [-1, 1]  # an item is a number mod 2**64


@pytest.mark.parametrize(
    ("columns", "unit", "sentence"),
    [
        ({"site": "ruter"}, None, "there is no column 'ruter' for site; did you mean 'router'"),
        ({"time": "router"}, None, "column 'router': time must be timestamps or integers, got str"),
        ({"item": "price"}, None, "column 'price': item must be integers, text or bytes, got d"),
        ({"weight": "router"}, None, "column 'router': weight must be integers, got string"),
        ({"site": "raw"}, None, "column 'raw': site must be integers or text, got binary"),
        ({}, "h", "unit must be one of s, ms, us, ns, got 'h'"),
        ({}, "ms", r"unit goes with integer times, but .* column 'ts' has timestamp\[us\]"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path, columns, unit, sentence):
    made = table([1, 2], pa.timestamp("us"))
    made = made.append_column("price", pa.array([0.5, 1.5])).append_column("raw", [[b"a", b"b"]])
    pq.write_table(made, tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=sentence):
        Timeline(tmp_path / "t.parquet", {**COLUMNS, **columns}, unit)


def test_a_row_out_of_order_is_named(tmp_path):
    write(tmp_path / "t.parquet", [1, 2, 5, 4], pa.timestamp("s"))
    trace = Timeline(tmp_path / "t.parquet", COLUMNS)
    sentence = (
        "row 4, column 'ts': times must not decrease, got 1970-01-01T00:00:04.000000Z"
        " after 1970-01-01T00:00:05.000000Z"
    )
    with pytest.raises(ValueError, match=sentence):
        list(trace.between(0, 10**9))


def test_row_groups_out_of_order_are_refused_at_once(tmp_path):
    write(tmp_path / "t.parquet", [5, 6, 7, 8, 3, 4])
    with pytest.raises(ValueError, match="times must not decrease, but row group 1 begins at 3"):
        Timeline(tmp_path / "t.parquet", COLUMNS)


def test_a_time_that_does_not_fit_is_refused(tmp_path):
    write(tmp_path / "t.parquet", [1, 2**62])
    with pytest.raises(ValueError, match=r"times must fit in int64 microseconds, got \d+ s$"):
        Timeline(tmp_path / "t.parquet", COLUMNS, "s")


def test_what_is_no_parquet_file_is_refused(tmp_path):
    (tmp_path / "t.parquet").write_text("ts,src\n1,2\n")
    with pytest.raises(ValueError, match=r"t\.parquet: must be a readable Parquet file"):
        Timeline(tmp_path / "t.parquet", COLUMNS)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        Timeline(tmp_path / "none.parquet", COLUMNS)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"must hold \*\.parquet files, got none"):
        Timeline(tmp_path / "empty", COLUMNS)


def test_files_of_other_types_are_refused(tmp_path):
    write(tmp_path / "a.parquet", [1, 2])
    write(tmp_path / "b.parquet", [3, 4], pa.timestamp("us"))
    with pytest.raises(ValueError, match=r"b\.parquet: must have the types of the file before"):
        Timeline(tmp_path, COLUMNS)


def test_a_trace_without_statistics_is_read_for_its_ends(tmp_path):
    pq.write_table(table([4, 9]), tmp_path / "t.parquet", write_statistics=False)
    trace = Timeline(tmp_path / "t.parquet", COLUMNS)
    assert (trace.first, trace.last) == (4, 9)


def test_datetimes_read_back_as_they_were_written(tmp_path):
    moment = datetime.datetime(2026, 1, 1, 12, 30, 0, 123456)
    made = pa.table({"src": [1], "router": ["a"], "ts": [moment]})
    pq.write_table(made, tmp_path / "t.parquet")
    trace = Timeline(tmp_path / "t.parquet", COLUMNS)
    assert trace.show(trace.first) == "2026-01-01T12:30:00.123456Z"
