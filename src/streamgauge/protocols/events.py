"""Events as few bits: what a message says that repeats events instead of summing them up.

Four columns, each in as many bits a value as its largest needs: the gaps between ticks, the
weights less one, and either the words or, where that is shorter, the distinct words in order and
each event's place among them. An event that repeats the one before it is a weight, so an event
takes at least one bit, and what is read is bounded by the bytes that are there.

The packing is our own because zlib's output is not the same on every machine, and messages are.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamgauge.sketches.door import COUNT_LIMIT, Count, Tick
from streamgauge.ticks import LIMIT
from streamgauge.wire import WireError

_Width = Annotated[int, msgspec.Meta(ge=0, le=64)]


class Events(NamedTuple):
    """In order of time, no two neighbours with the same word and tick."""

    words: NDArray[np.uint64]
    ticks: NDArray[np.int64]
    weights: NDArray[np.int64]

    def part(self, begin: int, end: int) -> "Events":
        """The events begin..end by themselves."""
        return Events(self.words[begin:end], self.ticks[begin:end], self.weights[begin:end])


class Packed(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Events on the wire; `distinct` is 0 where every event has its word with it."""

    events: Count
    first: Tick
    gaps: _Width
    weights: _Width
    words: _Width
    distinct: Count
    bits: bytes


NONE = Events(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64))


def joined(parts: Sequence[Events]) -> Events:
    """Parts that follow each other, with each run of equal events as one."""
    words, ticks, weights = (np.concatenate(column) for column in zip(NONE, *parts, strict=True))
    if words.size == 0:
        return NONE
    begins = np.flatnonzero(
        np.concatenate([[True], (words[1:] != words[:-1]) | (ticks[1:] != ticks[:-1])])
    )
    return Events(words[begins], ticks[begins], np.add.reduceat(weights, begins))


def pack(given: Events) -> Packed:
    """The shortest of the forms."""
    words, ticks, weights = given
    n = words.size
    if n == 0:
        return Packed(0, 0, 0, 0, 0, 0, b"")
    gaps = np.diff(ticks, prepend=ticks[0]).astype(np.uint64)
    less = (weights - 1).astype(np.uint64)
    distinct, places = np.unique(words, return_inverse=True)
    wide = _width(words)
    place = (distinct.size - 1).bit_length()
    widths = _width(gaps), _width(less)
    columns = [(gaps, widths[0]), (less, widths[1])]
    if distinct.size * wide + n * place < n * wide:
        columns += [(distinct, wide), (places.astype(np.uint64), place)]
        kinds = distinct.size
    else:
        columns += [(words, wide)]
        kinds = 0
    bits = np.concatenate([_bits(values, width) for values, width in columns])
    data = np.packbits(bits, bitorder="little").tobytes()
    return Packed(n, int(ticks[0]), *widths, wide, kinds, data)


def unpack(packed: Packed) -> Events:
    """The events; WireError if `pack` makes no such bytes."""
    n, kinds = packed.events, packed.distinct
    place = (kinds - 1).bit_length() if kinds else 0
    of_words = kinds * packed.words + n * place if kinds else n * packed.words
    size = n * (packed.gaps + packed.weights) + of_words
    if n > 1 and packed.gaps + of_words == 0:
        raise WireError(f"{n} events in no bits")
    if (size + 7) // 8 != len(packed.bits):
        raise WireError(f"{len(packed.bits)} bytes are not those of {n} events")
    if kinds > n:
        raise WireError(f"{n} events cannot have {kinds} words")
    if n == 0:
        return NONE
    bits = np.unpackbits(np.frombuffer(packed.bits, np.uint8), bitorder="little")
    at = 0

    def column(values: int, width: int) -> NDArray[np.uint64]:
        nonlocal at
        part = bits[at : at + values * width].reshape(values, width)
        at += values * width
        return _numbers(part)

    gaps, less = column(n, packed.gaps), column(n, packed.weights)
    words = column(kinds or n, packed.words)
    if kinds:
        places = column(n, place)
        if int(places.max()) >= kinds:
            raise WireError("an event has a word that is not there")
        words = words[places.astype(np.int64)]
    if packed.first + int(gaps.sum(dtype=object)) > LIMIT:
        raise WireError("an event is later than any time")
    if n + int(less.sum(dtype=object)) >= COUNT_LIMIT:
        raise WireError("weights must sum to less than 2**53")
    ticks = packed.first + np.cumsum(gaps.astype(np.int64))
    return Events(words, ticks, less.astype(np.int64) + 1)


def _width(values: NDArray[np.uint64]) -> int:
    return int(values.max()).bit_length()


def _bits(values: NDArray[np.uint64], width: int) -> NDArray[np.uint8]:
    """`width` bits of each, the lowest first."""
    octets: Any = np.ascontiguousarray(values.astype("<u8")).view(np.uint8).reshape(-1, 8)
    used = octets[:, : (width + 7) // 8]
    return np.unpackbits(used, axis=1, bitorder="little", count=width).ravel()


def _numbers(bits: NDArray[np.uint8]) -> NDArray[np.uint64]:
    octets = np.zeros((len(bits), 8), np.uint8)
    if bits.shape[1]:
        part = np.packbits(bits, axis=1, bitorder="little")
        octets[:, : part.shape[1]] = part
    return octets.view("<u8").ravel().astype(np.uint64)
