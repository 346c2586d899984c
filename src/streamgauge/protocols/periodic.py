"""A site sends its whole sketch whenever its window has changed enough.

    site --Report--> coordinator

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
are on their way, it holds for the streams as they were when the last delivered ones were sent.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamgauge import wire
from streamgauge.protocols.messages import COORDINATOR, Answer, ProtocolError, Send, SiteName
from streamgauge.queries import Query
from streamgauge.sketches.door import require_share
from streamgauge.sketches.ecm import EcmSketch
from streamgauge.sketches.wave import Wave

Number = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class Report(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1):
    """A site's sketch as it was; `number` counts the site's reports from 1."""

    number: Number
    sketch: bytes


class _SiteState(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    epsilon: Share
    number: Number
    reported_arrivals: Number
    sketch: bytes
    reported: bytes


class _CoordinatorState(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    epsilon: Share
    template: bytes
    reports: list[tuple[SiteName, Number, bytes]]


class Site:
    """Watches one stream and reports its sketch; starts from an empty `template`."""

    def __init__(self, template: EcmSketch, epsilon: float) -> None:
        self.sketch = template.fresh()
        self._epsilon = require_share("epsilon", epsilon)
        self._number = 0
        self._reported = self.sketch.total_wave()
        self._reported_arrivals = 0

    def update(self, items: Any, times: Any, weights: Any = None) -> tuple[int, list[Send]]:
        """Take events up to the first that makes the site speak; returns how many it took.

        The driver delivers what is to be sent and passes the rest.
        """
        words, kind = self.sketch.words(items)
        ticks = self.sketch.door.ticks(times, words.size, weights)
        taken, admitted = self.sketch.admit(words, ticks, weights)
        arrivals = self.sketch.arrivals - self._reported_arrivals
        one_each = np.arange(1, admitted.ticks.size + 1)
        since = arrivals + (one_each if admitted.weights is None else np.cumsum(admitted.weights))
        # Whatever the expirations, the site is not silent beyond the arrivals it may hide.
        reach = int(np.searchsorted(since, hidden_arrivals(self._reported, self._epsilon), "right"))
        speaks = self._must_speak(since[: reach + 1], admitted.ticks[: reach + 1])
        consumed = ticks.size
        if speaks.any():
            event = int(np.argmax(speaks))
            if admitted.kept is not None:
                event = int(np.flatnonzero(admitted.kept)[event])
            consumed = event + 1
        if consumed < ticks.size:
            weights = None if weights is None else weights[:consumed]
            taken, admitted = self.sketch.admit(words[:consumed], ticks[:consumed], weights)
        self.sketch.insert(taken, admitted, kind)
        return consumed, self._report() if speaks.any() else []

    def advance(self, now: Any) -> list[Send]:
        """Let time pass without events; expirations may make the site speak."""
        self.sketch.advance(now)
        arrivals = np.array([self.sketch.arrivals - self._reported_arrivals])
        if self._must_speak(arrivals, np.array([self.sketch.now])).all():
            return self._report()
        return []

    def receive(self, message: msgspec.Struct) -> list[Send]:
        """Nobody speaks to a site in this protocol."""
        raise ProtocolError(f"a site of the periodic protocol received {message}")

    def _must_speak(
        self, arrivals: NDArray[np.int64], ticks: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        if self._reported.now is None:
            return arrivals > 0
        left = self._reported.remaining(ticks)
        then = self._reported.estimate()
        expirations = then.value - left.value
        return arrivals + expirations > self._epsilon * (left.low + arrivals)

    def _report(self) -> list[Send]:
        self._number += 1
        self._reported = self.sketch.total_wave()
        self._reported_arrivals = self.sketch.arrivals
        return [Send(COORDINATOR, Report(self._number, self.sketch.to_bytes()))]

    def to_bytes(self) -> bytes:
        """The whole machine."""
        state = _SiteState(
            self._epsilon,
            self._number,
            self._reported_arrivals,
            self.sketch.to_bytes(),
            self._reported.to_bytes(),
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
        site._reported = Wave.from_bytes(state.reported)
        site._reported_arrivals = state.reported_arrivals
        if state.reported_arrivals > site.sketch.arrivals:
            raise wire.WireError("more arrivals were reported than there were")
        if (site._reported.window, site._reported.tick) != (site.sketch.window, site.sketch.tick):
            raise wire.WireError("the report is about another window")
        return site


class Coordinator:
    """Holds every site's last report and answers for the union of their streams."""

    def __init__(self, template: EcmSketch, epsilon: float) -> None:
        self._epsilon = require_share("epsilon", epsilon)
        self._template = template.fresh()
        self._sketches: dict[SiteName, EcmSketch] = {}
        self._numbers: dict[SiteName, int] = {}

    @property
    def sites(self) -> Mapping[SiteName, EcmSketch]:
        """The sites that have reported, with their sketches."""
        return self._sketches

    def receive(self, site: SiteName, message: Report) -> list[Send]:
        """Take a site's report; one that is older than what is known changes nothing."""
        if message.number <= self._numbers.get(site, 0):
            return []
        try:
            self._keep(site, message.number, message.sketch)
        except wire.WireError as error:
            raise ProtocolError(f"report {message.number} of site {site!r}: {error}") from error
        return []

    def _keep(self, site: SiteName, number: int, data: bytes) -> None:
        sketch = EcmSketch.from_bytes(data)
        if sketch.specification != self._template.specification:
            raise wire.WireError(f"it is about {sketch}, expected {self._template}")
        kinds = {held.kind for held in self._sketches.values()} - {None}
        if sketch.kind is not None and kinds - {sketch.kind}:
            raise wire.WireError(f"its items are {sketch.kind}, those of other sites {kinds.pop()}")
        self._numbers[site] = number
        self._sketches[site] = sketch

    def answer(self, query: Query, now: Any = None) -> Answer:
        """The answer for the window that ends at `now`, the greatest clock reported if None."""
        sketches = list(self._sketches.values()) or [self._template]
        clocks = [sketch.now for sketch in sketches if sketch.now is not None]
        if now is None and clocks:
            now = self._template.door.time(max(clocks))
        hidden = sum(hidden_arrivals(s.total_wave(), self._epsilon) for s in sketches)
        estimate = query.answer(sketches, now, hidden)
        return Answer(estimate, min(clocks, default=None), 0)

    def to_bytes(self) -> bytes:
        """The whole machine."""
        reports = [
            (site, self._numbers[site], sketch.to_bytes())
            for site, sketch in self._sketches.items()
        ]
        state = _CoordinatorState(self._epsilon, self._template.to_bytes(), reports)
        return wire.frame(wire.PERIODIC_COORDINATOR, state)

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """The machine whose `to_bytes` gave `data`; WireError for anything else."""
        state = wire.unframe_bare(data, wire.PERIODIC_COORDINATOR, _CoordinatorState)
        coordinator = cls.__new__(cls)
        coordinator._epsilon = state.epsilon
        coordinator._template = EcmSketch.from_bytes(state.template)
        coordinator._numbers, coordinator._sketches = {}, {}
        for site, number, report in state.reports:
            if site in coordinator._sketches:
                raise wire.WireError(f"site {site!r} is there twice")
            coordinator._keep(site, number, report)
        return coordinator


def hidden_arrivals(reported: Wave, epsilon: float) -> int:
    """The most arrivals with which a site can still be silent, in the rule's own arithmetic."""
    low = reported.estimate().low
    most = math.floor(epsilon * low / (1 - epsilon))
    while most + 1 <= epsilon * (low + most + 1):
        most += 1
    return most


MESSAGES = Report
