"""What the demo is to do: from what the user wrote, checked before anything starts.

Whatever cannot be done is a ValueError or FileNotFoundError whose text is for the user.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamgauge import queries as questions
from streamgauge import ticks
from streamgauge.demo.run import Plan
from streamgauge.queries import Frequency, Query, SelfJoin, Total
from streamgauge.sketches.door import require_share
from streamgauge.sketches.ecm import EcmSketch
from streamgauge.traces.timeline import Timeline
from streamgauge.traces.workloads import hot_burst

_SECONDS, _RATE, _HOT, _HOT_SITES = 180, 25_000, 4_242, 6
_LOOKED_AT = 1_000_000  # rows, to find an item worth asking about
_DELTA, _SEED = 0.1, 7


class Asked(NamedTuple):
    """The options that do not depend on the trace."""

    window: str
    queries: tuple[str, ...]
    epsilon: float
    change: float
    seconds: float | None
    speed: float | None
    out: Path


def generated(asked: Asked) -> Plan:
    """A plan for a trace that is yet to be made."""
    seconds = max(1, round(asked.seconds or _SECONDS))
    given = _given(asked)
    template = _template(asked, given, calendar=True)

    def make(folder: Path) -> Path:
        columns = hot_burst(seconds=seconds, rate=_RATE, hot=_HOT, hot_sites=_HOT_SITES)
        path = folder / "trace.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=1 << 17, compression="none")
        return path

    for query in given:
        _require_kind(query, "integers", "the generated trace")
    wanted = given or [Frequency(_HOT), Total(), SelfJoin()]
    columns = {"site": "site", "item": "item", "time": "ts"}
    title = f"8 generated sites, {seconds * _RATE:,} events; item {_HOT} is hot for a while"
    return _plan(title, make, columns, "ms", template, wanted, asked._replace(seconds=None))


def own(path: Path, columns: dict[str, str], unit: str | None, asked: Asked) -> Plan:
    """A plan for a file that is there."""
    missing = [f"--{role}" for role in ("site", "item", "time") if role not in columns]
    if missing:
        raise ValueError(f"--input needs {' and '.join(missing)}{_columns_of(path)}")
    timeline = Timeline(path, columns, unit)
    end = timeline.end(asked.seconds)
    times = Timeline(path, {"time": columns["time"]}, unit)
    for _ in times.between(times.first, end):
        pass  # a row out of order is found now, and not when Spark comes to it
    kind = "integers" if pa.types.is_integer(timeline.schema.field("item").type) else "text"
    given = _given(asked)
    for query in given:
        _require_kind(query, kind, f"column {columns['item']!r}")
    template = _template(asked, given, calendar=timeline.has_instants)
    wanted = given or [Frequency(_frequent(timeline, end)), Total(), SelfJoin()]
    title = f"{path.name}: {timeline.rows:,} rows"
    return _plan(title, lambda _: path, columns, unit, template, wanted, asked)


def _given(asked: Asked) -> list[Query]:
    """The queries on the command line; the sites of the demo keep ECM-sketches."""
    return list(map(questions.parse_number, asked.queries))


def _plan(  # noqa: PLR0917
    title: str,
    trace: Callable[[Path], Path],
    columns: dict[str, str],
    unit: str | None,
    template: EcmSketch,
    wanted: list[Query],
    asked: Asked,
) -> Plan:
    require_share("change", asked.change)
    return Plan(
        title=title,
        trace=trace,
        columns=columns,
        unit=unit,
        seconds=asked.seconds,
        template=template,
        epsilon=asked.change,
        queries=list(dict.fromkeys(wanted)),
        speed=asked.speed,
        out=asked.out,
    )


def _columns_of(path: Path) -> str:
    """What there is to choose from, if that can be read."""
    if not path.is_file():
        return ""
    try:
        names = pq.read_schema(path).names
    except (pa.ArrowException, OSError):
        return ""
    return f"; {path} has {', '.join(names)}"


def _template(asked: Asked, queries: list[Query], *, calendar: bool) -> EcmSketch:
    """A sketch of the window in ticks as coarse as it allows: they are most of its bytes."""
    parameters: dict[str, Any] = {"epsilon": asked.epsilon, "delta": _DELTA, "seed": _SEED}
    parameters["late"] = "drop"
    if calendar:
        lengths = [ticks.nanoseconds(asked.window, "window")]
        lengths += [ticks.nanoseconds(q.last, "last") for q in queries if isinstance(q.last, str)]
        template = EcmSketch(window=asked.window, tick=f"{ticks.coarse(lengths)} ns", **parameters)
    elif asked.window.isdecimal():
        template = EcmSketch(window=int(asked.window), **parameters)
    else:
        raise ValueError(
            "window must be a number of ticks, as the times of this trace are integers (--unit "
            f"says what they count since 1970), got {asked.window!r}"
        )
    for query in queries:
        template.door.range(query.last, None)
    return template


def _require_kind(query: Query, kind: str, where: str) -> None:
    if isinstance(query, Frequency) and isinstance(query.item, int) != (kind == "integers"):
        hint = f", such as item='{query.item!r}'" if kind == "text" else ""
        raise ValueError(f"item of {query} must be {kind}{hint}, as in {where}")


def _frequent(timeline: Timeline, end: int) -> Any:
    """The most frequent item of the first rows."""
    parts: list[pa.Array] = []
    for batch in timeline.between(timeline.first, end):
        parts.append(batch.column("item"))
        if sum(map(len, parts)) >= _LOOKED_AT:
            break
    items = pc.value_counts(pa.concat_arrays(parts).drop_null())
    if len(items) == 0:
        raise ValueError("there is no item in the trace's first rows: name one with --query")
    values, counts = items.field("values"), items.field("counts")
    return values[pc.index(counts, pc.max(counts)).as_py()].as_py()
