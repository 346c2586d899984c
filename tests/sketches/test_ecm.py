"""The ECM-sketch by itself. Its promises are tested in guarantees/test_ecm.py."""

import doctest
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import EcmSketch, Frequency, Wave
from streamgauge.sketches import ecm as module


def new(**changed):
    return EcmSketch(**({"window": 100, "epsilon": 0.1, "delta": 0.1, "seed": 7} | changed))


def test_the_example():
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


@pytest.mark.parametrize("epsilon", [0.5, 0.1, 0.01])
@pytest.mark.parametrize(
    ("delta", "depth"), [(0.5, 1), (0.15, 2), (0.1, 3), (0.01, 5), (1e-18, 42)]
)
def test_sizes_are_those_of_the_promise(epsilon, delta, depth):
    """e / width <= epsilon / (1 + epsilon) and e**-depth <= delta; neither with one less."""
    sketch = new(epsilon=epsilon, delta=delta)
    assert sketch.depth == depth
    share = epsilon / (1 + epsilon)
    assert math.e / sketch.width <= share < math.e / (sketch.width - 1)
    assert math.exp(-depth) <= delta


def test_parameters_can_be_read():
    sketch = new(window="1 min", tick="1 s", late="drop")
    assert (sketch.window, sketch.tick, sketch.epsilon, sketch.delta) == (60, 10**9, 0.1, 0.1)
    assert (sketch.now, sketch.late_events, sketch.arrivals) == (None, 0, 0)
    sketch.update(["a", "b"], np.array([5, 4], "M8[s]"), [3, 1])
    assert (sketch.now, sketch.late_events, sketch.arrivals) == (5, 1, 3)
    assert sketch.nbytes == 24
    sketch.update([str(number) for number in range(91)], np.full(91, 6, "M8[s]"))
    assert sketch.nbytes >= (sketch.depth * sketch.width + 1) * (8 + 4 * 8)


@pytest.mark.parametrize(
    "sketch",
    [
        new(),
        new(window="1 hour", late="clamp"),
        new(window="90 s", tick="500 ms", seed=2**64 - 1),
        new(window=2**61, epsilon=0.123456789, delta=0.3, late="drop"),
    ],
    ids=repr,
)
def test_repr_can_be_written_again(sketch):
    written, _, _ = repr(sketch).partition(";")
    again = eval(written + ")", {"EcmSketch": EcmSketch})
    assert again.to_bytes() == sketch.to_bytes()
    assert again.specification == sketch.specification


def test_one_question_and_many():
    sketch = new()
    sketch.update(["a", "b", "a"], [1, 2, 3], [5, 1, 1])
    many = sketch.estimate(["a", "b", "never"])
    assert [estimate.value for estimate in many] == [6, 1, 0]
    assert many == [sketch.estimate(item) for item in ("a", "b", "never")]
    assert many == sketch.estimate(np.array(["a", "b", "never"]))
    assert many == sketch.estimate(pa.array(["a", "b", "never"]))
    assert sketch.estimate(b"a") == sketch.estimate("a") == Frequency("a").answer(sketch)
    assert sketch.estimate([]) == []


def test_an_integer_is_the_same_item_however_it_is_written():
    sketch = new()
    sketch.update([-1, 2**64 - 1, 5], [1, 1, 1])
    assert sketch.estimate(-1).value == sketch.estimate(np.uint64(2**64 - 1)).value == 2
    assert sketch.estimate(np.int8(5)).value == 1


@pytest.mark.parametrize(("first", "second"), [("a", 1), (1, "a")])
def test_a_sketch_keeps_to_one_kind_of_items(first, second):
    sketch = new()
    sketch.update(first, 1)
    of = {int: "integers", str: "text"}
    message = f"^items must be {of[type(first)]}, as those before, got {of[type(second)]}$"
    with pytest.raises(ValueError, match=message):
        sketch.estimate(second)
    with pytest.raises(ValueError, match=message):
        EcmSketch.from_bytes(sketch.to_bytes()).update(second, 2)


