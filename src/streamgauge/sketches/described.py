"""What a sketch is, as rows of a name and a value: for people who find one in a file."""

import math
from typing import Any

from streamgauge import wire
from streamgauge.sketches.countmin import CountMin, PerfectWindowSketch
from streamgauge.sketches.door import Door
from streamgauge.sketches.dyadic import DyadicEcmSketch
from streamgauge.sketches.ecm import EcmSketch
from streamgauge.sketches.exphist import ExponentialHistogram
from streamgauge.sketches.gathered import Gathered
from streamgauge.sketches.heavy import HeavyHitterSketch
from streamgauge.sketches.proportional import ProportionalWindowSketch, SimpleWindowSketch
from streamgauge.sketches.randomized_wave import RandomizedWave
from streamgauge.sketches.splitter import SplitterWindowSketch
from streamgauge.sketches.wave import Wave

_KINDS: dict[int, Any] = {
    wire.WAVE: Wave,
    wire.ECM: EcmSketch,
    wire.EXPHIST: ExponentialHistogram,
    wire.RANDOMIZED: RandomizedWave,
    wire.DYADIC: DyadicEcmSketch,
    wire.GATHERED: Gathered,
    wire.HEAVY: HeavyHitterSketch,
    wire.COUNTMIN: CountMin,
    wire.PERFECT: PerfectWindowSketch,
    wire.SIMPLE: SimpleWindowSketch,
    wire.PROPORTIONAL: ProportionalWindowSketch,
    wire.SPLITTER: SplitterWindowSketch,
}

Rows = list[tuple[str, str]]


def read(data: bytes) -> Any:
    """The sketch with these bytes, of whatever type; WireError if there is none."""
    kind = _KINDS.get(wire.kind_of(data))
    if kind is None:
        raise wire.WireError(f"type {wire.kind_of(data)} is not that of a sketch")
    return kind.from_bytes(data)


def rows(data: bytes) -> Rows:
    """Type, time, sizes and how the errors are split, contents; the total at the end."""
    sketch = read(data)
    found: Rows = [("type", type(sketch).__name__), ("bytes", f"{len(data):,}")]
    if isinstance(sketch, Gathered):
        sketches = sketch.sketches
        latest = max(sketches, key=lambda each: -math.inf if each.now is None else each.now)
        arrivals, levels = sum(s.arrivals for s in sketches), max(s.levels for s in sketches)
        found += [("memory", f"{sketch.nbytes:,} bytes"), ("sketches", f"{len(sketches):,}")]
        found += _time(latest.door) + _ecm(latest)[:-2]
        found += [("arrivals", f"{arrivals:,} ever"), ("merged", f"up to {levels} levels")]
        return [*found, ("total", _ends(sketch.total()))]
    found.append(("memory", f"{sketch.nbytes:,} bytes"))
    if isinstance(sketch, CountMin):
        return [*found, *_matrix(sketch)]
    found += _time(sketch.door)
    match sketch:
        case EcmSketch():
            found += [*_ecm(sketch), ("total", _ends(sketch.total()))]
        case DyadicEcmSketch():
            found += [*_dyadic(sketch), ("total", _ends(sketch.total()))]
        case HeavyHitterSketch():
            found.append(("promise", f"within {sketch.epsilon:g} of the total, certain"))
            found.append(("items", sketch.kind or "none yet"))
            found.append(("parts", f"{sketch.parts:,}"))
            found.append(("total", _ends(sketch.total())))
        case PerfectWindowSketch():
            total = f"{sketch.values()[0].sum():,.10g}"
            found += [*_matrix(sketch), ("total", f"{total} in the window")]
        case SimpleWindowSketch() | ProportionalWindowSketch() | SplitterWindowSketch():
            found += _matrix(sketch)
            if isinstance(sketch, SplitterWindowSketch):
                found.append(("mu and tau", f"{sketch.mu:g} and {sketch.tau:g}"))
                found.append(("sub-cells", f"{sketch.subcells:,}"))
            found.append(("total", f"about {sketch.values()[0].sum():,.10g} in the window"))
        case RandomizedWave():
            found.append(("promise", f"within {sketch.epsilon:g} except with {sketch.delta:g}"))
            found.append(("sites", ", ".join(map(repr, sketch.sites))))
            found.append(("events", _ends(sketch.estimate())))
        case _:
            found.append(("promise", f"within {sketch.epsilon:g}, certain"))
            found.append(("merged", f"{sketch.levels} levels"))
            found.append(("events", _ends(sketch.estimate())))
    return found


def _time(door: Door) -> Rows:
    clock = "no event yet" if door.now is None else door.show(door.now)
    return [
        ("window", door.written().removeprefix("window=")),
        ("clock", clock),
        ("late events", f"{door.late}: {door.late_events:,} so far"),
    ]


def _ecm(sketch: EcmSketch) -> Rows:
    sizes = sketch.sizes
    probable = f" except with {sizes.delta_window:.3g}" if sizes.delta_window else ", certain"
    return [
        ("promise", f"epsilon {sketch.epsilon:g}, delta {sizes.delta:g}"),
        ("cells", f"{sizes.depth} rows of {sizes.width:,} ({sizes.origin.counter})"),
        ("a cell", f"within {sizes.epsilon_window:g}{probable}"),
        ("collisions", f"{sizes.share:.3g} of the others except with {sizes.delta_hash:.3g}"),
        ("seed", f"{sizes.origin.seed}"),
        ("items", sketch.kind or "none yet"),
        ("arrivals", f"{sketch.arrivals:,} ever"),
        ("merged", f"{sketch.levels} levels"),
    ]


def _matrix(sketch: Any) -> Rows:
    sizes = sketch.sizes
    promise = f"epsilon {sizes.epsilon:g}, delta {sizes.delta:g}"
    if not isinstance(sketch, CountMin | PerfectWindowSketch):
        promise = f"none, heuristic; hashed as for {promise}"
    return [
        ("promise", promise),
        ("cells", f"{sizes.depth} rows of {sizes.width:,}"),
        ("seed", f"{sizes.seed}"),
        ("items", sketch.kind or "none yet"),
        ("arrivals", f"{sketch.arrivals:,} ever"),
    ]


def _dyadic(sketch: DyadicEcmSketch) -> Rows:
    sizes = sketch.sizes
    return [
        ("promise", f"epsilon {sizes.epsilon:g}, delta {sizes.delta:g}"),
        ("items", f"integers below 2**{sizes.bits}"),
        ("a bucket", f"{sizes.hashed} hashed levels of {sizes.depth} x {sizes.width:,}"),
        ("buckets", f"{sizes.kept} of each size or more"),
        ("seed", f"{sizes.seed}"),
        ("arrivals", f"{sketch.arrivals:,} ever"),
    ]


def _ends(found: Any) -> str:
    return f"{found.value:,.10g} in [{found.low:,.10g}, {found.high:,.10g}] in the window"
