"""Rows packed into few, since on Spark a row costs more than an update of a sketch.

Whatever a row passes through, a shuffle or a group function, costs it some hundred nanoseconds.
So every task first packs its rows: for each site one row that holds, in binary columns of int64,
the items' words, the times and the weights of up to `rows` events.

    site, item, time[, weight]  --Packing-->  FIELDS  --shuffle by site-->  unpack  -->  update

Nothing of Spark is in here: this is what runs on the executors, as functions of Arrow data.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgauge.items import Hashed, Kind
from streamgauge.sketches.door import COUNT_LIMIT

FIELDS = ("site", "newest", "events", "nulls", "early", "items", "times", "weights")

_FATES = _EVENT, _NULL, _EARLY = range(3)

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Packing:
    """How to pack; called with the batches of a task it yields packed ones, as mapInArrow wants.

    The batches have the columns site (of any type that is not nested), item (int64: the number
    itself or the text's hash), time (an Arrow timestamp in microseconds, or int64 ticks) and
    maybe weight (int64). The packed ones have FIELDS; `newest` is the greatest time of the row's
    events in the type it came in, null where there is no event.

    A row without site, item, time or weight is left out and counted in its site's `nulls`; one
    later than `latest`, in its site's `early`. All others are `events`.
    """

    latest: int | None = None  # in microseconds or ticks, as times are
    weight: str = "weight"  # what the user calls that column, for errors
    rows: int = 1 << 19

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        rows = 0
        for batch in batches:
            held.append(batch)
            rows += batch.num_rows
            if rows >= self.rows:
                yield self.pack(held)
                held, rows = [], 0
        if rows:
            yield self.pack(held)

    def pack(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """One packed row for each site of the batches; that of no site comes last."""
        table = pa.Table.from_batches(batches)
        sites = table.column("site").dictionary_encode().combine_chunks()
        nameless = len(sites.dictionary)
        codes = sites.indices.fill_null(nameless).to_numpy()
        times = _int64(table.column("time"))

        fates = np.full(len(table), _EVENT, np.int8)
        if self.latest is not None:
            fates[times > self.latest] = _EARLY
        for column in table.columns:
            if column.null_count:
                fates[column.is_null().to_numpy()] = _NULL
        size = len(_FATES) * (nameless + 1)
        counts = np.bincount(len(_FATES) * codes + fates, minlength=size).reshape(-1, len(_FATES))
        events = counts[:, _EVENT]

        taken = np.flatnonzero(fates == _EVENT)
        order = taken[_by_code(codes[taken])]
        times = times[order]
        cells = {
            "items": _cells(_int64(table.column("item"))[order], events),
            "times": _cells(times, events),
            "weights": pa.nulls(nameless + 1, pa.binary()),
        }
        if "weight" in table.column_names:
            weights = self._weights(_int64(table.column("weight"))[order])
            cells["weights"] = _cells(weights, events)
        columns = {
            "site": pa.concat_arrays([sites.dictionary, pa.nulls(1, sites.dictionary.type)]),
            "newest": _greatest(times, events).cast(table.schema.field("time").type),
            "events": pa.array(events),
            "nulls": pa.array(counts[:, _NULL]),
            "early": pa.array(counts[:, _EARLY]),
            **cells,
        }
        packed = pa.RecordBatch.from_pydict({name: columns[name] for name in FIELDS})
        return packed if counts[nameless].any() else packed.slice(0, nameless)

    def _weights(self, weights: Ints) -> Ints:
        if weights.size:
            least, most = int(weights.min()), int(weights.max())
            if least < 0 or most >= COUNT_LIMIT:
                raise ValueError(
                    f"weight column {self.weight!r} must lie in [0, 2**53), "
                    f"got {least if least < 0 else most}"
                )
        return weights


class Events(NamedTuple):
    """What a site's packed rows hold, in order of time, as `update` takes it."""

    items: Ints | Hashed
    times: NDArray[Any]  # datetime64[us], or int64 ticks
    weights: Ints | None


def unpack(
    items: Iterable[Any], times: Iterable[Any], weights: Iterable[Any], kind: Kind, calendar: bool
) -> Events:
    """The events of a site from its packed rows' cells, which are bytes or Arrow scalars."""
    words, moments = _joined(items), _joined(times)
    heavy = [cell for cell in map(_buffer, weights) if cell is not None]
    counts = _joined(heavy) if heavy else None
    if np.any(moments[1:] < moments[:-1]):
        order = np.argsort(moments, kind="stable")
        words, moments = words[order], moments[order]
        counts = None if counts is None else counts[order]
    return Events(
        Hashed(words.view(np.uint64)) if kind == "text" else words,
        moments.view("datetime64[us]") if calendar else moments,
        counts,
    )


def _joined(cells: Iterable[Any]) -> Ints:
    # From a bytearray the arrays are writable: kernels are compiled once for each kind.
    return np.frombuffer(bytearray().join(map(_buffer, cells)), np.int64)


def _buffer(cell: Any) -> Any:
    return cell.as_buffer() if isinstance(cell, pa.Scalar) else cell


def _int64(column: pa.ChunkedArray) -> Ints:
    numbers: Ints = column.cast(pa.int64()).fill_null(0).to_numpy()
    return numbers


def _by_code(codes: NDArray[np.int32]) -> NDArray[np.intp]:
    """The stable order of the codes, by two digits of 16 bits: there numpy sorts by radix."""
    order = np.argsort(codes.astype(np.uint16), kind="stable")
    if codes.size and codes.max() >= 1 << 16:
        order = order[np.argsort((codes >> 16).astype(np.uint16)[order], kind="stable")]
    return order


def _cells(values: Ints, sizes: Ints) -> pa.Array:
    """`values` cut into binary cells of so many numbers each, without a copy."""
    ends = np.concatenate([[0], np.cumsum(8 * sizes)]).astype(np.int32)
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.BinaryArray.from_buffers(pa.binary(), sizes.size, [None, pa.py_buffer(ends), data])


def _greatest(values: Ints, sizes: Ints) -> pa.Array:
    """The greatest of each cell, null for an empty one."""
    full = sizes > 0
    greatest = np.zeros(sizes.size, np.int64)
    greatest[full] = np.maximum.reduceat(values, (np.cumsum(sizes) - sizes)[full])
    return pa.array(greatest, mask=~full)
