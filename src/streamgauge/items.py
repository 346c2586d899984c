"""Items: what a user counts, as 64-bit words.

An item is an integer in [-2**63, 2**64), which is its own word (mod 2**64: -1 and 2**64 - 1 are
one item), or text: a str stands for its UTF-8 bytes and becomes XXH64 with seed 42 of them, the
same 64 bits as Spark SQL's `xxhash64`. A sketch keeps to one of the two kinds.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

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


class Texts(NamedTuple):
    """Texts in one array: that of item i is data[begins[i] : ends[i]]."""

    data: NDArray[np.uint8]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]


class Named(NamedTuple):
    """Items with what they are called: their words, their kind, and the text of each."""

    words: Words
    kind: Kind | None
    texts: Texts | None = None  # None: of integers


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
    return named(items, name)[:2]


def named(items: Any, name: str = "items") -> Named:
    """The same with the text that there is, which Hashed text is without and refused for."""
    if type(items) is int and -(1 << 63) <= items < 1 << 63:  # asked for often, one by one
        return Named(np.array([items], np.int64).view(np.uint64), "integers")
    if isinstance(items, Hashed):
        raise ValueError(f"{name} must be given as they are called, got hashes of text")
    if hasattr(items, "__arrow_c_array__") or hasattr(items, "__arrow_c_stream__"):
        return _arrow_words(items, name)
    if is_one(items):
        items = [items]
    elif hasattr(items, "__array__"):  # numpy's own and pandas'
        ticks.require_unmasked(items, name)
        items = np.atleast_1d(np.asarray(items))
        if items.ndim > 1:
            raise ValueError(f"{name} must be one-dimensional, got {items.ndim} dimensions")
        if items.size and items.dtype.kind in "iu":
            wide = np.int64 if items.dtype.kind == "i" else np.uint64
            return Named(np.require(items, wide, ["C", "W"]).view(np.uint64), "integers")
        if items.size and items.dtype.kind not in "OSTU":
            raise ValueError(f"{name} must be integers or text, got an array of {items.dtype}")
        items = items.tolist()
    if not isinstance(items, list | tuple):
        raise ValueError(f"{name} must be integers or text, got {type(items).__name__} {items!r}")
    return _list_words(items, name)


def _list_words(items: Sequence[Any], name: str) -> Named:
    if not items:
        return Named(np.empty(0, np.uint64), None)
    types = dict(zip(map(type, items), items, strict=True))
    kinds = {_kind_of(item, name) for item in types.values()}
    if len(kinds) > 1:
        raise ValueError(f"{name} must be all integers or all text, got both")
    if kinds == {"integers"}:
        if types.keys() == {int}:
            with contextlib.suppress(OverflowError):
                return Named(np.array(items, np.int64).view(np.uint64), "integers")
        for item in items:
            if not -(1 << 63) <= item < 1 << 64:
                raise ValueError(f"{name} must lie in [-2**63, 2**64), got {item}")
        return Named(np.array([int(item) & _MASK for item in items], np.uint64), "integers")
    try:
        parts = [item.encode() if isinstance(item, str) else item for item in items]
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name} must be text that UTF-8 can encode, got {error.object!r}"
        ) from None
    data = np.frombuffer(b"".join(parts) or b"\0", np.uint8)
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return _hashed(data, ends)


def _kind_of(item: Any, name: str) -> Kind:
    if isinstance(item, str | bytes):
        return "text"
    if ticks.is_whole(item):
        return "integers"
    raise ValueError(f"{name} must be integers or text, got {type(item).__name__} {item!r}")


def _hashed(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Named:
    out = np.empty(offsets.size - 1, np.uint64)
    data = data.view()
    data.flags.writeable = False  # one compiled kernel serves Arrow's read-only buffers and ours
    kernels.hashing.xxh64(data, offsets, np.uint64(TEXT_SEED), out)
    return Named(out, "text", Texts(data, offsets[:-1], offsets[1:]))


def _arrow_words(items: Any, name: str) -> Named:
    import pyarrow as pa  # noqa: PLC0415  (65 ms that only users of Arrow should pay)

    stream = hasattr(items, "__arrow_c_stream__")
    chunks = pa.chunked_array(items).chunks if stream else [pa.array(items)]
    found = [_chunk_words(pa, chunk, name) for chunk in chunks if len(chunk)]
    if not found:
        return Named(np.empty(0, np.uint64), None)
    return found[0] if len(found) == 1 else _together(found)


def _together(parts: Sequence[Named]) -> Named:
    """Items of one kind, one after the other."""
    words = np.concatenate([part.words for part in parts])
    texts = [part.texts for part in parts if part.texts is not None]
    if not texts:
        return Named(words, parts[0].kind)
    starts = np.cumsum([0, *(text.data.size for text in texts)]).tolist()
    shifted = list(zip(texts, starts, strict=False))
    begins = np.concatenate([text.begins + start for text, start in shifted])
    ends = np.concatenate([text.ends + start for text, start in shifted])
    data = np.concatenate([text.data for text in texts])
    return Named(words, parts[0].kind, Texts(data, begins, ends))


def _chunk_words(pa: Any, chunk: Any, name: str) -> Named:
    if chunk.null_count:
        raise ValueError(f"{name} must not hold nulls, got {chunk.null_count}")
    kind = chunk.type
    if pa.types.is_dictionary(kind):
        found = _chunk_words(pa, chunk.dictionary, name)
        at = chunk.indices.to_numpy(zero_copy_only=False)
        texts = found.texts
        if texts is not None:
            texts = Texts(texts.data, texts.begins[at], texts.ends[at])
        return Named(found.words[at], found.kind, texts)
    if pa.types.is_integer(kind):
        signed = pa.types.is_signed_integer(kind)
        numbers = chunk.to_numpy().astype(np.int64 if signed else np.uint64)
        return Named(numbers.view(np.uint64), "integers")
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
    return _hashed(octets, offsets)
