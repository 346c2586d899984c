"""Every event goes to the coordinator, which answers exactly: what all else is judged by.

    site --Batch--> coordinator
    site --Leave--> coordinator

A site sends what it holds as soon as that is `batch` arrivals or, when its clock is told, the
first of them has waited for `wait` ticks. Equal neighbours are one event of more weight. A `raw`
batch is words, ticks and, where weights are worth it, weights, 8 bytes each. A `deflated` one is
what somebody would write who wants to do without sketches: gaps between ticks instead of ticks,
columns as narrow as their largest value, zlib. The coordinator keeps every event of the window. A
site holds back fewer than `batch` arrivals, by which answers are widened.
"""

import math
import zlib
from typing import Annotated, Any, Literal, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamgauge import items as item_words
from streamgauge import wire
from streamgauge.estimate import Estimate
from streamgauge.protocols import events as event_bits
from streamgauge.protocols.events import NONE, Events, Packed
from streamgauge.protocols.membership import Heard, Members
from streamgauge.protocols.messages import (
    COORDINATOR,
    Answer,
    Leave,
    Number,
    ProtocolError,
    Send,
    SiteName,
)
from streamgauge.queries import Frequency, Query, SelfJoin, Total
from streamgauge.sketches.door import COUNT_LIMIT, Count, Door, DoorState, Tick
from streamgauge.ticks import LIMIT

Length = Annotated[int, msgspec.Meta(ge=1, le=1 << 53)]
Packing = Literal["raw", "deflated"]
_Width = Literal[1, 2, 4, 8]
_Widths = tuple[_Width, _Width, Literal[0, 1, 2, 4, 8]]
_MOST = 1 << 22  # events of one batch, or half as many more where weights are left out


class Batch(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1):
    """Events in order of time; `number` counts a site's messages from 1."""

    number: Number
    encoding: Packing
    kind: item_words.Kind
    events: Length
    first: Tick
    widths: _Widths
    columns: bytes


