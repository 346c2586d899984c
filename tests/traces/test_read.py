"""Files in, arrivals out: round trips through real files, and files that hold something else."""

import gzip
import struct
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.traces.archives import ROWS
from streamgauge.traces.read import batches
from streamgauge.traces.workloads import hot_burst


def joined(path, **columns):
    """All batches of a file as one: lists of Python values, and the number of skipped rows."""
    found = list(batches(path, **columns))
    parts = [
        None if part[0] is None else [value for array in part for value in array.tolist()]
        for part in list(zip(*found, strict=True))[:4]
    ]
    return (*parts, sum(batch.skipped for batch in found))


def parquet(tmp_path, **columns):
    path = tmp_path / "trace.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def text(tmp_path, *lines):
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def refusal(path, **columns):
    """What the error says, without the path with which it must begin."""
    with pytest.raises(ValueError) as error:
        list(batches(path, **columns))
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


# --- round trips ------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".csv.gz"])
def test_a_trace_comes_back_in_bounded_batches(suffix, tmp_path):
    columns = hot_burst(seconds=100)
    path, table = tmp_path / f"trace{suffix}", pa.table(columns)
    if suffix == ".parquet":
        pq.write_table(table, path)
    else:
        with pa.CompressedOutputStream(path, "gzip") if "gz" in suffix else path.open("wb") as file:
            pa_csv.write_csv(table, file)

    found = list(batches(path, site="site", item="item", time="ts"))
    assert len(found) > 2
    assert max(batch.time.size for batch in found) <= ROWS
    for part, name in {"site": "site", "item": "item", "time": "ts"}.items():
        arrays = [getattr(batch, part) for batch in found]
        assert {array.dtype for array in arrays} == {np.dtype(np.int64)}
        assert np.array_equal(np.concatenate(arrays), columns[name])
    assert {batch.weight for batch in found} == {None}
    assert sum(batch.skipped for batch in found) == 0


TEXT = pa.array(["a", "b", "ü"])


@pytest.mark.parametrize(
    "item",
    [
        TEXT,
        TEXT.cast(pa.large_string()),
        TEXT.cast(pa.string_view()),
        TEXT.dictionary_encode(),
        TEXT.cast(pa.binary()),
    ],
    ids=lambda item: str(item.type),
)
def test_text_stays_in_arrow_without_a_copy_to_python(item, tmp_path):
    path = parquet(tmp_path, item=item, t=[3, 1, 2], w=pa.array([1, 0, -5], pa.int8()))
    (batch,) = batches(path, item="item", time="t", weight="w", site="item")
    assert isinstance(batch.item, pa.Array)
    assert batch.item.cast(pa.string()).to_pylist() == batch.site.cast(pa.string()).to_pylist()
    assert batch.item.cast(pa.string()).to_pylist() == ["a", "b", "ü"]
    assert batch.time.tolist() == [3, 1, 2]
    assert (batch.weight.tolist(), batch.weight.dtype) == ([1, 0, -5], np.int64)


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int64(), pa.uint64()], ids=str)
def test_integers_keep_their_values(kind, tmp_path):
    path = parquet(tmp_path, item=pa.array([0, 127], kind), t=pa.array([1, 2], kind))
    (batch,) = batches(path, item="item", time="t")
    assert batch.item.tolist() == [0, 127]
    assert batch.item.dtype == (np.uint64 if kind == pa.uint64() else np.int64)
    assert batch.time.dtype == np.int64


@pytest.mark.parametrize(
    ("times", "kind"),
    [
        (pa.array([datetime(2026, 1, 2, 3, 4, 5)], pa.timestamp("us")), "datetime64[us]"),
        (pa.array([datetime(2026, 1, 2, 3, 4, 5)], pa.timestamp("ms")), "datetime64[ms]"),
        (
            pa.array([datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)], pa.timestamp("ns", "Asia/Tokyo")),
            "datetime64[ns]",
        ),
    ],
    ids=["naive", "coarse", "zone"],
)
def test_timestamps_are_instants_whatever_their_zone(times, kind, tmp_path):
    (batch,) = batches(parquet(tmp_path, x=[1], t=times), item="x", time="t")
    assert batch.time.dtype == kind
    assert batch.time[0] == np.datetime64("2026-01-02T03:04:05")


