"""How many events came in the last part of a window: probable, but merged without any loss."""

from collections.abc import Iterable
from typing import Annotated, Any, Self

import msgspec

from streamgauge import wire
from streamgauge.estimate import Estimate
from streamgauge.sketches import coins, counting
from streamgauge.sketches.coins import Site, Sites
from streamgauge.sketches.door import (
    Door,
    DoorState,
    Late,
    require_share,
)
from streamgauge.sketches.merging import common_door, objects, require_in_order
from streamgauge.sketches.randomizedgrid import (
    LEAST_EPSILON,
    RandomizedGrid,
    capacity_for,
    copies_for,
)
from streamgauge.sketches.sizes import Seed, require_seed
from streamgauge.sketches.wavegrid import GridState

_LEAST_DELTA = 1e-18


class _Header(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    epsilon: Annotated[float, msgspec.Meta(ge=LEAST_EPSILON, lt=1)]
    delta: Annotated[float, msgspec.Meta(ge=_LEAST_DELTA, lt=1)]
    seed: Seed
    sites: Sites
    door: DoorState
    grid: GridState


class RandomizedWave:
    """Events in a sliding window, within a relative error of `epsilon` with probability 1 - delta.

    The randomized wave of Gibbons & Tirthapura (2002) as a window counter (Papapetrou et al.
    2015): samples at rates 1, 1/2, 1/4 ... in enough copies that for each question by itself

        |value - truth| <= epsilon * truth      with probability 1 - delta,

    and while at most ceil(36 / epsilon**2) events are in range the answer is exact, with
    confidence 1.0 (docs/guarantees.md, "Randomized wave"). It is larger than a `Wave`, by
    1 / epsilon, and exists to be merged: samples of several sites are samples of their union, with
    the same epsilon however often they are merged. `site` names the coins of this one; parts of
    a merge must differ in it, and agree in everything else (sketches/coins.py says why).

    There are no `segments` as in a `Wave`: a sample does not know what came between two of its
    events, and nothing has to be placed in time again to be merged.

    >>> given = {"window": 100, "epsilon": 0.1, "delta": 0.05, "seed": 7}
    >>> here, there = RandomizedWave(**given, site="here"), RandomizedWave(**given, site="there")
    >>> here.update(range(250))
    >>> there.update(range(200, 300))
    >>> RandomizedWave.merge([here, there]).estimate(last=70)
    Estimate(value=90.0, low=90.0, high=90.0, confidence=1.0)
    """

    def __init__(
        self,
        *,
        window: Any,
        epsilon: float,
        delta: float,
        seed: int,
        site: int | str = 0,
        tick: Any = None,
        late: Late = "raise",
    ) -> None:
        if require_share("delta", delta) < _LEAST_DELTA:
            raise ValueError(f"delta must be at least 1e-18, got {delta}")
        self.epsilon, self.delta = require_share("epsilon", epsilon), float(delta)
        self.seed = require_seed(seed)
        self.sites: tuple[Site, ...] = (coins.require_site(site),)
        self.door = Door.parse(window, tick, late).require_times()
        self._grid = RandomizedGrid(1, *self._sizes(), self.door.window, self._coins())

    def _sizes(self) -> tuple[int, int]:
        return capacity_for(self.epsilon), copies_for(self.delta)

    def _coins(self) -> int:
        """A merged wave goes on with the coins of its first part, see sketches/coins.py."""
        return coins.coins_seed(self.seed, self.sites[0])

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
    def specification(self) -> dict[str, object]:
        """Every parameter that parts of a merge must agree in."""
        given = {"epsilon": self.epsilon, "delta": self.delta, "seed": self.seed}
        return given | self.door.specification

    def update(self, times: Any, weights: Any = None) -> None:
        """Record one event at each of `times`, or `weights[i]`, up to 2**20, events at once."""
        counting.update(self.door, self._grid, times, weights)

    def advance(self, now: Any) -> None:
        """Let time pass without events."""
        self.door.advance(now)

    def estimate(self, last: Any = None, now: Any = None) -> Estimate:
        """Events in `(now - last, now]`; probable, and certain where it is exact."""
        return counting.estimate(self.door, self._grid, last, now, 1 - self.delta)

    def next_change(self, last: Any = None) -> int | None:
        """The next tick at which `estimate(last)` may differ if no event comes; None: never."""
        return counting.next_change(self.door, self._grid, last)

    @classmethod
    def merge(cls, parts: Iterable[Any]) -> Self:
        """One wave of all parts' events, as of their greatest clock; the parts stay as they are.

        It answers within the same epsilon and delta as each part, and it takes new events, as the
        site of the first part and with its late policy. NotMergeable if two parts hold events of
        one site, or differ in their specification.
        """
        waves = objects(cls, parts)
        door = common_door(waves)
        sites = coins.union([wave.sites for wave in waves])
        grid = RandomizedGrid.merged([wave._grid for wave in waves], door.now)
        first = waves[0]
        return cls._own((first.epsilon, first.delta, first.seed), sites, door, grid)

    @classmethod
    def concat(cls, older: Any, newer: Any) -> Self:
        """One wave of two parts of one stream, of which `newer` begins when `older` has ended.

        The parts need coins of their own as in `merge`: for instance site="router-7/2024-02-29".
        """
        older, newer = objects(cls, [older, newer])
        union = cls.merge([older, newer])
        require_in_order(older, newer, newer._grid.begin((union.now or 0) - union.window))
        return union

    def to_bytes(self) -> bytes:
        """Everything a question or an update can still see."""
        state = self._grid.state(self.now)
        header = _Header(self.epsilon, self.delta, self.seed, self.sites, self.door.state(), state)
        return wire.frame(wire.RANDOMIZED, header, self._grid.pack(self.now))

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """The wave whose `to_bytes` gave `data`; WireError for anything else."""
        header, payload = wire.unframe(data, wire.RANDOMIZED, _Header)
        try:
            seed = require_seed(header.seed)
            sites = coins.union([header.sites])
            sizes = capacity_for(header.epsilon), copies_for(header.delta)
            coins_seed = coins.coins_seed(seed, sites[0])
        except ValueError as error:
            raise wire.WireError(str(error)) from None
        grid = RandomizedGrid.unpack(
            1, *sizes, coins_seed, door=header.door, state=header.grid, data=payload
        )
        given = header.epsilon, header.delta, seed
        return cls._own(given, sites, Door.of_times(header.door), grid)

    @classmethod
    def _own(
        cls,
        given: tuple[float, float, int],
        sites: tuple[Site, ...],
        door: Door,
        grid: RandomizedGrid,
    ) -> Self:
        wave = cls.__new__(cls)
        wave.epsilon, wave.delta, wave.seed = given
        wave.sites, wave.door, wave._grid = sites, door, grid
        return wave
