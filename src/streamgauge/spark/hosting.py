"""A protocol's site as a function: state and events in, state and messages out.

    decode        feed                                encode
    bytes --> periodic.Site --> events, silences --> bytes, messages, counts

Nothing of Spark is in here, and nothing depends on how a stream was cut: the same events give the
same messages and the same state in whatever batches, tasks and order within a batch they come, as
long as none of them is late.

A silent site must speak when enough has expired. Every site whose last event or look is `wake`
ago looks at its clock again. That moment lies on the stream's own time, so it is the same whether
an event comes after it in the same batch or Spark's watermark passes it in a later one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge import wire
from streamgauge.items import Hashed, Kind
from streamgauge.protocols.messages import Send
from streamgauge.protocols.periodic import Site
from streamgauge.sketches.ecm import EcmSketch
from streamgauge.spark.packing import Events, Packing, unpack

_BLOCK = 1 << 14  # a site that speaks looks at what is left of its batch again
_KEPT = ("events", "nulls", "early", "items", "times", "weights")
_NOBODY = pa.RecordBatch.from_pydict(
    {"site": pa.nulls(1), **dict.fromkeys(_KEPT[:3], pa.array([0]))}
    | dict.fromkeys(_KEPT[3:], pa.nulls(1, pa.binary()))
)
Cells = tuple[Sequence[Any], Sequence[Any], Sequence[Any]]
_CLOCK = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class StreamPacking:
    """Packs the rows of a stream: packed ones that no watermark can drop, and its clock.

    Spark drops rows by the column that carries the watermark, whole and without a word to us. So
    here it is null in every row but one, of no site, that has the newest time of all: the sites
    see every event, and count those that are too late for them.
    """

    packing: Packing
    ahead: int | None  # in microseconds or ticks, as times are
    calendar: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for chunk in _chunks(batches, self.packing.rows):
            latest = None if self.ahead is None else _latest(chunk, self.ahead)
            packed = replace(self.packing, latest=latest).pack(chunk)
            yield _stream_rows(packed, pa.nulls(len(packed), _CLOCK))
            newest = pc.max(packed["newest"])
            if newest.is_valid:
                nobody = _NOBODY.set_column(0, "site", pa.nulls(1, packed["site"].type))
                yield _stream_rows(nobody, pa.array([self._instant(newest)]).cast(_CLOCK))

    def _instant(self, newest: pa.Scalar) -> int:
        time: int = newest.cast(pa.int64()).as_py()
        if self.calendar:
            return time
        if abs(time) >= 1 << 53:
            raise ValueError(f"times of a stream must lie in (-2**53, 2**53) ticks, got {time}")
        return 1000 * time  # Spark's clock takes a mere tick for a millisecond


class Step(NamedTuple):
    """What a site has become, and what it has to say."""

    state: bytes
    messages: list[bytes]
    now: int  # its clock, in ticks
    late: int  # events that were too late, this time
    wake: int | None  # the tick at which it looks at its clock again; None: nothing can happen


@dataclass(frozen=True)
class Hosting:
    """What all sites of a query have in common."""

    template: bytes
    epsilon: float
    wake: int
    kind: Kind
    calendar: bool

    def feed(self, state: bytes | None, cells: Cells) -> Step:
        """Take a batch's events, from the packed rows' cells of items, times and weights."""
        site = self._decode(state)
        events = _in_one_order(unpack(*cells, self.kind, self.calendar))
        late = site.sketch.late_events
        sent = self._deliver(site, events)
        return self._encode(site, sent, late=site.sketch.late_events - late)

    def watch(self, state: bytes, before: int) -> Step:
        """Let time pass up to the tick `before`, which is still to come."""
        site = self._decode(state)
        start = site.sketch.now
        sent = self._idle(site, before)
        emptied = site.sketch.now != start and site.sketch.total().high == 0
        return self._encode(site, sent, emptied=emptied)

    def _decode(self, state: bytes | None) -> Site:
        if state is not None:
            return Site.from_bytes(state)
        return Site(EcmSketch.from_bytes(self.template), self.epsilon)

    def _encode(
        self, site: Site, sent: list[Send], *, late: int = 0, emptied: bool = False
    ) -> Step:
        now = site.sketch.now
        assert now is not None, "only sites with an event have a state"
        messages = [wire.encode(send.message) for send in sent]
        return Step(site.to_bytes(), messages, now, late, None if emptied else now + self.wake)

    def _deliver(self, site: Site, events: Events) -> list[Send]:
        """The events, and before each that comes after a silence what happens in it."""
        ticks = site.sketch.door.ticks(events.times, len(events.times), None)
        clock = np.maximum.accumulate(ticks)
        before = np.concatenate([[_clock(site, clock)], clock[:-1]])
        silences = np.flatnonzero(ticks - before > self.wake).tolist()
        sent = []
        for begin, end in zip([0, *silences], [*silences, ticks.size], strict=True):
            if begin in silences:
                sent += self._idle(site, int(ticks[begin]))
            sent += _take(site, events, begin, end)
        return sent

    def _idle(self, site: Site, before: int) -> list[Send]:
        """Look at the clock every `wake` ticks until the tick `before`."""
        sent: list[Send] = []
        start = site.sketch.now
        if start is None or start + self.wake >= before:
            return sent
        moments = range(start + self.wake, before, self.wake)
        for moment in moments:
            sent += site.advance(site.sketch.door.time(moment))
            if moment >= start + site.sketch.window:  # the window is empty, and has been reported
                site.sketch.advance(site.sketch.door.time(moments[-1]))
                break
        return sent


def _clock(site: Site, clock: Any) -> int:
    if site.sketch.now is not None:
        return site.sketch.now
    return int(clock[0]) if clock.size else 0


def _take(site: Site, events: Events, begin: int, end: int) -> list[Send]:
    sent = []
    while begin < end:
        part = slice(begin, min(begin + _BLOCK, end))
        weights = None if events.weights is None else events.weights[part]
        consumed, messages = site.update(events.items[part], events.times[part], weights)
        begin += consumed
        sent += messages
    return sent


def _in_one_order(events: Events) -> Events:
    """Events of one time in an order of their own, since tasks deliver them in any order."""
    items, times, weights = events
    if not np.any(times[1:] == times[:-1]):
        return events
    words: Any = items.words if isinstance(items, Hashed) else items
    order = np.lexsort((words, times) if weights is None else (weights, words, times))
    words = words[order]
    items = Hashed(words) if isinstance(items, Hashed) else words
    return Events(items, times[order], None if weights is None else weights[order])


def _stream_rows(packed: pa.RecordBatch, clock: pa.Array) -> pa.RecordBatch:
    """Packed rows with another clock. Spark's workers make floats of a key that may be null."""
    site = packed["site"]
    nothing = pa.scalar(0 if pa.types.is_integer(site.type) else "", site.type)
    columns = {"site": site.fill_null(nothing), "nameless": site.is_null(), "clock": clock}
    columns |= {name: packed[name] for name in _KEPT}
    return pa.RecordBatch.from_pydict(columns)


def _chunks(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[list[pa.RecordBatch]]:
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= rows:
            yield held
            held = []
    if sum(map(len, held)):
        yield held


def _latest(chunk: list[pa.RecordBatch], ahead: int) -> int | None:
    """`ahead` after the time that one row in a thousand, and at least one, exceeds or equals."""
    column = pa.Table.from_batches(chunk).column("time").cast(pa.int64())
    times = column.drop_null().to_numpy()
    usual = times.size - 1 - max(1, times.size // 1000)
    return int(np.partition(times, usual)[usual]) + ahead if usual >= 0 else None
