"""The bytes of waves: against their definition, there and back, and damaged."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import kernels
from streamgauge.kernels.wavebits import COMPLETE, IMPOSSIBLE, TRUNCATED
from streamgauge.sketches.wavegrid import WaveGrid
from tests.kernels.bits import Bits
from tests.kernels.drive import CELLS, brackets, insert, insert_into_twin, stretched
from tests.kernels.twin import TwinGrid


def spelled(twin, now):
    """The bytes as the head of wavebits.py describes them."""
    bits = Bits()
    for cell in twin.cells:
        bits.put(cell.count.bit_length(), 6)
        bits.put(cell.count, cell.count.bit_length())
        ticks = sorted((tick for _, _, tick in cell.stored()), reverse=True)
        live = [tick for tick in ticks if tick > now - cell.window]
        bits.put(len(live), len(ticks).bit_length())
        gaps = [newer - tick for newer, tick in zip([now, *live], live, strict=False)]
        bits.put_blocks(gaps)
    return bits.written()


def unpacked(grid, data):
    """A grid filled from bytes at the clock `window + 1`, and the status."""
    copy = WaveGrid(grid.counts.size, grid.kept, grid.window)
    copy._stamps, copy.levels, copy.first = copy._allocate(grid.levels), grid.levels, 1
    data = np.frombuffer(data, np.uint8)
    status = kernels.wavebits.unpack(data, *copy._arrays(), grid.window, grid.window + 1)
    return copy, status


@given(stretched(1500), st.sampled_from([1, CELLS]), st.data())
def test_the_bytes_are_as_described_and_hold_all_that_can_be_asked(program, cells, data):
    """At any silence after any batch.

    Seen to catch: growth takes odd ranks for even ones; the bytes hold expired stamps; the gaps
    come in blocks of 16.
    """
    window = program.window
    grid, twin = WaveGrid(cells, program.kept, window), TwinGrid(cells, program.kept, window)
    for batch in program.batches():
        insert(grid, batch, weighted=True)
        insert_into_twin(twin, batch)
        now = int(batch.ticks[-1]) + data.draw(st.sampled_from([0, 0, 1, window - 1, window]))
        packed = grid.pack(now)
        assert packed == spelled(twin, now)

        copy, status = unpacked(grid, packed)
        assert status == COMPLETE
        assert copy.pack(window + 1) == packed
        later = now - data.draw(st.integers(0, window))
        of_copy = brackets(copy, later - now + window + 1)
        for (expired, live), (its_expired, its_live) in zip(
            brackets(grid, later), of_copy, strict=True
        ):
            assert (expired, live) == (its_expired, its_live)


@given(stretched(200), st.data())
def test_damaged_bytes_are_noticed_or_are_other_waves(program, data):
    """Shorter, longer, or with changed bits: never out of bounds, never another status."""
    grid = WaveGrid(CELLS, program.kept, program.window)
    now = 0
    for batch in program.batches():
        insert(grid, batch, weighted=True)
        now = int(batch.ticks[-1])
    packed = grid.pack(now)
    cut = data.draw(st.integers(0, len(packed) - 1))
    assert unpacked(grid, packed[:cut])[1] == TRUNCATED
    assert unpacked(grid, packed + b"\0")[1] == IMPOSSIBLE
    damaged = bytearray(packed)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(packed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    copy, status = unpacked(grid, damaged)
    assert status in {COMPLETE, TRUNCATED, IMPOSSIBLE}
    if status == COMPLETE:
        again, status = unpacked(grid, copy.pack(program.window + 1))
        assert status == COMPLETE
        assert again.pack(program.window + 1) == copy.pack(program.window + 1)
        assert np.array_equal(again.counts, copy.counts)
