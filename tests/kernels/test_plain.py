"""Compiled, the kernels do what their source does as plain Python."""

import contextlib
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge import EcmSketch, HeavyHitterSketch, Wave, kernels
from streamgauge.sketches.wavegrid import WaveGrid
from tests import arrivals
from tests.kernels.drive import CELLS, insert, stretched


@contextlib.contextmanager
def plain():
    """Every compiled function of every kernel module replaced by its source."""
    with pytest.MonkeyPatch.context() as patch, np.errstate(over="ignore"):
        modules = (kernels.hashing, kernels.wave, kernels.wavebits)
        for module in (*modules, kernels.heavy, kernels.heavybits, kernels.labels):
            for name, value in list(vars(module).items()):
                if hasattr(value, "py_func"):
                    patch.setattr(module, name, value.py_func)
        yield


def life(program, text):
    """Everything that one of each says while a stream goes through them."""
    said = []
    wave = Wave(window=program.window, epsilon=0.3)
    sketch = EcmSketch(window=program.window, epsilon=0.5, delta=0.3, seed=1)
    heavy = HeavyHitterSketch(window=program.window, epsilon=0.9)
    batches = arrivals.cut(program.seed, *program.arrivals())
    for batch, weighted in zip(batches, itertools.cycle([True, False]), strict=False):
        names = [f"{item:x}" * (item % 9) for item in batch.items] if text else batch.items
        weights = batch.weights if weighted else None
        wave.update(batch.ticks, weights)
        sketch.update(names, batch.ticks, weights)
        heavy.update(names, batch.ticks, weights)
        last = 1 + program.window // 2
        said += [wave.estimate(last), sketch.self_join(last), sketch.estimate(names[:3], last)]
        said += [heavy.estimate(names[:3], last), heavy.top(5, last), heavy.self_join(last)]
    said += [wave.to_bytes(), sketch.to_bytes(), heavy.to_bytes()]
    flat = HeavyHitterSketch.merge([heavy, heavy.to_bytes()]).flatten()
    said += [flat.to_bytes(), flat.top(5)]
    assert Wave.from_bytes(wave.to_bytes()).to_bytes() == wave.to_bytes()
    assert EcmSketch.from_bytes(sketch.to_bytes()).to_bytes() == sketch.to_bytes()
    return said


@given(arrivals.programs(max_size=200), st.booleans())
@settings(max_examples=25)
def test_a_sketch_lives_the_same_life(program, text):
    with plain():
        slowly = life(program, text)
    assert life(program, text) == slowly


@given(stretched(100))
@settings(max_examples=25)
def test_bases_that_move_and_cutoffs_that_are_followed(program):
    def steps():
        grid = WaveGrid(CELLS, program.kept, program.window)
        expired, live = np.zeros(CELLS, np.int64), np.zeros(CELLS, np.int64)
        for batch in program.batches():
            insert(grid, batch, weighted=False)
            cutoff = int(batch.ticks[-1]) - program.window // 2
            yield *grid.follow(cutoff, expired, live), grid._stamps

    with plain():
        slowly = [array for step in steps() for array in step]
    compiled = [array for step in steps() for array in step]
    assert all(map(np.array_equal, slowly, compiled))
