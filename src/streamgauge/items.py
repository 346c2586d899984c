"""Items: what a user counts, as 64-bit words.

An item is an integer in [-2**63, 2**64), which is its own word (mod 2**64: -1 and 2**64 - 1 are
one item), or text: a str stands for its UTF-8 bytes and becomes XXH64 with seed 42 of them, the
same 64 bits as Spark SQL's `xxhash64`. A sketch keeps to one of the two kinds.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streamgauge import kernels, ticks

Kind = Literal["integers", "text"]
Words = NDArray[np.uint64]

TEXT_SEED = 42  # Spark SQL's
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Hashed:
    """Text whose words are known already, for instance from Spark's `xxhash64`."""

    words: Words

    def __getitem__(self, part: slice) -> "Hashed":
        return Hashed(self.words[part])


def is_one(items: Any) -> bool:
    """Whether this is an item and not several."""
    return isinstance(items, str | bytes) or ticks.is_whole(items)


def words(items: Any, name: str = "items") -> tuple[Words, Kind | None]:
    """The words of one or many items, and their kind; None where there are no items.

    Takes an item, a list, a numpy array or pandas Series, Hashed text, or anything that exports
    Arrow data. The words may be a view of the caller's array.
    """
    if isinstance(items, Hashed):
        return items.words, "text" if items.words.size else None
    if hasattr(items, "__arrow_c_array__") or hasattr(items, "__arrow_c_stream__"):
        return _arrow_words(items, name)
    if is_one(items):
        items = [items]
    elif hasattr(items, "__array__"):  # numpy's own and pandas'
        items = np.atleast_1d(np.asarray(items))
        if items.ndim > 1:
            raise ValueError(f"{name} must be one-dimensional, got {items.ndim} dimensions")
        if items.size and items.dtype.kind in "iu":
            wide = np.int64 if items.dtype.kind == "i" else np.uint64
            return np.require(items, wide, ["C", "W"]).view(np.uint64), "integers"
        if items.size and items.dtype.kind not in "OSTU":
            raise ValueError(f"{name} must be integers or text, got an array of {items.dtype}")
        items = items.tolist()
    if not isinstance(items, list | tuple):
        raise ValueError(f"{name} must be integers or text, got {type(items).__name__} {items!r}")
    return _list_words(items, name)


def _list_words(items: Sequence[Any], name: str) -> tuple[Words, Kind | None]:
    if not items:
        return np.empty(0, np.uint64), None
    types = dict(zip(map(type, items), items, strict=True))
    kinds = {_kind_of(item, name) for item in types.values()}
    if len(kinds) > 1:
        raise ValueError(f"{name} must be all integers or all text, got both")
    if kinds == {"integers"}:
        if types.keys() == {int}:
            with contextlib.suppress(OverflowError):
                return np.array(items, np.int64).view(np.uint64), "integers"
        for item in items:
            if not -(1 << 63) <= item < 1 << 64:
                raise ValueError(f"{name} must lie in [-2**63, 2**64), got {item}")
        return np.array([int(item) & _MASK for item in items], np.uint64), "integers"
    try:
        parts = [item.encode() if isinstance(item, str) else item for item in items]
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name} must be text that UTF-8 can encode, got {error.object!r}"
        ) from None
    data = np.frombuffer(b"".join(parts) or b"\0", np.uint8)
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return _hashed(data, ends), "text"


def _kind_of(item: Any, name: str) -> Kind:
    if isinstance(item, str | bytes):
        return "text"
    if ticks.is_whole(item):
        return "integers"
    raise ValueError(f"{name} must be integers or text, got {type(item).__name__} {item!r}")


def _hashed(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Words:
    out = np.empty(offsets.size - 1, np.uint64)
    data = data.view()
    data.flags.writeable = False  # one compiled kernel serves Arrow's read-only buffers and ours
    kernels.hashing.xxh64(data, offsets, np.uint64(TEXT_SEED), out)
    return out


def _arrow_words(items: Any, name: str) -> tuple[Words, Kind | None]:
    import pyarrow as pa  # noqa: PLC0415  (65 ms that only users of Arrow should pay)

    stream = hasattr(items, "__arrow_c_stream__")
    chunks = pa.chunked_array(items).chunks if stream else [pa.array(items)]
    found = [_chunk_words(pa, chunk, name) for chunk in chunks if len(chunk)]
    if not found:
        return np.empty(0, np.uint64), None
    parts, kinds = zip(*found, strict=True)
    return (parts[0] if len(parts) == 1 else np.concatenate(parts)), kinds[0]


def _chunk_words(pa: Any, chunk: Any, name: str) -> tuple[Words, Kind]:
    if chunk.null_count:
        raise ValueError(f"{name} must not hold nulls, got {chunk.null_count}")
    kind = chunk.type
    if pa.types.is_dictionary(kind):
        found, of = _chunk_words(pa, chunk.dictionary, name)
        return found[chunk.indices.to_numpy(zero_copy_only=False)], of
    if pa.types.is_integer(kind):
        signed = pa.types.is_signed_integer(kind)
        numbers = chunk.to_numpy().astype(np.int64 if signed else np.uint64)
        return numbers.view(np.uint64), "integers"
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        chunk = chunk.cast(
            pa.large_string() if pa.types.is_string_view(kind) else pa.large_binary()
        )
        kind = chunk.type
    large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    if not large and not pa.types.is_string(kind) and not pa.types.is_binary(kind):
        raise ValueError(f"{name} must be integers or text, got an Arrow array of {kind}")
    _, ends, data = chunk.buffers()
    ends = np.frombuffer(ends, np.int64 if large else np.int32)
    offsets = ends[chunk.offset : chunk.offset + len(chunk) + 1].astype(np.int64)
    octets = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, "u1")
    if offsets[0] < 0 or np.any(offsets[1:] < offsets[:-1]) or offsets[-1] > octets.size:
        raise ValueError(f"{name} is not a valid Arrow array: its offsets leave its data")
    return _hashed(octets, offsets), "text"