def test_dates_are_times(tmp_path):
    (batch,) = batches(parquet(tmp_path, x=[1], t=[date(2026, 1, 2)]), item="x", time="t")
    assert batch.time[0] == np.datetime64("2026-01-02")


def test_rows_with_a_null_are_left_out_and_counted(tmp_path):
    path = parquet(
        tmp_path,
        site=["a", None, "c", "d", "e"],
        item=[1, 2, None, 4, 5],
        t=[1, 2, 3, None, 5],
        unread=[None, 1, 1, 1, 1],
    )
    assert joined(path, site="site", item="item", time="t") == (
        ["a", "e"],
        [1, 5],
        [1, 5],
        None,
        3,
    )


def test_a_csv_field_left_empty_is_a_null_and_a_quoted_one_is_text(tmp_path):
    path = text(tmp_path, "user,t", "ann,1", ",2", '"",3', "NA,", "null,5")
    assert joined(path, item="user", time="t") == (None, ["ann", "", "null"], [1, 3, 5], None, 2)


def test_csv_numbers_that_would_change_as_integers_are_text(tmp_path):
    for first, second in [("007", "7"), ("1", "+1"), ("1.5", "2"), ("0x1F", "31"), ("true", "1")]:
        path = text(tmp_path, "x,t", f"{first},1", f"{second},2")
        assert joined(path, item="x", time="t")[1] == [first, second]


def test_csv_integers_reach_both_ends_of_64_bits(tmp_path):
    path = text(tmp_path, "x,t", f"{2**64 - 1},1", "0,2")
    assert joined(path, item="x", time="t")[1] == [2**64 - 1, 0]
    path = text(tmp_path, "x,t", f"{-(2**63)},1", "0,2")
    assert joined(path, item="x", time="t")[1] == [-(2**63), 0]


def test_csv_timestamps_with_and_without_a_zone(tmp_path):
    for line in ("2026-01-02 03:04:05.25", "2026-01-02T03:04:05.25Z", "2026-01-02T05:04:05.25+02"):
        (batch,) = batches(text(tmp_path, "x,t", f"1,{line}"), item="x", time="t")
        assert batch.time[0] == np.datetime64("2026-01-02T03:04:05.25")


def test_a_file_without_rows_has_no_arrivals(tmp_path):
    nothing = pa.array([], pa.int64())
    for path in (parquet(tmp_path, x=nothing, t=nothing), text(tmp_path, "x,t")):
        assert sum(batch.time.size for batch in batches(path, item="x", time="t")) == 0


# --- archives ---------------------------------------------------------------------------------


def wc98_record(timestamp=894_000_000, client=1, item=2, server=0b010_00011):
    return struct.pack(">4I4B", timestamp, client, item, 512, 0, 2, 3, server)


