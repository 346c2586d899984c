"""A Parquet trace that is sorted by time, as the rows between any two of its times.

Opening it reads the footers alone; what is read later is bounded by a batch. A file that is not
what it has to be is a ValueError that names the file, the column, the rule and the value. That
the rows are sorted shows when they are read, except between row groups, whose ends the footers
tell.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ROWS = 1 << 16

# Microseconds in each unit that an integer may count since the epoch; ns are divided.
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}
_PER_MICROSECOND = {"s": 1, "ms": 1, "us": 1, "ns": 1_000}

_RULES = {
    "site": "integers or text",
    "item": "integers, text or bytes",
    "time": "timestamps or integers",
    "weight": "integers",
}


class Stretch(NamedTuple):
    """A row group: its first and last time, and how many rows of the file come before it."""

    path: str
    group: int
    first: int
    last: int
    before: int


class Timeline:
    """The rows of a sorted trace by time: microseconds, or integers of no known unit.

    `columns` says which column plays which role: item and time, and maybe site and weight.
    `unit` (s, ms, us or ns) makes instants of an integer time.
    """

    def __init__(
        self, path: str | Path, columns: Mapping[str, str], unit: str | None = None
    ) -> None:
        self._columns = dict(columns)
        self._unit = unit
        if unit is not None and unit not in _MICROSECONDS:
            raise ValueError(f"unit must be one of {', '.join(_MICROSECONDS)}, got {unit!r}")
        self.rows = 0
        self.stretches: list[Stretch] = []
        self._kinds: dict[str, Any] = {}
        self._timeless: list[tuple[str, int, int]] = []
        for file in _files(Path(path)):
            self._add(file)
        if not self.stretches:
            raise ValueError(f"{path}: must hold rows with a time, got {self.rows} rows without")
        self.first = self.stretches[0].first
        self.last = self.stretches[-1].last

    @property
    def has_instants(self) -> bool:
        """Times are microseconds since the epoch, not integers of no known unit."""
        return self._is_instant(self._kinds["time"])

    @property
    def second(self) -> int:
        """A second in its times; integers of no known unit are their own."""
        return 1_000_000 if self.has_instants else 1

    def end(self, seconds: float | None = None) -> int:
        """The time before which the first so many seconds lie, or all of it."""
        end = self.last + 1
        return end if seconds is None else min(end, self.first + max(1, int(seconds * self.second)))

    @property
    def schema(self) -> "pa.Schema":
        """Of the batches: the roles as columns, of int64, text, bytes or timestamps."""
        import pyarrow as pa

        return pa.schema([(role, self._canonical(role)) for role in self._columns])

    def between(self, low: int, high: int) -> Iterator["pa.RecordBatch"]:
        """The rows with low <= time < high, those without a time by the time before them."""
        import pyarrow as pa

        for stretch in self.stretches:
            if stretch.last < low or stretch.first >= high:
                continue
            latest, row = stretch.first, stretch.before
            for batch in _batches(stretch, self._columns):
                times = self._clock(batch.column(self._columns["time"]), latest, stretch.path)
                self._require_sorted(times, latest, stretch.path, row)
                latest, row = int(times[-1]), row + len(times)
                begin, end = np.searchsorted(times, (low, high), "left")
                if begin < end:
                    part = batch.slice(begin, end - begin)
                    arrays = [self._array(role, part, stretch.path) for role in self._columns]
                    yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
                if latest >= high:
                    break

    def _add(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(path) as file:
                kinds = self._checked(path, file.schema_arrow)
                if self._kinds and kinds != self._kinds:
                    raise ValueError(f"{path}: must have the types of the file before, got {kinds}")
                self._kinds = kinds
                before = 0
                for group in range(file.num_row_groups):
                    self._append(path, group, self._ends(file, path, group), before)
                    before += file.metadata.row_group(group).num_rows
                self.rows += before
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{path}: must be a readable Parquet file: {error}") from error

    def _append(self, path: Path, group: int, ends: tuple[int, int] | None, before: int) -> None:
        latest = self.stretches[-1].last if self.stretches else None
        if ends is None:  # no time at all: these rows belong to the time before them
            if latest is None:
                self._timeless.append((str(path), group, before))
                return
            ends = latest, latest
        if latest is not None and ends[0] < latest:
            raise ValueError(
                f"{path}: column {self._columns['time']!r}: times must not decrease, but row group "
                f"{group} begins at {self.show(ends[0])}, after {self.show(latest)}"
            )
        for file, earlier, row in self._timeless:
            self.stretches.append(Stretch(file, earlier, ends[0], ends[0], row))
        self._timeless.clear()
        self.stretches.append(Stretch(str(path), group, *ends, before))

    def _ends(self, file: "pq.ParquetFile", path: Path, group: int) -> tuple[int, int] | None:
        """The least and the greatest time of a row group, None if it has none."""
        import pyarrow as pa

        name = self._columns["time"]
        at = file.schema_arrow.names.index(name)
        told = file.metadata.row_group(group).column(at).statistics
        nanoseconds = getattr(self._kinds["time"], "unit", None) == "ns"
        if told is not None and told.has_min_max and not nanoseconds:
            kind = file.schema_arrow.field(name).type
            times = self._times(pa.array([told.min, told.max], kind), str(path))
        else:
            read = file.read_row_group(group, [name]).column(0).drop_null()
            times = self._times(read.combine_chunks(), str(path))
        return (int(times.min()), int(times.max())) if times.size else None

    def _checked(self, path: Path, schema: "pa.Schema") -> dict[str, "pa.DataType"]:
        for role, name in self._columns.items():
            if name not in schema.names:
                close = difflib.get_close_matches(name, schema.names, n=1)
                hint = f"did you mean {close[0]!r}? " if close else ""
                has = ", ".join(schema.names)
                raise ValueError(
                    f"{path}: there is no column {name!r} for {role}; {hint}it has {has}"
                )
            if schema.names.count(name) > 1:
                raise ValueError(f"{path}: column {name!r} must be there once, not twice")
        kinds = {role: _plain(schema.field(name).type) for role, name in self._columns.items()}
        for role, kind in kinds.items():
            if not _takes(role, kind):
                raise ValueError(
                    f"{path}: column {self._columns[role]!r}: {role} must be {_RULES[role]}, "
                    f"got {kind}"
                )
        if self._unit is not None and self._is_timestamp(kinds["time"]):
            raise ValueError(
                f"unit goes with integer times, but {path}: column {self._columns['time']!r} "
                f"has {kinds['time']}"
            )
        return kinds

    def _is_timestamp(self, kind: "pa.DataType") -> bool:
        import pyarrow as pa

        return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))

    def _is_instant(self, kind: "pa.DataType") -> bool:
        return self._unit is not None or self._is_timestamp(kind)

    def _canonical(self, role: str) -> "pa.DataType":
        import pyarrow as pa

        kind = self._kinds[role]
        if role == "time" and self.has_instants:
            return pa.timestamp("us", "UTC")
        if pa.types.is_integer(kind):
            return pa.int64()
        octets = kind in (pa.binary(), pa.large_binary(), pa.binary_view())
        return pa.binary() if octets else pa.string()

    def _array(self, role: str, batch: "pa.RecordBatch", path: str) -> "pa.Array":
        import pyarrow as pa

        array, kind = batch.column(self._columns[role]), self._canonical(role)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if role == "time" and self.has_instants:
            missing = array.is_null().to_numpy(zero_copy_only=False)
            return pa.array(self._times(array, path), pa.int64(), mask=missing).cast(kind)
        if role == "item" and array.type == pa.uint64():
            return array.view(kind)  # an item is a number mod 2**64
        try:
            return array.cast(kind)
        except pa.ArrowInvalid as error:
            raise ValueError(
                f"{path}: column {self._columns[role]!r}: {role} must fit in {kind}: {error}"
            ) from error

    def _clock(self, array: "pa.Array", latest: int, path: str) -> NDArray[np.int64]:
        """The times, with that before it (at first `latest`) where there is none."""
        times = self._times(array, path)
        if array.null_count == 0:
            return times
        there = array.is_valid().to_numpy(zero_copy_only=False)
        newest = np.maximum.accumulate(np.where(there, np.arange(times.size), -1))
        return np.where(newest < 0, latest, times[newest])

    def _times(self, array: "pa.Array", path: str) -> NDArray[np.int64]:
        """Microseconds or integers; what stands for a null is not to be looked at."""
        import pyarrow as pa

        if self._is_timestamp(array.type):
            given = array.cast(pa.timestamp("us")) if pa.types.is_date(array.type) else array
            unit = given.type.unit
            numbers = given.view(pa.int64())
        else:
            unit = self._unit or "us"
            numbers = array.cast(pa.int64())
        ticks: NDArray[np.int64] = numbers.fill_null(0).to_numpy(zero_copy_only=False)
        most = ((1 << 63) - 1) // _MICROSECONDS[unit]
        if ticks.size and not -most <= int(ticks.min()) <= int(ticks.max()) <= most:
            worst = ticks.max() if ticks.max() > most else ticks.min()
            raise ValueError(
                f"{path}: column {self._columns['time']!r}: times must fit in int64 "
                f"microseconds, got {worst} {unit}"
            )
        return ticks * _MICROSECONDS[unit] // _PER_MICROSECOND[unit]

    def _require_sorted(self, times: NDArray[np.int64], latest: int, path: str, row: int) -> None:
        clock = np.concatenate([[latest], times])
        back = np.flatnonzero(clock[1:] < clock[:-1])
        if back.size:
            at = int(back[0])
            raise ValueError(
                f"{path}: row {row + at + 1}, column {self._columns['time']!r}: times must not "
                f"decrease, got {self.show(int(clock[at + 1]))} after {self.show(int(clock[at]))}"
            )

    def show(self, time: int) -> str:
        """A time for people."""
        return f"{np.datetime64(time, 'us')}Z" if self.has_instants else str(time)


def _files(path: Path) -> Sequence[Path]:
    if path.is_dir():
        found = sorted(path.glob("*.parquet"))
        if not found:
            raise ValueError(f"{path}: must hold *.parquet files, got none")
        return found
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    return [path]


def _batches(stretch: Stretch, columns: Mapping[str, str]) -> Iterator["pa.RecordBatch"]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(stretch.path) as file:
        names = list(dict.fromkeys(columns.values()))
        yield from file.iter_batches(ROWS, [stretch.group], columns=names, use_threads=False)


def _plain(kind: "pa.DataType") -> "pa.DataType":
    """What a dictionary holds, or the type itself."""
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _takes(role: str, kind: "pa.DataType") -> bool:
    import pyarrow as pa

    if pa.types.is_integer(kind):
        return True
    if role == "time":
        return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))
    text = kind in (pa.string(), pa.large_string(), pa.string_view())
    octets = kind in (pa.binary(), pa.large_binary(), pa.binary_view())
    return (text and role != "weight") or (octets and role == "item")
