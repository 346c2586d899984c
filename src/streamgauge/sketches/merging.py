"""Counters of several streams become one counter of all, in order of time.

A counter knows its arrivals as segments: so many came between two ticks, the newest of them at the
later one (Papapetrou et al. 2015, section 5). The merged counter is fed as if half of a segment's
arrivals, rounded down, had come at its beginning and the others at its end:

    segment of size C from s to e    ->    floor(C / 2) at s,  C - floor(C / 2) at e.

A question's cutoff lies inside at most one segment of each part; that one is then off by at most
floor(C / 2), which is at most epsilon times what the part has in range, and all others are right.
So what the merged counter is fed has between 1 - epsilon and 1 + epsilon times as many arrivals in
range as there truly were, and how many exactly at worst is known from the segments: `Drift` keeps
the factors, merging what was merged multiplies them. docs/guarantees.md, "Merging", has the proof.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NamedTuple, Protocol, Self, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamgauge import kernels
from streamgauge import ticks as time_ticks
from streamgauge.sketches.door import COUNT_LIMIT, Admitted, Door, require_share
from streamgauge.sketches.spans import Spans

_MOST_LEVELS = 64
_ULPS = 2**-50  # more than what three roundings can be off


class NotMergeable(ValueError):
    """There is no sound way to merge these."""


class Segments(NamedTuple):
    """What counters know of their arrivals since a cutoff, each cell's newest first.

    The segments of cell c stand at offsets[c] to offsets[c + 1]. Segment i holds sizes[i] arrivals
    between two ticks, both included: the newest came at ends[i], the others not before the end of
    the next older segment of the cell, of its oldest one not before starts[c] (at or before the
    cutoff where that is not known, or has expired).
    """

    offsets: NDArray[np.int64]
    ends: NDArray[np.int64]
    sizes: NDArray[np.int64]
    starts: NDArray[np.int64]

    def listed(self, cutoff: int) -> "list[Segment]":
        """Those of the only cell."""
        starts = [*self.ends[1:].tolist(), *self.starts.tolist()]
        columns = zip(starts, self.ends.tolist(), self.sizes.tolist(), strict=False)
        return [Segment(start if start > cutoff else None, *rest) for start, *rest in columns]


class Segment(NamedTuple):
    """`size` arrivals between two ticks, both included, of which the newest came at `end`."""

    start: int | None  # None: not known, or at or before the range asked for
    end: int
    size: int


class Drift(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """How far what a counter was fed may be from the true stream, after `levels` merges.

    In every range the arrivals it was fed are between `low` and `high` times the true ones.
    """

    levels: Annotated[int, msgspec.Meta(ge=1, le=_MOST_LEVELS)] = 0  # 0 is not written
    low: Annotated[float, msgspec.Meta(ge=2**-_MOST_LEVELS, le=1)] = 1.0
    high: Annotated[float, msgspec.Meta(ge=1, le=2**_MOST_LEVELS)] = 1.0

    def placed(self, low: float, high: float) -> "Drift":
        """Of what has drifted so far and is now placed within these factors."""
        if self.levels == _MOST_LEVELS:
            raise NotMergeable(f"merges of merges must be at most {_MOST_LEVELS} levels deep")
        return Drift(self.levels + 1, _down(self.low, low), _up(self.high, high))

    @classmethod
    def of(cls, drifts: Iterable[Self]) -> Self:
        """Of several streams taken together."""
        levels, lows, highs = zip(*((d.levels, d.low, d.high) for d in drifts), strict=True)
        return cls(max(levels), min(lows), max(highs))

    def epsilon(self, own: float) -> float:
        """The relative error of a counter that is within `own` of what it was fed."""
        return max((1 + own) * self.high - 1, 1 - (1 - own) * self.low) if self.levels else own

    def true(self, fed: Spans) -> Spans:
        """What is known of the true arrivals, from what is known of those that were fed."""
        if self.low == self.high == 1:
            return fed
        # Rounded outwards: the division is off by an ulp.
        low = np.ceil(fed.low / (self.high * (1 + _ULPS))).astype(np.int64)
        high = np.floor(fed.high / (self.low * (1 - _ULPS)))
        high = np.minimum(high, COUNT_LIMIT).astype(np.int64)  # as many as a door lets in
        return Spans(low, high, np.clip(fed.value, low, high))


def _down(one: float, other: float) -> float:
    return one if other == 1 else one * other * (1 - _ULPS)


def _up(one: float, other: float) -> float:
    return one if other == 1 else one * other * (1 + _ULPS)


class Placed(NamedTuple):
    """Arrivals for each cell in order of time: those of cell c stand at begins[c] to ends[c]."""

    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    ticks: NDArray[np.int64]
    weights: NDArray[np.int64]
    drift: Drift

    @property
    def first(self) -> int | None:
        """The tick of the first of all."""
        filled = self.begins[self.begins < self.ends]
        return int(self.ticks[filled].min()) if filled.size else None


class Exact(NamedTuple):
    """Events that are known one by one: event i is one of all of cells[:, i]."""

    cells: NDArray[np.int64]
    events: Admitted


NOTHING = Exact(np.empty((1, 0), np.int64), Admitted(np.empty(0, np.int64), None, None, None, 0))


def place(
    parts: Iterable[tuple[Segments, Drift]], exact: Exact, many: int, cutoff: int, window: int
) -> Placed:
    """What a counter of several streams is fed for each of so many cells.

    Nothing is older than the window after `cutoff`.
    """
    counted = list(parts)
    room = np.bincount(exact.cells.ravel(), minlength=many)
    for segments, _ in counted:
        room += np.diff(segments.offsets) + 1
    begins = np.cumsum(room) - room
    ends = begins.copy()
    ticks, weights = np.zeros(room.sum(), np.int64), np.zeros(room.sum(), np.int64)
    drifts = [Drift()]
    for segments, drift in counted:
        drifts.append(drift.placed(*kernels.merging.place(*segments, cutoff, ends, ticks, weights)))
    events = exact.events
    kernels.merging.append(exact.cells, events.ticks, events.counts, ends, ticks, weights)
    _sort(begins, ends, ticks, weights, cutoff, window)
    return Placed(begins, ends, ticks, weights, Drift.of(drifts))


def _sort(  # noqa: PLR0917  (the columns of Placed)
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    ticks: NDArray[np.int64],
    weights: NDArray[np.int64],
    cutoff: int,
    window: int,
) -> None:
    """Each cell's arrivals by their ticks; how those of one tick are ordered makes no difference.

    Tick and weight in one word are sorted by numpy's vectorised sort, 8 times as fast as argsort.
    """
    cells = list(zip(begins.tolist(), ends.tolist(), strict=True))
    bits = int(weights.max(initial=0)).bit_length()
    if window.bit_length() + bits < 64:
        keys = (ticks - cutoff) << bits | weights
        for begin, end in cells:
            keys[begin:end].sort()
        np.add(keys >> bits, cutoff, out=ticks)
        np.bitwise_and(keys, (1 << bits) - 1, out=weights)
        return
    for begin, end in cells:
        order = np.argsort(ticks[begin:end])
        ticks[begin:end] = ticks[begin:end][order]
        weights[begin:end] = weights[begin:end][order]


class _Grid(Protocol):
    """Counters, as far as merging looks at them."""

    window: int
    counts: NDArray[np.uint64]
    first: int | None
    drift: Drift

    def fresh(self) -> Self: ...
    def copy(self) -> Self: ...
    def segments(self, cutoff: int) -> Segments: ...
    def extend(self, placed: Placed, now: int) -> None: ...


AnyGrid = TypeVar("AnyGrid", bound=_Grid)


def merged(grids: Sequence[AnyGrid], exact: Exact, now: int) -> AnyGrid:
    """Counters of all streams at the tick `now`, and of events that are known one by one.

    A grid that is alone stays as it is.
    """
    held = [grid for grid in grids if grid.first is not None]
    if len(held) <= 1 and exact.cells.size == 0:
        return (held or grids)[0].copy()
    return _extended(grids[0].fresh(), held, exact, now)


def joined(older: AnyGrid, newer: AnyGrid, now: int) -> AnyGrid:
    """Counters of a stream of which `newer` has the part that came later."""
    grids = [newer] if newer.first is not None else []
    return _extended(older.copy(), grids, NOTHING, now)


def _extended(grid: AnyGrid, others: Sequence[AnyGrid], exact: Exact, now: int) -> AnyGrid:
    cutoff = now - grid.window
    arrivals = sum(int(each.counts.max()) for each in (grid, *others)) + exact.events.arrivals
    if arrivals >= COUNT_LIMIT:
        raise OverflowError(f"arrivals must stay below 2**53, got up to {arrivals} together")
    parts = ((other.segments(cutoff), other.drift) for other in others)
    grid.extend(place(parts, exact, grid.counts.size, cutoff, grid.window), now)
    return grid


class _Readable(Protocol):
    @classmethod
    def from_bytes(cls, data: Any) -> Self: ...


Read = TypeVar("Read", bound=_Readable)


class _Specified(Protocol):
    """A sketch, as far as merging looks at it."""

    door: Door

    @property
    def specification(self) -> dict[str, object]: ...


def require_alike(sketches: Sequence[_Specified]) -> None:
    """Refuse sketches that do not answer together as if they were one."""
    if not sketches:
        raise ValueError("sketches must be at least one, got none")
    first = sketches[0].specification
    for sketch in sketches[1:]:
        other = sketch.specification
        if first != other:
            got = ", ".join(
                f"{name} {first.get(name)} and {other.get(name)}"
                for name in first | other
                if first.get(name) != other.get(name)
            )
            raise NotMergeable(f"sketches must be specified alike, got {got}")
    if len(sketches) > 1 and sketches[0].door.counts_arrivals:
        raise NotMergeable(
            "windows that count arrivals do not go together: in which order the arrivals of "
            "several streams came, nobody knows"
        )


def objects(kind: type[Read], parts: Iterable[Any]) -> list[Read]:
    """Sketches from sketches of this kind or their bytes."""
    if isinstance(parts, kind | bytes | bytearray | memoryview):
        raise ValueError(f"parts must be several sketches, got one: {parts!r:.100}")
    return [part if isinstance(part, kind) else kind.from_bytes(part) for part in parts]


def common_door(sketches: Sequence[_Specified]) -> Door:
    """At the greatest clock of sketches that are alike, with the first one's late policy."""
    require_alike(sketches)
    doors = [sketch.door for sketch in sketches]
    now = max((door.now for door in doors if door.now is not None), default=None)
    late = min(sum(door.late_events for door in doors), COUNT_LIMIT)
    return Door(msgspec.structs.replace(doors[0].state(), now=now, late_events=late))


