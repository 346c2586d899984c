"""What is refused leaves nothing behind: the same bytes, the same answers, the same clock."""

import numpy as np
import pytest

from streamgauge import DyadicEcmSketch, EcmSketch, ExponentialHistogram, RandomizedWave, Wave
from streamgauge import arrivals as last_arrivals

GIVEN = {"window": 1000, "epsilon": 0.3, "delta": 0.3, "seed": 1}
MAKERS = {
    "wave": lambda: EcmSketch(**GIVEN),
    "exphist": lambda: EcmSketch(**GIVEN, counter="exphist"),
    "randomized": lambda: EcmSketch(**GIVEN, counter="randomized"),
    "arrivals": lambda: EcmSketch(**GIVEN | {"window": last_arrivals(1000)}),
    "dyadic": lambda: DyadicEcmSketch(bits=32, **GIVEN),
}
REFUSED = [
    ([1, 2], [5], None),
    ([1, 2], [3000, 2999], None),
    ([1, 2], [3000, 3001], [1]),
    ([1, 2], [3000, 3001], [1, -1]),
    ([1, 2], [3000, 3001], [1, 2**53]),
    ([1, 2], [3000, 3001], [2**53 - 1, 2**53 - 1]),
    ([1, 2], [3000, 2**62], None),
    ([1, None], [3000, 3001], None),
    ([1, "a"], [3000, 3001], None),
    (["a", "b"], [3000, 3001], None),
    ([1, 2**64], [3000, 3001], None),
    (np.ma.array([1, 2], mask=[0, 1]), [3000, 3001], None),
    ([1, 2], np.ma.array([3000, 3001], mask=[0, 1]), None),
    ([1, 2], [3000, 3001], np.ma.array([1, 1], mask=[0, 1])),
]


@pytest.mark.parametrize("size", [5, 3000], ids=["few", "many"])
@pytest.mark.parametrize("name", MAKERS)
def test_a_refused_batch_leaves_nothing(name, size):
    """In a log and in counters.

    Seen to catch: a log takes an event that its counters refuse; the arrivals of a batch are
    counted before it is in.
    """
    sketch = MAKERS[name]()
    ticks = None if name == "arrivals" else np.sort(np.arange(size) % 2500)
    sketch.update(np.arange(size) % 40, ticks)
    before = (sketch.to_bytes(), sketch.now, sketch.arrivals, sketch.late_events)
    refused = [*REFUSED, ([1, 2], [3000, 3001], [1, 2**21])] if name == "randomized" else REFUSED
    for items, times, weights in refused:
        given = None if name == "arrivals" and weights is not None else times
        with pytest.raises((ValueError, OverflowError)):
            sketch.update(items, given, weights)
        after = (sketch.to_bytes(), sketch.now, sketch.arrivals, sketch.late_events)
        assert after == before, (items, times, weights)


def test_what_cannot_grow_is_refused_when_it_is_made():
    """Not in the middle of a batch."""
    for given in (
        {"epsilon": 1e-4, "delta": 0.01},
        {"epsilon": 1e-4, "delta": 0.01, "counter": "exphist"},
        {"epsilon": 0.01, "delta": 0.01, "counter": "randomized"},
    ):
        with pytest.raises(OverflowError, match="GiB"):
            EcmSketch(window=100, seed=1, **given)


@pytest.mark.parametrize("kind", [Wave, ExponentialHistogram])
def test_more_arrivals_than_can_be_counted_are_not_merged(kind):
    """Seen to catch: merged arrivals are not held to what can be counted."""
    parts = [kind(window=100, epsilon=0.1) for _ in range(2)]
    for part in parts:
        part.update([1], [2**53 - 1])
    for together in (kind.merge, lambda parts: kind.concat(*parts)):
        with pytest.raises(OverflowError, match=r"arrivals must stay below 2\*\*53"):
            together(parts)


def test_only_sketches_of_one_kind_go_together():
    wave, histogram = Wave(window=10, epsilon=0.1), ExponentialHistogram(window=10, epsilon=0.1)
    ecm = EcmSketch(**GIVEN)
    for merge, parts in ((Wave.merge, wave), (EcmSketch.merge, ecm), (EcmSketch.merge, b"SG")):
        with pytest.raises(ValueError, match="parts must be several sketches"):
            merge(parts)
    with pytest.raises(ValueError, match="bytes expected"):
        Wave.concat(wave, histogram)
    with pytest.raises(ValueError, match="other must be an EcmSketch"):
        ecm.inner_product(wave)
    assert EcmSketch.concat(ecm.to_bytes(), ecm).to_bytes() == ecm.to_bytes()
    with pytest.raises(ValueError, match="site must be"):
        RandomizedWave(window=10, epsilon=0.1, delta=0.1, seed=1, site=1.5)
    with pytest.raises(ValueError, match="UTF-8"):
        EcmSketch(**GIVEN, counter="randomized", site="\ud800")
