"""Events come out of their bits as they went in.

Seen to catch: a width one bit too small, words and their places exchanged.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import wire
from streamgauge.protocols import events
from streamgauge.protocols.events import Events, Packed
from tests import arrivals


@given(arrivals.programs(max_size=500), st.booleans())
def test_events_come_out_as_they_went_in(program, wide):
    items, ticks, weights = program.arrivals()
    words = items.astype(np.uint64)
    if wide:
        words = words * np.uint64(0x9E3779B97F4A7C15)
    kept = weights > 0
    given_events = events.joined([Events(words[kept], ticks[kept], weights[kept])])
    found = events.unpack(events.pack(given_events))
    assert all(map(np.array_equal, found, given_events))
    assert given_events.weights.sum() == weights.sum()


def test_few_words_among_many_events_are_written_once():
    rng = np.random.default_rng(1)
    words = rng.integers(0, 1 << 63, 50).astype(np.uint64)[rng.integers(0, 50, 4000)]
    ones = np.ones(4000, np.int64)
    packed = events.pack(Events(words, np.arange(4000), ones))
    assert packed.distinct == 50
    assert len(packed.bits) < 50 * 8 + 4000


@pytest.mark.parametrize(
    ("packed", "message"),
    [
        (Packed(10**9, 0, 0, 0, 0, 0, b""), "1000000000 events in no bits"),
        (Packed(10**9, 0, 1, 0, 0, 0, b"x"), "1 bytes are not those of 1000000000 events"),
        (Packed(2, 0, 1, 0, 0, 3, b"\0"), "2 events cannot have 3 words"),
        (Packed(3, 0, 0, 0, 1, 3, b"\xff\x01"), "an event has a word that is not there"),
        (Packed(2, 1 << 61, 1, 0, 0, 0, b"\3"), "an event is later than any time"),
        (Packed(1, 0, 0, 64, 0, 0, b"\xff" * 8), r"weights must sum to less than 2\*\*53"),
    ],
)
def test_bits_that_no_events_have_are_refused(packed, message):
    with pytest.raises(wire.WireError, match=f"^{message}$"):
        events.unpack(packed)
