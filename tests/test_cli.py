"""The command line, but for the demo, which starts Spark (tests/spark)."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from streamgauge import EcmSketch, Gathered, arrivals
from streamgauge.cli import main

GOLDEN = Path(__file__).parent / "golden"


def ran(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(GOLDEN.glob("*.bin")) if path.stem != "report"],
    ids=lambda path: path.stem,
)
def test_every_kind_of_sketch_is_told(path):
    done = ran("inspect", path)
    assert done.exit_code == 0
    assert done.output.startswith("type         ")
    assert done.output.splitlines()[-1].endswith(" ever" if path.stem == "countmin" else "window")
    told = json.loads(ran("inspect", path, "--json").output)
    assert told["bytes"].replace(",", "") == str(len(path.read_bytes()))


def test_how_the_error_is_split_is_told(tmp_path):
    """Theorem 3 as it is used: half of delta for the hashing, a share of the rest a counter."""
    file = tmp_path / "sketch"
    given = {"window": arrivals(100), "epsilon": 0.1, "delta": 0.1, "seed": 7}
    file.write_bytes(EcmSketch(**given, counter="randomized").to_bytes())
    lines = ran("inspect", file).output.splitlines()
    assert "window       arrivals(100)" in lines
    assert "cells        3 rows of 30 (randomized)" in lines
    assert "a cell       within 0.1 except with 0.0167" in lines
    assert "collisions   0.0905 of the others except with 0.05" in lines
    file.write_bytes(Gathered([EcmSketch(**given)]).to_bytes())
    assert "sketches     1" in ran("inspect", file).output.splitlines()


def test_what_is_no_sketch_is_refused(tmp_path):
    file = tmp_path / "other"
    for data in (
        b"",
        b"PK\3\4 something else",
        b"SG\0\xff    ",
        (GOLDEN / "report.bin").read_bytes(),
    ):
        file.write_bytes(data)
        done = ran("inspect", file)
        assert done.exit_code == 2
        assert str(file) in done.output
    assert ran("inspect", tmp_path / "missing").exit_code == 2
