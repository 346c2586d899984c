"""Events as few bits: what a message says that repeats events instead of summing them up.

Four columns, each in as many bits a value as its largest needs: the gaps between ticks, the
weights less one, and either the words or, where that is shorter, the distinct words in order and
each event's place among them. An event that repeats the one before it is a weight, so an event
takes at least one bit, and what is read is bounded by the bytes that are there.

The packing is our own because zlib's output is not the same on every machine, and messages are.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamgauge import kernels
from streamgauge.sketches.door import COUNT_LIMIT, Count, Tick
from streamgauge.ticks import LIMIT
from streamgauge.wire import WireError

_NARROW = 24  # bits of a word, up to which it is not worth while to look for distinct ones
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
    wide, kinds = _width(words), 0
    columns = [(gaps, _width(gaps)), (less, _width(less)), (words, wide)]
    if wide > _NARROW:
        distinct, places = np.unique(words, return_inverse=True)
        place = (distinct.size - 1).bit_length()
        if distinct.size * wide + n * place < n * wide:
            kinds = distinct.size
            columns[2:] = [(distinct, wide), (places.astype(np.uint64), place)]
    size = sum(values.size * width for values, width in columns)
    out = np.zeros((size + 7) // 8, np.uint8)
    at = 0
    for values, width in columns:
        at = kernels.columns.put(values, width, out, at)
    return Packed(n, int(ticks[0]), columns[0][1], columns[1][1], wide, kinds, out.tobytes())


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
    bits = np.frombuffer(packed.bits, np.uint8)
    at = 0

    def column(size: int, width: int) -> NDArray[np.uint64]:
        nonlocal at
        values = np.empty(size, np.uint64)
        at = kernels.columns.get(bits, at, width, values)
        return values

    gaps, less = column(n, packed.gaps), column(n, packed.weights)
    words = column(kinds or n, packed.words)
    if kinds:
        places = column(n, place)
        if int(places.max()) >= kinds:
            raise WireError("an event has a word that is not there")
        words = words[places.astype(np.int64)]
    if packed.first + _sum(gaps, packed.gaps) > LIMIT:
        raise WireError("an event is later than any time")
    if n + _sum(less, packed.weights) >= COUNT_LIMIT:
        raise WireError("weights must sum to less than 2**53")
    ticks = packed.first + np.cumsum(gaps.astype(np.int64))
    return Events(words, ticks, less.astype(np.int64) + 1)


def _width(values: NDArray[np.uint64]) -> int:
    return int(values.max()).bit_length()


def _sum(values: NDArray[np.uint64], width: int) -> int:
    fits = width + values.size.bit_length() <= 64
    return int(values.sum() if fits else values.sum(dtype=object))
