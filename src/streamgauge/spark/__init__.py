"""Sketches and protocols on Spark.

    from streamgauge import spark as sgs

A name is loaded at its first use: what needs no Spark, such as `use_java`, must not load it.
"""

from typing import TYPE_CHECKING

from streamgauge import lazy

if TYPE_CHECKING:
    from streamgauge.spark.batch import sketch, sliding
    from streamgauge.spark.functions import estimate, register, self_join, total
    from streamgauge.spark.java import use_java
    from streamgauge.spark.source import replay
    from streamgauge.spark.streaming import monitor

__all__ = [
    "estimate",
    "monitor",
    "register",
    "replay",
    "self_join",
    "sketch",
    "sliding",
    "total",
    "use_java",
]

_HOMES = {
    "estimate": "functions",
    "monitor": "streaming",
    "register": "functions",
    "replay": "source",
    "self_join": "functions",
    "sketch": "batch",
    "sliding": "batch",
    "total": "functions",
    "use_java": "java",
}

__getattr__, __dir__ = lazy.names(__name__, _HOMES)
