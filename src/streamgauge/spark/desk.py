"""The coordinator's desk: a coordinator, what it has heard, and the file that holds both.

Spark calls it with every micro-batch at least once. The file has the coordinator, the counts and
the number of the last batch, and is replaced in one step, so that a batch counts once: one that is
delivered again after a crash is known by its number. What a batch makes known is written before
that, under its number; a batch that comes again writes the same again.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from streamgauge import wire
from streamgauge.protocols import periodic
from streamgauge.protocols.messages import Answer, ProtocolError, SiteName
from streamgauge.queries import Query
from streamgauge.sketches.ecm import EcmSketch

Count = Annotated[int, msgspec.Meta(ge=0)]


class Traffic(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """What a site has seen, and what it has said."""

    messages: Count = 0
    bytes: Count = 0  # of the messages, as they were delivered
    events: Count = 0  # late ones included
    late: Count = 0
    nulls: Count = 0  # rows without item, time or weight
    early: Count = 0

    def __add__(self, other: "Traffic") -> "Traffic":
        both = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return Traffic(*(a + b for a, b in both))


class Delivery(NamedTuple):
    """One message, by its size."""

    site: SiteName
    number: int
    bytes: int


class Update(NamedTuple):
    """What the coordinator knows after a batch."""

    batch: int
    now: int | None  # in ticks: the newest event of all sites; None before the first
    answers: list[tuple[Query, Answer]]
    delivered: list[Delivery]  # of this batch
    traffic: dict[SiteName, Traffic]  # of all batches
    nameless: int  # rows without a site, of all batches


class Row(NamedTuple):
    """One row from a site: a message or, with `message` None, what it counted in this batch."""

    site: SiteName | None
    message: bytes | None
    now: int | None
    counts: Traffic


class _File(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    query: str  # Spark's id of the query, which lives as long as its checkpoint
    batch: int
    now: int | None
    nameless: int
    template: bytes
    epsilon: float
    traffic: list[tuple[SiteName, Traffic]]


class Desk:
    """Takes the batches of one query, in order, and answers its questions after each."""

    def __init__(self, template: EcmSketch, epsilon: float, queries: Sequence[Query]) -> None:
        self.coordinator = periodic.Coordinator(template, epsilon)
        self.traffic: dict[SiteName, Traffic] = {}
        self.batch = -1
        self.now: int | None = None
        self.nameless = 0
        self._template, self._epsilon = template, epsilon
        self._queries = list(queries)

    def moment(self, tick: int) -> int | str:
        """A tick as an integer, or as an instant in ISO 8601."""
        time = self._template.door.time(tick)
        return time if isinstance(time, int) else f"{time}Z"

    def take(self, batch: int, rows: Iterable[Row]) -> Update:
        """A batch's rows, in whatever order."""
        if batch != self.batch + 1:
            raise RuntimeError(
                f"batch {batch} follows batch {self.batch}: the coordinator's file is not from "
                "this point of the query; restore it, or start with a new checkpoint"
            )
        counted, arrived = [], []
        for row in rows:
            if row.site is None:
                self.nameless += row.counts.nulls
            elif row.message is None:
                counted.append((row.site, row))
            else:
                report = self._report(row.site, row.message)
                arrived.append((row.site, report.number, row.message, report))
        for site, row in sorted(counted, key=lambda each: each[0]):
            self._count(site, row)
        in_order = sorted(arrived, key=lambda message: message[:2])
        delivered = [self._deliver(*message) for message in in_order]
        self.batch = batch
        return Update(
            batch, self.now, self._answers(), delivered, dict(self.traffic), self.nameless
        )

    def _report(self, site: SiteName, message: bytes) -> periodic.Report:
        try:
            report: periodic.Report = wire.decode(message, periodic.MESSAGES)
        except wire.WireError as error:
            raise ProtocolError(f"a message of site {site!r} cannot be read: {error}") from error
        return report

    def _deliver(
        self, site: SiteName, number: int, message: bytes, report: periodic.Report
    ) -> Delivery:
        before = self.traffic.get(site, Traffic())
        if number != before.messages + 1:
            raise ProtocolError(f"report {number} of site {site!r} follows {before.messages}")
        self.coordinator.receive(site, report)
        self.traffic[site] = before + Traffic(messages=1, bytes=len(message))
        return Delivery(site, number, len(message))

    def _count(self, site: SiteName, row: Row) -> None:
        self.traffic[site] = self.traffic.get(site, Traffic()) + row.counts
        if row.now is not None:
            self.now = row.now if self.now is None else max(self.now, row.now)

    def _answers(self) -> list[tuple[Query, Answer]]:
        if self.now is None:
            return []
        now = self._template.door.time(self.now)
        return [(query, self.coordinator.answer(query, now)) for query in self._queries]

    def keep(self, path: Path, query: str) -> None:
        """Replace the file, in one step that a crash cannot split."""
        header = _File(
            query,
            self.batch,
            self.now,
            self.nameless,
            self._template.to_bytes(),
            self._epsilon,
            list(self.traffic.items()),
        )
        replace(path, wire.frame(wire.SPARK_DESK, header, self.coordinator.to_bytes()))

    def resume(self, path: Path, query: str) -> None:
        """Become the desk that the file holds, if there is one."""
        if not path.exists():
            return
        try:
            held, coordinator = wire.unframe(path.read_bytes(), wire.SPARK_DESK, _File)
            self.coordinator = periodic.Coordinator.from_bytes(coordinator)
        except wire.WireError as error:
            raise RuntimeError(
                f"the coordinator's file {path} cannot be read ({error}): restore it, or start "
                "with a new checkpoint"
            ) from error
        if held.query != query:
            raise RuntimeError(
                f"the coordinator's file {path} belongs to query {held.query} and this is {query}:"
                " the rest of the checkpoint was replaced; start with a new one"
            )
        template = EcmSketch.from_bytes(held.template)
        if held.template != self._template.to_bytes() or held.epsilon != self._epsilon:
            raise ValueError(
                f"template and epsilon must be those of the checkpoint, {template} and "
                f"{held.epsilon}, got {self._template} and {self._epsilon}"
            )
        self.batch, self.now, self.nameless = held.batch, held.now, held.nameless
        self.traffic = dict(held.traffic)


def replace(path: Path, data: bytes) -> None:
    """Write a file so that a crash leaves the old one or the new one."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    with open(unfinished, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
