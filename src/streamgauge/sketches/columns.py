"""Arrays of non-negative integers as bytes: one byte with their width, then the numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgauge.wire import WireError


def column(values: NDArray[Any]) -> bytes:
    """The numbers in as few bytes each as the largest needs, little-endian."""
    most = int(values.max(initial=0))
    width = next(code for code in range(4) if most < 1 << (8 << code))
    return bytes([width]) + values.astype(f"<u{1 << width}").tobytes()


class Reader:
    """Takes columns out of bytes that may be anything."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> NDArray[np.uint64]:
        """The next column, of so many numbers."""
        begin = self._at + 1
        if begin > len(self._data):
            raise WireError("truncated: a column is missing")
        code = self._data[self._at]
        if code > 3:
            raise WireError(f"no column has numbers of 2**{code} bytes")
        self._at = begin + (size << code)
        if self._at > len(self._data):
            raise WireError(f"truncated: {len(self._data)} bytes, a column ends at {self._at}")
        found = np.frombuffer(self._data, f"<u{1 << code}", size, begin).astype(np.uint64)
        if code and int(found.max(initial=0)) < 1 << (8 << (code - 1)):
            raise WireError(f"a column has numbers of 2**{code} bytes that need fewer")
        return found

    def close(self) -> None:
        """Nothing may be left."""
        if self._at != len(self._data):
            raise WireError(f"{len(self._data) - self._at} bytes go on beyond the end")
