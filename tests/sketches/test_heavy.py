"""HeavyHitterSketch as its user meets it; its promises are tested in guarantees/test_heavy.py."""

import numpy as np
import pyarrow as pa
import pytest

import streamgauge as sg
from streamgauge import Estimate, HeavyHitterSketch, ItemEstimate, NotMergeable, TopItem, WireError
from streamgauge.items import Hashed


def test_the_first_example():
    sketch = HeavyHitterSketch(window="1 hour", epsilon=0.1)
    start = np.datetime64("2024-02-29T12:00", "ms")
    sketch.update(["a", "b", "a"], start + np.array([0, 60_000, 120_000]), [1, 1, 5])
    two = Estimate(6.0, 6.0, 6.0, 1.0)
    one = Estimate(1.0, 1.0, 1.0, 1.0)
    assert sketch.heavy_hitters(0.5) == [ItemEstimate("a", two)]
    assert sketch.top(5) == [TopItem("a", two, True), TopItem("b", one, True)]
    assert sketch.estimate(["b", "c"]) == [one, Estimate(0.0, 0.0, 0.0, 1.0)]
    assert sketch.total(last="1 min").value == sketch.estimate("a", last="1 min").value == 5
    assert sketch.total(now=start + np.timedelta64(61, "m")).value == 5
    assert repr(sketch) == (
        "HeavyHitterSketch(window='1 h', tick='1 ms', epsilon=0.1, late='raise'; now=1709208120000)"
    )


