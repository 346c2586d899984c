"""Events that come a little out of order, put in order before a sketch sees them."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamgauge import items as item_words
from streamgauge import ticks
from streamgauge.sketches.door import Door, whole


class _Sketch(Protocol):
    door: Door

    def update(self, items: Any, times: Any, weights: Any = None) -> None: ...


class Reorder:
    """Holds events back until none that is older is expected, at most `lateness` behind the newest.

    The sketch has an event when one comes that is `lateness` newer, or with `flush`; until then it
    waits here and in no answer. What comes later than that the sketch's own policy (`late`) takes,
    refuses or counts. At most `most` events wait: the oldest of more go on at once, in order, and
    are counted in `hurried`.

    >>> from streamgauge import EcmSketch
    >>> sketch = EcmSketch(window=100, epsilon=0.1, delta=0.05, seed=7)
    >>> ordered = Reorder(sketch, lateness=5)
    >>> ordered.update(["b", "a", "c"], [13, 10, 18])
    >>> sketch.now, len(ordered)  # the event at 18 may still be overtaken
    (13, 1)
    """

    def __init__(self, sketch: _Sketch, lateness: Any, most: int = 1 << 20) -> None:
        if not ticks.is_whole(most) or not 1 <= most <= 1 << 28:
            raise ValueError(f"most must be an integer in [1, 2**28], got {most!r}")
        self.sketch = sketch
        self._lateness = ticks.span(lateness, sketch.door.require_times().tick, "lateness")
        self._most = int(most)
        self.hurried = 0
        self._kind: item_words.Kind | None = None
        self._items: NDArray[Any] = np.empty(0, np.int64)
        self._ticks = np.empty(0, np.int64)
        self._weights = np.empty(0, np.int64)

    def update(self, items: Any, times: Any, weights: Any = None) -> None:
        """Take events in any order, and pass on what need not wait any longer."""
        fresh, kind = _column(items)
        moments = self.sketch.door.ticks(times, 0, None)
        ticks.require_in_range(moments)
        often = np.ones(fresh.size, np.int64) if weights is None else whole(weights, fresh.size)
        if moments.size != fresh.size:
            raise ValueError(f"times must be as many as items, got {moments.size} for {fresh.size}")
        if kind and self._kind and kind != self._kind:
            raise ValueError(f"items must be {self._kind}, as those before, got {kind}")
        if fresh.size == 0:
            return
        column = np.concatenate([self._items, fresh]) if self._items.size else fresh
        moments = np.concatenate([self._ticks, moments])
        often = np.concatenate([self._weights, often])
        order = np.argsort(moments, kind="stable")
        due = int(np.searchsorted(moments[order], moments[order[-1]] - self._lateness, "right"))
        hurried = max(0, moments.size - due - self._most)
        self._pass_on(column[order], moments[order], often[order], due + hurried)
        self._kind = self._kind or kind
        self.hurried += hurried

    def flush(self) -> None:
        """Pass on all that waits."""
        self._pass_on(self._items, self._ticks, self._weights, self._ticks.size)

    def _pass_on(
        self,
        column: NDArray[Any],
        moments: NDArray[np.int64],
        weights: NDArray[np.int64],
        count: int,
    ) -> None:
        """The first `count` go on, the others wait; nothing changes if the sketch refuses."""
        if count:
            times = ticks.times(moments[:count], self.sketch.door.tick)
            self.sketch.update(column[:count], times, weights[:count])
        self._items, self._ticks, self._weights = column[count:], moments[count:], weights[count:]

    def __len__(self) -> int:
        """How many events wait."""
        return int(self._ticks.size)


def _column(items: Any) -> tuple[NDArray[Any], item_words.Kind | None]:
    """Items that can be put in order, integers as int64 if they fit, and their kind."""
    words, kind = item_words.words(items)
    if kind == "integers" and np.all(words < 1 << 63):
        return words.view(np.int64), kind
    if hasattr(items, "to_pylist"):
        items = items.to_pylist()
    column = np.empty(words.size, object)
    column[:] = [items] if item_words.is_one(items) else list(items)
    return column, kind
