"""EcmSketch over each counter: what is certain stays certain, what is probable fails as rarely."""

import numpy as np
import pytest

from streamgauge import EcmSketch, Gathered, NotMergeable, WireError
from streamgauge.sim.exact import ExactWindow
from streamgauge.traces.families import FAMILIES, zipf
from tests.statistics import assert_failures_fit

WINDOW = 100


def new(counter, seed=1, **changed):
    given = {"window": WINDOW, "epsilon": 0.3, "delta": 0.3, "seed": seed, "counter": counter}
    return EcmSketch(**given | changed)


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "F13 churn"])
def test_upper_ends_over_exponential_histograms_are_certain(family):
    """All items after every arrival and at silent ticks; the total is a wave's.

    Seen to catch: of the lowest buckets as few are kept as of the others.
    """
    items, ticks, _ = FAMILIES[family](WINDOW, 250, 1)
    sketch, exact = new("exphist"), ExactWindow(WINDOW)
    every = np.unique(items)
    rng = np.random.default_rng(1)
    for event, tick in enumerate(ticks.tolist()):
        sketch.update(items[event : event + 1], [tick])
        exact.update(items[event : event + 1].tolist(), [tick])
        following = int(ticks[event + 1]) if event + 1 < ticks.size else tick + WINDOW + 2
        for now in {tick, following - 1} if following > tick else {tick}:
            for last in (1, int(rng.integers(1, WINDOW + 1)), WINDOW):
                truth = exact.frequencies(last, now)
                for item, found in zip(every, sketch.estimate(every, last, now), strict=True):
                    true = truth.get(int(item), 0)
                    assert found.high >= true
                    assert found.value >= (1 - sketch.epsilon) * true
                assert sketch.self_join(last, now).high >= exact.self_join(last, now)
                total = sketch.total(last, now)
                assert total.low <= exact.total(last, now) <= total.high


@pytest.mark.parametrize("merged", [False, True], ids=["one", "merged"])
@pytest.mark.parametrize("counter", ["exphist", "randomized"])
@pytest.mark.parametrize("exponent", [0.8, 1.2, 2.0])
def test_an_item_is_found_within_its_interval(counter, exponent, merged):
    """One item and one range for each seed; both ends, and the distance to the value.

    Seen to catch: a counter's share of delta allows for one copy; of merged samples only the
    first part's are kept.
    """
    delta, trials, failures = 0.3, 200, 0
    for trial in range(trials):
        items, ticks, _ = zipf(WINDOW, 3000, trial, exponent)
        exact = ExactWindow(WINDOW)
        exact.update(items.tolist(), ticks)
        sites = range(3 if merged else 1)
        given = {"seed": trial, "epsilon": 0.3, "delta": delta}
        names = {site: {"site": site} if counter == "randomized" else {} for site in sites}
        parts = [new(counter, **given, **names[site]) for site in sites]
        for site in sites:
            parts[site].update(items[site :: len(sites)], ticks[site :: len(sites)])
        sketch = EcmSketch.merge(parts)
        item, last = trial % 7, WINDOW // (1 + trial % 3)
        found, truth = sketch.estimate(item, last), exact.frequency(item, last)
        off = abs(found.value - truth) > (sketch.epsilon + 2**-30) * exact.total(last)
        failures += off or not found.low <= truth <= found.high
    assert_failures_fit(delta, failures, trials)


def test_counters_share_delta_with_the_hashing():
    """Theorem 3, with the union over the rows (and cells, for products) that it lacks."""
    points = new("randomized", delta=0.1).sizes
    assert points.depth == 3  # ceil(ln 20)
    assert points.delta_window == 0.1 / (2 * 3)
    products = EcmSketch.for_inner_product(
        window=WINDOW, epsilon=0.5, delta=0.1, seed=1, counter="randomized"
    ).sizes
    assert products.delta_window == 0.1 / (2 * products.depth * products.width)
    one, other = new("randomized", delta=0.1, site=1), new("randomized", delta=0.1, site=2)
    for sketch in (one, other):
        sketch.update([1, 2], [1, 2])
    assert one.estimate(1).confidence == pytest.approx(0.9)
    # Whoever asks two sketches reads twice as many counters.
    assert Gathered([one, other]).estimate(1).confidence == pytest.approx(0.85)
    # Sized for items, too few cells are left for a product: then nothing is promised.
    few = new("randomized", delta=0.3)
    few.update([1, 2], [1, 2])
    assert few.self_join().confidence == 0
    assert np.isnan(few.self_join().high)
    assert one.total() == (2, 2, 2, 1)


def test_coins_have_owners():
    with pytest.raises(ValueError, match="site names the coins of randomized counters"):
        new("wave", site=1)
    with pytest.raises(ValueError, match="counter must be one of"):
        new("hyperloglog")
    with pytest.raises(ValueError, match=r"epsilon .* at least 0.001"):
        new("randomized", epsilon=0.0001)
    parts = [new("randomized", site=name) for name in ("a", "b", "a")]
    assert EcmSketch.merge(parts[:2]).sites == ("a", "b")
    with pytest.raises(NotMergeable, match="sites must differ"):
        EcmSketch.merge(parts)
    with pytest.raises(NotMergeable, match="counter wave and exphist"):
        EcmSketch.merge([new("wave"), new("exphist")])
    data = new("wave").to_bytes()
    with pytest.raises(WireError, match="sites go with randomized counters"):
        EcmSketch.from_bytes(data.replace(b"\xa4wave", b"\xaarandomized", 1)[:4] + _grown(data))


def _grown(data):
    """The rest of the bytes with the name of another counter, the header six bytes longer."""
    length = int.from_bytes(data[4:8], "little") + 6
    return length.to_bytes(4, "little") + data[8:].replace(b"\xa4wave", b"\xaarandomized", 1)


def test_merging_randomized_sketches_costs_no_epsilon():
    rng = np.random.default_rng(1)
    parts = []
    for site in range(4):
        parts.append(new("randomized", site=site, epsilon=0.5))
        parts[-1].update(rng.integers(0, 50, 4000), np.sort(rng.integers(0, 150, 4000)))
    merged = EcmSketch.merge([EcmSketch.merge(parts[:2]), EcmSketch.merge(parts[2:])])
    assert (merged.epsilon, merged.levels) == (0.5, 0)
    merged.update([1, 2], [150, 151])
    assert merged.arrivals == 16_002
    joined = EcmSketch.concat(merged, new("randomized", site="later", epsilon=0.5))
    assert joined.sites == (0, 1, 2, 3, "later")
