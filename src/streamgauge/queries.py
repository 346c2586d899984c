"""The questions: one frozen dataclass each, and the one text form that all of them share.

    frequency(item="10.0.0.1", last="10 min")     total()     self_join(last=5000)
    heavy_hitters(phi=0.01, last="10 min")        top_k(k=10)

A question answers itself from one sketch, or from those of several sites as if their streams were
one. `hidden` is how many further arrivals there may be that the sketches do not hold yet, infinity
where nobody knows: the interval is widened by all that they could change (`widened`). A question
never changes a sketch. Those for numbers are answered by ECM-sketches, those for items by
HeavyHitterSketches.
"""

import ast
import math
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np

from streamgauge.estimate import Estimate, ItemEstimate, TopItem
from streamgauge.sketches import ecm
from streamgauge.sketches.door import COUNT_LIMIT
from streamgauge.sketches.ecm import EcmSketch
from streamgauge.sketches.heavy import HeavyHitterSketch

Last = str | int | None
Sketches = EcmSketch | Sequence[EcmSketch]
HeavyHitterSketches = HeavyHitterSketch | Sequence[HeavyHitterSketch]


@dataclass(frozen=True, slots=True)
class Frequency:
    """How often did `item` occur?"""

    item: int | str | bytes
    last: Last = None

    def answer(self, sketches: Sketches, now: Any = None, hidden: float = 0) -> Estimate:
        """The item's occurrences in `(now - last, now]`."""
        found = ecm.frequencies(_several(sketches), [self.item], self.last, now).estimates()[0]
        return self.widened(found, hidden)

    def widened(self, found: Estimate, hidden: float) -> Estimate:
        """All hidden arrivals can be of the item."""
        return found._replace(high=_with(hidden, found.high))

    def __str__(self) -> str:
        return _text(self)


@dataclass(frozen=True, slots=True)
class Total:
    """How many events were there?"""

    last: Last = None

    def answer(self, sketches: Sketches, now: Any = None, hidden: float = 0) -> Estimate:
        """The events in `(now - last, now]`."""
        return self.widened(ecm.totals(_several(sketches), self.last, now), hidden)

    def widened(self, found: Estimate, hidden: float) -> Estimate:
        """Every hidden arrival is one."""
        return found._replace(high=_with(hidden, found.high))

    def __str__(self) -> str:
        return _text(self)


@dataclass(frozen=True, slots=True)
class SelfJoin:
    """How skewed is the stream: the sum of the squared frequencies of its items?"""

    last: Last = None

    def answer(self, sketches: Sketches, now: Any = None, hidden: float = 0) -> Estimate:
        """The self-join size of `(now - last, now]`."""
        return self.widened(ecm.self_joins(_several(sketches), self.last, now), hidden)

    def widened(self, found: Estimate, hidden: float) -> Estimate:
        """Hidden arrivals h can at most all be of one item: ||f + h|| <= ||f|| + ||h||."""
        if hidden:
            # Rounded up: the root and the square are off by an ulp each.
            reach = (math.sqrt(found.high) + hidden) ** 2 * (1 + 2**-50)
            return found._replace(high=reach)
        return found

    def __str__(self) -> str:
        return _text(self)


@dataclass(frozen=True, slots=True)
class HeavyHitters:
    """Which items are a share of at least `phi` of the events?

    Sketches whose intervals may be wider than `epsilon` of the events are refused, if it is given.
    """

    phi: float
    epsilon: float | None = None
    last: Last = None

    def answer(self, sketches: HeavyHitterSketches, now: Any = None) -> list[ItemEstimate]:
        """Every item that may be, by decreasing value."""
        sketch = _merged(sketches)
        if self.epsilon is not None and sketch.epsilon > self.epsilon:
            raise ValueError(
                f"epsilon must be at least that of the sketch, {sketch.epsilon:.6g}, "
                f"got {self.epsilon}"
            )
        return sketch.heavy_hitters(self.phi, self.last, now)

    def __str__(self) -> str:
        return _text(self)


