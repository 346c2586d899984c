"""Continuous answers about the recent past of many streams, without moving the streams.

A name is loaded at its first use: the command line and Spark's workers start without numpy.
"""

from typing import TYPE_CHECKING

from streamgauge import lazy

if TYPE_CHECKING:
    from streamgauge.estimate import Estimate, ItemEstimate, TopItem
    from streamgauge.queries import Frequency, HeavyHitters, SelfJoin, TopK, Total
    from streamgauge.sketches.buffer import Buffer
    from streamgauge.sketches.countmin import CountMin, PerfectWindowSketch
    from streamgauge.sketches.dyadic import DyadicEcmSketch, ItemRank, PrefixEstimate
    from streamgauge.sketches.ecm import EcmSketch
    from streamgauge.sketches.exphist import ExponentialHistogram
    from streamgauge.sketches.gathered import Gathered
    from streamgauge.sketches.heavy import HeavyHitterSketch
    from streamgauge.sketches.merging import (
        NotMergeable,
        epsilon_for_levels,
        published_epsilon_for_levels,
    )
    from streamgauge.sketches.proportional import ProportionalWindowSketch, SimpleWindowSketch
    from streamgauge.sketches.randomized_wave import RandomizedWave
    from streamgauge.sketches.reorder import Reorder
    from streamgauge.sketches.splitter import SplitterWindowSketch
    from streamgauge.sketches.wave import Wave
    from streamgauge.ticks import arrivals
    from streamgauge.wire import WireError

__all__ = [
    "Buffer",
    "CountMin",
    "DyadicEcmSketch",
    "EcmSketch",
    "Estimate",
    "ExponentialHistogram",
    "Frequency",
    "Gathered",
    "HeavyHitterSketch",
    "HeavyHitters",
    "ItemEstimate",
    "ItemRank",
    "NotMergeable",
    "PerfectWindowSketch",
    "PrefixEstimate",
    "ProportionalWindowSketch",
    "RandomizedWave",
    "Reorder",
    "SelfJoin",
    "SimpleWindowSketch",
    "SplitterWindowSketch",
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
    "CountMin": "sketches.countmin",
    "DyadicEcmSketch": "sketches.dyadic",
    "EcmSketch": "sketches.ecm",
    "Estimate": "estimate",
    "ExponentialHistogram": "sketches.exphist",
    "Frequency": "queries",
    "Gathered": "sketches.gathered",
    "HeavyHitterSketch": "sketches.heavy",
    "HeavyHitters": "queries",
    "ItemEstimate": "estimate",
    "NotMergeable": "sketches.merging",
    "Reorder": "sketches.reorder",
    "RandomizedWave": "sketches.randomized_wave",
    "ItemRank": "sketches.dyadic",
    "PrefixEstimate": "sketches.dyadic",
    "PerfectWindowSketch": "sketches.countmin",
    "ProportionalWindowSketch": "sketches.proportional",
    "SelfJoin": "queries",
    "SimpleWindowSketch": "sketches.proportional",
    "SplitterWindowSketch": "sketches.splitter",
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
