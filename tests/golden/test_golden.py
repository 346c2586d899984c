"""Bytes written once and kept: what today's code writes, and what it reads out of them.

A file that differs is a change of the format. Until release 0.1.0 it is replaced, on purpose and
with a line in the changelog, by running this test with STREAMGAUGE_WRITE_GOLDEN=1 in the
environment. The streams are made of plain arithmetic: no library's random numbers are involved.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from streamgauge import (
    CountMin,
    DyadicEcmSketch,
    EcmSketch,
    ExponentialHistogram,
    HeavyHitterSketch,
    PerfectWindowSketch,
    ProportionalWindowSketch,
    RandomizedWave,
    SimpleWindowSketch,
    SplitterWindowSketch,
    Wave,
    arrivals,
    wire,
)
from streamgauge.protocols import periodic

HERE = Path(__file__).parent

SQUARES = [i * i // 50 for i in range(1000)]
ITEMS = [i * i % 17 for i in range(1000)]
START = np.datetime64("2024-02-29T12:00")


def wave():
    """1000 arrivals, ever rarer, of which half have expired."""
    wave = Wave(window=15_000, epsilon=0.1)
    wave.update(SQUARES)
    return wave


def wave_of_weights():
    """int64 stamps, negative ticks, weights up to 2**40, a silence at the end."""
    wave = Wave(window=2**40, epsilon=0.02, late="clamp")
    wave.update([-(2**50), 5, 2**39, 2**39 + 3, 7], [2**40, 0, 1, 12345, 6])
    wave.advance(2**39 + 10**6)
    return wave


def wave_of_two():
    """Arrivals of two streams, placed in time: a drift."""
    parts = [Wave(window=15_000, epsilon=0.1) for _ in range(2)]
    parts[0].update(SQUARES)
    parts[1].update([tick + 3 for tick in SQUARES[::2]])
    return Wave.merge(parts)


def exphist():
    """1000 arrivals, ever rarer, of which half have expired."""
    histogram = ExponentialHistogram(window=15_000, epsilon=0.1)
    histogram.update(SQUARES)
    return histogram


def exphist_of_weights():
    """int64 stamps, negative ticks, weights up to 2**40, a silence at the end."""
    histogram = ExponentialHistogram(window=2**40, epsilon=0.02, late="clamp")
    histogram.update([-(2**50), 5, 2**39, 2**39 + 3, 7], [2**40, 0, 1, 12345, 6])
    histogram.advance(2**39 + 10**6)
    return histogram


def randomized_wave():
    """Squares and weights in samples of several levels, merged with another site's."""
    parts = []
    for site, weights in (("north", None), (-1, ITEMS)):
        part = RandomizedWave(window=15_000, epsilon=0.5, delta=0.2, seed=7, site=site)
        part.update(SQUARES, weights)
        parts.append(part)
    return RandomizedWave.merge(parts)


def randomized_wave_of_few():
    """int64 stamps, all in level 0."""
    wave = RandomizedWave(window=2**40, epsilon=0.1, delta=0.05, seed=2**64 - 1)
    wave.update([-(2**50), 5, 2**39], [2, 1, 3])
    return wave


def ecm_of_integers():
    sketch = EcmSketch(window=10_000, epsilon=0.2, delta=0.1, seed=7)
    sketch.update(ITEMS, SQUARES)
    return sketch


def ecm_of_text():
    """A calendar sketch that has dropped late events."""
    sketch = EcmSketch(
        window="1 hour", tick="1 s", epsilon=0.3, delta=0.3, seed=2**64 - 1, late="drop"
    )
    times = START + np.array(SQUARES, "m8[s]")
    times[500:510] -= np.timedelta64(1, "h")
    sketch.update([f"10.0.0.{item}" for item in ITEMS], times)
    return sketch


def ecm_of_few():
    """A sketch that is still the log of its events; one has expired."""
    sketch = EcmSketch(window=10_000, epsilon=0.2, delta=0.1, seed=7)
    sketch.update([*ITEMS[:20], -1], [*SQUARES[:20], 10_001], [*[1] * 19, 1000, 2])
    return sketch


def ecm_of_arrivals():
    """A window of the last 30 arrivals, two entries of which came before it in part."""
    sketch = EcmSketch(window=arrivals(30), epsilon=0.2, delta=0.1, seed=7)
    sketch.update(ITEMS[:20], weights=[9, *ITEMS[1:20]])
    return sketch


def ecm_empty():
    return EcmSketch(window=1, epsilon=0.5, delta=0.5, seed=0)


def dyadic():
    """Lists and stacks; half of the events have expired."""
    sketch = DyadicEcmSketch(bits=8, window=10_000, epsilon=0.9, delta=0.6, seed=7)
    sketch.update([i * i % 251 for i in range(1000)], SQUARES)
    return sketch


