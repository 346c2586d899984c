"""What a replay is to do: from what the user wrote, checked before anything runs.

Whatever cannot be done is a ValueError or FileNotFoundError whose text is for the user.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from streamgauge import queries as questions
from streamgauge import ticks
from streamgauge.protocols import periodic, polling, shipping
from streamgauge.protocols.messages import COORDINATOR, SiteName
from streamgauge.queries import Frequency, Query, Total
from streamgauge.sim import feed
from streamgauge.sim.feed import Rows
from streamgauge.sim.network import Delay, Faults
from streamgauge.sim.replay import Setting
from streamgauge.sim.world import Monitor, Stream
from streamgauge.sketches.door import require_share
from streamgauge.sketches.ecm import EcmSketch

PROTOCOLS = ("periodic", "polling", "shipping-raw", "shipping-deflated")
BASELINES = ("polling", "shipping-raw", "shipping-deflated")
_BATCH = 1000


class Asked(NamedTuple):
    """The options as they were written; lengths are durations or numbers of ticks."""

    trace: str
    columns: Mapping[str, str]
    unit: str | None
    sites: str | None  # how many, or a column
    window: str
    every: str | None
    queries: tuple[str, ...]
    epsilon: float
    delta: float
    change: float
    network: str
    faults: int | None  # the seed of a plan
    seed: int


class Job(NamedTuple):
    """What follows from that."""

    title: str
    tick: int | None
    streams: dict[SiteName, Stream]
    queries: list[Query]
    setting: Setting
    monitors: Mapping[str, Monitor]

    @property
    def events(self) -> int:
        """How many there are."""
        return sum(stream.ticks.size for stream in self.streams.values())


def job(asked: Asked) -> Job:
    """All of it; reads or makes the trace."""
    require_share("change", asked.change)
    rows = _rows(asked)
    tick = _tick(asked, rows)
    window = ticks.length(asked.window, tick, "window")
    every = ticks.length(asked.every, tick, "every") if asked.every else max(1, window // 20)
    if every < 1:
        raise ValueError("every must be at least one tick")
    template = EcmSketch(window=window, epsilon=asked.epsilon, delta=asked.delta, seed=asked.seed)
    streams = feed.streams(rows, tick)
    setting = _setting(asked, tick, window, every, streams)
    patience = None if setting.beat is None else 4 * setting.beat
    queries = [_in_ticks(query, tick, template) for query in _queries(asked, rows)]
    title = f"{rows.title}: {rows.words.size:,} events at {len(streams)} sites"
    monitors = _monitors(asked.change, template, every, patience)
    return Job(title, tick, streams, queries, setting, monitors)


def _rows(asked: Asked) -> Rows:
    columns = dict(asked.columns)
    number = int(asked.sites) if asked.sites is not None and asked.sites.isdecimal() else None
    is_file = Path(asked.trace).suffix != "" or Path(asked.trace).is_file()
    if is_file:
        if asked.sites is not None and number is None:
            columns["site"] = asked.sites
        rows = feed.recorded(Path(asked.trace), columns, asked.unit)
    else:
        if columns or asked.unit:
            raise ValueError(f"--{next(iter([*columns, 'unit']))} goes with a file")
        if asked.sites is not None and number is None:
            raise ValueError(f"sites must be a number, got {asked.sites!r}")
        rows = feed.generated(asked.trace)
    return rows if number is None else feed.dealt(rows, number, asked.seed)


def _tick(asked: Asked, rows: Rows) -> int | None:
    """As coarse as the window allows, since ticks are most of a sketch's bytes."""
    if rows.unit is None:
        return None
    lengths = [ticks.nanoseconds(asked.window, "window")]
    for text in asked.queries:
        last = questions.parse(text).last
        if isinstance(last, str):
            lengths.append(ticks.nanoseconds(last, "last"))
    return ticks.coarse(lengths)


def _setting(
    asked: Asked, tick: int | None, window: int, every: int, streams: Mapping[SiteName, Stream]
) -> Setting:
    delay = Delay.parse(asked.network, tick)
    if asked.faults is None:
        return Setting(window, every, delay, seed=asked.seed)
    first = min(int(stream.ticks[0]) for stream in streams.values() if stream.ticks.size)
    last = max(int(stream.ticks[-1]) for stream in streams.values() if stream.ticks.size)
    plan = Faults.drawn(asked.faults, list(streams), first, last, coordinator=COORDINATOR)
    return Setting(window, every, delay, plan, asked.seed, beat=every)


def _queries(asked: Asked, rows: Rows) -> list[Query]:
    given = list(map(questions.parse_number, asked.queries))
    for query in given:
        if isinstance(query, Frequency) and isinstance(query.item, int) != (
            rows.kind == "integers"
        ):
            raise ValueError(f"item of {query} must be {rows.kind}, as in the trace")
    if given:
        return list(dict.fromkeys(given))
    if rows.kind == "text":
        return [Total(), questions.SelfJoin()]
    words, counts = np.unique(rows.words.view(np.int64), return_counts=True)
    return [Frequency(int(words[np.argmax(counts)])), Total(), questions.SelfJoin()]


def _in_ticks(query: Query, tick: int | None, template: EcmSketch) -> Query:
    if query.last is None:
        return query
    found = replace(query, last=ticks.length(str(query.last), tick, "last"))
    template.door.range(found.last, None)
    return found


def _monitors(
    change: float, template: EcmSketch, every: int, patience: int | None
) -> dict[str, Monitor]:
    """Every protocol, as it is run and named."""

    def ships(packing: shipping.Packing) -> Monitor:
        def site() -> shipping.Site:
            return shipping.Site(template.window, batch=_BATCH, wait=every, packing=packing)

        return Monitor(
            f"shipping-{packing}",
            site,
            lambda: shipping.Coordinator(template.window, batch=_BATCH, patience=patience),
            shipping.MESSAGES,
        )

    found = [
        Monitor(
            "periodic",
            lambda: periodic.Site(template, change),
            lambda: periodic.Coordinator(template, change, patience),
            periodic.MESSAGES,
        ),
        Monitor(
            "polling",
            lambda: polling.Site(template),
            lambda: polling.Coordinator(template, every, patience),
            polling.MESSAGES,
        ),
        ships("raw"),
        ships("deflated"),
    ]
    return {monitor.name: monitor for monitor in found}
