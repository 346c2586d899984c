"""Whether times are in order: asked of every batch, before anything else looks at it."""

from numba import njit


@njit(cache=True, nogil=True)
def never_decreases(ticks):
    """Whether no tick is below the one before it.

    Without an early exit, so that it is vectorised: a third of what numpy's comparison costs,
    which was a tenth of an update's time.
    """
    backsteps = 0
    for i in range(1, ticks.size):
        backsteps += ticks[i] < ticks[i - 1]
    return backsteps == 0