def dyadic_of_addresses():
    """A calendar sketch of 64 bits and weights, made of two sites' streams."""
    sites = [
        DyadicEcmSketch(bits=64, window="1 hour", tick="1 s", epsilon=0.3, delta=0.3, seed=1)
        for _ in range(2)
    ]
    for site, sketch in enumerate(sites):
        items = [2**64 - 1 - item * 2 ** (40 * site) for item in ITEMS[:20]]
        weights = [1 + item**2 for item in ITEMS[:20]]
        sketch.update(items, START + np.array(SQUARES[:20], "m8[s]"), weights)
    return DyadicEcmSketch.merge(sites)


MATRIX = {"epsilon": 0.9, "delta": 0.3, "seed": 7}


def countmin():
    sketch = CountMin(**MATRIX)
    sketch.update([f"10.0.0.{item}" for item in ITEMS], [1 + item**3 for item in ITEMS])
    return sketch


def perfect_window():
    """A calendar sketch; half of its queue has expired."""
    sketch = PerfectWindowSketch(window="4 h", tick="1 s", late="clamp", **MATRIX)
    sketch.update(ITEMS, START + np.array(SQUARES, "m8[s]"), ITEMS)
    return sketch


def perfect_window_of_arrivals():
    """The oldest of its entries has expired in part."""
    sketch = PerfectWindowSketch(window=arrivals(100), **MATRIX)
    sketch.update(ITEMS[:40], weights=ITEMS[:40])
    return sketch


def simple_window():
    sketch = SimpleWindowSketch(window=7_000, **MATRIX)
    sketch.update(ITEMS, SQUARES)
    return sketch


def proportional_window():
    """Negative ticks, and a silence at the end."""
    sketch = ProportionalWindowSketch(window=7_000, **MATRIX)
    sketch.update(ITEMS, [tick - 10_000 for tick in SQUARES])
    sketch.advance(12_000)
    return sketch


def splitter_window():
    """Merged, split and half expired sub-cells."""
    sketch = SplitterWindowSketch(window=15_000, mu=1.2, tau=0.1, **MATRIX)
    sketch.update(ITEMS, SQUARES, [1 + item % 3 for item in ITEMS])
    sketch.advance(20_500)
    return sketch


def splitter_window_of_arrivals():
    sketch = SplitterWindowSketch(window=arrivals(500), **MATRIX)
    sketch.update(ITEMS)
    return sketch


def heavy_of_integers():
    """Weights that take several levels, of which half have expired; marks of what was lost."""
    sketch = HeavyHitterSketch(window=10_000, epsilon=0.5)
    items = [i * i % 17 if i % 3 else i for i in range(1000)]
    sketch.update(items, SQUARES, [1 + i % 7 * (i % 5) for i in range(1000)])
    return sketch


def heavy_of_text():
    """A calendar sketch of text, some of which is not UTF-8."""
    sketch = HeavyHitterSketch(window="1 hour", tick="1 s", epsilon=0.2, late="drop")
    times = START + np.array(SQUARES, "m8[s]")
    sketch.update([b"\xff" if i % 9 == 0 else f"{i * i % 97}" for i in range(1000)], times)
    return sketch


def heavy_of_sites():
    """One site as it is, three flattened, all in one."""
    sites = [HeavyHitterSketch(window=10_000, epsilon=0.8) for _ in range(4)]
    for at, site in enumerate(sites):
        site.update([7 * at * i * i % 83 for i in range(1000)], SQUARES)
    return HeavyHitterSketch.merge([sites[0], HeavyHitterSketch.merge(sites[1:]).flatten()])


SKETCHES = [
    *(wave, wave_of_weights, wave_of_two, exphist, exphist_of_weights),
    *(randomized_wave, randomized_wave_of_few),
    *(ecm_of_integers, ecm_of_text, ecm_of_few, ecm_of_arrivals, ecm_empty),
    *(dyadic, dyadic_of_addresses),
    *(heavy_of_integers, heavy_of_text, heavy_of_sites),
    *(countmin, perfect_window, perfect_window_of_arrivals, simple_window, proportional_window),
    *(splitter_window, splitter_window_of_arrivals),
]


def report():
    """The message of the periodic protocol."""
    return periodic.Report(3, "sketch", wave().to_bytes())


def kept(name, now):
    """The file's bytes; today's are written first where that is asked for."""
    path = HERE / f"{name}.bin"
    if os.environ.get("STREAMGAUGE_WRITE_GOLDEN") == "1":
        path.write_bytes(now)
    return path.read_bytes()


