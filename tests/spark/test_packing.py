"""What goes into packed rows comes out again, and what is left out is counted."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import EcmSketch
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


def unpacked(rows, kind="integers", *, calendar=False):
    cells = ([row[name] for row in rows] for name in ("items", "times", "weights"))
    return unpack(*cells, kind, calendar)


@given(rows=rows_of_a_task, chunk=st.integers(1, 80), cut=st.integers(1, 80))
def test_every_row_is_an_event_of_its_site_or_counted(rows, chunk, cut):
    """Seen failing with times compared with `>=` latest, and with the null site's row dropped."""
    got = packed(Packing(latest=20, rows=chunk), rows, cut)
    for site in {row[0] for row in rows} | {row["site"] for row in got}:
        mine = [row for row in got if row["site"] == site]
        whole = [row[1:] for row in rows if row[0] == site and None not in row]
        taken = [event for event in whole if event[1] <= 20]
        columns = [column.tolist() for column in unpacked(mine) if column is not None]
        got_events = list(zip(*columns, strict=True))
        assert got_events == sorted(taken, key=lambda event: event[1])
        given = sum(row[0] == site for row in rows)
        assert sum(row["events"] for row in mine) == len(taken)
        assert sum(row["early"] for row in mine) == len(whole) - len(taken)
        assert sum(row["nulls"] for row in mine) == given - len(whole)
        for row in mine:
            times = np.frombuffer(row["times"], np.int64)
            assert row["newest"] == max(times.tolist(), default=None)
            assert row["events"] == times.size


def test_packed_rows_have_these_columns_even_without_weights():
    batch = batch_of([("a", 1, 2, 3)]).drop_columns("weight")
    (row,) = next(Packing()([batch])).to_pylist()
    assert tuple(row) == FIELDS
    assert row["weights"] is None
    assert unpacked([row]).weights is None


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
    (got,) = Packing()([batch])
    assert got.column("site").equals(sites.take([0, 1, 3]))
    assert got.column("events").to_pylist() == [2, 1, 0]


def test_more_sites_than_two_digits_of_16_bits():
    """Seen failing with one digit only."""
    sites = np.random.default_rng(1).integers(0, 70_000, 200_000)
    times = np.arange(sites.size)
    batch = pa.RecordBatch.from_arrays(
        [pa.array(sites), pa.array(times), pa.array(times)], names=["site", "item", "time"]
    )
    (got,) = Packing()([batch])
    items = np.frombuffer(b"".join(got.column("items").to_pylist()), np.int64)
    of = np.repeat(got.column("site").to_numpy(), got.column("events").to_numpy())
    assert np.array_equal(np.sort(items), times)
    assert np.array_equal(of, sites[items])
    assert all(np.diff(items)[np.diff(of) == 0] > 0)


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Kathmandu"])
def test_a_timestamp_is_an_instant_whatever_its_zone(zone):
    """Spark names the session's zone in the type; a TIMESTAMP_NTZ has none and counts as UTC."""
    rows = [("a", 7, 1_500_000, 1), ("a", 8, -1, 1)]
    packed_rows = packed(Packing(), rows, time=pa.timestamp("us", zone))
    assert pa.scalar(packed_rows[0]["newest"], pa.timestamp("us", zone)).value == 1_500_000
    given, ours = (EcmSketch(window="1 min", epsilon=0.2, delta=0.2, seed=1) for _ in range(2))
    given.update([8, 7], np.array([-1, 1_500_000], "datetime64[us]"))
    ours.update(*unpacked(packed_rows, calendar=True))
    assert ours.to_bytes() == given.to_bytes()


def test_text_that_was_hashed_elsewhere_is_the_same_text():
    texts = ["10.0.0.1", "", "Zürich"]
    hashed = [xxhash.xxh64(text.encode(), seed=42).intdigest() for text in texts]
    rows = [("a", word - (1 << 64) * (word >> 63), tick, 1) for tick, word in enumerate(hashed)]
    given, ours = (EcmSketch(window=10, epsilon=0.2, delta=0.2, seed=1) for _ in range(2))
    given.update(texts, [0, 1, 2])
    events = unpacked(packed(Packing(), rows), kind="text")
    ours.update(events.items[:2], events.times[:2])
    ours.update(events.items[2:], events.times[2:])
    assert ours.to_bytes() == given.to_bytes()
    with pytest.raises(ValueError, match="items must be text, as those before, got integers"):
        ours.update(hashed, [3, 4, 5])


@pytest.mark.parametrize("weight", [-3, 2**53])
def test_a_weight_that_no_sketch_takes_is_refused(weight):
    sentence = rf"weight column 'bytes' must lie in \[0, 2\*\*53\), got {weight}"
    with pytest.raises(ValueError, match=sentence):
        packed(Packing(weight="bytes"), [("a", 1, 1, 1), ("a", 1, 1, weight)])


def test_a_weight_of_a_row_that_is_left_out_is_not_judged():
    (row,) = packed(Packing(latest=5), [("a", None, 1, -3), ("a", 1, 9, -3)])
    assert (row["events"], row["nulls"], row["early"]) == (0, 1, 1)


def test_unpacked_arrays_are_the_callers_own():
    """Kernels are compiled for arrays that can be written; a second kind would cost seconds."""
    events = unpacked(packed(Packing(), [("a", 1, 1, 2)]))
    assert all(array.flags.writeable for array in events)
