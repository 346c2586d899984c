"""Continuous answers about the recent past of many streams, without moving the streams.

A name is loaded at its first use: the command line and Spark's workers start without numpy.
"""

from typing import TYPE_CHECKING

from streamgauge import lazy

if TYPE_CHECKING:
    from streamgauge.estimate import Estimate, ItemEstimate, TopItem
    from streamgauge.queries import Frequency, HeavyHitters, SelfJoin, TopK, Total
    from streamgauge.sketches.buffer import Buffer
    from streamgauge.sketches.ecm import EcmSketch
    from streamgauge.sketches.gathered import Gathered
    from streamgauge.sketches.heavy import HeavyHitterSketch
    from streamgauge.sketches.merging import (
        NotMergeable,
        epsilon_for_levels,
        published_epsilon_for_levels,
    )
    from streamgauge.sketches.wave import Wave
    from streamgauge.ticks import arrivals
    from streamgauge.wire import WireError

__all__ = [
    "Buffer",
    "EcmSketch",
    "Estimate",
    "Frequency",
    "Gathered",
    "HeavyHitterSketch",
    "HeavyHitters",
    "ItemEstimate",
    "NotMergeable",
    "SelfJoin",
    "TopItem",
    "TopK",
    "Total",
    "Wave",
    "WireError",
    "arrivals",
    "epsilon_for_levels",
    "published_epsilon_for_levels",
]

_HOMES = {
    "Buffer": "sketches.buffer",
    "EcmSketch": "sketches.ecm",
    "Estimate": "estimate",
    "Frequency": "queries",
    "Gathered": "sketches.gathered",
    "HeavyHitterSketch": "sketches.heavy",
    "HeavyHitters": "queries",
    "ItemEstimate": "estimate",
    "NotMergeable": "sketches.merging",
    "SelfJoin": "queries",
    "TopItem": "estimate",
    "TopK": "queries",
    "Total": "queries",
    "Wave": "sketches.wave",
    "WireError": "wire",
    "arrivals": "ticks",
    "epsilon_for_levels": "sketches.merging",
    "published_epsilon_for_levels": "sketches.merging",
}

__getattr__, __dir__ = lazy.names(__name__, _HOMES)
