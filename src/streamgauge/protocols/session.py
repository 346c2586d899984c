"""One end of a link over which messages may be lost, repeated or held up, and ends may crash.

    machine --message--> End ~~~frames~~~> End --message--> machine

Each message arrives once and in order. Frames carry numbers; what has arrived is acknowledged;
what has not arrived in time is sent again; what comes again is dropped. What comes too early waits
in memory for what is before it, and is named so that it need not come again. The rule that makes
crashes harmless is

    nothing is sent, and nothing is acknowledged, that the last snapshot does not hold.

Then whatever the peer has ever seen of an end is in the snapshot from which the end is restored:
the peer never acts on what was forgotten, and it still has whatever had not been kept. A machine
and its ends are snapshotted together, then `saved` is called; who keeps no snapshots calls it all
the same, and has no promise about crashes. Events that a machine took after its snapshot are to be
fed again: the source's duty.

An end that begins without a snapshot takes a greater `epoch` than any before under its name. A
peer that meets one forgets the old conversation on its side (`Received.renewed`), and frames of
the old one, which may still be on their way, change nothing. So nothing is sent before the peer's
epoch is known: an end begins with an empty frame.

Besides, a frame may say that all there was to say up to a moment is in messages up to its own.
That is what silence is known by: see `heard`.

There is no clock here: `now` comes as an argument, in any unit that is also that of `retry` (how
long to wait for an acknowledgement; doubled each time up to eightfold) and `beat` (say something
at least so often; None: only when there is something to say).
"""

from collections import deque
from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple, Self

import msgspec

from streamgauge import wire
from streamgauge.protocols.messages import ProtocolError

Number = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
Length = Annotated[int, msgspec.Meta(ge=1, le=1 << 62)]
Bits = Annotated[bytes, msgspec.Meta(max_length=256)]
Tick = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]

_LONGEST = 8  # times `retry`, the longest wait
_AHEAD = 1024  # messages that may be on their way at once


