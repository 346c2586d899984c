"""How many events came in the last part of a window, with a certain bound."""

from typing import Annotated, Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamgauge import wire
from streamgauge.estimate import Estimate
from streamgauge.sketches.door import Door, DoorState, Late, require_room, require_share
from streamgauge.sketches.spans import Spans
from streamgauge.sketches.wavegrid import GridState, WaveGrid, kept_ranks


class _Header(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    epsilon: Annotated[float, msgspec.Meta(ge=1e-6, lt=1)]
    door: DoorState
    grid: GridState


class Wave:
    """Events in a sliding window, certain to within a relative error of `epsilon`.

    The deterministic wave of Gibbons & Tirthapura (2002), addressed by rank: `low` and `high`
    always enclose the truth, and |value - truth| <= epsilon * truth for every `last` up to the
    window, whatever the ties, weights, silences and growth (docs/guarantees.md, "Wave"). Memory
    grows with the logarithm of the events in the window; no bound on them is asked for.

    >>> wave = Wave(window=100, epsilon=0.1)
    >>> wave.update(range(250))
    >>> wave.estimate(last=10)
    Estimate(value=10.0, low=10.0, high=10.0, confidence=1.0)
    """

    def __init__(
        self, *, window: Any, epsilon: float, tick: Any = None, late: Late = "raise"
    ) -> None:
        self.epsilon = require_share("epsilon", epsilon)
        if epsilon < 1e-6:
            raise ValueError(f"epsilon must be at least 1e-6, got {epsilon}")
        self.door = Door.parse(window, tick, late)
        self._grid = WaveGrid(1, kept_ranks(self.epsilon), self.door.window)

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

    def update(self, times: Any, weights: Any = None) -> None:
        """Record one event at each of `times`, or `weights[i]` events at once."""
        admitted = self.door.admit(self.door.ticks(times), weights)
        require_room(int(self._grid.counts[0]), admitted)
        self._grid.insert_run(admitted)
        self.door.enter(admitted)

    def advance(self, now: Any) -> None:
        """Let time pass without events."""
        self.door.advance(now)

    def estimate(self, last: Any = None, now: Any = None) -> Estimate:
        """Events in `(now - last, now]`; certain."""
        cutoff, _ = self.door.range(last, now)
        spans = self._grid.spans(np.zeros(1, np.int64), np.array([cutoff]))
        low, high = float(spans.low[0]), float(spans.high[0])
        return Estimate(float(spans.value[0]), low, high, 1.0)

    def remaining(self, moments: NDArray[np.int64]) -> Spans:
        """What the window holds at later ticks if nothing more arrives: fewest and most."""
        return self._grid.spans(np.zeros(moments.size, np.int64), moments - self.window)

    def to_bytes(self) -> bytes:
        """Everything a question or an update can still see."""
        header = _Header(self.epsilon, self.door.state(), self._grid.state(self.now))
        return wire.frame(wire.WAVE, header, self._grid.pack(self.now))

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """The wave whose `to_bytes` gave `data`; WireError for anything else."""
        header, payload = wire.unframe(data, wire.WAVE, _Header)
        kept = kept_ranks(header.epsilon)
        grid = WaveGrid.unpack(1, kept, header.door, header.grid, payload)
        return cls._own(header.epsilon, Door(header.door), grid)

    @classmethod
    def of(cls, epsilon: float, door: Door, grid: WaveGrid) -> Self:
        """A wave with a copy of a grid's only cell, at that door."""
        data = memoryview(grid.pack(door.now))
        copy = WaveGrid.unpack(1, grid.kept, door.state(), grid.state(door.now), data)
        return cls._own(epsilon, Door(door.state()), copy)

    @classmethod
    def _own(cls, epsilon: float, door: Door, grid: WaveGrid) -> Self:
        wave = cls.__new__(cls)
        wave.epsilon, wave.door, wave._grid = epsilon, door, grid
        return wave
