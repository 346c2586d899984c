"""The dyadic sketch by itself. Its promises are tested in guarantees/test_dyadic.py."""

import doctest
import ipaddress

import numpy as np
import pyarrow as pa
import pytest

from streamgauge import DyadicEcmSketch
from streamgauge.sketches import dyadic as module
from streamgauge.sketches.merging import NotMergeable


def new(**changed):
    given = {"bits": 8, "window": 100, "epsilon": 0.1, "delta": 0.1, "seed": 7}
    return DyadicEcmSketch(**(given | changed))


def test_the_examples():
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"bits": 0}, r"bits must be an integer in \[1, 64\], got 0"),
        ({"bits": 65}, r"bits must be an integer in \[1, 64\], got 65"),
        ({"bits": 8.0}, r"bits must be an integer in \[1, 64\], got 8\.0"),
        ({"epsilon": 1}, r"epsilon must lie in \(0, 1\), got 1"),
        ({"epsilon": 1e-5}, r"epsilon must be at least 0\.0001, got 1e-05"),
        ({"delta": 0}, r"delta must lie in \(0, 1\), got 0"),
        ({"seed": 2**64}, rf"seed must lie in \[0, 2\*\*64\), got {2**64}"),
        ({"seed": "a"}, "seed must be an integer, got 'a'"),
        ({"window": 0}, "window must be at least 1 tick and at most .*, got 0"),
        ({"late": "never"}, "late must be one of raise, drop, clamp, got 'never'"),
    ],
)
def test_parameters_that_are_refused(changed, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        new(**changed)


def test_counters_that_would_take_gigabytes_are_refused():
    with pytest.raises(OverflowError, match="counters are more than"):
        new(bits=64, epsilon=1e-4)


@pytest.mark.parametrize(
    ("bits", "items", "message"),
    [
        (8, [1, 256], r"items must lie in \[0, 2\*\*8\), got 256"),
        (8, [1, -1], r"items must lie in \[0, 2\*\*8\), got -1"),
        (64, [2**64 - 1, -1], r"items must lie in \[0, 2\*\*64\), got -1"),
        (64, np.array([-5, 1]), r"items must lie in \[0, 2\*\*64\), got -5"),
        (64, pa.array([-5, 1]), r"items must lie in \[0, 2\*\*64\), got -5"),
        (8, ["a", "b"], "items must be integers, got text"),
        (8, [1.5, 1.5], r"items must be integers or text, got float 1\.5"),
    ],
)
def test_items_that_are_refused(bits, items, message):
    sketch = new(bits=bits)
    empty = sketch.to_bytes()
    for ask in (lambda: sketch.update(items, [1, 2]), lambda: sketch.estimate(items)):
        with pytest.raises(ValueError, match=f"^{message}$"):
            ask()
    assert sketch.to_bytes() == empty


def test_questions_that_are_refused():
    sketch = new()
    for question, message in [
        (lambda: sketch.range(5, 4), "lo must not exceed hi, got 5 and 4"),
        (lambda: sketch.range(0, 256), r"hi must lie in \[0, 2\*\*8\), got 256"),
        (lambda: sketch.range(-1, 2), r"lo must lie in \[0, 2\*\*8\), got -1"),
        (lambda: sketch.range("a", 2), "lo must be an integer, got 'a'"),
        (lambda: sketch.quantile(1.5), r"q must be a number in \[0, 1\], got 1\.5"),
        (lambda: sketch.quantile(0.5), "quantile needs events, got a range without any"),
        (sketch.max_frequency, "max_frequency needs events, got a range without any"),
        (lambda: sketch.heavy_hitters(0), r"phi must be a number in \(0, 1\], got 0"),
        (
            lambda: sketch.hierarchical_heavy_hitters(0.1, step=9),
            r"step must be an integer in \[1, bits = 8\], got 9",
        ),
        (lambda: sketch.total(101), "last must not exceed the window .*"),
        (lambda: sketch.update([1, 2], [1]), "times must be as many as items, got 1 for 2"),
    ]:
        with pytest.raises(ValueError, match=f"^{message}$"):
            question()
    assert sketch.heavy_hitters(0.5) == sketch.hierarchical_heavy_hitters(0.5) == []


def test_a_share_that_too_many_prefixes_reach_is_refused():
    sketch = new(bits=32)
    sketch.update(np.arange(100_000) << 8, np.ones(100_000, int))
    with pytest.raises(ValueError, match=r"^phi must leave at most 65536 prefixes of a level, got"):
        sketch.heavy_hitters(1e-6)
    assert len(sketch.heavy_hitters(0.01)) == 0


@pytest.mark.parametrize(
    "sketch",
    [new(), new(window="1 hour", late="clamp"), new(bits=64, window="90 s", tick="500 ms")],
    ids=repr,
)
def test_repr_can_be_written_again(sketch):
    written, _, _ = repr(sketch).partition(";")
    again = eval(written + ")", {"DyadicEcmSketch": DyadicEcmSketch})
    assert again.to_bytes() == sketch.to_bytes()
    assert again.specification == sketch.specification


@pytest.mark.parametrize("bits", [1, 32, 33, 64])
def test_the_ends_of_the_domain(bits):
    top = 2**bits - 1
    sketch = new(bits=bits)
    sketch.update([0, top, top], [1, 1, 2])
    assert sketch.range(0, top).value == 3
    assert sketch.range(1, top).value == sketch.estimate(top).value == 2
    assert sketch.rank(0).value == sketch.range(0, top - 1).value == 1
    assert (sketch.quantile(0).item, sketch.quantile(1).item) == (0, top)
    assert [item for item, _ in sketch.heavy_hitters(0.3)] == [top, 0]
    assert sketch.max_frequency() == (top, (2, 2, 2, 1))
    assert [found.value for found in sketch.estimate(np.array([0, top], np.uint64))] == [1, 2]


def test_a_calendar_and_late_events():
    sketch = new(window="1 min", tick="1 s", late="drop")
    sketch.update([1, 2, 3], np.array([10, 9, 30], "M8[s]"), [1, 5, 2])
    assert (sketch.late_events, sketch.arrivals, sketch.now) == (1, 3, 30)
    assert sketch.total("20 s").value == 2
    assert sketch.total(now=np.datetime64(70, "s")).value == 2
    sketch.advance(np.datetime64(200, "s"))
    assert sketch.total() == (0, 0, 0, 1)
    assert sketch.nbytes == 0


def test_prefixes_are_networks():
    """A busy host, a busy /24 without one, and a /8 that is busy without both."""
    hosts = ["10.1.1.1"] * 40 + [f"10.2.2.{i}" for i in range(30)]
    hosts += [f"10.{3 + i}.0.1" for i in range(20)] + [f"{20 + i}.0.0.1" for i in range(10)]
    numbers = [int(ipaddress.ip_address(host)) for host in hosts]
    sketch = new(bits=32)
    sketch.update(numbers, range(100))
    found = sketch.hierarchical_heavy_hitters(0.15)
    assert [
        (str(ipaddress.ip_network(each[:2])), each.estimate.value, each.discounted.value)
        for each in found
    ] == [("10.1.1.1/32", 40, 40), ("10.2.2.0/24", 30, 30), ("10.0.0.0/8", 90, 20)]
    assert sketch.hierarchical_heavy_hitters(0.1)[-1][:2] == (0, 0)
    sixes = [ipaddress.ip_address(f"2001:db8:0:{i % 5}::{i}") for i in range(100)]
    upper = new(bits=64, window=1000)
    upper.update([int(address) >> 64 for address in sixes], range(100))
    networks = [
        str(ipaddress.ip_network((first << 64, length)))
        for first, length, _, _ in upper.hierarchical_heavy_hitters(0.3)
    ]
    assert networks == ["2001:db8::/56"]


def test_merging_keeps_the_parts_and_wants_them_alike():
    one, other, empty = new(), new(), new()
    one.update([1, 2], [1, 2])
    other.update([2, 3], [1, 50])
    before = one.to_bytes(), other.to_bytes()
    merged = DyadicEcmSketch.merge([one, empty, other.to_bytes()])
    assert (merged.now, merged.arrivals) == (50, 4)
    assert merged.estimate(2).value == 2
    assert merged.range(0, 255, last=49).value == 2
    merged.update(9, 60)
    assert merged.total().value == 5
    assert (one.to_bytes(), other.to_bytes()) == before
    assert DyadicEcmSketch.merge([one, empty]).to_bytes() == one.to_bytes()
    assert DyadicEcmSketch.merge([empty]).to_bytes() == empty.to_bytes()
    with pytest.raises(NotMergeable, match=r"got seed 7 and 8$"):
        DyadicEcmSketch.merge([one, new(seed=8)])
    with pytest.raises(ValueError, match=r"^sketches must be at least one, got none$"):
        DyadicEcmSketch.merge([])
