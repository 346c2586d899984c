"""How long a fresh Python takes to import streamgauge, and to make its first update.

The package loads a name at its first use; the row that takes EcmSketch from it pays for numpy.
Every case is a process of its own, so a start of the interpreter is in every row.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from benches import tables
from benches.rounds import Case, take_turns

IMPORTS = 31
COMPILED = 3  # takes seconds each

UPDATE = """
from streamgauge import EcmSketch
EcmSketch(window=1000, epsilon=0.1, delta=0.1, seed=7).update([1, 2, 3], [1, 2, 3])
"""


def measure(scale: float) -> tables.Table:
    """All rows; `scale` is the part of the rounds."""
    numpy, package = "import numpy", "import streamgauge"
    sketch = "from streamgauge import EcmSketch"
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder, "numba")

        def forget() -> tuple[()]:
            shutil.rmtree(cache, ignore_errors=True)
            return ()

        compiling = replace(_process("first update, nothing cached", UPDATE, cache), prepare=forget)
        starts = [
            _process("pass", "pass"),
            _process(numpy, numpy),
            _process(package, package, against={numpy: 1.3}),
            _process(sketch, sketch, against={numpy: 1.3}),
            _process("first update, kernels cached", UPDATE, cache, {numpy: None}),
        ]
        rows = [
            *take_turns([compiling], max(1, round(scale * COMPILED)), warm_up=0),
            *take_turns(starts, max(1, round(scale * IMPORTS))),
        ]
    return tables.Table(rows, {"seed": "none, nothing is drawn", "trace": "none"})


def _process(
    name: str,
    statements: str,
    cache: Path | None = None,
    against: Mapping[str, float | None] = MappingProxyType({}),
) -> Case:
    """A fresh Python that runs the statements, perhaps with a numba cache of its own."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)} if cache else None

    def run() -> None:
        subprocess.run([sys.executable, "-c", statements], env=environment, check=True)

    return Case(name, run, against=against)


if __name__ == "__main__":
    tables.command("imports", measure)