class Frame(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What travels. Without a message, `number` is that of the last message before."""

    epoch: Length  # the sender's
    peer: Number  # the receiver's, as the sender knows it; 0: not at all
    ack: Number  # the receiver's messages up to this one have arrived and are kept
    ahead: Bits  # bit i: so has ack + 1 + i, but it may yet be forgotten
    number: Number
    clock: Tick | None = None  # all there was to say until then is in messages up to `number`
    message: bytes | None = None


class Received(NamedTuple):
    """What a frame brought."""

    messages: list[bytes]
    heard: int | None = None  # the peer has said all it had to say up to this moment of its own
    renewed: bool = False  # the peer has begun anew, and knows nothing of what was before


class _State(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    epoch: Length
    retry: Length
    beat: Length | None
    peer: Number
    acked: Number
    unacked: list[bytes]
    received: Number


class End:
    """Queues messages, and makes and takes frames."""

    def __init__(self, *, epoch: int, retry: int, beat: int | None = None) -> None:
        for name, value in (("epoch", epoch), ("retry", retry), ("beat", beat)):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        self._start(_State(epoch, retry, beat, 0, 0, [], 0))

    def _start(self, state: _State) -> None:
        self._epoch, self._retry, self._beat = state.epoch, state.retry, state.beat
        self._peer = state.peer
        self._acked = state.acked  # the peer has our messages up to this one
        self._unacked = deque(state.unacked)
        self._received = state.received  # we have the peer's up to this one
        self._kept, self._kept_received = self.said, self._received  # by a snapshot
        # From here on what a snapshot does not hold: it is made anew at the cost of a few frames.
        self._flown = self._acked  # messages up to this one are on their way
        self._there: set[int] = set()  # those of them that have arrived already
        self._early: dict[int, bytes] = {}  # the peer's that came too early
        self._told: int | None = None  # the last acknowledgement; None: one is owed
        self._since: int | None = None  # when we began to wait for the peer
        self._wait = self._retry
        self._spoke: int | None = None

    @property
    def said(self) -> int:
        """How many messages there have been in this conversation."""
        return self._acked + len(self._unacked)

    @property
    def is_talking(self) -> bool:
        """There is something that the peer may not have: it is held until it has."""
        return bool(self._unacked) or not self._peer

    def send(self, messages: Iterable[bytes]) -> None:
        """Queue messages; they leave after the next `saved`."""
        self._unacked.extend(messages)

    def saved(self) -> None:
        """A snapshot holds all that has happened up to now."""
        self._kept, self._kept_received = self.said, self._received

    def frames(self, now: int, clock: int | None = None) -> list[bytes]:
        """What is to leave at `now`; `clock` is the moment up to which the machine has spoken."""
        first = self._flown + 1
        if self._since is not None and now >= self._since + self._wait:
            first, self._since = self._acked + 1, None
            self._wait = min(2 * self._wait, _LONGEST * self._retry)
            if not self._peer:
                self._told = None  # the empty frame again
        frames = []
        if self._peer:
            last = min(self._kept, self._acked + _AHEAD)
            for number in range(first, last + 1):
                if number not in self._there:
                    message = self._unacked[number - self._acked - 1]
                    frames.append(self._frame(number, clock, message))
            if first <= self._flown:
                self._there = set()  # to be heard again: the peer may have crashed and forgotten
            self._flown = max(self._flown, last)
        is_due = self._beat is not None and (self._spoke is None or now >= self._spoke + self._beat)
        if not frames and (is_due or self._told != self._kept_received):
            frames.append(self._frame(self._flown, clock, None))
        if frames:
            self._told, self._spoke = self._kept_received, now
        if self._since is None and (self._flown > self._acked or not self._peer):
            self._since = now
        return frames

    def _frame(self, number: int, clock: int | None, message: bytes | None) -> bytes:
        is_all = number == self.said
        frame = Frame(
            self._epoch,
            self._peer,
            self._kept_received,
            self._ahead(),
            number,
            clock if is_all else None,
            message,
        )
        return wire.encode(frame)

    def _ahead(self) -> bytes:
        """Which messages are here that are not acknowledged."""
        bits = (1 << (self._received - self._kept_received)) - 1
        for number in self._early:
            bits |= 1 << (number - self._kept_received - 1)
        return bits.to_bytes((bits.bit_length() + 7) // 8, "little")[:256]

    def receive(self, data: Any, now: int) -> Received:
        """Take a frame; WireError and ProtocolError if no peer can have sent it."""
        frame: Frame = wire.decode(data, Frame)
        if frame.epoch < self._peer:
            return Received([])  # of a conversation that is over
        knows_us = frame.peer == self._epoch
        sent = self._kept if self._peer in (0, frame.epoch) else 0
        if knows_us and frame.ack > sent:
            raise ProtocolError(f"message {frame.ack} is acknowledged, {sent} were sent")
        renewed = self._meet(frame.epoch)
        if not knows_us:
            self._told = None  # it has yet to learn who we are
            return Received([], None, renewed)
        self._learn(frame, now)
        messages = []
        if frame.message is not None:
            if self._received < frame.number <= self._received + _AHEAD:
                self._early[frame.number] = frame.message
            if frame.number != self._received + 1:
                self._told = None  # to say what is missing, or that it was here before
            while self._received + 1 in self._early:
                self._received += 1
                messages.append(self._early.pop(self._received))
        heard = frame.clock if frame.number <= self._received else None
        return Received(messages, heard, renewed)

    def _meet(self, epoch: int) -> bool:
        """Begin a conversation with a peer that is new; whether there was another before."""
        if epoch == self._peer:
            return False
        renewed = self._peer > 0
        if renewed:
            # What is still to be said was meant for the old one.
            self._start(_State(self._epoch, self._retry, self._beat, epoch, 0, [], 0))
        self._peer, self._told, self._since, self._wait = epoch, None, None, self._retry
        return renewed

    def _learn(self, frame: Frame, now: int) -> None:
        ahead = int.from_bytes(frame.ahead, "little")
        if frame.ack >= self._acked:  # else it was overtaken
            places = range(ahead.bit_length())
            self._there = {frame.ack + 1 + place for place in places if ahead >> place & 1}
        if frame.ack <= self._acked:
            return
        for _ in range(frame.ack - self._acked):
            self._unacked.popleft()
        self._acked = frame.ack
        self._flown = max(self._flown, frame.ack)
        self._since = now if self._flown > frame.ack else None
        self._wait = self._retry

    def to_bytes(self) -> bytes:
        """The whole end but for what is on its way."""
        state = _State(
            self._epoch,
            self._retry,
            self._beat,
            self._peer,
            self._acked,
            list(self._unacked),
            self._received,
        )
        return wire.frame(wire.SESSION_END, state)

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """The end whose `to_bytes` gave `data`; WireError for anything else."""
        state = wire.unframe_bare(data, wire.SESSION_END, _State)
        if state.acked + len(state.unacked) > 1 << 62 or (state.acked and not state.peer):
            raise wire.WireError("no conversation has come to this point")
        end = cls.__new__(cls)
        end._start(state)
        return end
