"""Whatever the bytes: an object that lives, or WireError, and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.wire import WireError
from tests.fuzz.mutants import (
    IMAGES,
    KINDS,
    crafted,
    crafted_samples,
    field_mutants,
    random_mutant,
    survives,
)

ROOT = Path(__file__).parents[2]
images = pytest.mark.parametrize("data", IMAGES, ids=lambda data: f"{len(data)} bytes")
readers = pytest.mark.parametrize("kind", list(KINDS.values()))


@readers
@given(data=st.binary(max_size=200))
def test_random_bytes(kind, data):
    for image in (data, *(b"SG\0" + bytes([number]) + data for number in KINDS)):
        with pytest.raises(WireError):
            kind.from_bytes(image)


@images
def test_every_beginning_is_too_short_and_every_longer_one_too_long(data):
    """Seen to catch: bytes after the end are read over."""
    assert survives(data)
    assert not any(survives(data[:length]) for length in range(len(data)))
    assert not any(survives(data + more) for more in (b"\0", b"\1", data))


@images
def test_flipped_bits(data):
    """Every bit of the short images, every fifth of the longest.

    Seen to catch: more stamps than ranks are let in; a header that is cut short is no WireError; a
    header that is no UTF-8 is no WireError.
    """
    for at in range(0, 8 * len(data), 1 + len(data) // 150):
        flipped = bytearray(data)
        flipped[at // 8] ^= 1 << at % 8
        survives(bytes(flipped))


@images
def test_every_field_with_every_absurd_value(data):
    """One at a time; some make another sketch, most make none.

    Seen to catch: a window of no ticks is let in; a clock beyond 2**61 is let in; a sketch of too
    much memory is no WireError.
    """
    tried = [survives(mutant) for mutant in field_mutants(data)]
    assert sum(tried) > 10
    assert tried.count(False) > 100


@images
def test_several_changes_at_once(data):
    rng = np.random.default_rng(1)
    tried = [survives(random_mutant(data, rng)) for _ in range(300)]
    assert 0 < sum(tried) < 300


def test_what_fits_together_bit_by_bit_is_a_sketch():
    """Ranks and stamps that no stream made: answered, continued and written again."""
    rng = np.random.default_rng(1)
    assert all(survives(crafted(rng)) for _ in range(1000))


def test_samples_that_fit_together_bit_by_bit_are_a_randomized_wave():
    """Lists of full length at any level, whatever the others hold."""
    rng = np.random.default_rng(1)
    assert all(survives(crafted_samples(rng)) for _ in range(200))


@readers
@pytest.mark.parametrize(
    "header", [b"\x91" * 100_000, b"\x81\xa0" * 100_000, b"\xdd\xff\xff\xff\xff"]
)
def test_no_nesting_is_too_deep(kind, header):
    number = next(number for number, known in KINDS.items() if known is kind)
    lead = b"SG\0" + bytes([number])
    with pytest.raises(WireError):
        kind.from_bytes(lead + len(header).to_bytes(4, "little") + header)


def run(code, **environment):
    return subprocess.run(
        [sys.executable, *code],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


GIANTS = """
import resource
from tests.fuzz.mutants import IMAGES, KINDS, giants, survives
most = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert all(map(survives, IMAGES))
before = most()
survived = [survives(data) for data in giants()]
print(len(survived), sum(survived), (most() - before) // 1024)
"""


def test_sizes_that_are_only_claimed_take_no_memory():
    """Gigabytes of waves from a hundred bytes: read, asked and written in a few megabytes."""
    tried, survived, megabytes = map(int, run(["-c", GIANTS]).split())
    assert tried - survived >= 4
    assert survived >= 2
    assert megabytes < 64


def test_the_kernels_stay_in_their_arrays_as_plain_python():
    run(["-W", "ignore:overflow", "-m", "tests.fuzz.mutants", "1"], NUMBA_DISABLE_JIT="1")


@pytest.mark.slow
def test_the_compiled_kernels_stay_in_their_arrays(tmp_path):
    cache = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    run(["-m", "tests.fuzz.mutants", *map(str, range(20))], **cache)
