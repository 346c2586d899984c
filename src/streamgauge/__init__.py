"""Continuous answers about the recent past of many streams, without moving the streams.

A name is loaded at its first use: the command line and Spark's workers start without numpy.
"""

from typing import TYPE_CHECKING

from streamgauge import lazy

if TYPE_CHECKING:
    from streamgauge.estimate import Estimate, ItemEstimate
    from streamgauge.queries import Frequency, SelfJoin, Total
    from streamgauge.sketches.buffer import Buffer
    from streamgauge.sketches.ecm import EcmSketch
    from streamgauge.sketches.exphist import ExponentialHistogram
    from streamgauge.sketches.wave import Wave
    from streamgauge.wire import WireError

__all__ = [
    "Buffer",
    "EcmSketch",
    "Estimate",
    "ExponentialHistogram",
    "Frequency",
    "ItemEstimate",
    "SelfJoin",
    "Total",
    "Wave",
    "WireError",
]

_HOMES = {
    "Buffer": "sketches.buffer",
    "EcmSketch": "sketches.ecm",
    "Estimate": "estimate",
    "ExponentialHistogram": "sketches.exphist",
    "Frequency": "queries",
    "ItemEstimate": "estimate",
    "SelfJoin": "queries",
    "Total": "queries",
    "Wave": "sketches.wave",
    "WireError": "wire",
}

__getattr__, __dir__ = lazy.names(__name__, _HOMES)
