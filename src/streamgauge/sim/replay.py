"""A trace under a protocol on a network: every answer beside the truth, and what it cost.

    trace -> streams (feed.py) -> World (world.py) -> a row for each question and moment

Answers are asked at every multiple of `every` ticks. Bytes and messages are cumulated, from the
start and, as the papers count, from the moment at which the window had filled for the first time.
An `error` is |value - truth| relative to the truth or, for the frequency of an item, to the
window's total.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgauge import items as item_words
from streamgauge.protocols.messages import SiteName
from streamgauge.queries import Frequency, Query, SelfJoin, Total
from streamgauge.sim import exact
from streamgauge.sim.network import Delay, Faults, Traffic
from streamgauge.sim.world import Monitor, Stream, World


class Setting(NamedTuple):
    """What a replay depends on besides the protocol; lengths are in ticks."""

    window: int
    every: int
    delay: Delay = Delay()
    faults: Faults | None = None
    seed: int = 0
    beat: int | None = None


class Row(NamedTuple):
    """One answer."""

    tick: int
    query: str
    truth: float
    value: float
    low: float
    high: float
    confidence: float
    error: float
    staleness: int | None  # ticks since all sites had been heard
    silent: int  # sites
    messages: int
    bytes: int
    bytes_since_full: int


class Replay(NamedTuple):
    """What came of it. Costs are cumulated, an entry for each moment."""

    name: str
    rows: list[Row]
    moments: NDArray[np.int64]
    bytes: NDArray[np.int64]
    messages: NDArray[np.int64]
    by_kind: list[dict[str, Traffic]]
    full: int  # the first moment at which the window had filled

    @property
    def bytes_since_full(self) -> int:
        """From the moment the window had filled to the end."""
        before = self.bytes[self.moments <= self.full]
        return int(self.bytes[-1] - (before[-1] if before.size else 0))


def replay(
    monitor: Monitor,
    streams: Mapping[SiteName, Stream],
    queries: Sequence[Query],
    setting: Setting,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Replay:
    """Run it; without queries only the costs are counted. `progress` is told moments."""
    every = np.sort(np.concatenate([stream.ticks for stream in streams.values()]))
    moments = exact.steps(every, setting.every)
    world = World(
        monitor,
        streams,
        delay=setting.delay,
        faults=setting.faults,
        seed=setting.seed,
        beat=setting.beat,
    )
    truths = _truths(world.streams, moments, queries, setting.window)
    full = int(every[0]) + setting.window
    rows: list[Row] = []
    costs: list[Traffic] = []
    kinds = []
    at_full = 0
    for i, now in enumerate(moments.tolist()):
        world.run(now)
        network = world.network
        costs.append(network.traffic())
        kinds.append(network.by_kind())
        if now <= full:
            at_full = costs[-1].bytes
        for query, (truth, scale) in zip(queries, truths, strict=True):
            answer = world.answer(query, now)
            estimate, silent = answer.estimate, len(answer.silent)
            error = abs(estimate.value - float(truth[i])) / max(float(scale[i]), 1)
            staleness = None if answer.as_of is None else now - answer.as_of
            known = (now, str(query), float(truth[i]), *estimate, error, staleness, silent)
            rows.append(Row(*known, *costs[-1], costs[-1].bytes - at_full))
        progress(i + 1, moments.size)
    messages, size = np.array(costs, np.int64).reshape(-1, 2).T
    return Replay(monitor.name, rows, moments, size, messages, kinds, full)


def _truths(
    streams: Mapping[SiteName, Stream],
    moments: NDArray[np.int64],
    queries: Sequence[Query],
    window: int,
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """For each query the truth at each moment, and what its errors are relative to."""
    if not queries:
        return []
    ticks = np.concatenate([stream.ticks for stream in streams.values()])
    order = np.argsort(ticks, kind="stable")
    words = np.concatenate([item_words.words(stream.items)[0] for stream in streams.values()])
    weights = np.concatenate(
        [
            np.ones_like(stream.ticks) if stream.weights is None else stream.weights
            for stream in streams.values()
        ]
    )
    found = []
    for query in queries:
        last = window if query.last is None else int(query.last)
        asked = [_word(query.item)] if isinstance(query, Frequency) else []
        true = exact.sliding(
            words[order], ticks[order], moments, last=last, asked=asked, weights=weights[order]
        )
        match query:
            case Frequency():
                found.append((true.frequencies[:, 0], true.totals))
            case Total():
                found.append((true.totals, true.totals))
            case SelfJoin():
                found.append((true.self_joins, true.self_joins))
    return found


def _word(item: int | str | bytes) -> int:
    return int(item_words.words(item)[0][0])


class Errors(NamedTuple):
    """How good one query's answers were."""

    query: str
    mean: float
    p99: float
    worst: float
    outside: float  # the share of answers whose interval the truth is not in
    unbounded: float  # the share of answers without an upper end, since a site was silent


def errors(found: Replay) -> list[Errors]:
    """One for each query, from the moment the window had filled, or all if it never did."""
    last = found.moments[-1]
    begin = found.full if last >= found.full else found.moments[0]
    summed = []
    for query in dict.fromkeys(row.query for row in found.rows):
        rows = [row for row in found.rows if row.query == query and row.tick >= begin]
        wrong = np.array([row.error for row in rows])
        outside = np.mean([not row.low <= row.truth <= row.high for row in rows])
        unbounded = np.mean([row.high == np.inf for row in rows])
        summed.append(
            Errors(
                query,
                float(wrong.mean()),
                float(np.quantile(wrong, 0.99)),
                float(wrong.max()),
                float(outside),
                float(unbounded),
            )
        )
    return summed


def write(found: Replay, path: Path, about: Mapping[str, str]) -> None:
    """The table as Parquet, with a column for each kind of message and for its bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {
        name: [getattr(row, name) for row in found.rows] for name in Row._fields
    }
    queries = len(found.rows) // found.moments.size if found.rows else 0
    for kind in found.by_kind[-1]:
        for i, what in enumerate(("messages", "bytes")):
            cumulated = [kinds.get(kind, Traffic())[i] for kinds in found.by_kind]
            columns[f"{what} of {kind}"] = np.repeat(cumulated, queries)
    pq.write_table(pa.table(columns, metadata=dict(about)), path, compression="zstd")
