"""Counters of several streams become one counter of all, in order of time.

A counter knows its arrivals as segments: so many came between two ticks, the newest of them at the
later one (Papapetrou et al. 2015, section 5). The merged counter is fed as if half of a segment's
arrivals, rounded down, had come at its beginning and the others at its end:

    segment of size C from s to e    ->    floor(C / 2) at s,  C - floor(C / 2) at e.

A question's cutoff lies inside at most one segment of each part; that one is then off by at most
floor(C / 2), which is at most epsilon times what the part has in range, and all others are right.
So the stream that the merged counter is fed, the placed one, has between 1 - epsilon and
1 + epsilon times as many arrivals in range as there truly were. `Drift` keeps that factor; merging
what was merged multiplies it. docs/guarantees.md, "Merging", has the proof.
"""

import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamgauge import kernels
from streamgauge.sketches.door import require_share
from streamgauge.sketches.spans import Spans

_PACKED_WINDOW = 1 << 31  # shorter ones leave 32 bits of a sort key for an index


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


class Segment(NamedTuple):
    """`size` arrivals between two ticks, both included, of which the newest came at `end`."""

    start: int | None  # None: not known, or before the window
    end: int
    size: int


class Placed(NamedTuple):
    """Arrivals for each cell, in order of time: those of cell c stand at offsets[c] to [c + 1]."""

    offsets: NDArray[np.int64]
    ticks: NDArray[np.int64]
    weights: NDArray[np.int64]


def place(segments: Segments, cutoff: int) -> Placed:
    """The arrivals that a counter of several streams is fed for these."""
    cells, most = segments.starts.size, segments.ends.size + segments.starts.size
    offsets = np.empty(cells + 1, np.int64)
    ticks, weights = np.empty(most, np.int64), np.empty(most, np.int64)
    placed = kernels.merging.place(*segments, cutoff, offsets, ticks, weights)
    return Placed(offsets, ticks[:placed], weights[:placed])


def together(parts: Sequence[Placed], cutoff: int, window: int) -> Placed:
    """All of them, each cell's in order of time; all are in the window after `cutoff`."""
    lengths = sum(np.diff(part.offsets) for part in parts)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ticks, weights = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
    ends = offsets[:-1].copy()
    for part in parts:
        kernels.merging.append(*part, ends, ticks, weights)
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        if end - begin > 1:
            order = _order(ticks[begin:end], cutoff, window)
            ticks[begin:end], weights[begin:end] = (
                ticks[begin:end][order],
                weights[begin:end][order],
            )
    return Placed(offsets, ticks, weights)


def _order(ticks: NDArray[np.int64], cutoff: int, window: int) -> NDArray[np.int64]:
    """argsort; with tick and index in one word it is numpy's vectorised sort, 8 times as fast."""
    if window >= _PACKED_WINDOW:
        return np.argsort(ticks, kind="stable")
    keys = (ticks - cutoff) << 32 | np.arange(ticks.size)
    keys.sort()
    return keys & 0xFFFFFFFF


class Drift(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """How far the placed stream of a merged counter may be from the true one.

    In every range, placed arrivals lie between `low` and `high` times the true ones.
    """

    levels: Annotated[int, msgspec.Meta(ge=0, le=64)] = 0
    low: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    high: Annotated[float, msgspec.Meta(ge=1, le=1e300)] = 1.0

    def placed(self, epsilon: float) -> "Drift":
        """Of segments placed once more, each of them at most `epsilon` of what is in range."""
        return Drift(self.levels + 1, self.low * (1 - epsilon), self.high * (1 + epsilon))

    @classmethod
    def of(cls, drifts: Sequence[Self]) -> Self:
        """Of streams taken together."""
        return cls(
            max(drift.levels for drift in drifts),
            min(drift.low for drift in drifts),
            max(drift.high for drift in drifts),
        )

    def epsilon(self, own: float) -> float:
        """The relative error of a counter that is within `own` of its placed stream."""
        return own if self.levels == 0 else (1 + own) * self.high - 1

    def true(self, placed: Spans) -> Spans:
        """What is known of the true arrivals, from what is known of the placed ones."""
        if self.levels == 0:
            return placed
        # Rounded outwards: the factors and the division are off by an ulp each.
        low = np.ceil(placed.low / (self.high * (1 + 2**-50)))
        high = np.floor(placed.high / (self.low * (1 - 2**-50)))
        return Spans(low.astype(np.int64), high.astype(np.int64), placed.value)


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
    if isinstance(levels, bool) or not isinstance(levels, int | np.integer):
        raise ValueError(f"levels must be an integer, got {levels!r}")
    if not 0 <= levels <= 64:
        raise ValueError(f"levels must lie in [0, 64], got {levels}")
    return int(levels)
