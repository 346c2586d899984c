"""Sizes of a chain, and the stream that it can tell again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.sketches.chain import Chain, Sizes
from tests import arrivals
from tests.kernels.drive import admitted


@given(st.floats(1e-5, 1, exclude_max=True))
def test_sizes_are_those_of_the_proof(epsilon):
    """docs/guarantees.md, "HeavyHitterSketch": losses, width, coverage.

    Seen to catch: rings a third as long, 0.8 / epsilon rests kept.
    """
    kept, most, slots, room, marks, good = Sizes.of(epsilon)
    losses = 3 / 4 + most / (4 * kept)
    assert 1 / kept + (1 + losses + 1 / 6) / good <= epsilon * (1 + 1e-12)
    assert room - most >= 4 * good
    assert kept * ((marks - 1) / 8 - losses) >= 4 * good
    assert most > kept
    assert slots.bit_count() == 1
    assert 3 * most <= 2 * slots


@given(arrivals.long_programs(), st.sampled_from([0.9, 0.5, 0.2]), st.booleans())
@settings(max_examples=40)
def test_the_stream_told_again_is_nearly_the_same(program, epsilon, weighted):
    """In every range each item has at most epsilon N more or fewer: what flattening relies on."""
    items, ticks, weights = program.arrivals()
    weights = np.maximum(weights, 1) if weighted else np.ones_like(weights)
    chain = Chain(epsilon, program.window)
    chain.insert(items.astype(np.uint64), admitted(ticks, weights))
    now = int(ticks[-1])
    oldest = now - program.window
    words, told, many = chain.segments(oldest)
    names = np.unique(items)
    assert np.all(told > oldest)
    exact = chain.exact_after(oldest)
    edges = np.concatenate([ticks[ticks > oldest][:: max(1, ticks.size // 50)], [exact]])
    for cutoff in {oldest, *edges.tolist(), *(edges - 1).tolist()}:
        if cutoff < oldest:
            continue
        truth = counted(names, items[ticks > cutoff], weights[ticks > cutoff])
        again = counted(names, words[told > cutoff].astype(np.int64), many[told > cutoff])
        assert np.all(abs(truth - again) <= epsilon * truth.sum())
        if cutoff >= exact:
            assert np.array_equal(truth, again)


def counted(names, items, weights):
    counts = np.zeros(names.size, np.int64)
    np.add.at(counts, np.searchsorted(names, items), weights)
    return counts


def test_a_copy_is_another():
    chain = Chain(0.9, 1000)
    batch = np.arange(500, dtype=np.uint64) % 30, admitted(np.arange(1, 501))
    chain.insert(*batch)
    held = chain.held(0)
    before = chain.pack(held, 500)
    copy = chain.copy()
    copy.insert(batch[0], admitted(np.arange(501, 1001)))
    assert chain.pack(held, 500) == before
    assert copy.pack(copy.held(0), 1000) != before


@pytest.mark.parametrize(("epsilon", "most"), [(0.1, 40_000), (0.01, 300_000), (0.001, 2_500_000)])
def test_memory_of_a_million_events(epsilon, most):
    """One event a tick, twice the window, some items often."""
    chain = Chain(epsilon, 10**6)
    rng = np.random.default_rng(1)
    for begin in range(0, 2 * 10**6, 10**5):
        words = (rng.zipf(1.2, 10**5) % 10**5).astype(np.uint64)
        chain.insert(words, admitted(np.arange(begin + 1, begin + 10**5 + 1)))
    assert chain.nbytes < most
