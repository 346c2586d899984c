"""Batches of arrivals from files: Parquet, CSV and the formats of the papers' archived traces.

Reading judges types, not order: a row may be older than the one before it. Rows with a null in
any column that is read are left out and counted. Everything else that cannot be an arrival is a
ValueError that names the file, the row or column, the rule and the value; rows count from 1, and
the header of a CSV file is its row 1. Memory is bounded by one batch (in Parquet by a row group).
"""

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgauge.traces import archives

if TYPE_CHECKING:
    import pyarrow as pa


class Batch(NamedTuple):
    """Some rows of a file. Text stays an Arrow array; numbers and times become numpy arrays."""

    site: "NDArray[np.int64 | np.uint64] | pa.Array | None"
    item: "NDArray[np.int64 | np.uint64] | pa.Array"
    time: NDArray[np.int64 | np.datetime64]
    weight: NDArray[np.int64] | None
    skipped: int  # rows left out of this batch because they hold a null


class Column(NamedTuple):
    """Where one part of an arrival comes from, and the file for the error messages."""

    path: Path
    role: str
    name: str

    def refuse(self, value: object, *, row: int | None = None, here: str = "") -> ValueError:
        where = "" if row is None else f"row {row}, "
        return ValueError(
            f"{self.path}: {where}column {self.name!r}:"
            f" {self.role} must be {_RULES[self.role]}{here}, got {value}"
        )


_RULES = {
    "site": "an integer or text",
    "item": "an integer or text",
    "time": "an integer or a timestamp",
    "weight": "an integer",
}