@pytest.mark.parametrize("make", SKETCHES)
def test_sketches_write_the_bytes_they_wrote(make):
    """Bit by bit, and read and written again.

    Seen to catch: the bytes hold expired stamps; the gaps come in blocks of 16; the halves of a
    word change places; the seed is ignored; the header's length is written big end first; one rank
    too many is kept.
    """
    sketch = make()
    data = kept(make.__name__, sketch.to_bytes())
    assert sketch.to_bytes() == data
    assert type(sketch).from_bytes(data).to_bytes() == data


def test_messages_are_encoded_as_they_were():
    message = report()
    data = kept("report", wire.encode(message))
    assert wire.encode(message) == data
    assert wire.decode(data, periodic.Report) == message


def read(kind, name):
    return kind.from_bytes((HERE / f"{name}.bin").read_bytes())


def test_the_kept_bytes_still_say_what_they_said():
    """Answers by heart, so that a change of reader and writer together is noticed too."""
    assert read(Wave, "wave").estimate(1000) == (26.5, 25, 28, 1)
    weights = read(Wave, "wave_of_weights")
    assert (weights.estimate(), weights.late_events) == ((12224.5, 12097, 12352, 1), 1)
    merged = read(Wave, "wave_of_two")
    assert (merged.estimate(1000)[1:3], merged.levels) == ((35, 43), 1)
    assert read(ExponentialHistogram, "exphist").estimate(1000) == (26.5, 25, 28, 1)
    weights = read(ExponentialHistogram, "exphist_of_weights")
    assert (weights.estimate(), weights.late_events) == ((12224.5, 12097, 12352, 1), 1)
    samples = read(RandomizedWave, "randomized_wave")
    assert (samples.estimate(1000), samples.sites) == ((252, 168, 504, 0.8), ("north", -1))
    assert read(RandomizedWave, "randomized_wave_of_few").estimate() == (4, 4, 4, 1)
    integers = read(EcmSketch, "ecm_of_integers")
    assert integers.estimate(4, last=5000) == (15.5, 0, 17, 0.9)
    assert integers.self_join() == (9624.25, 233, 11688, 0.9)
    text = read(EcmSketch, "ecm_of_text")
    assert text.estimate("10.0.0.4", last="10 min") == (2, 0, 2, 0.7)
    assert (text.total()[:3], text.late_events) == ((110.5, 95, 126), 10)
    assert read(EcmSketch, "ecm_of_arrivals").estimate(4)[::2] == (8, 8)
    buckets = read(DyadicEcmSketch, "dyadic")
    assert buckets.range(10, 90) == (104, 79, 116, 0.4)
    assert buckets.quantile(0.5) == (112, (132.5, 110, 152, 0.4))
    addresses = read(DyadicEcmSketch, "dyadic_of_addresses")
    assert addresses.total("5 s") == (714, 652, 776, 1)
    assert addresses.range(2**63, 2**64 - 5, "5 s") == (708, 644, 770, 1)
    assert read(CountMin, "countmin").estimate("10.0.0.4") == (7605, 0, 7605, 0.7)
    assert read(PerfectWindowSketch, "perfect_window").estimate(4) == (715, 0, 715, 0.7)
    found = read(PerfectWindowSketch, "perfect_window_of_arrivals").values()
    assert found.tolist() == [[2, 26, 17, 55], [0, 60, 9, 31]]
    found = read(SimpleWindowSketch, "simple_window").values()
    assert found.tolist() == [[18, 36, 49, 60], [9, 76, 38, 40]]
    proportional = read(ProportionalWindowSketch, "proportional_window")
    assert (proportional.estimate(4).value, proportional.now) == (31, 12_000)
    splitter = read(SplitterWindowSketch, "splitter_window")
    assert (splitter.estimate(4).value, splitter.subcells, splitter.splits) == (170, 26, 10)
    splitter = read(SplitterWindowSketch, "splitter_window_of_arrivals")
    assert (splitter.estimate(4).value, splitter.subcells, splitter.splits) == (116, 16, 0)
    assert repr(read(EcmSketch, "ecm_empty")) == (
        "EcmSketch(window=1, epsilon=0.5, delta=0.5, seed=0, counter='wave', late='raise'; "
        "1 x 9 counters, now=None)"
    )
    heavy = read(HeavyHitterSketch, "heavy_of_integers")
    assert (heavy.estimate(4), heavy.total()[:2]) == ((96, 0, 192, 1), (2007.5, 1880))
    text = read(HeavyHitterSketch, "heavy_of_text")
    assert text.top(1) == [(b"\xff", (11, 11, 11, 1), True)]
    sites = read(HeavyHitterSketch, "heavy_of_sites")
    assert (sites.parts, sites.estimate(0)) == (2, (664, 281, 1047, 1))
