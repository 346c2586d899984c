"""How many events came in the last part of a window, by the exponential histogram.

The counter that the papers build on, beside the wave, which promises the same, is faster and takes
less memory. A "DGIM histogram": Datar, Gionis, Indyk and Motwani's, not OpenTelemetry's.
"""

from collections.abc import Iterable
from typing import Annotated, Any, Self

import msgspec
import numpy as np

from streamgauge import wire
from streamgauge.estimate import Estimate
from streamgauge.sketches import counting, merging
from streamgauge.sketches.door import Door, DoorState, Late, require_share
from streamgauge.sketches.exphistgrid import ExpHistGrid, buckets
from streamgauge.sketches.merging import Segment
from streamgauge.sketches.wavegrid import GridState


class _Header(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    epsilon: Annotated[float, msgspec.Meta(ge=1e-6, lt=1)]
    door: DoorState
    grid: GridState


class ExponentialHistogram:
    """Events in a sliding window, certain to within a relative error of `epsilon`.

    The exponential histogram of Datar, Gionis, Indyk & Motwani (2002): `low` and `high` always
    enclose the truth, and |value - truth| <= epsilon * truth for every `last` up to the window,
    whatever the ties, weights, silences and growth (docs/guarantees.md, "Exponential histogram").
    Memory grows with the logarithm of the events in the window; no bound on them is asked for.

    >>> histogram = ExponentialHistogram(window=100, epsilon=0.1)
    >>> histogram.update(range(250))
    >>> histogram.estimate(last=50)
    Estimate(value=46.5, low=43.0, high=50.0, confidence=1.0)
    """

    def __init__(
        self, *, window: Any, epsilon: float, tick: Any = None, late: Late = "raise"
    ) -> None:
        self._epsilon = require_share("epsilon", epsilon)
        if epsilon < 1e-6:
            raise ValueError(f"epsilon must be at least 1e-6, got {epsilon}")
        self.door = Door.parse(window, tick, late).require_times()
        self._grid = ExpHistGrid(1, buckets(self._epsilon), self.door.window)

    @property
    def window(self) -> int:
        """The window in ticks."""
        return self.door.window

    @property
    def tick(self) -> int | None:
        """Nanoseconds a tick, None for plain integer ticks."""
        return self.door.tick

    @property
    def now(self) -> int | None:
        """The clock: the greatest tick seen or advanced to, None before the first."""
        return self.door.now

    @property
    def late_events(self) -> int:
        """How many late events were dropped or clamped."""
        return self.door.late_events

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return self._grid.nbytes

    @property
    def epsilon(self) -> float:
        """The relative error, that of merging included."""
        return self._grid.drift.epsilon(self._epsilon)

    @property
    def levels(self) -> int:
        """How many levels of merging are behind it."""
        return self._grid.drift.levels

    @property
    def specification(self) -> dict[str, object]:
        """Every parameter: histograms that agree in all go together."""
        return {"counter": "exphist", "epsilon": self._epsilon} | self.door.specification

    def update(self, times: Any, weights: Any = None) -> None:
        """Record one event at each of `times`, or `weights[i]` events at once."""
        counting.update(self.door, self._grid, times, weights)

    def advance(self, now: Any) -> None:
        """Let time pass without events."""
        self.door.advance(now)

    def estimate(self, last: Any = None, now: Any = None) -> Estimate:
        """Events in `(now - last, now]`; certain."""
        return counting.estimate(self.door, self._grid, last, now, 1.0)

    def half_bucket_estimate(self, last: Any = None, now: Any = None) -> Estimate:
        """The same with the paper's guess: half of the oldest bucket, all of one of size 1."""
        known = self.estimate(last, now)
        fed = self._grid.fed(np.zeros(1, np.int64), np.array([self.door.range(last, now)[0]]))
        high = float(fed.high[0])
        bucket = high - float(fed.low[0]) + 1
        guess = high - bucket / 2 if bucket > 1 else high
        return known._replace(value=min(max(guess, known.low), known.high))

    def segments(self, last: Any = None, now: Any = None) -> list[Segment]:
        """What is known of the events in `(now - last, now]`, newest first; times are ticks."""
        return counting.segments(self.door, self._grid, last, now)

    def next_change(self, last: Any = None) -> int | None:
        """The next tick at which `estimate(last)` may differ if no event comes; None: never."""
        return counting.next_change(self.door, self._grid, last)

    @classmethod
    def merge(cls, parts: Iterable[Any]) -> Self:
        """The histogram of several streams, from theirs or their bytes, which stay as they are.

        `epsilon` of the result says what it cost. One merge of all is better than a tree of merges.
        """
        histograms = merging.objects(cls, parts)
        door = merging.common_door(histograms)
        grids = [histogram._grid for histogram in histograms]
        grid = merging.merged(grids, merging.NOTHING, door.now or 0)
        return cls._own(histograms[0]._epsilon, door, grid)

    @classmethod
    def concat(cls, older: Any, newer: Any) -> Self:
        """The histogram of one stream from those of two parts of it, which stay as they are.

        The events of `newer` came when those of `older` were over. Only they can be misplaced.
        """
        older, newer = merging.objects(cls, [older, newer])
        door = merging.common_door([older, newer])
        now = door.now or 0
        merging.require_in_order(older, newer, newer._grid.begin(now - door.window))
        return cls._own(older._epsilon, door, merging.joined(older._grid, newer._grid, now))

    def to_bytes(self) -> bytes:
        """Everything a question or an update can still see."""
        header = _Header(self._epsilon, self.door.state(), self._grid.state(self.now))
        return wire.frame(wire.EXPHIST, header, self._grid.pack(self.now))

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """The histogram whose `to_bytes` gave `data`; WireError for anything else."""
        header, payload = wire.unframe(data, wire.EXPHIST, _Header)
        k = buckets(header.epsilon)
        grid = ExpHistGrid.unpack(1, k, header.door, header.grid, payload)
        return cls._own(header.epsilon, Door.of_times(header.door), grid)

    @classmethod
    def _own(cls, epsilon: float, door: Door, grid: ExpHistGrid) -> Self:
        histogram = cls.__new__(cls)
        histogram._epsilon, histogram.door, histogram._grid = epsilon, door, grid
        return histogram
