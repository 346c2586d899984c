"""Single machine instructions that numba does not expose, each with its meaning in Python."""

# ruff: noqa: PLW0108  (an overload must return a function; an intrinsic alone is none)

import ctypes

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload


def trailing_zeros(word):
    """The number of zero bits below the lowest one bit; `word` must not be zero."""
    return np.uint64((int(word) & -int(word)).bit_length() - 1)


def bit_length(word):
    """How many bits a word takes without leading zeros: 0 for zero."""
    return np.uint64(int(word).bit_length())


def load64(address):
    """Eight bytes at `address`, aligned or not, little-endian."""
    return np.uint64(int.from_bytes(ctypes.string_at(int(address), 8), "little"))


def load32(address):
    """Four bytes at `address`, aligned or not, little-endian."""
    return np.uint64(int.from_bytes(ctypes.string_at(int(address), 4), "little"))


@intrinsic
def _trailing_zeros(typingctx, word):
    def emit(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), emit


@intrinsic
def _leading_zeros(typingctx, word):
    def emit(context, builder, signature, arguments):
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), emit


@intrinsic
def _load64(typingctx, address):
    def emit(context, builder, signature, arguments):
        word = builder.load(builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(types.uint64), emit


@intrinsic
def _load32(typingctx, address):
    def emit(context, builder, signature, arguments):
        half = builder.load(builder.inttoptr(arguments[0], ir.IntType(32).as_pointer()))
        half.align = 1
        return builder.zext(half, ir.IntType(64))

    return types.uint64(types.uint64), emit


@overload(trailing_zeros)
def _compiled_trailing_zeros(word):
    return lambda word: _trailing_zeros(word)


@overload(bit_length)
def _compiled_bit_length(word):
    return lambda word: np.uint64(64) - _leading_zeros(word)


@overload(load64)
def _compiled_load64(address):
    return lambda address: _load64(address)


@overload(load32)
def _compiled_load32(address):
    return lambda address: _load32(address)
