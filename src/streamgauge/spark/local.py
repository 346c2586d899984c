"""A Spark of this machine alone, that starts soon and says nothing on the terminal."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from streamgauge.spark.java import use_java


class SparkDidNotStart(RuntimeError):
    """Java was found, but the process with Spark in it ended."""


# They would lead to another Spark, or to another process.
_STRANGERS = ("SPARK_CONF_DIR", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS")


def local_session(folder: Path, log: Path) -> SparkSession:
    """A session on two cores that writes below `folder`; what Spark and Java say goes to `log`.

    JavaNotFound if there is no Java, SparkDidNotStart if it does not do.
    """
    use_java()
    for name in _STRANGERS:
        os.environ.pop(name, None)
    os.environ["SPARK_HOME"] = str(_home_without_zip(folder / "home"))
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):  # a task is one thread
        os.environ.setdefault(name, "1")
    options = {
        "spark.master": "local[2]",
        "spark.app.name": "streamgauge",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        # For a run of a minute or two: the quick compiler alone, and one thread that collects.
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto",
        "spark.local.dir": str(folder),
        "spark.log.level": "ERROR",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",  # sites need little; each more is a Python process
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stopTimeout": "10s",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    conf = SparkConf().setAll(list(options.items()))
    launch: Any = launch_gateway
    with log.open("wb") as said:
        try:
            gateway = launch(conf, {"stdout": said, "stderr": subprocess.STDOUT})
        except PySparkException as error:
            raise SparkDidNotStart(f"Spark did not start; what it said is in {log}") from error
    SparkContext(gateway=gateway, conf=conf)
    return SparkSession.builder.getOrCreate()


def _home_without_zip(home: Path) -> Path:
    """A SPARK_HOME with all of Spark but pyspark.zip, so that workers import the pyspark we did.

    Spark puts that file before all others on the workers' path. It holds no bytecode: each of the
    ten Python processes of a first batch would compile pyspark anew, for 0.7 s of a core.
    """
    home.mkdir()
    installed = Path(pyspark.__file__).parent
    for part in ("bin", "jars"):
        (home / part).symlink_to(installed / part)
    return home
