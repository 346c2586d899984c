"""Hashes against the xxhash package, against their formula in integers, and pinned."""

import math

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import kernels, seeds
from tests.statistics import assert_failures_fit

words64 = st.integers(0, 2**64 - 1)


def xxh64(texts, seed, skip=0):
    """The hashes of texts that lie one behind the other, `skip` bytes after the start."""
    data = np.frombuffer(b"x" * skip + b"".join(texts) + b"x", np.uint8)
    offsets = skip + np.cumsum([0, *map(len, texts)], dtype=np.int64)
    out = np.empty(len(texts), np.uint64)
    kernels.hashing.xxh64(data, offsets, np.uint64(seed), out)
    return out.tolist()


def columns(seeds, width, words):
    out = np.empty((seeds.shape[0], len(words)), np.int64)
    kernels.hashing.columns(seeds, width, np.array(words, np.uint64), out)
    return out


@pytest.mark.parametrize("seed", [0, 42, 2**64 - 1])
def test_xxh64_is_that_of_the_xxhash_package_at_every_length(seed):
    octets = np.random.default_rng(1).bytes(200)
    texts = [octets[:length] for length in range(201)]
    assert xxh64(texts, seed) == [xxhash.xxh64_intdigest(text, seed) for text in texts]


@given(st.lists(st.binary(max_size=300)), words64, st.integers(0, 9))
def test_xxh64_is_that_of_the_xxhash_package_wherever_the_texts_lie(texts, seed, skip):
    assert xxh64(texts, seed, skip) == [xxhash.xxh64_intdigest(text, seed) for text in texts]


def test_xxh64_is_pinned():
    """Collet's sanity check of no bytes, and the example of pyspark's `xxhash64`."""
    assert xxh64([b""], 0) == [0xEF46DB3751D8E999]
    assert np.uint64(xxh64([b"ABC"], 42)[0]).view(np.int64) == 4105715581806190027


def spelled_column(word, a, b, c, width):
    hashed = (((a + (word >> 32)) * (b + word % 2**32) + c) % 2**64) >> 32
    return hashed * width >> 32


@given(st.lists(words64, max_size=9), st.lists(words64, min_size=3, max_size=3), st.data())
def test_columns_are_the_formula(words, row, data):
    width = data.draw(st.integers(1, 2**24))
    found = columns(np.array([row], np.uint64), width, words)[0].tolist()
    assert found == [spelled_column(word, *row, width) for word in words]
    assert all(0 <= column < width for column in found)


def test_columns_are_pinned():
    """Sketches of different releases answer together only as long as these stay.

    Seen to catch: the halves of a word change places.
    """
    rows = seeds.expand(7, 6).reshape(2, 3)
    words = [0, 1, 2**32, 2**64 - 1, 0x0123456789ABCDEF]
    assert columns(rows, 1000, words).tolist() == [
        [748, 138, 764, 644, 715],
        [156, 739, 608, 938, 136],
    ]


ONE = 0x9E3779B97F4A7C15
SWAPPED = (ONE >> 32 | ONE << 32) % 2**64


@pytest.mark.parametrize("width", [2, 30, 275, 2**20 + 7])
@pytest.mark.parametrize(
    "other",
    [0, SWAPPED, ONE % 2**32, ~ONE % 2**64, ONE + 1, ONE + 2**32, ONE ^ 1 << 31, ONE ^ 1 << 63],
)
def test_two_words_collide_as_rarely_as_promised(width, other):
    """Over 20 000 rows of seeds.

    Seen to catch: a column depends on the low half of a word alone.
    """
    rows = seeds.expand(1, 3 * 20_000).reshape(-1, 3)
    first, second = columns(rows, width, [ONE, other]).T
    promised = math.ceil(2**32 / width) / 2**32
    assert_failures_fit(promised, int(np.sum(first == second)), len(rows))
