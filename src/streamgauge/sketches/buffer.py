"""Events one by one, for whoever has no batches."""

from types import TracebackType
from typing import Any, Protocol, Self

from streamgauge import ticks


class _Sketch(Protocol):
    def update(self, items: Any, times: Any, weights: Any = None) -> None: ...


class Buffer:
    """Collects events for a sketch, which takes a batch of thousands hundreds of times faster.

    The sketch has an event after `flush`, which comes by itself with every `size` events and at
    the end of a `with`. What the sketch refuses it refuses then, with all that was collected;
    `clear` drops that.

    >>> from streamgauge import EcmSketch
    >>> sketch = EcmSketch(window=100, epsilon=0.1, delta=0.05, seed=7)
    >>> with Buffer(sketch) as buffer:
    ...     for time in range(50):
    ...         buffer.update("a", time)
    >>> sketch.total().value
    50.0
    """

    __slots__ = ("_items", "_size", "_times", "_weights", "sketch")

    def __init__(self, sketch: _Sketch, size: int = 8192) -> None:
        if not ticks.is_whole(size) or not 1 <= size <= 1 << 24:
            raise ValueError(f"size must be an integer in [1, 2**24], got {size!r}")
        self.sketch = sketch
        self._size = int(size)
        self.clear()

    def update(self, item: int | str | bytes, time: Any = None, weight: int = 1) -> None:
        """Collect one event, and pass all on if they are enough now; a count needs no time."""
        items = self._items
        items.append(item)
        self._times.append(time)
        self._weights.append(weight)
        if len(items) >= self._size:
            self.flush()

    def flush(self) -> None:
        """Pass on what was collected."""
        times = None if self._times[:1] == [None] else self._times
        self.sketch.update(self._items, times, self._weights)
        self.clear()

    def clear(self) -> None:
        """Forget what was collected since the last flush."""
        self._items: list[int | str | bytes] = []
        self._times: list[Any] = []
        self._weights: list[int] = []

    def __len__(self) -> int:
        """How many events wait."""
        return len(self._items)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.flush()
