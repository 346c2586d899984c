"""Every bug of bugs.py makes the tests fail that claim to catch it."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.planted.bugs import BUGS

ROOT = Path(__file__).parents[2]
PACKAGE = Path("src/streamgauge")
TESTS = sorted({test for bug in BUGS for test in bug.tests})
# A bug that does not even run says nothing about a test.
BROKEN = re.compile(r"\b(SyntaxError|NameError|AttributeError|ImportError|TypingError)\b")


def function(test):
    """The test without its parameters."""
    return test.partition("[")[0]


def docstring(test):
    path, _, name = function(test).partition("::")
    for node in ast.parse((ROOT / path).read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return ast.get_docstring(node) or ""
    raise LookupError(f"there is no {test}")


def claimed(test):
    """The bugs that a test's docstring names."""
    found = re.search(r"Seen to catch: (.+?)\.( |$)", " ".join(docstring(test).split()))
    return set(found[1].split("; ")) if found else set()


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_can_be_planted(bug):
    text = (ROOT / PACKAGE / bug.file).read_text()
    assert text.count(bug.old) == 1
    compile(text.replace(bug.old, bug.new), bug.file, "exec")


@pytest.mark.parametrize("test", sorted(set(map(function, TESTS))))
def test_a_docstring_names_the_bugs_that_the_table_has(test):
    assert claimed(test) == {bug.name for bug in BUGS if test in map(function, bug.tests)}


def test_names_are_names():
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    assert not [bug.name for bug in BUGS if re.search(r"[;\n]|\.( |$)", bug.name)]


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A copy of the sources, for all bugs: so that kernels without one are compiled once."""
    folder = tmp_path_factory.mktemp("copied")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def run(copied, tests, cache):
    """The exit code of these tests with the copied sources, and what was said."""
    settings = {
        "PYTHONPATH": str(copied / "src"),
        "COLUMNS": "1000",  # or the errors' names are cut off
        "PYTHONDONTWRITEBYTECODE": "1",  # it would outlive a bug of equal length
        "NUMBA_CACHE_DIR": str(cache),
        "HYPOTHESIS_PROFILE": "planted",
        "STREAMGAUGE_WRITE_GOLDEN": "0",
    }
    options = ("-q", "--tb=no", "--hypothesis-seed=1", f"-ocache_dir={cache}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=ROOT,
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=1100,  # a compiled loop without end hears no signal
    )
    return done.returncode, done.stdout


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_without_a_bug_they_pass(copied):
    code, said = run(copied, TESTS, copied / "cache")
    assert code == 0, said


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_caught(bug, copied, tmp_path):
    source = copied / PACKAGE / bug.file
    source.write_text(source.read_text().replace(bug.old, bug.new))
    # numba does not see an edit in a called file, so a kernel's bug has a cache of its own.
    cache = tmp_path if bug.file.startswith("kernels/") else copied / "cache"
    code, said = run(copied, bug.tests, cache)
    shutil.copy2(ROOT / PACKAGE / bug.file, source)
    failed = [line for line in said.splitlines() if line.startswith("FAILED ")]
    assert code == 1, said
    assert not BROKEN.search(said), said
    for test in bug.tests:
        assert any(re.match(rf"FAILED {re.escape(test)}(\[| |$)", line) for line in failed), said
