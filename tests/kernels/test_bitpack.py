"""Numbers in bits: against one large integer, there and back."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from streamgauge.kernels import bitpack
from tests.kernels.bits import Bits

runs = st.lists(st.integers(0, 63).flatmap(lambda width: st.integers(0, (1 << width) - 1)))


@njit
def packed(lead, lead_width, numbers):
    words = np.zeros(2, np.uint64)
    at = bitpack._put(words, 0, lead, lead_width)
    words, at = bitpack._put_blocks(words, at, numbers, numbers.size)
    return bitpack._bytes(words, at), at


@njit
def fields(data, widths):
    words, at = bitpack._words(data), 0
    out = np.empty(widths.size, np.int64)
    for i in range(widths.size):
        out[i] = bitpack._get(words, at, widths[i])
        at += widths[i]
    return out, bitpack._is_end(words, at, data.size)


@given(st.integers(0, 63), runs)
def test_blocks_are_one_large_integer(lead_width, numbers):
    """Seen to catch: no second word written, a block as wide as its last number."""
    lead = (1 << lead_width) - 1
    bits = Bits()
    bits.put(lead, lead_width)
    bits.put_blocks(numbers)
    data, length = packed(lead, lead_width, np.array(numbers, np.int64))
    assert (bytes(data), length) == (bits.written(), bits.length)


@given(runs, st.binary(max_size=2))
def test_fields_of_any_width_come_back_and_what_follows_them_is_no_end(numbers, more):
    """Seen to catch: no second word read, a last byte whose padding is not looked at."""
    bits = Bits()
    for number in numbers:
        bits.put(number, number.bit_length())
    widths = np.array([number.bit_length() for number in numbers], np.int64)
    found, is_end = fields(np.frombuffer(bytearray(bits.written()), np.uint8), widths)
    assert (found.tolist(), is_end) == (numbers, True)
    longer = np.frombuffer(bytearray(bits.written() + more), np.uint8)
    assert fields(longer, widths)[1] == (not more)
    if bits.length % 8:
        longer[bits.length // 8] |= 128
        assert not fields(longer, widths)[1]
