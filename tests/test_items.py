"""Items of every kind become the words that xxhash and two's complement give."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.items import words

TEXTS = ["", "a", "é", "Δt", "10.0.0.1", "x" * 31, "x" * 32, "x" * 1000, "\0", "a\0b", "😀"]
HASHES = [xxhash.xxh64_intdigest(text.encode(), 42) for text in TEXTS]


OCTETS = [text.encode() for text in TEXTS]
LONGER = ["before", *TEXTS, "after"]


@pytest.mark.parametrize(
    "items",
    [
        TEXTS,
        tuple(TEXTS),
        OCTETS,
        np.array(TEXTS, object),
        np.array(OCTETS, object),
        np.array(TEXTS, np.dtypes.StringDType()),
        pd.Series(TEXTS),
        pd.Series(TEXTS, dtype="string"),
        *(pa.array(TEXTS, kind) for kind in (pa.string(), pa.large_string(), pa.string_view())),
        *(pa.array(OCTETS, kind) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())),
        pa.array(TEXTS).dictionary_encode(),
        pa.array(LONGER)[1:-1],
        pa.array(LONGER, pa.string_view())[1:-1],
        pa.array(LONGER).dictionary_encode()[1:-1],
        pa.chunked_array([TEXTS[:3], [], TEXTS[3:]], pa.string()),
        pa.chunked_array([TEXTS[:3], TEXTS[3:]]).dictionary_encode(),
        pa.chunked_array([LONGER])[1:-1],
    ],
    ids=lambda items: type(items).__name__,
)
def test_text_is_xxh64_with_seed_42_of_its_utf8_bytes(items):
    found, kind = words(items)
    assert kind == "text"
    assert found.tolist() == HASHES


def test_categories_of_pandas():
    items = ["b", "a", "b"]
    assert words(pd.Series(items, dtype="category"))[0].tolist() == words(items)[0].tolist()


@pytest.mark.parametrize("items", [["é", "longer", ""], [b"\xff", b"longer", b""]])
def test_numpy_pads_text_with_zero_bytes_that_do_not_count(items):
    assert words(np.array(items))[0].tolist() == words(items)[0].tolist()


@given(st.lists(st.text() | st.binary(), max_size=30))
def test_any_text_and_any_bytes(items):
    octets = [item.encode() if isinstance(item, str) else item for item in items]
    expected = [xxhash.xxh64_intdigest(item, 42) for item in octets]
    assert words(items)[0].tolist() == expected
    assert words(pa.array(octets, pa.binary()))[0].tolist() == expected


@pytest.mark.parametrize("code", [*"bhilqBHILQ", ">i2", ">u8"])
def test_integers_of_every_width_are_their_own_words(code):
    limits = np.iinfo(code)
    items = np.array([limits.min, 0, 1, limits.max], code)
    expected = [item % 2**64 for item in items.tolist()]
    for given_items in (
        items,
        items.tolist(),
        tuple(items),
        pd.Series(items.tolist(), dtype=items.dtype.newbyteorder("=")),
    ):
        found, kind = words(given_items)
        assert (found.tolist(), kind) == (expected, "integers")
    arrow = pa.array(items.astype(items.dtype.newbyteorder("=")))
    for given_items in (arrow, arrow.dictionary_encode(), pa.chunked_array([arrow[:1], arrow[1:]])):
        assert words(given_items)[0].tolist() == expected


def test_integers_beyond_any_one_width():
    items = [0, 1, -1, 2**63 - 1, -(2**63), 2**64 - 1, 2**63]
    assert words(items)[0].tolist() == [item % 2**64 for item in items]
    assert words(-1)[0] == words(2**64 - 1)[0]


def test_views_with_steps_and_read_only_arrays():
    items = np.arange(10)
    assert words(items[::-3])[0].tolist() == [9, 6, 3, 0]
    items.flags.writeable = False
    assert words(items)[0].tolist() == list(range(10))


@pytest.mark.parametrize(
    "item", ["10.0.0.1", b"10.0.0.1", np.str_("10.0.0.1"), np.array("10.0.0.1")]
)
def test_one_text_is_a_batch_of_one(item):
    assert words(item)[0].tolist() == words(["10.0.0.1"])[0].tolist()


@pytest.mark.parametrize("item", [7, np.int8(7), np.uint64(7), np.array(7)])
def test_one_integer_is_a_batch_of_one(item):
    assert words(item)[0].tolist() == [7]


@pytest.mark.parametrize(
    "nothing",
    [
        [],
        (),
        np.array([]),
        np.array([], np.int64),
        np.array([], "U1"),
        pd.Series([], dtype=object),
        pa.array([]),
        pa.array([], pa.string()),
        pa.array([], pa.int64()),
        pa.chunked_array([], pa.string()),
        pa.chunked_array([[], []], pa.int8()),
    ],
    ids=repr,
)
def test_no_items_have_no_kind(nothing):
    found, kind = words(nothing)
    assert (found.tolist(), found.dtype, kind) == ([], np.uint64, None)


@pytest.mark.parametrize(
    ("items", "got"),
    [
        (True, "bool True"),
        ([1, False], "bool False"),
        (1.5, "float 1.5"),
        ([1.0], "float 1.0"),
        (None, "NoneType None"),
        (["a", None], "NoneType None"),
        ({1}, "set {1}"),
        (bytearray(b"a"), "bytearray bytearray(b'a')"),
        (np.float64(1), "an array of float64"),
        (np.array([True]), "an array of bool"),
        (np.array(["2020"], "M8[ns]"), "an array of datetime64[ns]"),
        (np.array([5], "m8[s]"), "an array of timedelta64[s]"),
        (np.array([1, "a", None], object), "NoneType None"),
        (pd.Series([1, None], dtype="Int64"), "an array of float64"),
        (pa.array([1.5]), "an Arrow array of double"),
        (pa.array([True]), "an Arrow array of bool"),
        (pa.table({"a": [1]}), "an Arrow array of struct<a: int64>"),
    ],
    ids=repr,
)
def test_what_is_neither_integers_nor_text_is_refused(items, got):
    with pytest.raises(ValueError) as refused:
        words(items, "user")
    assert str(refused.value) == f"user must be integers or text, got {got}"


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (["a", 1], "be all integers or all text, got both"),
        ([2**64], "lie in [-2**63, 2**64), got 18446744073709551616"),
        ([-(2**63) - 1], "lie in [-2**63, 2**64), got -9223372036854775809"),
        (["\ud800"], r"be text that UTF-8 can encode, got '\ud800'"),
        (np.zeros((2, 2), int), "be one-dimensional, got 2 dimensions"),
        (pa.array([1, None]), "not hold nulls, got 1"),
        (pa.array([None]), "not hold nulls, got 1"),
        (pa.array(["a", None]).dictionary_encode(), "not hold nulls, got 1"),
        (pa.chunked_array([["a"], ["b", None]]), "not hold nulls, got 1"),
    ],
    ids=repr,
)
def test_bad_items_are_refused(items, message):
    with pytest.raises(ValueError) as refused:
        words(items)
    assert str(refused.value) == f"items must {message}"


@pytest.mark.parametrize("offsets", [[0, -1, 2], [0, 2, 1], [0, 9, 2]])
def test_arrow_offsets_that_leave_the_data_are_not_followed(offsets):
    buffers = [None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(b"ab")]
    broken = pa.Array.from_buffers(pa.string(), 2, buffers)
    with pytest.raises(ValueError, match="items is not a valid Arrow array: its offsets leave"):
        words(broken)
