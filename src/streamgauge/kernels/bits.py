"""Single machine instructions that numba does not expose."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def trailing_zeros(typingctx, word):
    """The number of zero bits below the lowest one bit; `word` must not be zero."""

    def emit(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), emit


@intrinsic
def load64(typingctx, address):
    """Eight bytes at `address`, aligned or not, little-endian."""

    def emit(context, builder, signature, arguments):
        word = builder.load(builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(types.uint64), emit


@intrinsic
def load32(typingctx, address):
    """Four bytes at `address`, aligned or not, little-endian."""

    def emit(context, builder, signature, arguments):
        half = builder.load(builder.inttoptr(arguments[0], ir.IntType(32).as_pointer()))
        half.align = 1
        return builder.zext(half, ir.IntType(64))

    return types.uint64(types.uint64), emit
