"""What the cells of a sketch are: the one place that knows which counter is which grid."""

from collections.abc import Sequence

from streamgauge.sketches import coins, exphistgrid, merging, randomizedgrid, wavegrid
from streamgauge.sketches.coins import Site
from streamgauge.sketches.door import Admitted, DoorState
from streamgauge.sketches.exphistgrid import ExpHistGrid
from streamgauge.sketches.merging import Exact
from streamgauge.sketches.randomizedgrid import RandomizedGrid, capacity_for, copies_for
from streamgauge.sketches.sizes import Sizes
from streamgauge.sketches.wavegrid import GridState, WaveGrid, most_levels

Grid = WaveGrid | ExpHistGrid | RandomizedGrid


def require_memory(sizes: Sizes, window: int) -> None:
    """Refuse counters that would not fit into memory sooner or later.

    With all levels that 2**53 arrivals can need, so that no batch is refused half way; of
    randomized waves with as many samples as one level has, as all of them would never be filled.
    """
    cells, epsilon = sizes.depth * sizes.width, sizes.epsilon_window
    match sizes.origin.counter:
        case "wave":
            kept = wavegrid.kept_ranks(epsilon)
            wavegrid.require_memory(cells, most_levels(kept), kept, window)
        case "exphist":
            k = exphistgrid.buckets(epsilon)
            exphistgrid.require_memory(cells, most_levels(k), k, window)
        case "randomized":
            RandomizedGrid(cells, *_samples(sizes), window, 0)


def require_light(sizes: Sizes, admitted: Admitted) -> None:
    """Refuse a batch that the counters would refuse."""
    if sizes.origin.counter == "randomized":
        randomizedgrid.require_light(admitted)


def new(sizes: Sizes, window: int, sites: Sequence[Site]) -> Grid:
    """Empty counters for all cells; `sites` are those whose coins randomized ones toss."""
    cells, epsilon = sizes.depth * sizes.width, sizes.epsilon_window
    if sizes.origin.counter == "randomized":
        return RandomizedGrid(cells, *_samples(sizes), window, _seed(sizes, sites))
    if sizes.origin.counter == "exphist":
        return ExpHistGrid(cells, exphistgrid.buckets(epsilon), window)
    return WaveGrid(cells, wavegrid.kept_ranks(epsilon), window)


def unpack(
    sizes: Sizes, door: DoorState, sites: Sequence[Site], state: GridState, data: memoryview
) -> Grid:
    """The counters of all cells with this state and these bytes; WireError if there are none."""
    cells, epsilon = sizes.depth * sizes.width, sizes.epsilon_window
    if sizes.origin.counter == "randomized":
        seed = _seed(sizes, sites)
        return RandomizedGrid.unpack(
            cells, *_samples(sizes), seed, door=door, state=state, data=data
        )
    if sizes.origin.counter == "exphist":
        return ExpHistGrid.unpack(cells, exphistgrid.buckets(epsilon), door, state, data)
    return WaveGrid.unpack(cells, wavegrid.kept_ranks(epsilon), door, state, data)


def _samples(sizes: Sizes) -> tuple[int, int]:
    return capacity_for(sizes.epsilon_window), copies_for(sizes.delta_window)


def _seed(sizes: Sizes, sites: Sequence[Site]) -> int:
    return coins.coins_seed(sizes.origin.seed, sites[0])


def merged(parts: Sequence[Grid], exact: Exact, now: int) -> Grid:
    """Equal counters of all streams at the tick `now`, and of events known one by one."""
    if isinstance(parts[0], RandomizedGrid):
        return RandomizedGrid.merged(parts, now)  # type: ignore[arg-type]
    return merging.merged(parts, exact, now)  # type: ignore[type-var]


def joined(older: Grid, newer: Grid, now: int) -> Grid:
    """Equal counters of a stream of which `newer` has the part that came later."""
    if isinstance(older, RandomizedGrid):
        return RandomizedGrid.merged([older, newer], now)  # type: ignore[list-item]
    return merging.joined(older, newer, now)  # type: ignore[type-var]
