"""Runs the monitored query in a process of its own, which dies where it is told to.

    python -m tests.spark.crashing TRACE FOLDER [step | desk] [BATCH]

step: in the step of one site, when those of some others are done. desk: when the coordinator's
file has just been replaced, and Spark has not committed the batch. Dying is kill -9, of this
process, of Spark and of the Python worker at once.
"""

import functools
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from streamgauge.spark import desk, streaming
from streamgauge.spark.hosting import Hosting
from streamgauge.spark.local import local_session
from tests.spark.monitored import monitored


def die(driver):
    """Kill the driver and all that came from it, oneself last."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        parents[int(entry.name)] = int(
            entry.joinpath("stat").read_text().rpartition(")")[2].split()[1]
        )
    doomed, found = [driver], [driver]
    while found:
        found = [pid for pid, parent in parents.items() if parent in found]
        doomed += found
    for pid in sorted(doomed, key=lambda pid: pid == os.getpid()):
        os.kill(pid, signal.SIGKILL)


@dataclass(frozen=True)
class DyingHosting(Hosting):
    driver: int = 0
    batch: str = ""

    def feed(self, state, cells):
        from pyspark import TaskContext

        step = super().feed(state, cells)
        if TaskContext.get().getLocalProperty("streaming.sql.batchId") == self.batch:
            die(self.driver)
        return step


def main(trace, folder, where="", batch=""):
    if where == "step":
        streaming.Hosting = functools.partial(DyingHosting, driver=os.getpid(), batch=batch)
    if where == "desk":
        keep = desk.Desk.keep

        def keep_and_die(self, path, query):
            keep(self, path, query)
            if self.batch == int(batch):
                die(os.getpid())

        desk.Desk.keep = keep_and_die
    spark = local_session(folder, folder / "spark.log")
    monitored(spark, trace, folder, folder).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
