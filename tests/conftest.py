"""What every test shares: numba's cache, hypothesis's profiles, one Spark session, the clock."""

import hashlib
import os
import sys
from collections import Counter
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).parents[1]


def _kernels_digest() -> str:
    """Names numba's cache, as the Makefile does: numba does not see edits in called files."""
    kernels = sorted((ROOT / "src/streamgauge/kernels").glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in kernels)).hexdigest()[:16]


os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".cache/numba" / _kernels_digest()))
os.environ.setdefault("NUMBA_NUM_THREADS", "1")  # Spark's workers inherit these two
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["PYSPARK_PYTHON"] = sys.executable

# dev looks for new failures, ci repeats the same examples every time, nightly looks for long.
# planted takes its examples from a seed (ci from the test's text, docstring and all) and does not
# look for the smallest example of a bug that is known.
# No deadlines: the first example of a test may have to compile a kernel.
hypothesis.settings.register_profile("dev", deadline=None, print_blob=True)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.register_profile(
    "planted",
    deadline=None,
    database=None,
    phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
    report_multiple_bugs=False,
)
hypothesis.settings.register_profile("nightly", deadline=None, print_blob=True, max_examples=1000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """One session for the whole run: it takes seconds to start, a first streaming batch more."""
    from pyspark.sql import SparkSession

    from streamgauge.spark.java import use_java

    use_java()
    folder = tmp_path_factory.mktemp("spark")
    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        # Starts soonest; a driver that has to be fast wants neither.
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.default.parallelism": "2",
        "spark.local.dir": str(folder),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    session = SparkSession.builder.master("local[2]").appName("tests").config(map=options)
    session = session.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def pytest_collection_modifyitems(items):
    """Mark the tests that use Spark, and let them come last: the quick failures first."""
    for item in items:
        if "spark" in item.fixturenames:
            item.add_marker("spark")
    items.sort(key=lambda item: item.get_closest_marker("spark") is not None)


SECONDS = pytest.StashKey[Counter[str]]()


def pytest_configure(config):
    config.stash[SECONDS] = Counter()
    config.pluginmanager.register(_Clock(config.stash[SECONDS]))


class _Clock:
    def __init__(self, seconds: Counter[str]):
        self.seconds = seconds

    def pytest_runtest_logreport(self, report):
        self.seconds[_folder(report.nodeid)] += report.duration

    def pytest_terminal_summary(self, terminalreporter):
        terminalreporter.section("seconds per folder")
        for folder, seconds in self.seconds.most_common():
            terminalreporter.write_line(f"{seconds:8.1f}  {folder}")


def _folder(nodeid: str) -> str:
    path = nodeid.partition("::")[0].split("/")
    return "/".join(path[:2]) if len(path) > 2 else path[0]
