"""What goes into packed rows comes out again, and what is left out is counted."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.spark.packing import FIELDS, Packing, unpack

SITES = ("a", "", "Zürich", "東京", None)
rows_of_a_task = st.lists(
    st.tuples(
        st.sampled_from(SITES),
        st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
        st.one_of(st.none(), st.integers(-50, 50)),
        st.one_of(st.none(), st.integers(0, 5), st.just(2**53 - 1)),
    ),
    max_size=60,
)


def batch_of(rows, **kinds):
    number = pa.int64()
    kinds = {"site": pa.string(), "item": number, "time": number, "weight": number} | kinds
    columns = [[row[i] for row in rows] for i in range(4)]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, kind) for column, kind in zip(columns, kinds.values(), strict=True)],
        names=list(kinds),
    )


def packed(packing, rows, cut=7, **kinds):
    """The packed rows of a task whose batches have `cut` rows each."""
    batches = [batch_of(rows[i : i + cut], **kinds) for i in range(0, len(rows), cut)]
    return [row for batch in packing(batches) for row in batch.to_pylist()]


@given(rows=rows_of_a_task, chunk=st.integers(1, 80), cut=st.integers(1, 80))
def test_every_row_is_an_event_of_its_site_or_counted(rows, chunk, cut):
    """Seen failing with times compared with `>=` latest, and with the null site's row dropped."""
    got = packed(Packing(None, latest=20, rows=chunk), rows, cut)
    for site in {row[0] for row in rows} | {row["site"] for row in got}:
        mine = [row for row in got if row["site"] == site]
        whole = [row[1:] for row in rows if row[0] == site and None not in row]
        taken = [event for event in whole if event[1] <= 20]
        events = unpack(*([row[name] for row in mine] for name in ("ticks", "items", "weights")))
        weights = [] if events.weights is None else events.weights.tolist()
        words = events.words.view(np.int64).tolist()
        assert list(zip(words, events.ticks.tolist(), weights, strict=True)) == sorted(
            taken, key=lambda event: event[1]
        )
        given = sum(row[0] == site for row in rows)
        assert sum(row["events"] for row in mine) == len(taken)
        assert sum(row["early"] for row in mine) == len(whole) - len(taken)
        assert sum(row["nulls"] for row in mine) == given - len(whole)
        for row in mine:
            ticks = np.frombuffer(row["ticks"], np.int64)
            assert row["time"] == max(ticks.tolist(), default=None)
            assert row["events"] == ticks.size


def test_packed_rows_have_these_columns_even_without_weights():
    batch = batch_of([("a", 1, 2, 3)]).drop_columns("weight")
    (row,) = next(Packing(None)([batch])).to_pylist()
    assert tuple(row) == FIELDS
    assert row["weights"] is None
    assert unpack([row["ticks"]], [row["items"]], [row["weights"]]).weights is None


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (pa.int16(), 1, -2),
        (pa.bool_(), True, False),
        (pa.float64(), 0.5, -0.5),
        (pa.date32(), 1, 2),
        (pa.decimal128(20, 2), Decimal("1.25"), Decimal(7)),
        (pa.binary(), b"a", b""),
        (pa.large_string(), "a", ""),
        (pa.timestamp("us", "UTC"), 1, 2),
        (pa.duration("us"), 1, 2),
    ],
)
def test_a_site_keeps_its_type(kind, one, other):
    sites = pa.array([one, other, one, None], kind)
    batch = batch_of([(None, 1, 2, 3)] * 4).set_column(0, "site", sites)
    (got,) = Packing(None)([batch])
    assert got.column("site").equals(sites.take([0, 1, 3]))
    assert got.column("events").to_pylist() == [2, 1, 0]


def test_more_sites_than_two_digits_of_16_bits():
    """Seen failing with one digit only."""
    sites = np.random.default_rng(1).integers(0, 70_000, 200_000)
    times = np.arange(sites.size)
    batch = pa.RecordBatch.from_arrays(
        [pa.array(sites), pa.array(times), pa.array(times)], names=["site", "item", "time"]
    )
    (got,) = Packing(None)([batch])
    ticks = np.frombuffer(b"".join(got.column("ticks").to_pylist()), np.int64)
    of = np.repeat(got.column("site").to_numpy(), got.column("events").to_numpy())
    assert np.array_equal(np.sort(ticks), times)
    assert np.array_equal(of, sites[ticks])
    assert all(np.diff(ticks)[np.diff(of) == 0] > 0)


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Kathmandu"])
def test_a_timestamp_is_an_instant_floored_to_the_tick(zone):
    rows = [("a", 1, -1, 1), ("a", 2, 1_999_999, 1), ("a", 3, 2_000_000, 1)]
    kind = pa.timestamp("us", zone)
    (row,) = packed(Packing(1_000_000_000), rows, time=kind)
    assert np.frombuffer(row["ticks"], np.int64).tolist() == [-1, 1, 2]
    assert pa.scalar(row["time"], kind).value == 2_000_000


def test_a_row_out_of_a_fine_ticks_range_is_named_unless_it_is_early():
    rows = [("a", 1, 10, 1), ("a", 1, 10**17, 1)]  # the year 5138; in ns beyond 2**61
    with pytest.raises(ValueError, match=r"time column 'ts' must lie in \[-2\*\*61, 2\*\*61\]"):
        packed(Packing(1, time="ts"), rows, time=pa.timestamp("us"))
    (row,) = packed(Packing(1, latest=10), rows, time=pa.timestamp("us"))
    assert (row["events"], row["early"]) == (1, 1)


@pytest.mark.parametrize("weight", [-3, 2**53])
def test_a_weight_that_no_sketch_takes_is_refused(weight):
    sentence = rf"weight column 'bytes' must lie in \[0, 2\*\*53\), got {weight}"
    with pytest.raises(ValueError, match=sentence):
        packed(Packing(None, weight="bytes"), [("a", 1, 1, 1), ("a", 1, 1, weight)])


def test_a_weight_of_a_row_that_is_left_out_is_not_judged():
    (row,) = packed(Packing(None, latest=5), [("a", None, 1, -3), ("a", 1, 9, -3)])
    assert (row["events"], row["nulls"], row["early"]) == (0, 1, 1)


def test_unpacked_arrays_are_the_callers_own():
    """Kernels are compiled for arrays that can be written; a second kind would cost seconds."""
    (row,) = packed(Packing(None), [("a", 1, 1, 2)])
    events = unpack([row["ticks"]], [row["items"]], [row["weights"]])
    assert all(array.flags.writeable for array in events)
