"""One-shot polling: the coordinator asks, every site sends its sketch. What pushing is judged by.

    coordinator --Poll--> every site --Reply--> coordinator
    site --Leave--> coordinator

The coordinator asks when its clock is told, once in `every` ticks, and answers for the moment at
which the sites replied (`Answer.as_of`); what came since is not in the interval. `in_flight` says
how many replies to the last question are missing. A site says nothing of its own accord.
"""

from typing import Annotated, Any, Self

import msgspec

from streamgauge import wire
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
from streamgauge.sketches.door import Count, Tick
from streamgauge.sketches.ecm import EcmSketch

Length = Annotated[int, msgspec.Meta(ge=1, le=1 << 62)]


class Poll(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1):
    """What do you hold? Rounds count from 1."""

    round: Number


class Reply(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=2):
    """A site's sketch as it was when the poll of this round arrived."""

    round: Number
    sketch: bytes


class _CoordinatorState(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    template: bytes
    every: Length
    patience: Count | None
    heard: list[Heard]
    round: Number
    asked: Tick | None
    replies: list[tuple[SiteName, Number, bytes]]
    departed: list[bytes]


class Site:
    """Watches one stream and waits to be asked."""

    def __init__(self, template: EcmSketch) -> None:
        self.sketch = template.fresh()

    def update(self, items: Any, times: Any, weights: Any = None) -> tuple[int, list[Send]]:
        """Take all events."""
        words, _ = self.sketch.words(items)
        self.sketch.update(items, times, weights)
        return words.size, []

    def advance(self, now: Any) -> list[Send]:
        """Let time pass."""
        self.sketch.advance(now)
        return []

    def receive(self, message: Poll) -> list[Send]:
        """Reply."""
        if not isinstance(message, Poll):
            raise ProtocolError(f"a polled site received {message}")
        return [Send(COORDINATOR, Reply(message.round, self.sketch.to_bytes()))]

    def leave(self) -> list[Send]:
        """Send the sketch without being asked; there will be no more events."""
        return [Send(COORDINATOR, Reply(0, self.sketch.to_bytes())), Send(COORDINATOR, Leave(1))]

    def renew(self) -> list[Send]:
        """A coordinator that has forgotten everything will ask."""
        return []

    def to_bytes(self) -> bytes:
        """The whole machine."""
        return self.sketch.to_bytes()

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """The machine whose `to_bytes` gave `data`; WireError for anything else."""
        site = cls.__new__(cls)
        site.sketch = EcmSketch.from_bytes(data)
        return site


class Coordinator:
    """Asks every site, and answers from the last replies."""

    def __init__(self, template: EcmSketch, every: int, patience: int | None = None) -> None:
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every}")
        self._template = template.fresh()
        self._every = every
        self._members = Members(patience)
        self._round = 0
        self._asked: int | None = None
        self._replies: dict[SiteName, tuple[int, EcmSketch]] = {}
        self._departed: list[EcmSketch] = []  # of sites that left, until they are empty

    def join(self, site: SiteName, now: int | None = None) -> list[Send]:
        """A site is there from now on, or begins anew; it is asked with the others."""
        self._forget(site)
        self._members.hear(site, now)
        return []

    def hear(self, site: SiteName, now: int) -> list[Send]:
        """A site is there at the tick `now`; what it holds is not known by that."""
        if site in self._members.names:
            self._members.hear(site, now)
        return []

    def advance(self, now: int) -> list[Send]:
        """Ask, if it is time to."""
        self._departed = [left for left in self._departed if left.total(now=now).high]
        if self._asked is not None and now < self._asked + self._every:
            return []
        self._asked = now
        self._round += 1
        return [Send(site, Poll(self._round)) for site in self._members.names]

    def receive(self, site: SiteName, message: Reply | Leave) -> list[Send]:
        """Take a reply; one to a round before the last, or of a site that left, changes nothing."""
        if site not in self._members.names:
            return []
        if isinstance(message, Leave):
            self._forget(site)
            return []
        if message.round > self._round:
            raise ProtocolError(f"site {site!r} replies to round {message.round}, not asked yet")
        known = self._replies.get(site)
        if known is not None and 0 < message.round <= known[0]:
            return []
        try:
            sketch = EcmSketch.from_bytes(message.sketch)
        except wire.WireError as error:
            raise ProtocolError(f"the reply of site {site!r}: {error}") from error
        if sketch.specification != self._template.specification:
            raise ProtocolError(f"site {site!r} is about {sketch}, expected {self._template}")
        self._replies[site] = (message.round, sketch)
        self._members.hear(site, sketch.now)
        return []

    def _forget(self, site: SiteName) -> None:
        self._members.leave(site)
        if site in self._replies:
            self._departed.append(self._replies.pop(site)[1])

    def answer(self, query: Query, now: Any = None) -> Answer:
        """The answer for the window that ends at `now`, from what the sites held at `as_of`."""
        held = [sketch for _, sketch in self._replies.values()]
        sketches = [*held, *self._departed] or [self._template]
        clocks = [sketch.now for sketch in sketches if sketch.now is not None]
        if now is None and clocks:
            now = self._template.door.time(max(clocks))
        moment = None if now is None else self._template.door.range(None, now)[1]
        silent = self._members.silent(moment)
        estimate = query.answer(sketches, now, float("inf") if silent else 0)
        missing = sum(
            site not in self._replies or self._replies[site][0] < self._round
            for site in self._members.names
        )
        as_of = min((s.now for s in held if s.now is not None), default=None)
        return Answer(estimate, as_of, missing, silent)

    def to_bytes(self) -> bytes:
        """The whole machine."""
        state = _CoordinatorState(
            self._template.to_bytes(),
            self._every,
            self._members.patience,
            self._members.state(),
            self._round,
            self._asked,
            [(site, of, sketch.to_bytes()) for site, (of, sketch) in self._replies.items()],
            [sketch.to_bytes() for sketch in self._departed],
        )
        return wire.frame(wire.POLLING_COORDINATOR, state)

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """The machine whose `to_bytes` gave `data`; WireError for anything else."""
        state = wire.unframe_bare(data, wire.POLLING_COORDINATOR, _CoordinatorState)
        coordinator = cls.__new__(cls)
        coordinator._template = EcmSketch.from_bytes(state.template)
        coordinator._every = state.every
        coordinator._members = Members(state.patience, state.heard)
        coordinator._round, coordinator._asked = state.round, state.asked
        coordinator._replies = {
            site: (of, EcmSketch.from_bytes(sketch)) for site, of, sketch in state.replies
        }
        coordinator._departed = [EcmSketch.from_bytes(left) for left in state.departed]
        specification = coordinator._template.specification
        held = [sketch for _, sketch in coordinator._replies.values()]
        if any(each.specification != specification for each in [*held, *coordinator._departed]):
            raise wire.WireError("a sketch is about something else")
        return coordinator


MESSAGES = Poll | Reply | Leave