def overfull(items, epsilon=0.5, **changed):
    """A sketch of several levels with items[i] so often, shuffled."""
    sketch = HeavyHitterSketch(**{"window": 10**6, "epsilon": epsilon} | changed)
    rng = np.random.default_rng(1)
    order = rng.permutation(len(items) * 100) % len(items)
    order = np.concatenate([order[: len(items)], order[order < len(items) // 4], order])
    sketch.update([items[i] for i in order.tolist()], np.arange(order.size))
    assert sketch._parts[0].chain.top > 0
    return sketch


@pytest.mark.parametrize(
    "items",
    [
        [0, -1, 2**63 - 1, -(2**63), *range(5, 60)],
        ["", "a", "ä", "\0", "a\0", b"\xff", b"\xff\0", "x" * 300, *"bcdefghij"],
    ],
)
def test_items_come_back_as_they_were_given(items):
    """Seen to catch: the text of what only tables hold is swept."""
    sketch = overfull(items)
    copy = HeavyHitterSketch.from_bytes(sketch.to_bytes())
    for each in (sketch, copy, HeavyHitterSketch.merge([sketch, copy]).flatten()):
        found = [item for item, _, _ in each.top(1000)]
        assert len(set(found)) == len(found) > 3
        assert set(found) <= set(items)
        assert set(map(type, found)) <= set(map(type, items))


def test_text_may_be_bytes_and_integers_may_be_unsigned():
    sketch = HeavyHitterSketch(window=10, epsilon=0.1)
    sketch.update([b"a", "a", b"\xffb"], [1, 1, 1])
    assert [item for item, _, _ in sketch.top(3)] == ["a", b"\xffb"]
    sketch = HeavyHitterSketch(window=10, epsilon=0.1)
    sketch.update(np.array([2**64 - 1, 5], np.uint64), [1, 1])
    assert {item for item, _, _ in sketch.top(3)} == {-1, 5}
    assert sketch.estimate(2**64 - 1).value == 1


def test_text_that_is_no_longer_needed_is_forgotten():
    """A million different texts leave no more than the window's. Seen to catch: no sweep."""
    sketch = HeavyHitterSketch(window=1000, epsilon=0.2)
    for begin in range(0, 400_000, 50_000):
        sketch.update(
            pa.array([f"text number {i}" for i in range(begin, begin + 50_000)]),
            np.arange(begin, begin + 50_000),
        )
    assert sketch._labels.nbytes < 2_000_000
    last = [item for item, _, _ in sketch.top(1000, last=50)]
    assert set(last) == {f"text number {i}" for i in range(399_950, 400_000)}


def test_arrow_in_every_form_is_named():
    texts = ["b", "a", "a", "b", "a"]
    plain = pa.array(texts)
    chunks = pa.chunked_array([texts[:2], texts[2:]])
    for same in (texts, plain, chunks, plain.dictionary_encode(), pa.array(["x", *texts])[1:]):
        sketch = HeavyHitterSketch(window=10, epsilon=0.1)
        sketch.update(same, np.ones(5, np.int64))
        assert [item for item, _, _ in sketch.top(9)] == ["a", "b"]


def test_late_events_and_zero_weights_are_left_out():
    sketch = HeavyHitterSketch(window=10, epsilon=0.1, late="drop")
    sketch.update(["a", "b", "c", "d"], [5, 3, 6, 7], [1, 1, 0, 2])
    assert sketch.late_events == 1
    assert [(item, found.value) for item, found, _ in sketch.top(9)] == [("d", 2), ("a", 1)]
    assert (sketch.arrivals, sketch.now, sketch.kind, sketch.parts) == (3, 7, "text", 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilon": 0}, r"epsilon must lie in \(0, 1\), got 0"),
        ({"epsilon": 1}, r"epsilon must lie in \(0, 1\), got 1"),
        ({"epsilon": 9e-6}, r"epsilon must be at least 1e-05, got 9e-06"),
        ({"epsilon": "a"}, r"epsilon must be a number in \(0, 1\), got 'a'"),
        ({"window": 0}, r"window must be at least 1 tick"),
        ({"late": "later"}, r"late must be one of raise, drop, clamp, got 'later'"),
    ],
)
def test_parameters_that_are_refused(given, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        HeavyHitterSketch(**{"window": 10, "epsilon": 0.1} | given)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (([1.5], [5]), "items must be integers or text"),
        ((["a"], [5]), "items must be integers, as those before, got text"),
        ((Hashed(np.ones(1, np.uint64)), [5]), "items must be given as they are called"),
        (([1, 2], [5]), "times must be as many as items, got 1 for 2"),
        (([1], [3]), "times must not decrease"),
        (([1], [5], [-1]), "weights must lie in"),
        (([1], [5], [1.0]), "weights must be integers"),
    ],
)
def test_batches_that_are_refused_change_nothing(batch, message):
    sketch = HeavyHitterSketch(window=10, epsilon=0.1)
    sketch.update([1], [4])
    before = sketch.to_bytes()
    with pytest.raises(ValueError, match=f"^{message}"):
        sketch.update(*batch)
    with pytest.raises(OverflowError, match="arrivals must stay below"):
        sketch.update([1, 1], [5, 5], [2**53 - 2, 5])
    assert sketch.to_bytes() == before


def test_a_window_that_counts_arrivals_takes_no_weights():
    sketch = HeavyHitterSketch(window=sg.arrivals(10), epsilon=0.1)
    sketch.update([1, 2, 1], weights=[1, 0, 1])
    with pytest.raises(ValueError, match=r"^weights must be 0 or 1 where the window counts"):
        sketch.update([1], weights=[2])
    assert (sketch.now, sketch.estimate(1).value) == (2, 2)
    with pytest.raises(NotMergeable, match="windows that count arrivals"):
        HeavyHitterSketch.merge([sketch, sketch])


def test_unlike_sketches_do_not_go_together():
    def new(**changed):
        return HeavyHitterSketch(**{"window": 10, "epsilon": 0.1} | changed)

    numbers, texts = new(), new()
    numbers.update([1], [1])
    texts.update(["a"], [1])
    for other in (new(epsilon=0.2), new(window=11), new(window="10 ms")):
        with pytest.raises(NotMergeable, match="specified alike"):
            HeavyHitterSketch.merge([numbers, other])
        with pytest.raises(NotMergeable, match="specified alike"):
            numbers.inner_product(other)
    with pytest.raises(NotMergeable, match="all of integers or all of text"):
        HeavyHitterSketch.merge([numbers, texts])
    with pytest.raises(ValueError, match="must be text, as those before, got integers"):
        numbers.inner_product(texts)
    with pytest.raises(ValueError, match="at least one, got none"):
        HeavyHitterSketch.merge([])
    with pytest.raises(WireError):
        HeavyHitterSketch.merge([numbers, b"SG"])


def test_merging_leaves_the_parts_as_they_are_and_drops_what_has_expired():
    early, late, empty = (HeavyHitterSketch(window=10, epsilon=0.1) for _ in range(3))
    early.update(["a", "b"], [1, 5])
    late.update(["a"], [12])
    images = [each.to_bytes() for each in (early, late, empty)]
    merged = HeavyHitterSketch.merge([early, late, empty])
    assert (merged.now, merged.arrivals, merged.parts) == (12, 3, 2)
    assert merged.estimate(["a", "b"]) == [(1, 1, 1, 1), (1, 1, 1, 1)]
    merged.update(["c", "a"], [15, 15])
    assert merged.estimate(["a", "b", "c"])[0].value == 2
    assert HeavyHitterSketch.merge([merged, empty]).parts == 2
    assert [each.to_bytes() for each in (early, late, empty)] == images
    merged.advance(40)
    assert HeavyHitterSketch.merge([merged]).parts == 1
    assert HeavyHitterSketch.merge([empty]).now is None


def test_an_empty_sketch_answers():
    sketch = HeavyHitterSketch(window=10, epsilon=0.1)
    assert (sketch.heavy_hitters(0.5), sketch.top(3)) == ([], [])
    nothing = (0, 0, 0, 1)
    assert sketch.total() == sketch.self_join() == sketch.estimate("a") == nothing
    assert sketch.estimate([]) == []
    sketch.update([], [])
    assert sketch.kind is None
    flat = HeavyHitterSketch.merge([sketch, sketch]).flatten()
    assert flat.total() == nothing
    assert HeavyHitterSketch.from_bytes(sketch.to_bytes()).to_bytes() == sketch.to_bytes()
