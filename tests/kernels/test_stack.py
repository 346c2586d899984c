"""Lists and stacks against numpy and the definition, compiled and as plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import kernels
from streamgauge.sketches.stack import Gathered, Listed, Stacked, Stacks, StackSizes

SIZES = StackSizes(bits=12, epsilon=0.5, delta=0.3, seed=3)
STACKS = Stacks(SIZES)
numbers = st.integers(0, 2**32 - 1)


def events(seed, bits, size=300, heaviest=9):
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 2**bits, size, np.uint64) >> rng.integers(0, bits, size, np.uint64)
    return words, rng.integers(1, heaviest + 1, size)


@given(numbers, numbers, st.sampled_from([1, 5, 32, 33, 64]), st.sampled_from([9, 2**40]))
def test_two_lists_become_one(one, other, bits, heaviest):
    """Seen to catch: an item of both lists comes twice."""
    stacks = Stacks(StackSizes(bits=bits, epsilon=0.5, delta=0.3, seed=3))
    parts = [events(seed, bits, seed % 300, heaviest) for seed in (one, other)]
    parts = [part for part in parts if part[0].size]
    if not parts:
        return
    words, weights = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    merged = stacks._merged(stacks.listed(*parts[0]), stacks.listed(*parts[-1]))
    if len(parts) == 2:
        for mine, theirs in zip(merged, stacks.listed(words, weights), strict=True):
            assert mine.dtype == theirs.dtype
            assert np.array_equal(mine, theirs)
    distinct = np.unique(words)
    assert np.array_equal(stacks.listed(words, weights).words, distinct)


@given(numbers, st.sampled_from([1, 5, 32, 33, 64]), st.sampled_from([9, 2**40]))
def test_lists_are_read_where_they_lie(seed, bits, heaviest):
    """All levels, the first and the last prefixes too.

    Seen to catch: the last item of a range is left out.
    """
    stacks = Stacks(StackSizes(bits=bits, epsilon=0.5, delta=0.3, seed=3))
    parts = [events(seed + i, bits, 50, heaviest) for i in range(3)]
    gathered = Gathered.of([stacks.listed(*part) for part in parts])
    words, weights = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    for level in range(bits):
        ends = np.array([0, (2**bits - 1) >> level], np.uint64)
        prefixes = np.unique(np.append(words[:5] >> np.uint64(level), ends))
        found = stacks.read(gathered, np.full(prefixes.size, level), prefixes)
        truth = [int(weights[words >> np.uint64(level) == each].sum()) for each in prefixes]
        assert found.exact.tolist() == truth
        assert not found.hashed.any()


def by_definition(words, weights):
    """Every hashed counter of a stack of SIZES, then the running sums of the top prefixes."""
    counts = np.zeros((SIZES.hashed, SIZES.depth, SIZES.width), np.int64)
    for level in range(SIZES.hashed):
        prefixes = words >> np.uint64(level)
        columns = np.empty((SIZES.depth, words.size), np.int64)
        kernels.hashing.columns(SIZES.seeds[level], SIZES.width, prefixes, columns)
        for row in range(SIZES.depth):
            np.add.at(counts[level, row], columns[row], weights)
    tops = np.bincount(words >> np.uint64(SIZES.hashed), weights, 1 << (12 - SIZES.hashed))
    return np.concatenate([counts.ravel(), [0], np.cumsum(tops)]).astype(np.int64)


def test_a_list_that_is_too_long_becomes_a_stack():
    """One item more than takes the memory of the stack; sums are those of both.

    Seen to catch: all rows hash alike; sums of the level below for those of level T.
    """
    words = np.arange(SIZES.most_listed + 1, dtype=np.uint64) * np.uint64(3)
    weights = np.arange(1, words.size + 1)
    assert isinstance(STACKS.summarise(words[1:], weights[1:]), Listed)
    stack = STACKS.summarise(words, weights)
    assert isinstance(stack, Stacked)
    assert np.array_equal(stack.cells, by_definition(words, weights))
    more = STACKS.combine([stack, STACKS.summarise(words[:9], weights[:9]), stack])
    expected = 2 * by_definition(words, weights) + by_definition(words[:9], weights[:9])
    assert np.array_equal(more.cells, expected)
    halves = [STACKS.summarise(words[i::2], weights[i::2]) for i in range(2)]
    assert np.array_equal(STACKS.combine(halves).cells, stack.cells)
    assert stack.nbytes <= STACKS.listed(words, weights).nbytes


@given(numbers)
def test_a_stack_is_read_row_by_row(seed):
    """Seen to catch: the largest counter of the rows is taken."""
    words, weights = events(seed, 12, 3000)
    stack = STACKS.summarise(words, weights)
    assert isinstance(stack, Stacked)
    cells = by_definition(words, weights)
    levels = np.arange(12).repeat(3)
    prefixes = words[: levels.size] >> levels.astype(np.uint64)
    found = STACKS.read(Gathered.of([stack, stack]), levels, prefixes)
    assert found.arrivals == 2 * weights.sum()
    for i, (level, prefix) in enumerate(zip(levels.tolist(), prefixes, strict=True)):
        truth = int(weights[words >> np.uint64(level) == prefix].sum())
        if level >= SIZES.hashed:
            assert (found.exact[i], found.hashed[i]) == (2 * truth, 0)
            continue
        columns = np.empty((SIZES.depth, 1), np.int64)
        kernels.hashing.columns(SIZES.seeds[level], SIZES.width, prefix[None], columns)
        rows = cells[: SIZES.hashed * SIZES.depth * SIZES.width].reshape(
            SIZES.hashed, SIZES.depth, SIZES.width
        )
        smallest = min(rows[level, row, columns[row, 0]] for row in range(SIZES.depth))
        assert (found.exact[i], found.hashed[i]) == (0, 2 * smallest)
        assert 2 * truth <= found.hashed[i]


def test_as_plain_python_the_kernels_do_the_same(monkeypatch):
    words, weights = events(5, 12, 2000)
    halves = [(words[i::2], weights[i::2]) for i in range(2)]
    levels = np.arange(12)
    asked = levels, words[:12] >> levels.astype(np.uint64)

    def said():
        few = [STACKS.listed(each[:50], counts[:50]) for each, counts in halves]
        stack = STACKS.combine([STACKS.summarise(*half) for half in halves])
        found = STACKS.read(Gathered.of([*few, stack]), *asked)
        return [*STACKS._merged(*few), stack.cells, found.exact, found.hashed]

    compiled = said()
    for name in ("merge", "spread", "places", "between"):
        monkeypatch.setattr(kernels.stack, name, getattr(kernels.stack, name).py_func)
    with np.errstate(over="ignore"):
        for mine, theirs in zip(said(), compiled, strict=True):
            assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("delta", [0.6, 0.3, 0.05, 1e-6])
@pytest.mark.parametrize("epsilon", [0.5, 0.05, 0.001])
@pytest.mark.parametrize("bits", [1, 8, 20, 32])
def test_sizes_are_those_of_the_promise(bits, epsilon, delta):
    """Two prefixes a hashed level within epsilon / 2 of one cut bucket more; not with one less."""
    sizes = StackSizes(bits=bits, epsilon=epsilon, delta=delta, seed=3)
    assert 1 / sizes.kept <= epsilon < 1 / max(1, sizes.kept - 1) + 1e-9
    if sizes.hashed:
        error = (epsilon / 2) / (1 + epsilon / 2)
        noise = 2 * sizes.hashed * delta ** (-1 / sizes.depth)
        assert noise / sizes.width <= error < noise / (sizes.width - 1)
        assert abs(2 * sizes.hashed * sizes.share() - noise / sizes.width) <= 2**-23
    assert sizes.cells <= 2 ** (bits + 1)
