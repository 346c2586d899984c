"""What the instructions do compiled is what they say in Python."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from streamgauge.kernels.bits import bit_length, load32, load64, trailing_zeros


@njit
def compiled_trailing_zeros(word):
    return trailing_zeros(word)


@njit
def compiled_bit_length(word):
    return bit_length(word)


@njit
def compiled_loads(address):
    return load64(address), load32(address)


@given(st.integers(0, 63), st.integers(0, 2**64 - 1))
def test_trailing_zeros(zeros, word):
    word = np.uint64(((2 * word + 1) << zeros) % 2**64)
    assert trailing_zeros(word) == compiled_trailing_zeros(word) == zeros


@given(st.integers(0, 64), st.integers(0, 2**64 - 1))
def test_bit_length(length, word):
    word >>= 64 - length
    assert bit_length(np.uint64(word)) == compiled_bit_length(np.uint64(word)) == word.bit_length()


@given(st.binary(min_size=8, max_size=8), st.integers(0, 9))
def test_loads_are_little_endian_at_any_address(octets, skip):
    data = np.frombuffer(b"x" * skip + octets, np.uint8)
    address = np.uint64(data.ctypes.data + skip)
    expected = int.from_bytes(octets, "little"), int.from_bytes(octets[:4], "little")
    assert (load64(address), load32(address)) == compiled_loads(address) == expected