def batches(
    path: str | Path, *, item: str, time: str, site: str | None = None, weight: str | None = None
) -> Iterator[Batch]:
    """The rows of a file; each argument names the column that plays that role.

    The format follows from the file's name: *.parquet, *.csv or *.csv.gz with a header line,
    wc_day* (World Cup 98) and *.tcp (LBL-TCP-3); archives.py names the columns of the last two.
    Times are integers (int64) or timestamps (datetime64, naive ones taken as UTC).

    A CSV column is integers when its first block holds nothing else (007 is text, since 7 is
    another name); an unquoted empty field is a null.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    roles = {"site": site, "item": item, "time": time, "weight": weight}
    columns = [Column(path, role, name) for role, name in roles.items() if name is not None]
    row = 1
    for arrays in _arrays(path, columns):
        yield _batch(columns, row, arrays)
        row += len(arrays[0])


def _arrays(path: Path, columns: Sequence[Column]) -> Iterator[list["pa.Array"]]:
    """One array for every column, batch after batch."""
    if path.name.endswith(".parquet"):
        found = _parquet(path, columns)
    elif path.name.endswith((".csv", ".csv.gz")):
        return _csv(path, columns)
    elif path.name.startswith("wc_day"):
        _require_names(columns, archives.WC98_COLUMNS)
        found = archives.wc98(path)
    elif path.name.endswith((".tcp", ".tcp.gz")):
        _require_names(columns, archives.LBL_COLUMNS)
        found = archives.lbl(path)
    else:
        raise ValueError(
            f"{path}: the name must end in .parquet, .csv, .csv.gz or .tcp, or begin with wc_day"
        )
    return ([batch.column(column.name) for column in columns] for batch in found)


def _parquet(path: Path, columns: Sequence[Column]) -> Iterator["pa.RecordBatch"]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            _require_names(columns, file.schema_arrow.names)
            yield from file.iter_batches(archives.ROWS, columns=_distinct_names(columns))
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path}: must be a readable Parquet file: {error}") from error


def _csv(path: Path, columns: Sequence[Column]) -> Iterator[list["pa.Array"]]:
    """Fields are read as text and typed here, so that an error can name its row and value."""
    import pyarrow as pa
    from pyarrow import csv

    names = _distinct_names(columns)
    as_text = csv.ConvertOptions(
        include_columns=names,
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    in_order = csv.ReadOptions(use_threads=False)  # only then do parse errors name their row
    kinds: list[pa.DataType] = []
    row = 2
    try:
        with csv.open_csv(path, read_options=in_order) as reader:
            _require_names(columns, reader.schema.names)
        with csv.open_csv(path, read_options=in_order, convert_options=as_text) as reader:
            for batch in reader:
                texts = [batch.column(column.name) for column in columns]
                kinds = kinds or [_kind(c, text) for c, text in zip(columns, texts, strict=True)]
                yield [
                    _cast(column, row, text, kind)
                    for column, text, kind in zip(columns, texts, kinds, strict=True)
                ]
                row += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path}: must be a readable CSV file: {error}") from error


def _distinct_names(columns: Sequence[Column]) -> list[str]:
    return list(dict.fromkeys(column.name for column in columns))


def _require_names(columns: Sequence[Column], names: Sequence[str]) -> None:
    for path, role, name in columns:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise ValueError(
                f"{path}: there is no column {name!r} for {role}; {hint}it has {', '.join(names)}"
            )
        if list(names).count(name) > 1:
            raise ValueError(f"{path}: column {name!r} for {role} must be there once, not twice")


def _kind(column: Column, texts: "pa.Array") -> "pa.DataType":
    """The first type that takes all the texts or, if none does, that takes the first of them."""
    import pyarrow as pa

    kinds = {
        "site": [pa.int64(), pa.uint64(), pa.string()],
        "item": [pa.int64(), pa.uint64(), pa.string()],
        "time": [pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC")],
        "weight": [pa.int64()],
    }[column.role]
    for sample in (texts, texts.drop_null()[:1]):
        for kind in kinds:
            if _taken(sample, kind) is not None:
                return kind
    return kinds[0]


def _cast(column: Column, row: int, array: "pa.Array", kind: "pa.DataType") -> "pa.Array":
    taken = _taken(array, kind)
    if taken is not None:
        return taken
    bad = next(i for i in range(len(array)) if _taken(array[i : i + 1], kind) is None)
    value = repr(array[bad].as_py())
    raise column.refuse(value, row=row + bad, here=f" ({kind} throughout this column)")


def _taken(array: "pa.Array", kind: "pa.DataType") -> "pa.Array | None":
    """The array as another type, None when that would change a value."""
    import pyarrow as pa

    try:
        taken = array.cast(kind)
    except pa.ArrowInvalid:
        return None
    if pa.types.is_string(array.type) and not pa.types.is_temporal(kind):
        return taken if taken.cast(pa.string()).equals(array) else None
    return taken


def _batch(columns: Sequence[Column], row: int, arrays: Sequence["pa.Array"]) -> Batch:
    arrays = [_plain(column, row, array) for column, array in zip(columns, arrays, strict=True)]
    rows = len(arrays[0])
    if any(array.null_count for array in arrays):
        whole = np.logical_and.reduce([a.is_valid().to_numpy(zero_copy_only=False) for a in arrays])
        arrays = [array.filter(whole) for array in arrays]
    parts = {
        column.role: _numpy_unless_text(array)
        for column, array in zip(columns, arrays, strict=True)
    }
    return Batch(
        site=parts.get("site"),
        item=parts["item"],
        time=parts["time"],
        weight=parts.get("weight"),
        skipped=rows - len(arrays[0]),
    )


def _plain(column: Column, row: int, array: "pa.Array") -> "pa.Array":
    """One of int64, uint64, text and, for time, timestamp; all other types are refused."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    views = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    if array.type in views:  # which Arrow's filter cannot take
        array = array.cast(views[array.type])
    kind, named = array.type, column.role in ("site", "item")
    if pa.types.is_integer(kind):
        unsigned = named and kind == pa.uint64()
        return array if unsigned else _cast(column, row, array, pa.int64())
    instant = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    if not (_is_text(kind) if named else instant and column.role == "time"):
        raise column.refuse(kind)
    return array


def _is_text(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def _numpy_unless_text(array: "pa.Array") -> Any:  # a numpy array, or an Arrow one of text
    return array if _is_text(array.type) else array.to_numpy(zero_copy_only=False)
