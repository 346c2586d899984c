"""The buffer for single events: nothing is lost, and the sketch is that of the batches."""

import doctest

import numpy as np
import pytest

from streamgauge import Buffer, EcmSketch
from streamgauge.sketches import buffer as module


def new():
    return EcmSketch(window=100, epsilon=0.1, delta=0.1, seed=7)


def test_the_example():
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("size", [1, 7, 8192])
def test_a_buffered_stream_leaves_the_sketch_that_a_batch_leaves(size):
    """Seen to catch: a full buffer is cleared before it is passed on."""
    rng = np.random.default_rng(1)
    items, times, weights = rng.integers(0, 9, 500), np.arange(500) // 3, rng.integers(0, 4, 500)
    whole, single = new(), new()
    whole.update(items, times, weights)
    with Buffer(single, size) as buffer:
        for event in zip(items.tolist(), times.tolist(), weights.tolist(), strict=True):
            buffer.update(*event)
            assert len(buffer) < size
    assert len(buffer) == 0
    assert single.to_bytes() == whole.to_bytes()


def test_what_the_sketch_refuses_waits_until_it_is_cleared():
    buffer = Buffer(new())
    buffer.update("a", 5)
    buffer.update("a", 4)
    for _ in range(2):
        with pytest.raises(ValueError, match="times must not decrease"):
            buffer.flush()
    assert len(buffer) == 2
    buffer.clear()
    buffer.update("a", 4)
    buffer.flush()
    assert buffer.sketch.estimate("a").value == 1


def test_an_error_of_the_caller_passes_nothing_on():
    sketch = new()
    with pytest.raises(KeyError), Buffer(sketch) as buffer:
        buffer.update("a", 1)
        raise KeyError
    assert sketch.now is None


@pytest.mark.parametrize("size", [0, -1, 2.5, True, 2**24 + 1])
def test_sizes_that_are_none_are_refused(size):
    with pytest.raises(ValueError, match=r"^size must be an integer in \[1, 2\*\*24\], got"):
        Buffer(new(), size)
