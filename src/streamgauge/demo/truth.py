"""The exact answers about a replayed trace, from the file itself and none of our sketches.

    truth = Truth(timeline, end, tick, queries)
    truth.after(rows, now)      the exact answers when so many rows have been delivered

Memory is bounded by the window. Beside the answers it counts what it would cost to ship every
event by itself: as [site, item, time] and maybe weight in msgpack, the encoding of the reports.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamgauge.queries import Frequency, Query, SelfJoin, Total
from streamgauge.traces.timeline import Timeline

Ints = NDArray[np.int64]


class _Part(NamedTuple):
    """Some events in order of time."""

    ticks: Ints
    items: pa.Array
    weights: Ints | None


class Truth:
    """The events of the window that ends with the newest row delivered.

    `queries` are those to answer, with their ranges in ticks of `tick` nanoseconds.
    """

    def __init__(
        self, timeline: Timeline, end: int, tick: int | None, queries: Mapping[Query, int]
    ) -> None:
        self.shipped = 0  # bytes
        self.events = 0
        self.newest = timeline.first  # the newest event's time
        self._rows = 0
        self._tick = tick
        self._queries = dict(queries)
        self._batches = timeline.between(timeline.first, end)
        self._next = next(self._batches, None)
        self._parts: list[_Part] = []

    @property
    def is_over(self) -> bool:
        """There are no more rows."""
        return self._next is None

    def after(self, rows: int, now: int | None) -> list[int]:
        """The answer to each query about (now - last, now]; None where nothing has happened."""
        for batch in self._until(rows):
            self._take(batch)
        if now is None:
            return []
        window = max(self._queries.values())
        self._parts = [part for part in self._parts if part.ticks[-1] > now - window]
        return [self._answer(query, now - last) for query, last in self._queries.items()]

    def _until(self, rows: int) -> Iterator[pa.RecordBatch]:
        while self._next is not None and self._rows < rows:
            batch = self._next
            taken = min(len(batch), rows - self._rows)
            rest = batch.slice(taken) if taken < len(batch) else None
            self._next = next(self._batches, None) if rest is None else rest
            self._rows += taken
            yield batch.slice(0, taken)

    def _take(self, batch: pa.RecordBatch) -> None:
        batch = batch.drop_null()
        if len(batch) == 0:
            return
        times = batch.column("time").cast(pa.int64()).to_numpy()
        self.events += len(batch)
        self.newest = int(times[-1])
        packed = [pa.array(times), *(batch.column(n) for n in batch.schema.names if n != "time")]
        self.shipped += len(batch) + sum(map(_packed_size, packed))  # with an array's head
        ticks = times if self._tick is None else _floored(times, self._tick)
        weights = batch.column("weight").to_numpy() if "weight" in batch.schema.names else None
        self._parts.append(_Part(ticks, batch.column("item"), weights))

    def _answer(self, query: Query, cutoff: int) -> int:
        items, weights = self._since(cutoff)
        match query:
            case Total():
                return _sum(weights, len(items))
            case Frequency(item=item):
                mine = pc.equal(items, _scalar(item, items.type))
                if weights is not None:
                    return _sum(weights[mine.to_numpy(zero_copy_only=False)], 0)
                return int(pc.sum(mine).as_py() or 0)
            case SelfJoin():
                if weights is None:
                    counts = pc.value_counts(items).field("counts").to_numpy()
                else:
                    table = pa.table({"item": items, "weight": weights})
                    grouped = table.group_by("item").aggregate([("weight", "sum")])
                    counts = grouped.column("weight_sum").to_numpy()
                return int((counts.astype(object) ** 2).sum()) if counts.size else 0

    def _since(self, cutoff: int) -> tuple[Any, Ints | None]:
        """The items later than `cutoff`, and their weights."""
        parts = []
        for part in self._parts:
            begin = int(np.searchsorted(part.ticks, cutoff, "right"))
            weights = None if part.weights is None else part.weights[begin:]
            parts.append((part.items.slice(begin), weights))
        if not parts:
            return pa.array([], pa.int64()), None
        items = pa.concat_arrays([items for items, _ in parts])
        heavy = [weights for _, weights in parts if weights is not None]
        return items, np.concatenate(heavy) if heavy else None


def _floored(microseconds: Ints, tick: int) -> Ints:
    return microseconds // (tick // 1000) if tick % 1000 == 0 else microseconds * 1000 // tick


def _sum(weights: Ints | None, events: int) -> int:
    return events if weights is None else int(weights.sum())


def _scalar(item: Any, kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_integer(kind):
        return pa.scalar((int(item) + (1 << 63)) % (1 << 64) - (1 << 63), kind)
    octets = item.encode() if isinstance(item, str) else item
    return pa.scalar(octets if pa.types.is_binary(kind) else octets.decode(), kind)


def _packed_size(column: pa.Array) -> int:
    """The bytes that msgpack needs for all values."""
    if pa.types.is_integer(column.type):
        values = column.to_numpy()
        ends = (-(1 << 31), -(1 << 15), -(1 << 7), -(1 << 5), 1 << 7, 1 << 8, 1 << 16, 1 << 32)
        sizes = np.array([9, 5, 3, 2, 1, 2, 3, 5, 9])
        return int(sizes[np.searchsorted(ends, values, "right")].sum())
    lengths = pc.binary_length(column).to_numpy()
    heads = [1, 2, 3, 5] if pa.types.is_string(column.type) else [2, 2, 3, 5]
    sizes = np.array(heads)[np.searchsorted((1 << 5, 1 << 8, 1 << 16), lengths, "right")]
    return int(lengths.sum() + sizes.sum())
