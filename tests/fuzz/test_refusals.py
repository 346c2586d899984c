"""What no stream can have left behind is refused, and for its own reason.

Each image was a sketch's, with one thing changed that contradicts the rest. Random bytes seldom
come so far, and what is read from them may look sound: so the contradictions are named here.
"""

import pytest

from streamgauge import EcmSketch, Wave
from streamgauge.wire import WireError
from tests.fuzz.mutants import joined, parts, with_value

# of a wave
WINDOW, CLOCK, FIRST, LEVELS = (1, 0), (1, 3), (2, 1), (2, 0)
# of an EcmSketch
SIZES, SITES, ITS_WINDOW, ITS_CLOCK, KIND, ARRIVALS = (0,), (1,), (2, 0), (2, 3), (3,), (4,)
ENTRIES, TOTAL, TOTAL_BYTES = (5, 1), (5, 2), (5, 3)


def wave():
    """Ten arrivals at the ticks 0 to 9 in two levels."""
    wave = Wave(window=100, epsilon=0.5)
    wave.update(range(10))
    return wave


def few():
    """A log of two entries: words 1 and 2, gaps 1 and 0, weights 3 and 1, each led by a width."""
    sketch = EcmSketch(window=100, epsilon=0.5, delta=0.5, seed=1)
    sketch.update([1, 2], [5, 6], [3, 1])
    return sketch


def many(size=20):
    """A grid of one row."""
    sketch = EcmSketch(window=100, epsilon=0.5, delta=0.5, seed=1)
    sketch.update([*range(size)], range(size))
    return sketch


def changed(sketch, path, value):
    """The sketch's bytes with one field of the header replaced."""
    lead, header, payload = parts(sketch.to_bytes())
    return joined(lead, with_value(header, path, value), payload)


def refilled(sketch, begin, octets):
    """The sketch's bytes with some of the payload replaced, from the end if `begin` says so."""
    lead, header, payload = parts(sketch.to_bytes())
    payload = bytearray(payload)
    begin %= len(payload)
    payload[begin : begin + len(octets)] = octets
    return joined(lead, header, bytes(payload))


def with_the_total_of(sketch, other):
    """The sketch's bytes, but all events are counted as in the other."""
    lead, header, payload = parts(sketch.to_bytes())
    _, theirs, counted = parts(other.to_bytes())
    total = counted[: theirs[5][3]]
    own = header[5][3]
    header = with_value(with_value(header, TOTAL, theirs[5][2]), TOTAL_BYTES, len(total))
    return joined(lead, header, total + payload[own:])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: wave().to_bytes()[:-1], "truncated: the waves go on beyond the end"),
        (lambda: wave().to_bytes() + b"\0", "no waves have this content"),
        (lambda: changed(wave(), WINDOW, 3), "no waves have this content"),
        (lambda: changed(wave(), CLOCK, None), "there are arrivals, but no clock"),
        (lambda: changed(wave(), FIRST, -91), "the first arrival at -91 is not in the window"),
        (lambda: changed(wave(), FIRST, 10), "the first arrival at 10 is not in the window"),
        (
            lambda: changed(Wave(window=9, epsilon=0.5), FIRST, 0),
            "a first arrival is given, but no wave",
        ),
        (
            lambda: changed(Wave(window=9, epsilon=0.5), LEVELS, 2),
            "2 levels are more than 0 arrivals can",
        ),
        (lambda: changed(few(), ENTRIES, 1), "a column has numbers of 2\\*\\*2 bytes"),
        (lambda: changed(few(), ENTRIES, 4), "4 entries are more than this sketch keeps, 3"),
        (lambda: changed(few(), ITS_CLOCK, None), "there are entries, but no clock"),
        (lambda: changed(few(), ITS_WINDOW, 1), "an entry is older than the window"),
        (lambda: refilled(few(), 4, bytes([99, 1])), "an entry is older than the window"),
        (lambda: refilled(few(), -1, bytes([0])), "weights must be positive, and their sum below"),
        (
            lambda: refilled(few(), 0, bytes([0, 2, 2, 0, 0])),
            "two entries in a row are one",
        ),
        (lambda: changed(few(), ARRIVALS, 3), "4 events are held, but 3 ever came"),
        (lambda: changed(few(), KIND, None), "there were events, but no clock or no kind of items"),
        (lambda: changed(many(), SITES, [1]), "sites go with randomized counters"),
        (lambda: changed(many(), ARRIVALS, 19), "20 events are held, but 19 ever came"),
        (
            lambda: changed(many(), TOTAL_BYTES, 10**6),
            "truncated: .* bytes of waves, 1000000 in the first",
        ),
        (
            lambda: changed(many(), SIZES, ["given", "wave", 64, 1000, 0.5, 1]),
            "cannot hold 64000 waves",
        ),
        (
            lambda: changed(many(), SIZES, ["asked", "wave", 1e-6, 0.5, False, 1]),
            "need more than 8 GiB",
        ),
        (lambda: with_the_total_of(many(20), many(30)), "do not hold the same number of events"),
    ],
)
def test_a_contradiction_is_refused(make, message):
    """Each contradiction by its own words.

    Seen to catch: a stamp from before the window is let in; the rows need not hold all events;
    entries older than the window are let in; entries of weight 0 are let in; a first arrival from
    outside the window is let in; more levels than arrivals need are let in.
    """
    data = make()
    kind = Wave if data[3] == 1 else EcmSketch
    with pytest.raises(WireError, match=message):
        kind.from_bytes(data)
