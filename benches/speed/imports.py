"""How long a fresh Python takes to import streamgauge, and to make its first update.

The package loads a name at its first use; the row that takes EcmSketch from it pays for numpy.
Every case is a process of its own, so a start of the interpreter is in every row. Bytecode is
kept from one start to the next, as Python does unless its environment forbids it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from benches import tables
from benches.rounds import Case, take_turns

IMPORTS = 31
COMPILED = 3  # takes seconds each

NUMPY = "import numpy"
SKETCH = "from streamgauge import EcmSketch"
UPDATE = f"""{SKETCH}
EcmSketch(window=1000, epsilon=0.1, delta=0.1, seed=7).update([1, 2, 3], [1, 2, 3])
"""


def measure(scale: float) -> tables.Table:
    """All rows; `scale` is the part of the rounds."""
    with tempfile.TemporaryDirectory() as folder:
        start = partial(_start, Path(folder))

        def forget() -> tuple[()]:
            shutil.rmtree(_kernels(Path(folder)), ignore_errors=True)
            return ()

        starts = [
            start("pass", "pass"),
            start(NUMPY, NUMPY),
            start("import streamgauge", "import streamgauge", {NUMPY: 1.3}),
            start(SKETCH, SKETCH, {NUMPY: 1.3}),
            start("first update, kernels cached", UPDATE, {NUMPY: None}),
        ]
        compiling = replace(start("first update, nothing cached", UPDATE), prepare=forget)
        rows = [
            *take_turns([compiling], max(1, round(scale * COMPILED)), warm_up=0),
            *take_turns(starts, max(1, round(scale * IMPORTS))),
        ]
    return tables.Table(rows, {"seed": "none, nothing is drawn", "trace": "none"})


def _start(
    folder: Path,
    name: str,
    statements: str,
    against: Mapping[str, float | None] = MappingProxyType({}),
) -> Case:
    """A fresh Python that runs the statements, with what it caches in the folder."""
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "NUMBA_CACHE_DIR": str(_kernels(folder)),
    }
    command = [sys.executable, "-c", statements]
    return Case(
        name, partial(subprocess.run, command, env=environment, check=True), against=against
    )


def _kernels(folder: Path) -> Path:
    return folder / "kernels"


if __name__ == "__main__":
    tables.command("imports", measure)
