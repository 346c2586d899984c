"""Which sketch and which protocol: what each would need, from formulas, before anything runs.

For a question with a tolerance (relative to the number of events in the window or, for joins, to
its square), a window, a number of sites and their rate: the memory of a site and the bytes that
all sites send in one window's length, once windows have filled and while the rate is what it is.
The formulas are about equal sites and popularities that are not too skewed; they are
compared with replays, and promised within a factor of 2 (tests/test_plan.py).

Sketches. An EcmSketch has d rows of w waves of L levels of 2^ceil(log2 R) slots. A wave of n
arrivals holds its newest 2 R ranks, and for l = 1, 2, ... R ranks 2^l apart. So about
R (2 + log2(n / 2R)) gaps, of 2^l W / n ticks, are on the wire, in two bits more than that needs on
average since the widest of eight says how wide they are.

Periodic reports at a change of c: among equally many arrivals and expirations a site speaks
after c N / 2 events, 2 / c times a window. It sends the sketch, or those events if they are fewer
bytes: of an event the bits of its item, and those of the gap to the one before it. It hides
c / (1 - c) of its window, which is taken off the tolerance that is left for the sketch. Beside
the sketch it holds the events since its last report while they are fewer than half its bytes.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from streamgauge.queries import Query, SelfJoin
from streamgauge.sketches.door import require_share
from streamgauge.sketches.sizes import Sizes
from streamgauge.sketches.wavegrid import kept_ranks

_SPLITS = (0.2, 0.35, 0.5, 0.65, 0.8)  # of the tolerance, for what sites hide
_HEADER = 60  # bytes of a sketch that are not its waves
_MESSAGE = 25  # bytes of a message that are not its events


class Need(NamedTuple):
    """What is asked of a system; lengths are in ticks, rates in events a tick of all sites."""

    query: Query
    tolerance: float
    delta: float
    window: int
    sites: int
    rate: float
    every: int  # how often the answer is wanted
    item_bits: int = 32  # of an item, or of its place among the distinct ones


class Choice(NamedTuple):
    """One way to do it."""

    protocol: str
    sketch: str
    epsilon: float | None  # of the sketch
    change: float | None  # of the periodic protocol
    memory: int  # bytes of a site's sketch or, without one, of the events it holds back
    bytes: float  # of all messages, in one window's length


def choices(need: Need) -> list[Choice]:
    """All of them, fewest bytes first."""
    tolerance = require_share("tolerance", need.tolerance)
    require_share("delta", need.delta)
    for name in ("window", "sites", "every", "item_bits"):
        if getattr(need, name) < 1:
            raise ValueError(f"{name} must be at least 1, got {getattr(need, name)}")
    if not need.rate > 0:
        raise ValueError(f"rate must be positive, got {need.rate}")
    found = [_periodic(need, share * tolerance) for share in _SPLITS]
    found += [_polling(need), *_shipping(need)]
    return sorted(found, key=lambda choice: choice.bytes)


def best(found: Sequence[Choice]) -> list[Choice]:
    """The best of each protocol, fewest bytes first."""
    names = dict.fromkeys(choice.protocol for choice in found)
    firsts = [next(each for each in found if each.protocol == name) for name in names]
    return sorted(firsts, key=lambda choice: choice.bytes)


def _periodic(need: Need, hidden: float) -> Choice:
    change = hidden / (1 + hidden)
    sizes = _sizes(need, need.tolerance - hidden)
    events = max(1.0, change * _held(need) / 2)
    updates = _MESSAGE + events * _event_bits(need) / 8
    report = min(updates, sketch_bytes(sizes, need.window, _held(need)))
    reports = need.rate * need.window / events
    memory = _memory(sizes, need)
    return Choice("periodic", _named(sizes), sizes.epsilon, change, memory, reports * report)


def _polling(need: Need) -> Choice:
    sizes = _sizes(need, need.tolerance)
    reply = sketch_bytes(sizes, need.window, _held(need)) + 10
    polls = need.sites * need.window / need.every
    return Choice(
        "polling", _named(sizes), sizes.epsilon, None, _memory(sizes, need), polls * reply
    )


def _shipping(need: Need) -> list[Choice]:
    events = need.rate * need.window
    batches = need.sites * need.window / need.every
    raw = 16 * events + _MESSAGE * batches
    deflated = _event_bits(need) / 8 * events + 2 * _MESSAGE * batches
    held = round(24 * need.rate / need.sites * need.every)
    return [
        Choice("shipping, raw", "none", None, None, held, raw),
        Choice("shipping, deflated", "none", None, None, held, deflated),
    ]


def _held(need: Need) -> float:
    """Events in one site's window."""
    return need.rate * need.window / need.sites


def _event_bits(need: Need) -> float:
    gap = need.sites / need.rate  # ticks, on average; the largest of many is some times that
    return need.item_bits + (math.log2(1 + 8 * gap) if gap > 1 / 64 else 1)


def _sizes(need: Need, epsilon: float) -> Sizes:
    products = isinstance(need.query, SelfJoin)
    return Sizes.asked("wave", epsilon, need.delta, 0, products=products)


def _named(sizes: Sizes) -> str:
    return f"EcmSketch {sizes.depth} x {sizes.width}"


def sketch_bytes(sizes: Sizes, window: int, events: float) -> float:
    """On the wire, of a full window that holds so many events."""
    kept = kept_ranks(sizes.epsilon_window)
    bits = sizes.depth * sizes.width * _wave_bits(kept, window, events / sizes.width)
    bits += _wave_bits(kept, window, events)
    return _HEADER + bits / 8


def _wave_bits(kept: int, window: int, arrivals: float) -> float:
    """A wave's on the wire; the gaps of rank distance 2^l, level by level."""
    bits = 6 + math.log2(1 + arrivals) + 6
    level, left = 0, arrivals
    while left >= 1:
        ranks = min(left / 2**level, 2 * kept if level == 0 else kept)
        gap = 2**level * window / max(arrivals, 1)
        bits += ranks * (2 + math.log2(1 + gap) + 6 / 8)
        left -= ranks * 2**level
        level += 1
    return bits


def _memory(sizes: Sizes, need: Need) -> int:
    kept = kept_ranks(sizes.epsilon_window)
    slots = 1 << (kept - 1).bit_length()
    stamp = 4 if need.window <= 1 << 30 else 8
    busiest = 4 * max(1.0, _held(need) / sizes.width)  # of a skewed stream's cells
    levels = 1 + max(0, math.ceil(math.log2(busiest / kept)))
    return sizes.depth * sizes.width * (8 + stamp * levels * slots)
