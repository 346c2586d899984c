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
    from streamgauge.sketches.randomized_wave import RandomizedWave
    from streamgauge.sketches.wave import Wave
    from streamgauge.wire import WireError

__all__ = [
    "Buffer",
    "EcmSketch",
    "Estimate",
    "Frequency",
    "ItemEstimate",
    "RandomizedWave",
    "SelfJoin",
    "Total",
    "Wave",
    "WireError",
]

_HOMES = {
    "Buffer": "sketches.buffer",
    "EcmSketch": "sketches.ecm",
    "Estimate": "estimate",
    "Frequency": "queries",
    "ItemEstimate": "estimate",
    "RandomizedWave": "sketches.randomized_wave",
    "SelfJoin": "queries",
    "Total": "queries",
    "Wave": "sketches.wave",
    "WireError": "wire",
}

__getattr__, __dir__ = lazy.names(__name__, _HOMES)
