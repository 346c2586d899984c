"""Sketches and protocols on Spark.

    from streamgauge import spark as sgs

A name is loaded at its first use: what needs no Spark, such as `use_java`, must not load it.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamgauge.spark.batch import sketch, sliding
    from streamgauge.spark.functions import estimate, register, self_join, total
    from streamgauge.spark.java import use_java

__all__ = ["estimate", "register", "self_join", "sketch", "sliding", "total", "use_java"]

_HOMES = {
    "estimate": "functions",
    "register": "functions",
    "self_join": "functions",
    "sketch": "batch",
    "sliding": "batch",
    "total": "functions",
    "use_java": "java",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
