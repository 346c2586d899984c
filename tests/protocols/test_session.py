"""Two ends and a link that loses, doubles and delays, while both ends crash: all arrives once.

Seen to catch: what was received is acknowledged before a snapshot holds it, messages leave before
a snapshot holds them, a repeated message taken again, one taken after a gap (all in
test_every_message_arrives_once_and_in_order); a session that talks to an end that has begun anew
as if it were the old one (test_an_end_that_begins_anew_is_told_apart); a clock told while messages
wait for a snapshot (test_silence_is_heard_only_up_to_what_has_been_said).
"""

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import wire
from streamgauge.protocols.messages import ProtocolError
from streamgauge.protocols.session import End, Frame


class Talker:
    """A machine that says numbers and remembers what it was told; kept with its end, as one."""

    def __init__(self, epoch=1, beat=None):
        self.end = End(epoch=epoch, retry=3, beat=beat)
        self.said, self.told = 0, []
        self.keep()

    def say(self):
        self.said += 1
        self.end.send([b"%d" % self.said])

    def take(self, frame, now):
        got = self.end.receive(frame, now)
        self.told += got.messages
        return got

    def keep(self):
        self.kept = (self.end.to_bytes(), self.said, list(self.told))
        self.end.saved()

    def crash(self):
        end, self.said, told = self.kept
        self.end, self.told = End.from_bytes(end), list(told)


def converse(seed, rounds=300, loss=0.2):
    rng = np.random.default_rng(seed)
    talkers = [Talker(), Talker()]
    links = [deque(), deque()]
    now = 0
    while now < rounds or any(t.end.is_talking for t in talkers):
        assert now < 20 * rounds, "no end"
        now += 1
        for i, talker in enumerate(talkers):
            if now < rounds and rng.random() < 0.3:
                talker.say()
            if rng.random() < 0.4:
                talker.keep()
            if now < rounds and rng.random() < 0.05:
                talker.crash()
            for frame in talker.end.frames(now):
                copies = int(rng.random() >= loss) + int(rng.random() < 0.1)
                links[i].extend([frame] * copies)
            for _ in range(rng.integers(0, 4)):
                if links[i]:
                    talkers[1 - i].take(links[i].popleft(), now)
    return talkers


@given(st.integers(0, 10**6))
def test_every_message_arrives_once_and_in_order(seed):
    """What was said and is in a snapshot, or after it: a crash takes back the rest."""
    one, two = converse(seed)
    assert one.told == [b"%d" % i for i in range(1, two.said + 1)]
    assert two.told == [b"%d" % i for i in range(1, one.said + 1)]


def met(**options):
    """Two ends that know each other."""
    ends = [End(epoch=5, retry=10, **options), End(epoch=7, retry=10)]
    for _ in range(3):
        deliver(*ends, 0)
        deliver(*reversed(ends), 0)
    assert not ends[0].is_talking
    return ends


def deliver(sender, receiver, now, clock=None):
    sender.saved()
    receiver.saved()
    return [receiver.receive(frame, now) for frame in sender.frames(now, clock)]


def test_nothing_leaves_and_nothing_is_acknowledged_before_it_is_kept():
    one, two = met()
    one.send([b"x"])
    assert one.frames(1) == []
    one.saved()
    (frame,) = one.frames(1)
    assert two.receive(frame, 1).messages == [b"x"]
    assert two.frames(1) == []
    two.saved()
    (answer,) = two.frames(1)
    one.receive(answer, 1)
    assert not one.is_talking


def test_what_is_not_acknowledged_is_sent_again_ever_more_rarely():
    one, _ = met()
    one.send([b"x", b"y"])
    one.saved()
    sent = [now for now in range(400) if one.frames(now)]
    assert sent == [0, 10, 30, 70, 150, 230, 310, 390]


def test_what_has_arrived_is_not_sent_again():
    """Seen to catch: everything after a lost message is sent again."""
    one, two = met()
    one.send([b"%d" % i for i in range(100)])
    one.saved()
    frames = one.frames(1)
    lost = {3, 40, 41}
    for i, frame in enumerate(frames):
        if i not in lost:
            two.receive(frame, 1)
    deliver(two, one, 2)
    again = one.frames(20)
    assert len(again) == len(lost)
    found = [message for frame in again for message in two.receive(frame, 20).messages]
    assert found == [b"%d" % i for i in range(3, 100)]
    deliver(two, one, 21)
    assert not one.is_talking


def test_an_end_with_nothing_to_say_is_quiet():
    one, two = met()
    assert [end.frames(now) for end in (one, two) for now in range(1000)] == 2000 * [[]]


def test_silence_is_heard_only_up_to_what_has_been_said():
    one, two = met(beat=5)
    assert deliver(one, two, 5, clock=40)[0].heard == 40
    one.send([b"x"])
    (beat,) = one.frames(10, clock=41)
    assert two.receive(beat, 10).heard is None, "a message waits for a snapshot"
    one.saved()
    frames = one.frames(11, clock=42)
    assert len(frames) == 1
    (lost,) = frames
    (beat,) = one.frames(16, clock=43)
    assert two.receive(beat, 16).heard is None, "a message was lost"
    assert two.receive(lost, 16) == ([b"x"], 42, False)


def test_an_end_that_begins_anew_is_told_apart():
    one, two = met()
    one.send([b"old"])
    two.send([b"lost with it"])
    one.saved()
    (stale,) = one.frames(1)
    fresh = End(epoch=6, retry=10)
    (hello,) = fresh.frames(2)
    got = two.receive(hello, 2)
    assert (got.renewed, got.messages) == (True, [])
    assert two.receive(stale, 2) == ([], None, False)
    fresh.send([b"new"])
    for _ in range(3):
        deliver(two, fresh, 3)
        said = [message for got in deliver(fresh, two, 3) for message in got.messages]
        if said:
            assert said == [b"new"]
    assert not fresh.is_talking
    assert not two.is_talking


def test_frames_that_no_peer_can_have_sent_are_refused():
    one, _ = met()
    state = one.to_bytes()
    with pytest.raises(ProtocolError, match="message 3 is acknowledged, 0 were sent"):
        one.receive(wire.encode(Frame(7, 5, 3, b"", 0)), 0)
    with pytest.raises(ProtocolError, match="message 1 is acknowledged, 0 were sent"):
        one.receive(wire.encode(Frame(8, 5, 1, b"", 0)), 0)
    with pytest.raises(wire.WireError):
        one.receive(b"noise", 0)
    assert one.to_bytes() == state


@given(st.binary(max_size=60), st.integers(0, 10**6), st.integers(0, 255))
def test_hostile_bytes_give_wire_error(noise, at, byte):
    one, _ = met()
    one.send([b"x"])
    data = bytearray(one.to_bytes())
    data[at % len(data)] = byte
    for hostile in (noise, bytes(data), bytes(data[: at % len(data)])):
        try:
            found = End.from_bytes(hostile)
        except wire.WireError:
            continue
        assert End.from_bytes(found.to_bytes()).to_bytes() == found.to_bytes()
        found.frames(0)


@pytest.mark.parametrize("name", ["epoch", "retry", "beat"])
def test_arguments_are_positive(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        End(**{"epoch": 1, "retry": 1, name: 0})
