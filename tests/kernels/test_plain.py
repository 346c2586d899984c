"""Compiled, the kernels do what their source does as plain Python."""

import contextlib
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge import (
    EcmSketch,
    ExponentialHistogram,
    HeavyHitterSketch,
    PerfectWindowSketch,
    ProportionalWindowSketch,
    SplitterWindowSketch,
    Wave,
    kernels,
)
from streamgauge.sketches.door import DoorState
from streamgauge.sketches.exphistgrid import ExpHistGrid
from streamgauge.sketches.randomizedgrid import RandomizedGrid
from streamgauge.sketches.wavegrid import WaveGrid
from tests import arrivals
from tests.kernels.drive import CELLS, insert, stretched


@contextlib.contextmanager
def plain():
    """Every compiled function of every kernel module replaced by its source."""
    modules = [getattr(kernels, name) for name in kernels.__all__]
    with pytest.MonkeyPatch.context() as patch, np.errstate(over="ignore"):
        for module in modules:
            for name, value in list(vars(module).items()):
                if hasattr(value, "py_func"):
                    patch.setattr(module, name, value.py_func)
        yield


def life(program, text):
    """Everything that one of each says while a stream goes through them."""
    said = []
    wave = Wave(window=program.window, epsilon=0.3)
    histogram = ExponentialHistogram(window=program.window, epsilon=0.3)
    sketch = EcmSketch(window=program.window, epsilon=0.5, delta=0.3, seed=1)
    heavy = HeavyHitterSketch(window=program.window, epsilon=0.9)
    batches = arrivals.cut(program.seed, *program.arrivals())
    for batch, weighted in zip(batches, itertools.cycle([True, False]), strict=False):
        names = [f"{item:x}" * (item % 9) for item in batch.items] if text else batch.items
        weights = batch.weights if weighted else None
        wave.update(batch.ticks, weights)
        histogram.update(batch.ticks, weights)
        sketch.update(names, batch.ticks, weights)
        heavy.update(names, batch.ticks, weights)
        last = 1 + program.window // 2
        said += [histogram.estimate(last), histogram.segments(last), histogram.next_change(last)]
        said += [wave.estimate(last), sketch.self_join(last), sketch.estimate(names[:3], last)]
        said += [heavy.estimate(names[:3], last), heavy.top(5, last), heavy.self_join(last)]
    for each in (wave, histogram, sketch, heavy):
        said.append(each.to_bytes())
        assert type(each).from_bytes(said[-1]).to_bytes() == said[-1]
    flat = HeavyHitterSketch.merge([heavy, heavy.to_bytes()]).flatten()
    said += [flat.to_bytes(), flat.top(5)]
    return said


@given(arrivals.programs(max_size=200), st.booleans())
@settings(max_examples=25)
def test_a_sketch_lives_the_same_life(program, text):
    with plain():
        slowly = life(program, text)
    assert life(program, text) == slowly


@given(st.lists(st.tuples(st.integers(0, 64), st.integers(0, 2**64 - 1)), max_size=20))
@settings(max_examples=25)
def test_columns_come_out_of_their_bits(drawn):
    """Seen to catch: the bits of a byte in another order than they are read."""
    columns = [
        (np.array([value & ((1 << width) - 1)] * 3, np.uint64), width) for width, value in drawn
    ]
    said = []
    for put, get in (
        (kernels.columns.put, kernels.columns.get),
        (kernels.columns.put.py_func, kernels.columns.get.py_func),
    ):
        out, at = np.zeros(8 * 3 * 20, np.uint8), 0
        for values, width in columns:
            at = put(values, width, out, at)
        said.append(out.tobytes())
        at = 0
        for values, width in columns:
            found = np.empty_like(values)
            at = get(out, at, width, found)
            assert np.array_equal(found, values)
    assert said[0] == said[1]


@pytest.mark.parametrize("kind", [WaveGrid, ExpHistGrid])
@given(program=stretched(100))
@settings(max_examples=25)
def test_bases_that_move_and_cutoffs_that_are_followed(kind, program):
    def steps():
        grid = kind(CELLS, program.kept, program.window)
        expired, live = np.zeros(CELLS, np.int64), np.zeros(CELLS, np.int64)
        for batch in program.batches():
            insert(grid, batch, weighted=False)
            cutoff = int(batch.ticks[-1]) - program.window // 2
            yield *grid.follow(cutoff, expired, live), grid._stamps

    with plain():
        slowly = [array for step in steps() for array in step]
    compiled = [array for step in steps() for array in step]
    assert all(map(np.array_equal, slowly, compiled))


@given(stretched(100))
@settings(max_examples=25)
def test_coins_samples_and_what_is_merged_and_written_of_them(program):
    def steps():
        sizes = (CELLS, 40 + program.kept, 3)
        grids = [RandomizedGrid(*sizes, program.window, site) for site in (1, 2)]
        for i, batch in enumerate(program.batches()):
            insert(grids[i % 2], batch, weighted=True)
            now = int(batch.ticks[-1])
            yield *grids[i % 2].follow(now - program.window, *np.empty((2, 0))), grids[0]._arena
            union = RandomizedGrid.merged(grids, now)
            door = DoorState(program.window, None, "raise", now, 0)
            state, data = union.state(now), memoryview(union.pack(now))
            copy = RandomizedGrid.unpack(*sizes, 1, door=door, state=state, data=data)
            yield copy.next_change(now - 1), np.frombuffer(data, np.uint8), copy._arena

    with plain():
        slowly = [array for step in steps() for array in step]
    compiled = [array for step in steps() for array in step]
    assert all(map(np.array_equal, slowly, compiled))


@pytest.mark.parametrize(
    "kind", [PerfectWindowSketch, ProportionalWindowSketch, SplitterWindowSketch]
)
@given(program=stretched(100))
@settings(max_examples=25)
def test_matrices_and_subcells(kind, program):
    def said():
        sketch = kind(window=program.window, epsilon=0.9, delta=0.3, seed=1)
        for items, ticks, weights in program.batches():
            sketch.update(items, ticks, None if program.seed % 3 else weights)
            yield sketch.to_bytes(), sketch.values(int(ticks[-1]) + program.window // 2).tolist()

    with plain():
        slowly = list(said())
    assert list(said()) == slowly
