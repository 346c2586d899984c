"""Continuous answers about the recent past of many streams, without moving the streams.

A name is loaded at its first use: the command line and Spark's workers start without numpy.
"""

from typing import TYPE_CHECKING

from streamgauge import lazy

if TYPE_CHECKING:
    from streamgauge.estimate import Estimate, ItemEstimate
    from streamgauge.queries import Frequency, SelfJoin, Total
    from streamgauge.sketches.buffer import Buffer
    from streamgauge.sketches.dyadic import DyadicEcmSketch, ItemRank, PrefixEstimate
    from streamgauge.sketches.ecm import EcmSketch
    from streamgauge.sketches.wave import Wave
    from streamgauge.wire import WireError

__all__ = [
    "Buffer",
    "DyadicEcmSketch",
    "EcmSketch",
    "Estimate",
    "Frequency",
    "ItemEstimate",
    "ItemRank",
    "PrefixEstimate",
    "SelfJoin",
    "Total",
    "Wave",
    "WireError",
]

_HOMES = {
    "Buffer": "sketches.buffer",
    "DyadicEcmSketch": "sketches.dyadic",
    "EcmSketch": "sketches.ecm",
    "Estimate": "estimate",
    "Frequency": "queries",
    "ItemEstimate": "estimate",
    "ItemRank": "sketches.dyadic",
    "PrefixEstimate": "sketches.dyadic",
    "SelfJoin": "queries",
    "Total": "queries",
    "Wave": "sketches.wave",
    "WireError": "wire",
}

__getattr__, __dir__ = lazy.names(__name__, _HOMES)
