"""What the cells of a sketch are: the one place that knows which counter is which grid."""

from streamgauge.sketches import exphistgrid, wavegrid
from streamgauge.sketches.door import DoorState
from streamgauge.sketches.exphistgrid import ExpHistGrid
from streamgauge.sketches.sizes import Sizes
from streamgauge.sketches.wavegrid import GridState, WaveGrid

Grid = WaveGrid | ExpHistGrid


def new(sizes: Sizes, window: int) -> Grid:
    """Empty counters for all cells; refuses what would not fit into memory sooner or later."""
    cells, epsilon = sizes.depth * sizes.width, sizes.epsilon_window
    match sizes.origin.counter:
        case "wave":
            return WaveGrid(cells, wavegrid.kept_ranks(epsilon), window)
        case "exphist":
            return ExpHistGrid(cells, exphistgrid.buckets(epsilon), window)


def unpack(sizes: Sizes, door: DoorState, state: GridState, data: memoryview) -> Grid:
    """The counters of all cells with this state and these bytes; WireError if there are none."""
    cells, epsilon = sizes.depth * sizes.width, sizes.epsilon_window
    match sizes.origin.counter:
        case "wave":
            return WaveGrid.unpack(cells, wavegrid.kept_ranks(epsilon), door, state, data)
        case "exphist":
            return ExpHistGrid.unpack(cells, exphistgrid.buckets(epsilon), door, state, data)
