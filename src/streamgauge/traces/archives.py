"""Two formats of the Internet Traffic Archive, which the papers used, as Arrow record batches.

World Cup 98 (Arlitt and Jin 1998), wc_dayX_Y.gz: big-endian records of 20 bytes. `timestamp`
counts seconds since the epoch in GMT; `region`, derived here, is the upper three bits of
`server`: which of the four places handled the request.

LBL-TCP-3 (Paxson 1994), lbl-tcp-3.tcp: one line per packet, six numbers between white space,
the timestamp with up to six decimals.

Both are read plain or gzipped, told apart by their first bytes, and in bounded memory.
"""

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 65_536  # in one batch

_WC98 = np.dtype(
    [
        *((name, ">u4") for name in ("timestamp", "clientID", "objectID", "size")),
        *((name, "u1") for name in ("method", "status", "type", "server")),
    ]
)
WC98_COLUMNS = (*(_WC98.names or ()), "region")
LBL_COLUMNS = ("timestamp", "source", "destination", "source_port", "destination_port", "bytes")

_NUMBER = rb"(\d{1,18})"  # what surely fits in int64
_LBL_LINE = re.compile(rb"\s*(\d{1,12})(?:\.(\d{1,6}))?" + 5 * (rb"\s+" + _NUMBER) + rb"\s*")
_LONGEST_LINE = 256


def wc98(path: Path) -> Iterator["pa.RecordBatch"]:
    import pyarrow as pa

    with _opened(path) as file:
        records = 0
        while data := file.read(ROWS * _WC98.itemsize):
            whole, left = divmod(len(data), _WC98.itemsize)
            records += whole
            if left:
                raise ValueError(
                    f"{path}: record {records + 1} must have 20 bytes, the file ends after {left}"
                )
            record = np.frombuffer(data, _WC98)
            columns = {name: record[name].astype(np.int64) for name in WC98_COLUMNS[:-1]}
            columns["region"] = columns["server"] >> 5
            columns["timestamp"] = columns["timestamp"].view("datetime64[s]")
            yield pa.record_batch(columns)


def lbl(path: Path) -> Iterator["pa.RecordBatch"]:
    import pyarrow as pa

    with _opened(path) as file:
        # A bounded readline, so that a file without line ends cannot fill the memory.
        lines = enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), start=1)
        while some := list(islice(lines, ROWS)):
            rows = np.array([_lbl_fields(path, number, line) for number, line in some], np.int64)
            columns = dict(zip(LBL_COLUMNS, np.ascontiguousarray(rows.T), strict=True))
            columns["timestamp"] = columns["timestamp"].view("datetime64[us]")
            yield pa.record_batch(columns)


def _lbl_fields(path: Path, number: int, line: bytes) -> list[int]:
    match = _LBL_LINE.fullmatch(line)
    if match is None:
        raise ValueError(
            f"{path}: line {number} must hold six numbers ({', '.join(LBL_COLUMNS)}), got {line!r}"
        )
    seconds, decimals, *others = match.groups()
    microseconds = 1_000_000 * int(seconds) + int((decimals or b"").ljust(6, b"0"))
    return [microseconds, *map(int, others)]


@contextmanager
def _opened(path: Path) -> Iterator[gzip.GzipFile | BufferedReader]:
    with path.open("rb") as file:
        gzipped = file.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path) if gzipped else path.open("rb") as file:
            yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: must be a whole gzip file: {error}") from error
