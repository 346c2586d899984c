"""Frequencies and joins over a sliding window: a count-min grid of window counters."""

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NamedTuple, Self, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamgauge import items as item_words
from streamgauge import kernels, seeds, wire
from streamgauge.estimate import Estimate
from streamgauge.sketches import bounds, coins, grids, merging
from streamgauge.sketches.bounds import Bounds
from streamgauge.sketches.coins import Site
from streamgauge.sketches.door import (
    COUNT_LIMIT,
    Admitted,
    Count,
    Door,
    DoorState,
    Late,
    require_room,
)
from streamgauge.sketches.log import ENTRY_BYTES, MOST_ENTRIES, Log, LogState
from streamgauge.sketches.sizes import Asked, Counter, Given, Sizes
from streamgauge.sketches.spans import Spans
from streamgauge.sketches.wave import Wave
from streamgauge.sketches.wavegrid import GridState, WaveGrid, kept_ranks


class _GridStates(
    msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True, tag="grids"
):
    cells: GridState
    total: GridState
    total_bytes: Annotated[int, msgspec.Meta(ge=1)]


class _Header(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    sizes: Asked | Given
    sites: Annotated[tuple[Site, ...], msgspec.Meta(max_length=coins.MOST_SITES)]
    door: DoorState
    kind: item_words.Kind | None
    arrivals: Count
    held: LogState | _GridStates


class _Grids(NamedTuple):
    """The counters of all cells, and a wave that counts every event."""

    cells: grids.Grid
    total: WaveGrid

    def copy(self) -> "_Grids":
        """Others with the same content."""
        return _Grids(self.cells.copy(), self.total.copy())


class EcmSketch:
    """How often items occurred in the last part of a window (Papapetrou et al. 2015).

    `depth` rows of `width` waves; an item adds to one wave of each row. A wave holds all of its
    item's events and those of others that share it, so for each question by itself

        high: certain,  low: holds with probability 1 - delta,
        |estimate - truth| <= epsilon * total         with probability 1 - delta,

    for items fixed before the seed is drawn (docs/guarantees.md, "ECM-sketch"). `total` is
    certain. The window is a number of ticks or a duration such as "1 hour"; `tick` is the
    resolution of the latter, 1 ms unless given.

    While its window holds few events, a sketch keeps those instead of the grid: its cells are
    exact then, and a key of Spark that occurs ten times costs some hundred bytes.

    >>> sketch = EcmSketch(window=100, epsilon=0.1, delta=0.05, seed=7)
    >>> sketch.update(["a", "b", "a"], [1, 2, 3])
    >>> sketch.estimate("a")
    Estimate(value=2.0, low=1.90..., high=2.0, confidence=0.95)
    """

    def __init__(
        self,
        *,
        window: Any,
        epsilon: float,
        delta: float,
        seed: int,
        counter: Counter = "wave",
        site: int | str | None = None,
        tick: Any = None,
        late: Late = "raise",
    ) -> None:
        sizes = Sizes.asked(counter, epsilon, delta, seed)
        self._start(sizes, Door.parse(window, tick, late), _sites(sizes, site))

    @classmethod
    def for_inner_product(  # the parameters of __init__
        cls,
        *,
        window: Any,
        epsilon: float,
        delta: float,
        seed: int,
        counter: Counter = "wave",
        site: int | str | None = None,
        tick: Any = None,
        late: Late = "raise",
    ) -> Self:
        """A sketch sized for products: `inner_product` and `self_join` within epsilon N M.

        N and M are the totals of the two streams (N twice for a self-join).
        """
        sketch = cls.__new__(cls)
        sizes = Sizes.asked(counter, epsilon, delta, seed, products=True)
        sketch._start(sizes, Door.parse(window, tick, late), _sites(sizes, site))
        return sketch

    @classmethod
    def from_sizes(
        cls,
        *,
        window: Any,
        depth: int,
        width: int,
        epsilon_window: float,
        seed: int,
        counter: Counter = "wave",
        site: int | str | None = None,
        tick: Any = None,
        late: Late = "raise",
    ) -> Self:
        """A sketch of `depth` rows of `width` counters, each within `epsilon_window`."""
        sketch = cls.__new__(cls)
        sizes = Sizes.given(counter, depth, width, epsilon_window, seed)
        sketch._start(sizes, Door.parse(window, tick, late), _sites(sizes, site))
        return sketch

    def _start(self, sizes: Sizes, door: Door, sites: tuple[Site, ...]) -> None:
        grids.require_memory(sizes, door.window)
        self._sizes = sizes
        self.door = door
        self.sites = sites  # whose coins were tossed for it, if coins are
        self._kind: item_words.Kind | None = None
        self._seeds = seeds.expand(sizes.origin.seed, 3 * sizes.depth).reshape(sizes.depth, 3)
        self._arrivals = 0
        self._held: Log | _Grids = self._new_log()

    def __repr__(self) -> str:
        """The specification, as it could be written again, and the clock."""
        sizes = self._sizes
        return (
            f"EcmSketch({self.door.written()}, epsilon={sizes.epsilon}, delta={sizes.delta}, "
            f"seed={sizes.origin.seed}, counter={sizes.origin.counter!r}, late={self.door.late!r}; "
            f"{sizes.depth} x {sizes.width} counters, now={self.now})"
        )

    @property
    def sizes(self) -> Sizes:
        """Rows, columns and how the errors are split between hashing and counters."""
        return self._sizes

    @property
    def epsilon(self) -> float:
        """The error relative to the total (to the product of totals): as sized, and by merging."""
        return self._sizes.reach(self._drift) if self.levels else self._sizes.epsilon

    @property
    def levels(self) -> int:
        """How many levels of merging are behind it."""
        return self._drift.levels

    @property
    def _drift(self) -> merging.Drift:
        return merging.Drift() if isinstance(self._held, Log) else self._held.cells.drift

    @property
    def delta(self) -> float:
        """The probability with which a lower bound may fail."""
        return self._sizes.delta

    @property
    def depth(self) -> int:
        """Rows."""
        return self._sizes.depth

    @property
    def width(self) -> int:
        """Waves a row."""
        return self._sizes.width

    @property
    def window(self) -> int:
        """The window in ticks."""
        return self.door.window

    @property
    def tick(self) -> int | None:
        """Nanoseconds a tick, None for plain integer ticks."""
        return self.door.tick

    @property
    def now(self) -> int | None:
        """The clock: the greatest tick seen or advanced to, None before the first."""
        return self.door.now

    @property
    def late_events(self) -> int:
        """How many late events were dropped or clamped."""
        return self.door.late_events

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        held = self._held
        return held.nbytes if isinstance(held, Log) else held.cells.nbytes + held.total.nbytes

    @property
    def arrivals(self) -> int:
        """How many events were ever recorded."""
        return self._arrivals

    @property
    def kind(self) -> item_words.Kind | None:
        """Whether the items are integers or text; None before the first."""
        return self._kind

    @property
    def specification(self) -> dict[str, object]:
        """Every parameter: sketches that agree in all go together."""
        return msgspec.structs.asdict(self._sizes.origin) | self.door.specification

    def fresh(self) -> Self:
        """Another sketch like this one, which must be empty: it is the template of many."""
        if self.now is not None:
            raise ValueError(f"template must be an empty sketch, got {self}")
        return self.from_bytes(self.to_bytes())

    def total_wave(self) -> Wave:
        """The count of all events by itself, as it is now."""
        held = self._held
        if isinstance(held, Log):
            total = self._new_total()
            if self.now is not None:
                total.insert_run(held.events(self.now - self.window)[1])
        else:
            total = held.total
        return Wave.of(self._sizes.epsilon_window, self.door, total)

    def update(self, items: Any, times: Any = None, weights: Any = None) -> None:
        """Record that items[i] occurred at times[i], weights[i] times or once."""
        words, kind = self.words(items)
        ticks = self.door.ticks(times, words.size, weights)
        self.insert(*self.admit(words, ticks, weights), kind)

    def admit(
        self, words: NDArray[np.uint64], ticks: NDArray[np.int64], weights: Any
    ) -> tuple[NDArray[np.uint64], Admitted]:
        """What the door makes of a batch, and its words; nothing has changed yet."""
        if ticks.size != words.size:
            raise ValueError(f"times must be as many as items, got {ticks.size} for {words.size}")
        admitted = self.door.admit(ticks, weights)
        require_room(self._arrivals, admitted)
        grids.require_light(self._sizes, admitted)
        return (words if admitted.kept is None else words[admitted.kept]), admitted

    def insert(
        self, words: NDArray[np.uint64], admitted: Admitted, kind: item_words.Kind | None
    ) -> None:
        """Record what was admitted, or the next part of it."""
        self._take(words, admitted)
        self._arrivals += admitted.arrivals
        self._kind = self._kind or kind
        self.door.enter(admitted)

    def _take(self, words: NDArray[np.uint64], events: Admitted) -> None:
        """Events into the log, as long as it is one, and into the grids."""
        begin = 0
        if isinstance(self._held, Log):
            begin = self._held.take(words, events)
            if begin < words.size:
                self._held = self._spread(self._held)
        if isinstance(self._held, _Grids):
            rest = events.part(begin)
            self._held.cells.insert(self._seeds, words[begin:], rest)
            self._held.total.insert_run(rest)

    def _spread(self, log: Log) -> _Grids:
        spread = _Grids(grids.new(self._sizes, self.window, self.sites), self._new_total())
        if log.ticks.size:
            words, events = log.events(int(log.ticks[-1]) - log.window)
            spread.cells.insert(self._seeds, words, events)
            spread.total.insert_run(events)
        return spread

    def _spread_log(self) -> _Grids:
        """The counters, also of a sketch that still has a log."""
        return self._spread(self._held) if isinstance(self._held, Log) else self._held

    def _new_total(self) -> WaveGrid:
        return WaveGrid(1, kept_ranks(self._sizes.epsilon_window), self.window)

    def _new_log(self) -> Log:
        return Log(_log_limit(self._sizes), self.window, int(self.door.counts_arrivals))

    def spans(self, cells: NDArray[np.int64], cutoff: int) -> Spans:
        """What the counters of these cells know of the events after the tick `cutoff`."""
        if isinstance(self._held, Log):
            words, weights = self._held.since(cutoff)
            every = self.cells_of(words).ravel()
            counts = np.bincount(every, np.tile(weights, self.depth), self.depth * self.width)
            return Spans.exact(counts.astype(np.int64)[cells])
        found = self._held.cells.spans(cells.ravel(), np.full(cells.size, cutoff))
        return found.reshape(*cells.shape)

    def follow(self, cutoff: int, expired: NDArray[np.int64], live: NDArray[np.int64]) -> Spans:
        """The spans of all cells, `expired` and `live` kept from one cutoff to a later one."""
        if isinstance(self._held, Log):
            return self.spans(np.arange(self.depth * self.width), cutoff)
        return self._held.cells.follow(cutoff, expired, live)

    def total_span(self, cutoff: int) -> Spans:
        """What is known of the number of all events after the tick `cutoff`."""
        if self.door.counts_arrivals:
            return Spans.exact(np.array([(self.now or 0) - max(cutoff, 0)]))
        if isinstance(self._held, Log):
            return Spans.exact(self._held.since(cutoff)[1].sum(keepdims=True))
        return self._held.total.spans(np.zeros(1, np.int64), np.array([cutoff]))

    def advance(self, now: Any) -> None:
        """Let time pass without events."""
        self.door.advance(now)

    @overload
    def estimate(self, item: int | str | bytes, last: Any = None, now: Any = None) -> Estimate: ...
    @overload
    def estimate(self, item: Any, last: Any = None, now: Any = None) -> list[Estimate]: ...
    def estimate(self, item: Any, last: Any = None, now: Any = None) -> Estimate | list[Estimate]:
        """How often an item occurred in `(now - last, now]`, or each of many items."""
        found = frequencies([self], item, last, now).estimates()
        return found[0] if item_words.is_one(item) else found

    def total(self, last: Any = None, now: Any = None) -> Estimate:
        """How many events there were in `(now - last, now]`; certain."""
        return totals([self], last, now)

    def self_join(self, last: Any = None, now: Any = None) -> Estimate:
        """The sum over all items of their squared frequency in `(now - last, now]`."""
        return self_joins([self], last, now)

    def inner_product(self, other: "EcmSketch", last: Any = None, now: Any = None) -> Estimate:
        """The sum over all items of their frequency here times that in `other`: a join's size.

        Both in `(now - last, now]`; `now` is the greater clock unless given.
        """
        if not isinstance(other, EcmSketch):
            raise ValueError(f"other must be an EcmSketch, got {other!r}")
        return inner_products([self], [other], last, now)

    @classmethod
    def merge(cls, parts: Iterable[Any]) -> Self:
        """The sketch of several streams, from theirs or their bytes, which stay as they are.

        Sketches of few events lose nothing; of others, `epsilon` and `levels` of the result say
        what it cost. One merge of all is better than a tree of merges.
        """
        sketches = merging.objects(cls, parts)
        merged = cls._beside(sketches)
        if merged.now is None:
            return merged
        held = [sketch._held for sketch in sketches]
        if merged.sites:  # a log's events toss the coins of its own site
            held = [sketch._spread_log() for sketch in sketches]
        logs = [log for log in held if isinstance(log, Log)]
        spread = [grid for grid in held if isinstance(grid, _Grids)]
        words, events = Log.together(logs, merged.now - merged.window)
        if spread:
            cells = merged.cells_of(words)
            one_by_one = merging.Exact(cells, events), merging.Exact(cells[:1] * 0, events)
            merged._held = _Grids(
                grids.merged([g.cells for g in spread], one_by_one[0], merged.now),
                merging.merged([g.total for g in spread], one_by_one[1], merged.now),
            )
        else:
            merged._take(words, events)
        return merged

    @classmethod
    def concat(cls, older: Any, newer: Any) -> Self:
        """The sketch of one stream from those of two parts of it, which stay as they are.

        The events of `newer` came when those of `older` were over. Only they can be misplaced.
        """
        older, newer = merging.objects(cls, [older, newer])
        joined = cls._beside([older, newer])
        now, late = joined.now, newer._held
        if now is None:
            return joined
        cutoff = now - joined.window
        if isinstance(late, Log) and not joined.sites:
            words, events = late.events(cutoff)
            merging.require_in_order(older, newer, int(events.ticks[0]) if words.size else None)
            joined._held = older._held.copy()
            joined._take(words, events)
            return joined
        early, late = older._spread_log(), newer._spread_log()
        merging.require_in_order(older, newer, late.total.begin(cutoff))
        joined._held = _Grids(
            grids.joined(early.cells, late.cells, now),
            merging.joined(early.total, late.total, now),
        )
        return joined

    @classmethod
    def _beside(cls, sketches: "Sequence[EcmSketch]") -> Self:
        """A sketch without events, whose door, kind and count are those of all of them."""
        door = merging.common_door(sketches)
        arrivals = sum(sketch.arrivals for sketch in sketches)
        if arrivals >= COUNT_LIMIT:
            raise OverflowError(f"arrivals must stay below 2**53, got {arrivals}")
        sketch = cls.__new__(cls)
        sites = coins.union([each.sites for each in sketches])
        sketch._start(sketches[0].sizes, door, sites)
        sketch._kind = _kind_of(sketches)
        sketch._arrivals = arrivals
        return sketch

    def cells_of(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """cells[row, i], the number of the wave that words[i] has in each row."""
        columns = np.empty((self.depth, words.size), np.int64)
        kernels.hashing.columns(self._seeds, self.width, words, columns)
        return columns + (np.arange(self.depth) * self.width)[:, None]

    def words(self, items: Any) -> tuple[NDArray[np.uint64], item_words.Kind | None]:
        """Items as words, and their kind, which must be that of the items before."""
        words, kind = item_words.words(items)
        self.require_kind(kind)
        return words, kind

    def require_kind(self, kind: item_words.Kind | None) -> None:
        """Refuse items of another kind than those before."""
        if kind and self._kind and kind != self._kind:
            raise ValueError(f"items must be {self._kind}, as those before, got {kind}")

    def to_bytes(self) -> bytes:
        """Everything a question or an update can still see."""
        held, now = self._held, self.now
        if isinstance(held, Log):
            state: LogState | _GridStates = held.state(now)
            payload = held.pack(now)
        else:
            total = held.total.pack(now)
            state = _GridStates(held.cells.state(now), held.total.state(now), len(total))
            payload = total + held.cells.pack(now)
        header = _Header(
            self._sizes.origin, self.sites, self.door.state(), self._kind, self._arrivals, state
        )
        return wire.frame(wire.ECM, header, payload)

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """The sketch whose `to_bytes` gave `data`; WireError for anything else."""
        header, payload = wire.unframe(data, wire.ECM, _Header)
        sketch = cls.__new__(cls)
        try:
            sizes = Sizes.of(header.sizes)
            if bool(header.sites) != (sizes.origin.counter == "randomized"):
                raise wire.WireError("sites go with randomized counters, and with no others")
            sketch._start(sizes, Door(header.door), coins.union([header.sites]))
        except (ValueError, OverflowError) as error:
            raise wire.WireError(str(error)) from None
        sketch._kind = header.kind
        sketch._arrivals = header.arrivals
        if isinstance(header.held, LogState):
            limit = _log_limit(sketch._sizes)
            log = Log.unpack(limit, header.door, header.held, payload)
            sketch._held, held = log, int(log.weights.sum())
        else:
            unpacked = _unpack(sizes, header, header.held, payload)
            sketch._held, held = unpacked, int(unpacked.total.counts[0])
        if held > header.arrivals:
            raise wire.WireError(f"{held} events are held, but {header.arrivals} ever came")
        if header.arrivals and (header.kind is None or header.door.now is None):
            raise wire.WireError("there were events, but no clock or no kind of items")
        if sketch.door.counts_arrivals and (sketch.now or 0) != header.arrivals:
            raise wire.WireError(f"the clock of {header.arrivals} arrivals stands at {sketch.now}")
        return sketch


def _log_limit(sizes: Sizes) -> int:
    """As many entries as take the memory of one level of waves."""
    level = sizes.depth * sizes.width * kept_ranks(sizes.epsilon_window) * 4
    return max(1, min(MOST_ENTRIES, level // ENTRY_BYTES))


def _unpack(sizes: Sizes, header: _Header, states: _GridStates, payload: memoryview) -> _Grids:
    split, kept = states.total_bytes, kept_ranks(sizes.epsilon_window)
    if split > len(payload):
        raise wire.WireError(f"truncated: {len(payload)} bytes of waves, {split} in the first")
    total = WaveGrid.unpack(1, kept, header.door, states.total, payload[:split])
    cells = grids.unpack(sizes, header.door, header.sites, states.cells, payload[split:])
    rows = cells.counts.reshape(sizes.depth, sizes.width).astype(np.float64).sum(axis=1)
    if total.drift.levels == 0 and np.any(rows != float(total.counts[0])):
        raise wire.WireError("the rows of the sketch do not hold the same number of events")
    return _Grids(cells, total)


def _sites(sizes: Sizes, site: int | str | None) -> tuple[Site, ...]:
    """Whose coins a new sketch tosses, if its counters toss any."""
    if sizes.origin.counter == "randomized":
        return (coins.require_site(0 if site is None else site),)
    if site is not None:
        raise ValueError(f"site names the coins of randomized counters, got {site!r} for others")
    return ()


# The questions, over the union of several sites' streams: sketches of equal specification, at one
# moment. A cell of the union has had as many arrivals as the sites' cells together.


def frequencies(sketches: Sequence[EcmSketch], items: Any, last: Any, now: Any) -> Bounds:
    """How often each of `items` occurred."""
    cutoff = _cutoff(sketches, last, now)
    words, kind = item_words.words(items)
    for sketch in sketches:
        sketch.require_kind(kind)
    at = sketches[0].cells_of(words)
    cells = Spans.sum(sketch.spans(at, cutoff) for sketch in sketches)
    total = _total(sketches, cutoff).reshape()
    return bounds.frequencies(sketches[0].sizes, cells, total, len(sketches))


def totals(sketches: Sequence[EcmSketch], last: Any, now: Any) -> Estimate:
    """How many events there were."""
    total = _total(sketches, _cutoff(sketches, last, now))
    return bounds.totals(total).estimates()[0]


def self_joins(sketches: Sequence[EcmSketch], last: Any, now: Any) -> Estimate:
    """The sum of squared frequencies."""
    cutoff = _cutoff(sketches, last, now)
    rows, total = _rows(sketches, cutoff), _total(sketches, cutoff)
    return bounds.self_joins(sketches[0].sizes, rows, total, len(sketches)).estimates()[0]


def inner_products(
    ours: Sequence[EcmSketch], theirs: Sequence[EcmSketch], last: Any, now: Any
) -> Estimate:
    """The sum over all items of their frequency in `ours` times that in `theirs`."""
    cutoff = _cutoff([*ours, *theirs], last, now)
    cells = _rows(ours, cutoff), _rows(theirs, cutoff)
    sums = _total(ours, cutoff), _total(theirs, cutoff)
    many = len(ours) + len(theirs)
    return bounds.inner_products(ours[0].sizes, cells, sums, many).estimates()[0]


def _cutoff(sketches: Sequence[EcmSketch], last: Any, now: Any) -> int:
    """Where the range of a question to all of them begins; at their greatest clock if None."""
    merging.require_alike(sketches)
    _kind_of(sketches)
    latest = max(sketches, key=lambda sketch: -math.inf if sketch.now is None else sketch.now)
    return latest.door.range(last, now)[0]


def _kind_of(sketches: Sequence[EcmSketch]) -> item_words.Kind | None:
    kinds = {sketch.kind for sketch in sketches} - {None}
    if len(kinds) > 1:
        raise merging.NotMergeable("sketches must be all of integers or all of text, got both")
    return kinds.pop() if kinds else None


def _rows(sketches: Sequence[EcmSketch], cutoff: int) -> Spans:
    """All cells of all sketches' sum, row by row; the first axis is the question."""
    depth, width = sketches[0].depth, sketches[0].width
    every = np.arange(depth * width)
    found = Spans.sum(sketch.spans(every, cutoff) for sketch in sketches)
    return found.reshape(1, depth, width)


def _total(sketches: Sequence[EcmSketch], cutoff: int) -> Spans:
    return Spans.sum(sketch.total_span(cutoff) for sketch in sketches)
