"""Sketches of several sites side by side, asked as one."""

from collections.abc import Iterable
from typing import Any, Self, overload

import msgspec

from streamgauge import items as item_words
from streamgauge import wire
from streamgauge.estimate import Estimate
from streamgauge.sketches import ecm
from streamgauge.sketches.ecm import EcmSketch
from streamgauge.sketches.merging import objects, require_alike


class _Header(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    sketches: list[bytes]


class Gathered:
    """The union of several streams, of which each keeps its own sketch.

    A cell of the union is the sum of the sites' cells, so answers promise what those of one sketch
    of everything would: nothing is lost as it is by `EcmSketch.merge`, which takes one sketch's
    bytes where this takes as many as there are sites. All answer at the greatest clock.

    >>> template = dict(window=100, epsilon=0.1, delta=0.05, seed=7)
    >>> berlin, paris = EcmSketch(**template), EcmSketch(**template)
    >>> berlin.update(["a", "b"], [1, 2])
    >>> paris.update(["a"], [5])
    >>> Gathered([berlin, paris.to_bytes()]).estimate("a").high
    2.0
    """

    def __init__(self, parts: Iterable[EcmSketch | bytes]) -> None:
        self.sketches = objects(EcmSketch, parts)
        require_alike(self.sketches)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return sum(sketch.nbytes for sketch in self.sketches)

    @overload
    def estimate(self, item: int | str | bytes, last: Any = None, now: Any = None) -> Estimate: ...
    @overload
    def estimate(self, item: Any, last: Any = None, now: Any = None) -> list[Estimate]: ...
    def estimate(self, item: Any, last: Any = None, now: Any = None) -> Estimate | list[Estimate]:
        """How often an item occurred in `(now - last, now]`, or each of many items."""
        found = ecm.frequencies(self.sketches, item, last, now).estimates()
        return found[0] if item_words.is_one(item) else found

    def total(self, last: Any = None, now: Any = None) -> Estimate:
        """How many events there were in `(now - last, now]`."""
        return ecm.totals(self.sketches, last, now)

    def self_join(self, last: Any = None, now: Any = None) -> Estimate:
        """The sum over all items of their squared frequency in `(now - last, now]`."""
        return ecm.self_joins(self.sketches, last, now)

    def inner_product(self, other: "Gathered", last: Any = None, now: Any = None) -> Estimate:
        """The sum over all items of their frequency here times that in `other`."""
        return ecm.inner_products(self.sketches, other.sketches, last, now)

    def to_bytes(self) -> bytes:
        """The bytes of all of them."""
        return wire.frame(wire.GATHERED, _Header([sketch.to_bytes() for sketch in self.sketches]))

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """What `to_bytes` gave `data`; WireError for anything else."""
        header = wire.unframe_bare(data, wire.GATHERED, _Header)
        sketches = [EcmSketch.from_bytes(image) for image in header.sketches]
        try:
            return cls(sketches)
        except ValueError as error:
            raise wire.WireError(str(error)) from None