def test_an_item_lies_in_one_wave_of_each_row():
    words = np.random.default_rng(1).integers(0, 2**64, 1000, np.uint64, endpoint=False)
    sketch, same, other = new(), new(window="1 h", late="drop"), new(seed=8)
    cells = sketch.cells_of(words)
    assert cells.shape == (sketch.depth, 1000)
    for row in range(sketch.depth):
        assert set(cells[row]) == set(range(row * sketch.width, (row + 1) * sketch.width))
    assert np.array_equal(cells, same.cells_of(words))
    assert np.mean(cells == other.cells_of(words)) < 2 / sketch.width


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(0, 3))
def test_the_total_by_itself(items, silence):
    sketch = new()
    sketch.update(items, range(len(items)))
    sketch.advance(len(items) + silence)
    wave = sketch.total_wave()
    assert isinstance(wave, Wave)
    assert (wave.now, wave.estimate()) == (sketch.now, sketch.total())
    before = wave.to_bytes()
    sketch.update([1], [10**6])
    assert wave.to_bytes() == before


def test_an_empty_sketch_is_the_template_of_others():
    template = new(window="1 h", late="drop")
    fresh = template.fresh()
    fresh.update("a", np.datetime64("2024-01-01"))
    assert template.to_bytes() == new(window="1 h", late="drop").to_bytes()
    assert fresh.specification == template.specification
    with pytest.raises(ValueError, match=r"^template must be an empty sketch, got EcmSketch\("):
        fresh.fresh()


@pytest.mark.parametrize(
    "changed",
    [{"seed": 8}, {"window": 99}, {"epsilon": 0.11}, {"delta": 0.11}, {"window": "100 ms"}],
)
def test_every_parameter_is_in_the_specification(changed):
    assert new(**changed).specification != new().specification
    assert new(late="drop").specification == new().specification


def test_sizes_for_products_split_the_error_between_two_counters():
    sketch = EcmSketch.for_inner_product(window=100, epsilon=0.21, delta=0.05, seed=7)
    assert sketch.sizes.epsilon_window == pytest.approx(0.1)
    plain = new(epsilon=0.21, delta=0.05)
    assert (sketch.depth, sketch.width) == (plain.depth, plain.width)
    with pytest.raises(ValueError, match=r"specified alike, got products True and False$"):
        sketch.inner_product(plain)


def test_sizes_may_be_given():
    """The promise follows from them: e**-depth, and the worse of the two errors."""
    given = {"window": 100, "depth": 2, "width": 100, "epsilon_window": 0.1, "seed": 7}
    sketch = EcmSketch.from_sizes(**given)
    assert (sketch.depth, sketch.width, sketch.epsilon) == (2, 100, 0.1)
    assert sketch.delta == math.exp(-2)
    assert EcmSketch.from_sizes(**given | {"width": 20}).epsilon == 1.1 * math.e / 20
    for wrong, message in [
        ({"depth": 0}, r"depth must lie in \[1, 64\], got 0"),
        ({"width": 2.5}, r"width must be an integer, got 2\.5"),
        ({"epsilon_window": 1}, r"epsilon_window must lie in \(0, 1\), got 1"),
        ({"seed": -1}, r"seed must lie in \[0, 2\*\*64\), got -1"),
    ]:
        with pytest.raises(ValueError, match=f"^{message}$"):
            EcmSketch.from_sizes(**given | wrong)


def test_the_count_of_all_events_forgets_what_has_expired():
    """Seen to catch: the count of a log holds its expired entries."""
    sketch = EcmSketch(window=1, epsilon=0.5, delta=0.5, seed=0)
    sketch.update([1], [0])
    sketch.advance(1)
    copied = EcmSketch.from_bytes(sketch.to_bytes())
    assert sketch.total_wave().to_bytes() == copied.total_wave().to_bytes()
