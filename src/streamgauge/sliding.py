"""Answers at every step of a whole stream, from one pass of it through one sketch.

The twin of a sliding-window aggregation without its copies: each event is one update, and a step
costs what has changed since the one before. An answer is the very one that
`question.answer(sketch, now=step)` gives, and so is its promise.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamgauge import ticks as time_ticks
from streamgauge.queries import Frequency, Query, SelfJoin, Total
from streamgauge.sketches import bounds
from streamgauge.sketches.bounds import Bounds
from streamgauge.sketches.ecm import EcmSketch
from streamgauge.sketches.spans import Spans

_BLOCK_CELLS = 1 << 18  # steps are answered together, with at most so many spans of cells kept
_MOST_STEPS = 1 << 26


class Steps(NamedTuple):
    """The steps at which the window was not empty, and each question's answers at them."""

    ticks: NDArray[np.int64]
    answers: list[Bounds]


def sliding(  # noqa: PLR0917  (a template, what its update takes, and what is asked)
    template: EcmSketch,
    items: Any,
    times: Any,
    ask: Sequence[Query],
    every: Any,
    weights: Any = None,
) -> Steps:
    """The answers to `ask` at every multiple of `every` at which the window holds an event.

    `template` is an empty sketch and stays one.
    """
    sketch = template.fresh()
    step = time_ticks.span(every, sketch.tick, "every")
    words, kind = sketch.words(items)
    words, admitted = sketch.admit(words, sketch.door.ticks(times, words.size, weights), weights)
    block = max(1, _BLOCK_CELLS // (sketch.depth * sketch.width))
    ranges = {last: _Range(sketch, last, ask, block) for last in {query.last for query in ask}}
    moments = _moments(admitted.ticks, sketch.window, step)
    ends = np.searchsorted(admitted.ticks, moments, "right").tolist()
    answers: list[list[Bounds]] = []
    begin = 0
    for first in range(0, max(1, moments.size), block):  # without events, a block without steps
        steps = moments[first : first + block].tolist()
        for i, (moment, end) in enumerate(zip(steps, ends[first : first + block], strict=True)):
            sketch.insert(words[begin:end], admitted.part(begin, end, moment), kind)
            begin = end
            for asked in ranges.values():
                asked.look(i, moment)
        answers.append([ranges[query.last].answers(query, len(steps)) for query in ask])
    return Steps(moments, [_join(parts) for parts in zip(*answers, strict=True)])


class _Range:
    """The spans of one `last` at each step of a block, and what is kept from step to step."""

    def __init__(self, sketch: EcmSketch, last: Any, ask: Sequence[Query], block: int) -> None:
        cutoff, now = sketch.door.range(last, None)
        self._sketch = sketch
        self._length = now - cutoff
        self._needs_cells = any(q.last == last and not isinstance(q, Total) for q in ask)
        cells = sketch.depth * sketch.width if self._needs_cells else 0
        self._expired, self._live = np.zeros(cells, np.int64), np.zeros(cells, np.int64)
        self._cells = Spans.blank(block, cells)
        self._total = Spans.blank(block, 1)

    def look(self, i: int, moment: int) -> None:
        """Keep the spans of this moment as the block's step `i`."""
        cutoff = moment - self._length
        self._total.put(i, self._sketch.total_span(cutoff))
        if self._needs_cells:
            self._cells.put(i, self._sketch.follow(cutoff, self._expired, self._live))

    def answers(self, query: Query, steps: int) -> Bounds:
        """The query's answers at the block's first `steps` steps."""
        sizes = self._sketch.sizes
        total = self._total.at((slice(steps), 0))
        match query:
            case Total():
                return bounds.totals(total)
            case Frequency(item=item):
                at = self._sketch.cells_of(self._sketch.words([item])[0])
                found = bounds.frequencies(sizes, self._cells.at((slice(steps), at)), total)
                return Bounds(
                    found.value[:, 0], found.low[:, 0], found.high[:, 0], found.confidence
                )
            case SelfJoin():
                rows = self._cells.at(slice(steps)).reshape(steps, sizes.depth, sizes.width)
                return bounds.self_joins(sizes, rows, total)


def _moments(arrived: NDArray[np.int64], window: int, step: int) -> NDArray[np.int64]:
    """The multiples of `step` within `window` of an event, those of silences left out."""
    if arrived.size == 0:
        return np.empty(0, np.int64)
    gaps = np.flatnonzero(np.diff(arrived) >= window + step)
    first = arrived[np.concatenate([[0], gaps + 1])]
    last = arrived[np.concatenate([gaps, [-1]])]
    steps = int(((last - first) // step).sum()) + first.size * (window // step + 2)
    if steps > _MOST_STEPS:
        raise ValueError(
            f"every must give at most {_MOST_STEPS} steps, got {step} ticks, which give {steps}"
        )
    runs = [
        np.arange(-(-begin // step) * step, end + window, step)
        for begin, end in zip(first.tolist(), last.tolist(), strict=True)
    ]
    moments = np.concatenate(runs)
    newest = np.searchsorted(arrived, moments, "right")
    return moments[newest > np.searchsorted(arrived, moments - window, "right")]


def _join(parts: Sequence[Bounds]) -> Bounds:
    return Bounds(
        np.concatenate([part.value for part in parts]),
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.high for part in parts]),
        parts[0].confidence,
    )