def require_in_order(older: _Specified, newer: _Specified, begin: int | None) -> None:
    """Refuse `newer` if it may hold an event, of which none is before `begin`, that is too old."""
    require_alike([older, newer])
    if older.door.now is not None and begin is not None and begin < older.door.now:
        raise NotMergeable(
            f"newer must begin when older ends, at {older.door.show(older.door.now)}, "
            f"got {newer.door.show(begin)}"
        )


def epsilon_for_levels(epsilon: float, levels: int) -> float:
    """What sketches must be built with to be within `epsilon` after `levels` levels of merging.

    The inverse of (1 + e) ** (levels + 1) - 1, the error of what was merged so often.
    """
    return math.expm1(math.log1p(require_share("epsilon", epsilon)) / (_levels(levels) + 1))


def published_epsilon_for_levels(epsilon: float, levels: int) -> float:
    """The same by the paper's formula, the inverse of h e (1 + e) + e: a little too large.

    It takes every level's misplacement as relative to the true stream; from the second level on
    it is relative to one that has been placed already.
    """
    epsilon, h = require_share("epsilon", epsilon), _levels(levels)
    if h == 0:
        return epsilon
    return (math.sqrt(1 + 2 * h + h * h + 4 * h * epsilon) - 1 - h) / (2 * h)


def _levels(levels: int) -> int:
    if not time_ticks.is_whole(levels):
        raise ValueError(f"levels must be an integer, got {levels!r}")
    if not 0 <= levels <= _MOST_LEVELS:
        raise ValueError(f"levels must lie in [0, {_MOST_LEVELS}], got {levels}")
    return int(levels)
