"""Continuous answers about the recent past of many streams, without moving the streams.

A name is loaded at its first use: the command line and Spark's workers start without numpy.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamgauge.estimate import Estimate, ItemEstimate
    from streamgauge.queries import Frequency, SelfJoin, Total
    from streamgauge.sketches.ecm import EcmSketch
    from streamgauge.sketches.wave import Wave
    from streamgauge.wire import WireError

__all__ = [
    "EcmSketch",
    "Estimate",
    "Frequency",
    "ItemEstimate",
    "SelfJoin",
    "Total",
    "Wave",
    "WireError",
]

_HOMES = {
    "EcmSketch": "sketches.ecm",
    "Estimate": "estimate",
    "Frequency": "queries",
    "ItemEstimate": "estimate",
    "SelfJoin": "queries",
    "Total": "queries",
    "Wave": "sketches.wave",
    "WireError": "wire",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