@dataclass(frozen=True, slots=True)
class TopK:
    """Which are the `k` most frequent items?"""

    k: int
    last: Last = None

    def answer(self, sketches: HeavyHitterSketches, now: Any = None) -> list[TopItem]:
        """Those of the greatest values, each with whether it certainly belongs."""
        return _merged(sketches).top(self.k, self.last, now)

    def __str__(self) -> str:
        return _text(self)


Query = Frequency | Total | SelfJoin
ItemQuery = HeavyHitters | TopK

_NAMES: dict[str, type[Query | ItemQuery]] = {
    "frequency": Frequency,
    "total": Total,
    "self_join": SelfJoin,
    "heavy_hitters": HeavyHitters,
    "top_k": TopK,
}
_SHARES = ("phi", "epsilon")


def parse(text: str) -> Query | ItemQuery:
    """The question that `text` spells; `str(question)` is its inverse.

    Durations need no quotes: `total(last=10min)`.
    """
    name, bracket, rest = text.strip().partition("(")
    kind = _NAMES.get(name.strip())
    if kind is None:
        raise ValueError(f"query must be one of {', '.join(_NAMES)}, got {name.strip()!r}")
    if bracket and not rest.endswith(")"):
        raise ValueError(f"query must end with a closing bracket, got {text!r}")
    given: dict[str, Any] = {}
    for argument, value in (_argument(part, text) for part in _split(rest[:-1])):
        if argument in given:
            raise ValueError(f"{argument} must be given once, got {text!r}")
        given[argument] = value
    known = [field.name for field in fields(kind)]
    for unknown in given.keys() - set(known):
        raise ValueError(f"{name.strip()} takes {', '.join(known)}, got {unknown!r}")
    for field in fields(kind):
        if field.default is MISSING and field.name not in given:
            raise ValueError(f"{name.strip()} needs {field.name}=, got {text!r}")
    return kind(**given)


def parse_number(text: str) -> Query:
    """The question that `text` spells, one that is answered by a number."""
    query = parse(text)
    if not isinstance(query, Query):
        raise ValueError(f"query must be answered by a number, got {query}")
    return query


def _split(arguments: str) -> list[str]:
    """Cut at the commas that are outside quotes."""
    parts, start, quote, escaped = [], 0, "", False
    for i, char in enumerate(arguments):
        if escaped:
            escaped = False
        elif quote:
            escaped = char == "\\"
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == ",":
            parts.append(arguments[start:i])
            start = i + 1
    if arguments.strip():
        parts.append(arguments[start:])
    return parts


def _argument(part: str, text: str) -> tuple[str, Any]:
    name, equals, value = (piece.strip() for piece in part.partition("="))
    if not equals or not value:
        raise ValueError(f"query arguments must be name=value, got {part.strip()!r} in {text!r}")
    try:
        literal = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        if value[0] in "\"'[({":
            raise ValueError(f"{name} must be a number or text, got {value!r}") from None
        literal = value  # an unquoted duration or word
    if isinstance(literal, float) and name in _SHARES:
        return name, literal
    if isinstance(literal, bool) or not isinstance(literal, int | str | bytes):
        if literal is None and name in {"last", "epsilon"}:
            return name, None
        raise ValueError(f"{name} must be a number or text, got {value!r}")
    return name, literal


def _text(query: Query | ItemQuery) -> str:
    kind = next(name for name, known in _NAMES.items() if known is type(query))
    given = [(field.name, getattr(query, field.name)) for field in fields(query)]
    plain = [(k, v.item() if isinstance(v, np.generic) else v) for k, v in given if v is not None]
    return f"{kind}({', '.join(f'{k}={v!r}' for k, v in plain)})"


def _with(hidden: float, high: float) -> float:
    """The sum, from 2**53 on rounded up."""
    most = high + hidden
    return math.nextafter(most, math.inf) if hidden and most >= COUNT_LIMIT else most


def _several(sketches: Sketches) -> Sequence[EcmSketch]:
    return [sketches] if isinstance(sketches, EcmSketch) else sketches


def _merged(sketches: HeavyHitterSketches) -> HeavyHitterSketch:
    if isinstance(sketches, HeavyHitterSketch):
        return sketches
    return HeavyHitterSketch.merge(sketches)