class _SiteState(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    door: DoorState
    batch: Length
    wait: Length
    packing: Packing
    number: Number
    kind: item_words.Kind | None
    held: Packed


class _CoordinatorState(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    door: DoorState
    batch: Length
    patience: Count | None
    heard: list[Heard]
    numbers: list[tuple[SiteName, Number]]
    kind: item_words.Kind | None
    held: list[tuple[SiteName, Packed]]


class Site:
    """Watches one stream and passes it on."""

    def __init__(self, window: int, *, batch: int, wait: int, packing: Packing) -> None:
        for name, value in (("batch", batch), ("wait", wait)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        self.door = Door.parse(window, None, "raise")
        self._batch, self._wait, self._packing = batch, wait, packing
        self._number = 0
        self._kind: item_words.Kind | None = None
        self._held: list[Events] = []
        self._arrivals = 0  # held

    def update(self, items: Any, times: Any, weights: Any = None) -> tuple[int, list[Send]]:
        """Take events up to the first that makes a batch full; returns how many it took."""
        words, kind = item_words.words(items)
        if kind and self._kind and kind != self._kind:
            raise ValueError(f"items must be {self._kind}, as those before, got {kind}")
        ticks = self.door.ticks(times, words.size, weights)
        if ticks.size != words.size:
            raise ValueError(f"times must be as many as items, got {ticks.size} for {words.size}")
        counts = np.ones_like(ticks) if weights is None else np.asarray(weights)
        self.door.admit(ticks, weights)  # all or nothing
        full = np.flatnonzero(np.cumsum(counts) + self._arrivals >= self._batch)
        consumed = int(full[0]) + 1 if full.size else ticks.size
        admitted = self.door.admit(ticks[:consumed], None if weights is None else counts[:consumed])
        taken = words[:consumed] if admitted.kept is None else words[:consumed][admitted.kept]
        self._held.append(Events(taken.copy(), admitted.ticks.copy(), admitted.counts.copy()))
        self._arrivals += admitted.arrivals
        self._kind = self._kind or kind
        self.door.enter(admitted)
        return consumed, self._send() if full.size else []

    def advance(self, now: Any) -> list[Send]:
        """Let time pass; nothing waits for longer than it may."""
        self.door.advance(now)
        clock = self.door.now
        first = next((int(part.ticks[0]) for part in self._held if part.ticks.size), clock)
        assert clock is not None and first is not None, "it was just told"
        return self._send() if self._arrivals and clock - first >= self._wait else []

    def _send(self) -> list[Send]:
        held, self._held, self._arrivals = event_bits.joined(self._held), [], 0
        assert self._kind is not None, "there is an event"
        sends = []
        for begin in range(0, held.words.size, _MOST):
            part = held.part(begin, begin + _MOST)
            self._number += 1
            sends.append(Send(COORDINATOR, _batch(self._number, self._packing, self._kind, part)))
        return sends

    def leave(self) -> list[Send]:
        """Send what is held; there will be no more events."""
        last = self._send() if self._arrivals else []
        self._number += 1
        return [*last, Send(COORDINATOR, Leave(self._number))]

    def renew(self) -> list[Send]:
        """What a coordinator has forgotten is not here any more."""
        self._number = 0
        return []

    def receive(self, message: msgspec.Struct) -> list[Send]:
        """Nobody speaks to a site in this protocol."""
        raise ProtocolError(f"a site that ships everything received {message}")

    def to_bytes(self) -> bytes:
        """The whole machine."""
        held = event_bits.pack(event_bits.joined(self._held))
        state = _SiteState(
            self.door.state(),
            self._batch,
            self._wait,
            self._packing,
            self._number,
            self._kind,
            held,
        )
        return wire.frame(wire.SHIPPING_SITE, state)

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """The machine whose `to_bytes` gave `data`; WireError for anything else."""
        state = wire.unframe_bare(data, wire.SHIPPING_SITE, _SiteState)
        site = cls.__new__(cls)
        site.door = Door(state.door)
        site._batch, site._wait, site._packing = state.batch, state.wait, state.packing
        site._number, site._kind = state.number, state.kind
        held = event_bits.unpack(state.held)
        site._held, site._arrivals = [held], int(held.weights.sum())
        if site._arrivals >= state.batch or (site._arrivals and state.kind is None):
            raise wire.WireError(f"no site holds {site._arrivals} events of {state.kind}")
        if site._arrivals and (state.door.now is None or held.ticks[-1] > state.door.now):
            raise wire.WireError("an event is later than the clock")
        return site


class Coordinator:
    """Holds every event of the window and counts."""

    def __init__(self, window: int, *, batch: int, patience: int | None = None) -> None:
        self._door = Door.parse(window, None, "raise")
        self._batch = batch
        self._members = Members(patience)
        self._numbers: dict[SiteName, int] = {}
        self._kind: item_words.Kind | None = None
        self._held: dict[SiteName, list[Events]] = {}

    def join(self, site: SiteName, now: int | None = None) -> list[Send]:
        """A site is there from now on, or begins anew."""
        self._numbers.pop(site, None)
        self._members.leave(site)
        self._members.hear(site, now)
        return []

    def hear(self, site: SiteName, now: int) -> list[Send]:
        """A site has said all that it had to say up to the tick `now`."""
        if site in self._members.names:
            self._members.hear(site, now)
        return []

    def advance(self, now: int) -> list[Send]:
        """Let time pass, and forget what no question can reach any more."""
        cutoff = self._door.range(None, now)[0]
        for site, parts in self._held.items():
            self._held[site] = [part for part in parts if part.ticks[-1] > cutoff]
        return []

    def receive(self, site: SiteName, message: Batch | Leave) -> list[Send]:
        """Take a batch; one that is known already changes nothing."""
        known = self._numbers.get(site, 0)
        if message.number <= known:
            return []
        if message.number != known + 1:
            raise ProtocolError(f"batch {message.number} of site {site!r} follows {known}")
        if isinstance(message, Leave):
            self._members.leave(site)
        else:
            try:
                self._keep(site, _events(message))
            except wire.WireError as error:
                raise ProtocolError(f"batch {known + 1} of site {site!r}: {error}") from error
            if self._kind not in (None, message.kind):
                raise ProtocolError(f"items of site {site!r} are {message.kind}, not {self._kind}")
            self._kind = message.kind
        self._numbers[site] = message.number
        return []

    def _keep(self, site: SiteName, part: Events) -> None:
        self._held.setdefault(site, []).append(part)
        self._members.hear(site, int(part.ticks[-1]))

    def answer(self, query: Query, now: Any = None) -> Answer:
        """The answer for the window that ends at `now`, the newest event's tick if None."""
        parts = [part for parts in self._held.values() for part in parts]
        if now is None:
            now = max((int(part.ticks[-1]) for part in parts), default=0)
        cutoff, moment = self._door.range(query.last, now)
        words, ticks, weights = (np.concatenate(each) for each in zip(NONE, *parts, strict=True))
        inside = (ticks > cutoff) & (ticks <= moment)
        exact = float(_count(query, words[inside], weights[inside]))
        silent = self._members.silent(moment)
        hidden = math.inf if silent else (self._batch - 1) * len(self._members.names)
        estimate = query.widened(Estimate(exact, exact, exact, 1.0), hidden)
        return Answer(estimate, self._members.as_of, 0, silent)

    def to_bytes(self) -> bytes:
        """The whole machine."""
        state = _CoordinatorState(
            self._door.state(),
            self._batch,
            self._members.patience,
            self._members.state(),
            list(self._numbers.items()),
            self._kind,
            [(site, event_bits.pack(part)) for site, parts in self._held.items() for part in parts],
        )
        return wire.frame(wire.SHIPPING_COORDINATOR, state)

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """The machine whose `to_bytes` gave `data`; WireError for anything else."""
        state = wire.unframe_bare(data, wire.SHIPPING_COORDINATOR, _CoordinatorState)
        coordinator = cls.__new__(cls)
        coordinator._door = Door(state.door)
        coordinator._batch = state.batch
        coordinator._members = Members(state.patience, state.heard)
        coordinator._numbers = dict(state.numbers)
        coordinator._kind = state.kind
        coordinator._held = {}
        for site, packed in state.held:
            part = event_bits.unpack(packed)
            if part.words.size == 0:
                raise wire.WireError("a batch without events")
            coordinator._held.setdefault(site, []).append(part)
        return coordinator


def _count(query: Query, words: NDArray[np.uint64], weights: NDArray[np.int64]) -> int:
    match query:
        case Total():
            return int(weights.sum())
        case Frequency(item=item):
            return int(weights[words == item_words.words(item)[0]].sum())
        case SelfJoin():
            places = np.unique(words, return_inverse=True)[1]
            counts = np.bincount(places, weights).astype(np.int64)
            return sum(count * count for count in counts.tolist())


def _batch(number: int, packing: Packing, kind: item_words.Kind, given: Events) -> Batch:
    words, ticks, weights = given
    if packing == "raw" and 2 * int(weights.sum()) <= 3 * words.size:
        # Without weights an event takes two columns and not three.
        words, ticks, weights = words.repeat(weights), ticks.repeat(weights), np.ones_like(weights)
    n, first = ticks.size, int(ticks[0])
    light = bool(np.all(weights == 1))
    if packing == "raw":
        since = ticks - first
        widths: _Widths = (8, 8, 0 if light else 8)
    else:
        since = np.diff(ticks, prepend=first)
        widths = (_width(words), _width(since), 0 if light else _width(weights))
    columns: list[NDArray[Any]] = [words, since, weights]
    octets = b"".join(
        column.astype(f"<u{width}").tobytes()
        for column, width in zip(columns, widths, strict=True)
        if width
    )
    data = octets if packing == "raw" else zlib.compress(octets)
    return Batch(number, packing, kind, n, first, widths, data)


def _width(values: NDArray[Any]) -> Literal[1, 2, 4, 8]:
    bits = int(values.max()).bit_length()
    return 1 if bits <= 8 else 2 if bits <= 16 else 4 if bits <= 32 else 8


def _events(batch: Batch) -> Events:
    """What a batch holds; WireError if no site can have sent it."""
    n, size = batch.events, batch.events * sum(batch.widths)
    if n > 3 * _MOST // 2:
        raise wire.WireError(f"{n} events are more than a batch holds")
    data = batch.columns
    if batch.encoding == "deflated":
        unpacking = zlib.decompressobj()
        try:
            data = unpacking.decompress(data, size + 1)
        except zlib.error as error:
            raise wire.WireError(str(error)) from None
    if len(data) != size:
        raise wire.WireError(f"{len(data)} bytes are not those of {n} events")
    columns = []
    for width in batch.widths:
        column = np.frombuffer(data[: n * width], f"<u{width}") if width else np.ones(n, np.uint64)
        columns.append(column.astype(np.uint64))
        data = data[n * width :]
    words, since, weights = columns
    if batch.encoding == "deflated":
        if int(since.sum(dtype=object)) > 2 * LIMIT:
            raise wire.WireError("an event is later than any time")
        since = np.cumsum(since, dtype=np.uint64)
    if int(since.max()) > LIMIT - batch.first or np.any(since[1:] < since[:-1]):
        raise wire.WireError("events are not in order of time, or later than any")
    if int(weights.min()) < 1 or int(weights.sum(dtype=object)) >= COUNT_LIMIT:
        raise wire.WireError("weights must be positive, and their sum below 2**53")
    return Events(words, batch.first + since.astype(np.int64), weights.astype(np.int64))


MESSAGES = Batch | Leave