@pytest.mark.parametrize("packed", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_world_cup_records(packed, tmp_path):
    path = tmp_path / "wc_day46_1.gz"
    requests = [(894_000_000 + i // 100, i % 2**32, i * 60_000) for i in range(ROWS + 5)]
    path.write_bytes(packed(b"".join(wc98_record(*request) for request in requests)))
    found = list(batches(path, site="region", item="objectID", time="timestamp", weight="size"))
    assert [batch.time.size for batch in found] == [ROWS, 5]
    assert found[0].time[0] == np.datetime64("1998-05-01T05:20:00")
    assert np.concatenate([batch.item for batch in found]).tolist() == [r[2] for r in requests]
    assert set(found[1].site.tolist()) == {2}
    assert set(found[1].weight.tolist()) == {512}
    assert joined(path, site="server", item="clientID", time="timestamp")[0][0] == 0b010_00011


def test_a_world_cup_day_may_be_empty(tmp_path):
    path = tmp_path / "wc_day1_1.gz"
    path.write_bytes(gzip.compress(b""))
    assert list(batches(path, item="objectID", time="timestamp")) == []


def test_truncated_world_cup_records(tmp_path):
    path = tmp_path / "wc_day46_1"
    path.write_bytes(2 * wc98_record() + b"1234567")
    problem = refusal(path, item="objectID", time="timestamp")
    assert problem == "record 3 must have 20 bytes, the file ends after 7"
    path.write_bytes(gzip.compress(1000 * wc98_record())[:-20])
    problem = refusal(path, item="objectID", time="timestamp")
    assert problem.startswith("must be a whole gzip file: ")
    path.write_bytes(b"\x1f\x8b" + b"rubbish" * 10)
    problem = refusal(path, item="objectID", time="timestamp")
    assert problem.startswith("must be a whole gzip file: ")


LBL_LINES = [
    "759103805.036045 1 2 2436 23 2",
    "759103805.5   1600 3\t23 2436 0",
    "759103806 2 1 23 2436 1460",
]


@pytest.mark.parametrize("packed", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_lbl_lines(packed, tmp_path):
    path = tmp_path / "lbl-tcp-3.tcp"
    path.write_bytes(packed("\n".join(LBL_LINES).encode()))
    names = {"site": "destination", "item": "source", "time": "timestamp", "weight": "bytes"}
    (batch,) = batches(path, **names)
    assert batch.site.tolist() == [2, 3, 1]
    assert batch.item.tolist() == [1, 1600, 2]
    assert batch.weight.tolist() == [2, 0, 1460]
    microseconds = [759_103_805_036_045, 759_103_805_500_000, 759_103_806_000_000]
    assert batch.time.tolist() == np.array(microseconds, "datetime64[us]").tolist()


@pytest.mark.parametrize(
    "line",
    [
        "759103805.0 1 2 2436 23",
        "759103805.0 1 2 2436 23 2 7",
        "759103805.0 1 two 2436 23 2",
        "759103805.1234567 1 2 2436 23 2",
        "nan 1 2 2436 23 2",
        "1e9 1 2 2436 23 2",
        "759103805.0 1 -2 2436 23 2",
        "759103805.0 1 2 2436 23 99999999999999999999",
        "",
    ],
)
def test_a_line_that_is_not_a_packet(line, tmp_path):
    path = tmp_path / "lbl-tcp-3.tcp"
    path.write_text("\n".join([*LBL_LINES, line, ""]))
    problem = refusal(path, item="source", time="timestamp")
    assert problem.startswith("line 4 must hold six numbers (timestamp, source, destination, ")
    assert problem.endswith(f"got {line.encode() + bytes([10])!r}")


def test_a_file_without_line_ends_does_not_fill_the_memory(tmp_path):
    path = tmp_path / "lbl-tcp-3.tcp"
    path.write_bytes(b"7" * 10_000_000)
    assert len(refusal(path, item="source", time="timestamp")) < 500


# --- what is refused --------------------------------------------------------------------------


def test_a_missing_file_a_folder_and_an_unknown_format(tmp_path):
    for path in (tmp_path / "nothing.parquet", tmp_path):
        with pytest.raises(FileNotFoundError, match=f"there is no file {path}"):
            list(batches(path, item="x", time="t"))
    (tmp_path / "trace.xlsx").touch()
    problem = refusal(tmp_path / "trace.xlsx", item="x", time="t")
    assert problem.startswith("the name must end in .parquet, .csv, .csv.gz or .tcp, or begin")


@pytest.mark.parametrize("make", [parquet, None], ids=["parquet", "csv"])
def test_an_unknown_column_is_answered_with_those_that_exist(make, tmp_path):
    if make:
        path = parquet(tmp_path, router=[1], src=[2], ts=[3])
    else:
        path = text(tmp_path, "router,src,ts", "1,2,3")
    problem = refusal(path, site="ruoter", item="src", time="ts")
    assert problem == (
        "there is no column 'ruoter' for site; did you mean 'router'? it has router, src, ts"
    )
    problem = refusal(path, item="zzz", time="ts")
    assert problem == "there is no column 'zzz' for item; it has router, src, ts"


def test_an_unknown_column_of_an_archive(tmp_path):
    for name in ("wc_day46_1.gz", "lbl-tcp-3.tcp"):
        (tmp_path / name).touch()
        problem = refusal(tmp_path / name, item="object", time="timestamp")
        assert problem.startswith("there is no column 'object' for item; ")


def test_a_column_that_is_there_twice(tmp_path):
    problem = refusal(text(tmp_path, "x,t,x", "1,2,3"), item="x", time="t")
    assert problem == "column 'x' for item must be there once, not twice"


@pytest.mark.parametrize(
    ("role", "values", "rule"),
    [
        ("item", [1.5], "must be an integer or text, got double"),
        ("item", [True], "must be an integer or text, got bool"),
        ("item", [datetime(2026, 1, 1)], "must be an integer or text, got timestamp[us]"),
        ("item", [[1]], "must be an integer or text, got list<element: int64>"),
        ("site", [Decimal(1)], "must be an integer or text, got decimal128(1, 0)"),
        ("time", [1.5], "must be an integer or a timestamp, got double"),
        ("time", ["1"], "must be an integer or a timestamp, got string"),
        ("weight", [1.5], "must be an integer, got double"),
        ("weight", ["1"], "must be an integer, got string"),
    ],
)
def test_columns_of_the_wrong_type(role, values, rule, tmp_path):
    path = parquet(tmp_path, good=[1], bad=values)
    names = {"item": "good", "time": "good", role: "bad"}
    assert refusal(path, **names) == f"column 'bad': {role} {rule}"


def test_a_number_beyond_int64_is_refused_with_its_row(tmp_path):
    times = np.ones(ROWS + 2, np.uint64)
    times[-1] = 2**63
    path = parquet(tmp_path, x=np.arange(times.size), t=times)
    assert refusal(path, item="x", time="t") == (
        f"row {ROWS + 2}, column 't': time must be an integer or a timestamp"
        f" (int64 throughout this column), got {2**63}"
    )


@pytest.mark.parametrize(
    ("column", "bad", "rule"),
    [
        ("t", "soon", "time must be an integer or a timestamp"),
        ("t", "1.5", "time must be an integer or a timestamp"),
        ("t", str(2**63), "time must be an integer or a timestamp"),
        ("w", "many", "weight must be an integer"),
    ],
)
def test_a_csv_field_of_the_wrong_type_is_named(column, bad, rule, tmp_path):
    row = {"x": "a", "t": "1", "w": "1"}
    good, wrong = ",".join(row.values()), ",".join((row | {column: bad}).values())
    path = text(tmp_path, "x,t,w", good, good, wrong, good)
    assert refusal(path, item="x", time="t", weight="w") == (
        f"row 4, column {column!r}: {rule} (int64 throughout this column), got {bad!r}"
    )


def test_a_csv_item_of_another_kind_in_a_later_block_is_named(tmp_path):
    path = text(tmp_path, "x,t", *(f"{i},{i}" for i in range(200_000)), "ann,7")
    assert refusal(path, item="x", time="t") == (
        "row 200002, column 'x': item must be an integer or text"
        " (int64 throughout this column), got 'ann'"
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "must be a readable CSV file: Empty CSV file"),
        (
            b"x,t\n" + 300_000 * b"1,2\n" + b"3\n",
            "must be a readable CSV file: CSV parse error: Row #300002: Expected",
        ),
        (b"x,t\n\xff\xfe,2\n", "must be a readable CSV file: "),
    ],
)
def test_files_that_are_not_csv(content, problem, tmp_path):
    path = tmp_path / "trace.csv"
    path.write_bytes(content)
    assert refusal(path, item="x", time="t").startswith(problem)


@given(st.binary(max_size=200), st.integers(0, 10_000), st.booleans())
def test_damaged_parquet_is_a_value_error_or_still_a_trace(tmp_path_factory, noise, at, cut):
    path = parquet(tmp_path_factory.mktemp("damaged"), x=list(range(500)), t=list(range(500)))
    data = path.read_bytes()
    at %= len(data)
    path.write_bytes(data[:at] if cut else data[:at] + noise + data[at + len(noise) :])
    try:
        list(batches(path, item="x", time="t"))
    except ValueError as error:
        assert str(error).startswith(f"{path}: ")
