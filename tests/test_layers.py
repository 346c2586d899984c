"""Rules of the house that the import contracts in pyproject.toml cannot say."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src/streamgauge"
SOURCES = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
TREES = {name: ast.parse(path.read_text()) for name, path in SOURCES.items()}

DRIVERS = ("cli.py", "demo/", "serve/", "sim/", "spark/", "traces/")
# What only these parts of the package may use; () is nobody.
ONLY_IN = {
    "numba": ("kernels/",),
    "llvmlite": ("kernels/",),
    "pyspark": ("spark/",),
    "pandas": ("spark/",),
    "fastapi": ("serve/",),
    "starlette": ("serve/",),
    "uvicorn": ("serve/",),
    "websockets": ("serve/",),
    "print": ("cli.py",),
    "rich": ("cli.py", "demo/"),
    "asyncio": DRIVERS,
    "logging": DRIVERS,
    "numpy.random": DRIVERS,
    "open": DRIVERS,
    "os": DRIVERS,
    "pathlib": DRIVERS,
    "random": DRIVERS,
    "socket": DRIVERS,
    "threading": DRIVERS,
    "time": DRIVERS,
    "cloudpickle": (),
    "hash": (),  # Python's depends on the process; state would too
    "marshal": (),
    "pickle": (),
    "scipy": (),
    "warnings": (),
}
# Spark Connect has none of these.
NOT_OVER_CONNECT = {"_jvm", "_jsq", "_jdf", "_jsparkSession", "sparkContext", "rdd"}


def used(tree: ast.AST) -> set[str]:
    """Dotted names of what a module imports, calls by its bare name, or takes from numpy."""
    names = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=modules):
                names.update(module.name for module in modules)
            case ast.ImportFrom(module=str(module), names=members, level=0):
                names.update(f"{module}.{member.name}" for member in members)
            case ast.Call(func=ast.Name(id=name)):
                names.add(name)
            case ast.Attribute(value=ast.Name(id="np"), attr=attribute):
                names.add(f"numpy.{attribute}")
    return names


def offences(name: str, tree: ast.AST) -> list[str]:
    names = used(tree)
    return [
        f"{name} uses {thing}"
        for thing, allowed in ONLY_IN.items()
        if not name.startswith(allowed or ("nobody",))
        and any(found == thing or found.startswith(thing + ".") for found in names)
    ]


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_each_part_uses_only_what_is_its_business(name):
    assert not offences(name, TREES[name])


@pytest.mark.parametrize(
    "line",
    [
        "import numba",
        "from numba import njit",
        "import numpy.random",
        "from numpy.random import default_rng",
        "rng = np.random.default_rng(1)",
        "np.random.seed(1)",
        "from time import monotonic",
        "print(1)",
        "key = hash(item)",
        "with open(path): pass",
        "import os.path",
        "def late():\n    import pandas as pd",
    ],
)
def test_a_planted_offence_is_found(line):
    assert offences("sketches/planted.py", ast.parse(line))


def test_the_oracle_imports_numpy_alone():
    found = {name.partition(".")[0] for name in used(TREES["sim/exact.py"])}
    assert found & {"streamgauge", "numba", "scipy", "pyarrow", "msgspec"} == set()


@pytest.mark.parametrize("name", sorted(name for name in SOURCES if name.startswith("spark/")))
def test_spark_code_works_over_connect(name):
    read = {node.attr for node in ast.walk(TREES[name]) if isinstance(node, ast.Attribute)}
    assert not read & NOT_OVER_CONNECT


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_no_error_is_swallowed_and_no_name_is_hidden(name):
    for node in ast.walk(TREES[name]):
        match node:
            case ast.ExceptHandler(type=None | ast.Name(id="Exception" | "BaseException")):
                pytest.fail(f"{name}:{node.lineno} catches everything")
            case ast.ImportFrom(names=[ast.alias(name="*")]):
                pytest.fail(f"{name}:{node.lineno} imports everything")


def test_random_numbers_come_from_seeded_generators():
    for name, tree in TREES.items():
        assert "np.random.seed" not in ast.unparse(tree), name


def test_files_are_named_after_what_they_do():
    empty = {"utils", "util", "helpers", "helper", "base", "common", "core", "misc", "manager"}
    assert not {name for name, path in SOURCES.items() if path.stem in empty}


def test_work_left_over_names_its_issue():
    for folder in ("src", "tests", "benches"):
        for path in (ROOT / folder).rglob("*.py"):
            for line in path.read_text().splitlines():
                assert not re.search(r"\bTO" r"DO\b(?!.*#\d)", line), f"{path}: {line}"


def test_nothing_is_mocked():
    for path in (ROOT / "tests").rglob("*.py"):
        names = used(ast.parse(path.read_text()))
        assert not {name for name in names if "mock" in name.split(".")}, path


def loaded_by(statements: str) -> set[str]:
    """Top-level modules in a fresh Python after `statements`."""
    report = "\nimport sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", statements + report], stdout=subprocess.PIPE, text=True, check=True
    )
    return set(done.stdout.split())


SPARK = {"pyspark", "py4j", "pandas"}


def test_importing_the_package_is_light():
    heavy = {"numba", "llvmlite", "pyarrow", "fastapi", "starlette", "matplotlib", "rich", "click"}
    assert not loaded_by("import streamgauge") & (SPARK | heavy)


def test_only_spark_code_loads_spark_and_pandas():
    names = sorted(name for name in SOURCES if not name.startswith("spark/"))
    modules = (Path("streamgauge", name).with_suffix("").as_posix() for name in names)
    imports = (f"import {module.replace('/', '.').removesuffix('.__init__')}" for module in modules)
    assert not loaded_by("\n".join(imports)) & SPARK
