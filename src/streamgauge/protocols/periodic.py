"""A site tells what its window has become whenever that has changed enough.

    site --Report--> coordinator
    site --Leave---> coordinator

Rivetti, Busnel & Mostefaoui's DCM (2015), with its time mode mended (it froze when a site fell
silent): the site speaks as soon as

    arrivals + expirations  >  epsilon * (what the window holds)

since its last report, after every arrival and on ticks without one. Arrivals a are counted. What
the reported window still holds at a later tick u, if nothing had arrived, is read off the report's
own wave: at least low(u), about value(u), neither ever growing. So the rule is, exactly,

    a + value(t) - value(u)  >  epsilon * (low(u) + a)          for a report made at t,

and it depends on nothing but the report and a count: however the stream is cut into batches, the
same event speaks. While a site keeps silent, a (1 - epsilon) <= epsilon low(u) <= epsilon low(t).
Hence the promise: the coordinator's sketches lack at most

    epsilon / (1 - epsilon) * low(t)

arrivals of a site, and nothing else, for they expire by themselves; by that much an answer's
interval is widened. It holds at `now` if every message sent before has been delivered; while some
are on their way, it holds for the streams as they were when the last delivered ones were sent. A
site that is not heard at all may hide anything (membership.py).

A report is the sketch, or the events since the report before: the coordinator has that one's
sketch and feeds it the events, which gives the very same bytes. The events are the shorter form
while they are few (docs/decisions/0005). A site holds them only as long as they can be that.
"""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamgauge import items as item_words
from streamgauge import wire
from streamgauge.protocols import events as event_bits
from streamgauge.protocols.events import Events, Packed
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
from streamgauge.queries import Query
from streamgauge.sketches.door import Admitted, Count, Tick, require_room, require_share
from streamgauge.sketches.ecm import EcmSketch
from streamgauge.sketches.wave import Wave

Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class Updates(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What happened since the report before: events, and what the door made of others."""

    now: Tick | None
    late: Count
    kind: item_words.Kind | None
    events: Packed


class Report(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1):
    """A site's window as it was; `number` counts the site's messages from 1."""

    number: Number
    encoding: Literal["sketch", "updates"]
    payload: bytes


class _SiteState(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    epsilon: Share
    number: Number
    reported_arrivals: Number
    reported_late: Count
    sketch: bytes
    reported: bytes
    whole: Count
    events: Count
    since: Packed | None


class _CoordinatorState(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    epsilon: Share
    template: bytes
    patience: Count | None
    heard: list[Heard]
    reports: list[tuple[SiteName, Number, bytes]]
    left: list[tuple[SiteName, Number]]
    departed: list[bytes]


_FEW = 64  # events are always held
_TRIED = 16  # at a time


class Site:
    """Watches one stream and reports its sketch; starts from an empty `template`."""

    def __init__(self, template: EcmSketch, epsilon: float) -> None:
        self.sketch = template.fresh()
        self._epsilon = require_share("epsilon", epsilon)
        self._number = 0
        self._remember(self.sketch.total_wave(), 0, 0)
        self._whole = 0  # the bytes of the last sketch that was packed for a report
        # Since the last report; None: too many to be sent, or there is none that they follow.
        self._since: list[Events] | None = None
        self._events = 0  # since the last report

    def _remember(self, reported: Wave, arrivals: int, late: int) -> None:
        """What the rule is about: the last report's wave, and what there was until then."""
        self._reported, self._reported_arrivals, self._reported_late = reported, arrivals, late
        self._reported_value = reported.estimate().value

    @property
    def number(self) -> int:
        """How many messages there have been."""
        return self._number

    @property
    def reported(self) -> Wave:
        """The count of all events as it was at the last report."""
        return self._reported

    def update(self, items: Any, times: Any, weights: Any = None) -> tuple[int, list[Send]]:
        """Take events up to the first that makes the site speak; returns how many it took.

        The driver delivers what is to be sent and passes the rest.
        """
        words, kind = self.sketch.words(items)
        ticks = self.sketch.door.ticks(times, words.size, weights)
        taken, admitted = self.sketch.admit(words, ticks, weights)
        event = self._first_to_speak(admitted)
        consumed = ticks.size
        if event is not None:
            if admitted.kept is not None:
                event = int(np.flatnonzero(admitted.kept)[event])
            consumed = event + 1
        if consumed < ticks.size:
            weights = None if weights is None else weights[:consumed]
            taken, admitted = self.sketch.admit(words[:consumed], ticks[:consumed], weights)
        self.sketch.insert(taken, admitted, kind)
        self._hold(taken, admitted)
        return consumed, [] if event is None else self._report()

    def _first_to_speak(self, admitted: Admitted) -> int | None:
        """The first event after which the rule is broken.

        It stays so from then on, as arrivals only add and the report's window only shrinks: a
        few events at a time say between which two the first one is.
        """
        before = self.sketch.arrivals - self._reported_arrivals
        weights, ticks = admitted.weights, admitted.ticks
        since = None if weights is None else np.cumsum(weights)
        begin, end = 0, ticks.size
        while begin < end:
            tried = begin + (end - 1 - begin) * np.arange(_TRIED) // (_TRIED - 1)
            arrivals = before + (tried + 1 if since is None else since[tried])
            speaks = [*self._must_speak(arrivals, ticks[tried]), True]
            first = speaks.index(True)
            begin = int(tried[first - 1]) + 1 if first else begin
            end = int(tried[first]) if first < tried.size else begin
        return None if begin == ticks.size else begin

    def _hold(self, words: NDArray[np.uint64], admitted: Admitted) -> None:
        """Keep events for the next report, unless two bytes for each are more than a sketch."""
        self._events += words.size
        if self._events > max(_FEW, self._whole // 2):
            self._since = None
        if self._since is not None:
            self._since.append(Events(words.copy(), admitted.ticks.copy(), admitted.counts.copy()))

    def advance(self, now: Any) -> list[Send]:
        """Let time pass without events; expirations may make the site speak."""
        self.sketch.advance(now)
        arrivals = np.array([self.sketch.arrivals - self._reported_arrivals])
        if self._must_speak(arrivals, np.array([self.sketch.now])) == [True]:
            return self._report()
        return []

    def leave(self) -> list[Send]:
        """Say what there is to say; there will be no more events."""
        unsaid = self.sketch.arrivals - self._reported_arrivals
        last = self._report() if unsaid else []
        self._number += 1
        return [*last, Send(COORDINATOR, Leave(self._number))]

    def renew(self) -> list[Send]:
        """Say everything to a coordinator that has forgotten it."""
        self._number, self._since = 0, None
        return self._report() if self.sketch.now is not None else []

    def receive(self, message: msgspec.Struct) -> list[Send]:
        """Nobody speaks to a site in this protocol."""
        raise ProtocolError(f"a site of the periodic protocol received {message}")

    def _must_speak(self, arrivals: NDArray[np.int64], ticks: NDArray[np.int64]) -> list[bool]:
        """The rule, in whole numbers: epsilon is n / d, values are halves."""
        if self._reported.now is None:
            return [a > 0 for a in arrivals.tolist()]
        left = self._reported.remaining(ticks)
        n, d = self._epsilon.as_integer_ratio()
        twice = (2 * (self._reported_value - left.value)).astype(np.int64)
        columns = zip(arrivals.tolist(), twice.tolist(), left.low.tolist(), strict=True)
        return [d * (2 * a + expired) > 2 * n * (low + a) for a, expired, low in columns]

    def _report(self) -> list[Send]:
        self._number += 1
        message = self._shortest()
        self._remember(self.sketch.total_wave(), self.sketch.arrivals, self.sketch.late_events)
        self._since, self._events = [], 0
        return [Send(COORDINATOR, message)]

    def _shortest(self) -> Report:
        """The events if they take less than the last sketch that was packed, or than the one now.

        So a sketch is packed only where it is about to be sent, give or take.
        """
        updates = None
        if self._since is not None:
            late = self.sketch.late_events - self._reported_late
            packed = event_bits.pack(event_bits.joined(self._since))
            updates = wire.encode(Updates(self.sketch.now, late, self.sketch.kind, packed))
            if len(updates) < self._whole:
                return Report(self._number, "updates", updates)
        sketch = self.sketch.to_bytes()
        self._whole = len(sketch)
        if updates is not None and len(updates) < len(sketch):
            return Report(self._number, "updates", updates)
        return Report(self._number, "sketch", sketch)

    def to_bytes(self) -> bytes:
        """The whole machine."""
        since = self._since
        state = _SiteState(
            self._epsilon,
            self._number,
            self._reported_arrivals,
            self._reported_late,
            self.sketch.to_bytes(),
            self._reported.to_bytes(),
            self._whole,
            self._events,
            None if since is None else event_bits.pack(event_bits.joined(since)),
        )
        return wire.frame(wire.PERIODIC_SITE, state)

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """The machine whose `to_bytes` gave `data`; WireError for anything else."""
        state = wire.unframe_bare(data, wire.PERIODIC_SITE, _SiteState)
        site = cls.__new__(cls)
        site.sketch = EcmSketch.from_bytes(state.sketch)
        site._epsilon = state.epsilon
        site._number = state.number
        reported = Wave.from_bytes(state.reported)
        site._remember(reported, state.reported_arrivals, state.reported_late)
        site._whole, site._events = state.whole, state.events
        site._since = None if state.since is None else [event_bits.unpack(state.since)]
        if state.reported_arrivals > site.sketch.arrivals:
            raise wire.WireError("more arrivals were reported than there were")
        if (site._reported.window, site._reported.tick) != (site.sketch.window, site.sketch.tick):
            raise wire.WireError("the report is about another window")
        if state.reported_late > site.sketch.late_events:
            raise wire.WireError("more late events were reported than there were")
        site._require_since(state.reported_arrivals)
        return site

    def _require_since(self, reported: int) -> None:
        if self._since is None:
            return
        words, ticks, weights = self._since[0]
        if int(weights.sum()) != self.sketch.arrivals - reported:
            raise wire.WireError("the events since the report are not as many as there were")
        if words.size and (self.sketch.now is None or ticks[-1] > self.sketch.now):
            raise wire.WireError("an event since the report is later than the clock")


class Coordinator:
    """Holds every site's last report and answers for the union of their streams."""

    def __init__(self, template: EcmSketch, epsilon: float, patience: int | None = None) -> None:
        self._epsilon = require_share("epsilon", epsilon)
        self._template = template.fresh()
        self._members = Members(patience)
        self._sketches: dict[SiteName, EcmSketch] = {}
        self._numbers: dict[SiteName, int] = {}
        self._departed: list[EcmSketch] = []  # of sites that left, until they are empty

    @property
    def sites(self) -> Mapping[SiteName, EcmSketch]:
        """The sites that have reported, with their sketches."""
        return self._sketches

    def number(self, site: SiteName) -> int:
        """The number of a site's last message, 0 if there was none."""
        return self._numbers.get(site, 0)

    def join(self, site: SiteName, now: int | None = None) -> list[Send]:
        """A site is there from now on, or begins anew without knowing what it has said."""
        self._forget(site)
        self._members.hear(site, now)
        return []

    def hear(self, site: SiteName, now: int) -> list[Send]:
        """A site has said all that it had to say up to the tick `now`."""
        if site in self._members.names:
            self._members.hear(site, now)
        return []

    def advance(self, now: Any) -> list[Send]:
        """Let time pass: what those who left had reported expires."""
        self._departed = [left for left in self._departed if left.total(now=now).high]
        return []

    def receive(self, site: SiteName, message: Report | Leave) -> list[Send]:
        """Take a site's report; one that is older than what is known changes nothing."""
        known = self.number(site)
        if message.number <= known:
            return []
        if isinstance(message, Leave):
            self._forget(site)
            self._numbers[site] = message.number  # what comes late from it is known by that
            return []
        try:
            self._keep(site, message.number, self._read(site, message, known))
        except (wire.WireError, OverflowError) as error:
            raise ProtocolError(f"report {message.number} of site {site!r}: {error}") from error
        return []

    def _forget(self, site: SiteName) -> None:
        self._members.leave(site)
        self._numbers.pop(site, None)
        left = self._sketches.pop(site, None)
        if left is not None:
            self._departed.append(left)

    def _read(self, site: SiteName, report: Report, known: int) -> EcmSketch:
        """The sketch that the site had when it reported."""
        if report.encoding == "sketch":
            return EcmSketch.from_bytes(report.payload)
        if not known or report.number != known + 1:
            raise wire.WireError(f"it goes on from report {report.number - 1}, {known} is known")
        said: Updates = wire.decode(report.payload, Updates)
        sketch = self._sketches[site]
        words, admitted = _admitted(sketch, said)
        self._require_kind(said.kind, sketch)
        sketch.insert(words, admitted, said.kind)
        return sketch

    def _keep(self, site: SiteName, number: int, sketch: EcmSketch) -> None:
        if sketch.specification != self._template.specification:
            raise wire.WireError(f"it is about {sketch}, expected {self._template}")
        self._require_kind(sketch.kind, sketch)
        self._numbers[site] = number
        self._sketches[site] = sketch
        self._members.hear(site, sketch.now)

    def _require_kind(self, kind: item_words.Kind | None, own: EcmSketch) -> None:
        kinds = {held.kind for held in self._every() if held is not own} - {None}
        if kind is not None and kinds - {kind}:
            raise wire.WireError(f"its items are {kind}, those of other sites {kinds.pop()}")

    def _every(self) -> list[EcmSketch]:
        return [*self._sketches.values(), *self._departed]

    def answer(self, query: Query, now: Any = None) -> Answer:
        """The answer for the window that ends at `now`, the greatest clock reported if None."""
        sketches = self._every() or [self._template]
        clocks = [sketch.now for sketch in sketches if sketch.now is not None]
        if now is None and clocks:
            now = self._template.door.time(max(clocks))
        moment = None if now is None else self._template.door.range(None, now)[1]
        silent = self._members.silent(moment)
        held = self._sketches.values()
        hidden = sum(hidden_arrivals(sketch.total_wave(), self._epsilon) for sketch in held)
        estimate = query.answer(sketches, now, math.inf if silent else hidden)
        return Answer(estimate, self._members.as_of, 0, silent)

    def to_bytes(self) -> bytes:
        """The whole machine."""
        reports = [
            (site, self._numbers[site], sketch.to_bytes())
            for site, sketch in self._sketches.items()
        ]
        state = _CoordinatorState(
            self._epsilon,
            self._template.to_bytes(),
            self._members.patience,
            self._members.state(),
            reports,
            [each for each in self._numbers.items() if each[0] not in self._sketches],
            [sketch.to_bytes() for sketch in self._departed],
        )
        return wire.frame(wire.PERIODIC_COORDINATOR, state)

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """The machine whose `to_bytes` gave `data`; WireError for anything else."""
        state = wire.unframe_bare(data, wire.PERIODIC_COORDINATOR, _CoordinatorState)
        coordinator = cls.__new__(cls)
        coordinator._epsilon = state.epsilon
        coordinator._template = EcmSketch.from_bytes(state.template)
        coordinator._members = Members(state.patience, state.heard)
        coordinator._numbers, coordinator._sketches = dict(state.left), {}
        coordinator._departed = [EcmSketch.from_bytes(left) for left in state.departed]
        names = coordinator._members.names
        if len(names) < len(state.heard):
            raise wire.WireError("a site is there twice")
        for left in coordinator._departed:
            if left.specification != coordinator._template.specification:
                raise wire.WireError(f"it is about {left}, expected {coordinator._template}")
        for site, number, report in state.reports:
            if site in coordinator._sketches:
                raise wire.WireError(f"site {site!r} is there twice")
            if site not in names:
                raise wire.WireError(f"site {site!r} has reported, but is not there")
            coordinator._keep(site, number, EcmSketch.from_bytes(report))
        return coordinator


def _admitted(sketch: EcmSketch, said: Updates) -> tuple[NDArray[np.uint64], Admitted]:
    """What a site's door let in, for the sketch of its report before; WireError if it cannot be."""
    words, ticks, weights = event_bits.unpack(said.events)
    clock = sketch.now if sketch.now is not None else said.now
    moments = [clock, *ticks[[0, -1]].tolist(), said.now] if words.size else [clock, said.now]
    if any(b is None or a is None or b < a for a, b in pairwise(moments)):
        raise wire.WireError("it goes back in time")
    if (words.size and said.kind is None) or sketch.kind not in (None, said.kind):
        raise wire.WireError(f"its items are {said.kind}, those before {sketch.kind}")
    counts_arrivals = sketch.door.counts_arrivals
    if counts_arrivals and np.any(np.cumsum(weights) + (sketch.now or 0) != ticks):
        raise wire.WireError("arrivals are missing between two events")
    counts: NDArray[np.int64] | None = weights
    if not counts_arrivals and int(weights.sum()) <= 4 * words.size:
        # A weight is as many events, and single events are the faster way for so few.
        words, ticks, counts = words.repeat(weights), ticks.repeat(weights), None
    admitted = Admitted(ticks, counts, None, said.now, said.late, int(counts_arrivals))
    require_room(sketch.arrivals, admitted)
    return words, admitted


def hidden_arrivals(reported: Wave, epsilon: float) -> int:
    """The most arrivals a with which a site can still be silent: a <= epsilon (low + a)."""
    n, d = epsilon.as_integer_ratio()
    return n * int(reported.estimate().low) // (d - n)


MESSAGES = Report | Leave
