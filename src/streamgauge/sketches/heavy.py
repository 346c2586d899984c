"""Frequent items of a sliding window: a chain of Misra-Gries tables, and a wave of the total."""

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NamedTuple, Self, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamgauge import items as item_words
from streamgauge import wire
from streamgauge.estimate import Estimate, ItemEstimate, TopItem
from streamgauge.items import Named, Texts, Words
from streamgauge.sketches import merging
from streamgauge.sketches.chain import Chain, ChainState, Sizes
from streamgauge.sketches.door import (
    COUNT_LIMIT,
    Admitted,
    Count,
    Door,
    DoorState,
    Late,
    Tick,
    require_room,
    require_share,
)
from streamgauge.sketches.labels import Labels
from streamgauge.sketches.merging import (
    Drift,
    NotMergeable,
    common_door,
    require_alike,
)
from streamgauge.sketches.wavegrid import MEMORY_LIMIT, GridState, WaveGrid, kept_ranks
from streamgauge.ticks import is_whole

Ints = NDArray[np.int64]

CHUNK = 8192  # events of text between two looks at how much text is no longer needed
FEW = 64  # items asked one by one; for more it is sooner to look at all there are
_LEAST_EPSILON = 1e-5
_MOST_SITES = 1 << 16


class _PartState(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    chain: ChainState
    chain_bytes: Count
    total: GridState
    total_bytes: Count
    lengths: Annotated[int, msgspec.Meta(ge=0, le=3)]  # of texts, in 1 << lengths bytes each
    flat_before: Tick | None


class _Header(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    epsilon: Annotated[float, msgspec.Meta(ge=_LEAST_EPSILON, lt=1)]
    door: DoorState
    kind: item_words.Kind | None
    arrivals: Count
    parts: Annotated[list[_PartState], msgspec.Meta(min_length=1, max_length=_MOST_SITES)]


class _Part(NamedTuple):
    """One stream: its frequent items, its total, and whether others were flattened into it.

    What came up to the tick `flat_before` is as flattening left it.
    """

    chain: Chain
    total: WaveGrid
    flat_before: int | None = None

    def totals(self, cutoff: int) -> tuple[int, int]:
        """The fewest and the most arrivals after the tick `cutoff`."""
        spans = self.total.spans(np.zeros(1, np.int64), np.array([cutoff]))
        return int(spans.low[0]), int(spans.high[0])

    def misplaced(self, cutoff: int, epsilon: float) -> int:
        """How many arrivals of an item flattening may have added to the range, or taken from it."""
        if self.flat_before is None or cutoff >= self.flat_before:
            return 0
        return math.floor(epsilon * self.totals(cutoff)[1] * (1 + 2**-40))

    def frequencies(self, words: Words, cutoff: int, epsilon: float) -> tuple[Ints, Ints]:
        """The fewest and the most arrivals of each word after the tick `cutoff`."""
        low, high = self.chain.frequencies(words, cutoff)
        misplaced = self.misplaced(cutoff, epsilon)
        return (np.maximum(low - misplaced, 0), high + misplaced) if misplaced else (low, high)


class _Range(NamedTuple):
    """What all parts know of one range; an item not among `words` came at most `others` times."""

    words: Words
    low: Ints
    high: Ints
    others: int
    total_low: int
    total_high: int

    def of(self, words: Words) -> tuple[Ints, Ints]:
        """The fewest and the most arrivals of these words, in order."""
        at = np.minimum(np.searchsorted(self.words, words), max(self.words.size - 1, 0))
        if self.words.size == 0:
            return np.zeros(words.size, np.int64), np.full(words.size, self.others)
        there = self.words[at] == words
        return np.where(there, self.low[at], 0), np.where(there, self.high[at], self.others)


class HeavyHitterSketch:
    """The frequent items of the last part of a window, and how often any item came; certain.

    A chain of Misra-Gries tables with logs of blocks. For every item, and every `last` up to the
    window,

        low <= truth <= high,   high - low <= epsilon * total,   value = (low + high) / 2

    whatever the stream (docs/guarantees.md, "HeavyHitterSketch"); no hashing enters that, so there
    is no seed. Memory is as 1 / epsilon and the logarithm of the events in the window, of which no
    bound is asked for. Items come back as they were given: text as str where it is valid UTF-8,
    else as bytes, integers in [-2**63, 2**63). Two texts with one XXH64 are one item.

    A window that counts arrivals takes no weights: the blocks of one event have one time.

    >>> sketch = HeavyHitterSketch(window=100, epsilon=0.1)
    >>> sketch.update(["a", "b", "a"], [1, 2, 3])
    >>> sketch.heavy_hitters(0.5)
    [ItemEstimate(item='a', estimate=Estimate(value=2.0, low=2.0, high=2.0, confidence=1.0))]
    """

    def __init__(
        self, *, window: Any, epsilon: float, tick: Any = None, late: Late = "raise"
    ) -> None:
        epsilon = require_share("epsilon", epsilon)
        if epsilon < _LEAST_EPSILON:
            raise ValueError(f"epsilon must be at least {_LEAST_EPSILON}, got {epsilon}")
        self._start(epsilon, Door.parse(window, tick, late))

    def _start(self, epsilon: float, door: Door) -> None:
        self._epsilon = epsilon
        self.door = door
        self._kind: item_words.Kind | None = None
        self._arrivals = 0
        self._labels = Labels()
        total = WaveGrid(1, kept_ranks(epsilon / 4), door.window)
        self._parts = [_Part(Chain(epsilon, door.window), total)]

    def __repr__(self) -> str:
        """The specification, as it could be written again, and the clock."""
        parts = f"; {len(self._parts)} parts" if len(self._parts) > 1 else ""
        return (
            f"HeavyHitterSketch({self.door.written()}, epsilon={self._epsilon}, "
            f"late={self.door.late!r}{parts}; now={self.now})"
        )

    @property
    def epsilon(self) -> float:
        """The width of an interval relative to the total, that of flattening included."""
        if all(part.flat_before is None for part in self._parts):
            return self._epsilon
        sizes = Sizes.of(self._epsilon)
        return self._epsilon * (1 + sizes.most / sizes.good + 2 * self._spread)

    @property
    def _spread(self) -> float:
        """The high of a total is at most this times the truth, and that as much times the low."""
        drift = Drift.of(part.total.drift for part in self._parts)
        return (1 + self._epsilon / 2) * drift.high / drift.low

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
        held = sum(part.chain.nbytes + part.total.nbytes for part in self._parts)
        return held + (self._labels.nbytes if self._kind == "text" else 0)

    @property
    def arrivals(self) -> int:
        """How many events were ever recorded."""
        return self._arrivals

    @property
    def kind(self) -> item_words.Kind | None:
        """Whether the items are integers or text; None before the first."""
        return self._kind

    @property
    def parts(self) -> int:
        """Of how many streams the arrivals are kept apart."""
        return len(self._parts)

    @property
    def specification(self) -> dict[str, object]:
        """Every parameter: sketches that agree in all go together."""
        return {"epsilon": self._epsilon} | self.door.specification

    def update(self, items: Any, times: Any = None, weights: Any = None) -> None:
        """Record that items[i] occurred at times[i], weights[i] times or once."""
        named = item_words.named(items)
        self._require_kind(named.kind)
        ticks = self.door.ticks(times, named.words.size, weights)
        if ticks.size != named.words.size:
            raise ValueError(
                f"times must be as many as items, got {ticks.size} for {named.words.size}"
            )
        admitted = self.door.admit(ticks, weights)
        if self.door.counts_arrivals and admitted.counts.max(initial=1) > 1:
            raise ValueError(
                "weights must be 0 or 1 where the window counts arrivals, since the arrivals of "
                f"one event would be of one time here, got {admitted.counts.max()}"
            )
        require_room(self._arrivals, admitted)
        self._kind = self._kind or named.kind
        self._arrivals += admitted.arrivals
        self._insert(_kept(named, admitted.kept), admitted)
        self.door.enter(admitted)

    def _insert(self, named: Named, admitted: Admitted) -> None:
        """Into the first part: whichever takes an event, together they have it."""
        chain, total, _ = self._parts[0]
        total.insert_run(admitted)
        if named.texts is None:
            chain.insert(named.words, admitted)
            return
        for begin in range(0, named.words.size, CHUNK):
            part = slice(begin, begin + CHUNK)
            data, begins, ends = named.texts
            self._labels.add(named.words[part], Texts(data, begins[part], ends[part]))
            chain.insert(named.words[part], admitted.part(part.start, part.stop))
            if self._labels.is_full:
                self._labels.keep(self._held(int(admitted.ticks[part][-1]) - self.window))

    def _held(self, cutoff: int) -> Words:
        """The words that answers about ticks after `cutoff` may name."""
        if len(self._parts) == 1:
            return self._parts[0].chain.held(cutoff)
        return np.unique(np.concatenate([part.chain.held(cutoff) for part in self._parts]))

    def _require_kind(self, kind: item_words.Kind | None) -> None:
        if kind and self._kind and kind != self._kind:
            raise ValueError(f"items must be {self._kind}, as those before, got {kind}")

    def advance(self, now: Any) -> None:
        """Let time pass without events."""
        self.door.advance(now)

    @overload
    def estimate(self, item: int | str | bytes, last: Any = None, now: Any = None) -> Estimate: ...
    @overload
    def estimate(self, item: Any, last: Any = None, now: Any = None) -> list[Estimate]: ...
    def estimate(self, item: Any, last: Any = None, now: Any = None) -> Estimate | list[Estimate]:
        """How often an item occurred in `(now - last, now]`, or each of many items."""
        words, kind = item_words.words(item)
        self._require_kind(kind)
        cutoff, _ = self.door.range(last, now)
        low, high = self._frequencies(words, cutoff)
        found = _estimates(low, high)
        return found[0] if item_words.is_one(item) else found

    def _frequencies(self, words: Words, cutoff: int) -> tuple[Ints, Ints]:
        if words.size > FEW:
            return self._range(cutoff).of(words)
        first, *more = (part.frequencies(words, cutoff, self._epsilon) for part in self._parts)
        low, high = first
        for fewest, most in more:
            low, high = low + fewest, high + most
        return low, high

    def _range(self, cutoff: int) -> _Range:
        """What is known of all items; words in order."""
        seen = [part.chain.every(cutoff) for part in self._parts]
        words = np.unique(np.concatenate([each.words for each in seen]))
        low, high = np.zeros(words.size, np.int64), np.zeros(words.size, np.int64)
        others = fewest = most = 0
        for part, each in zip(self._parts, seen, strict=True):
            misplaced = part.misplaced(cutoff, self._epsilon)
            at = np.searchsorted(words, each.words)
            here_low, here_high = np.zeros_like(low), np.full_like(high, each.lost)
            here_low[at], here_high[at] = each.low, each.high
            low += np.maximum(here_low - misplaced, 0)
            high += here_high + misplaced
            others += each.lost + misplaced
            total = part.totals(cutoff)
            fewest, most = fewest + total[0], most + total[1]
        return _Range(words, low, high, others, fewest, most)

    def total(self, last: Any = None, now: Any = None) -> Estimate:
        """How many events there were in `(now - last, now]`; certain."""
        cutoff, _ = self.door.range(last, now)
        low, high = map(sum, zip(*(part.totals(cutoff) for part in self._parts), strict=True))
        return _estimates(np.array([low]), np.array([high]))[0]

    def heavy_hitters(self, phi: float, last: Any = None, now: Any = None) -> list[ItemEstimate]:
        """Every item that may have been a share of `phi` of the events, by decreasing value.

        That is every item with high >= phi * total().low, so none that truly was is missed. For
        that, phi must exceed epsilon * (1 + epsilon / 2): so large a share an item can have
        without being known.
        """
        phi = require_share("phi", phi)
        least = self.epsilon * self._spread
        if phi <= least:
            raise ValueError(
                f"phi must exceed the share that an item can have without being known, {least:.6g} "
                f"with an epsilon of {self.epsilon:.6g}, got {phi}"
            )
        found = self._range(self.door.range(last, now)[0])
        if found.total_high == 0:
            return []
        order = _by_value(found)
        order = order[found.high[order] >= phi * found.total_low]
        named = self._named(found.words[order])
        return list(map(ItemEstimate, named, _estimates(found.low[order], found.high[order])))

    def top(self, k: int, last: Any = None, now: Any = None) -> list[TopItem]:
        """The `k` items of the greatest values, and which of them are certainly among the first k.

        Such an item came at least as often as each item that is not in the list.
        """
        if not is_whole(k) or k < 1:
            raise ValueError(f"k must be a positive integer, got {k!r}")
        found = self._range(self.door.range(last, now)[0])
        order = _by_value(found)
        order = order[found.high[order] > 0]
        first, rest = order[:k], order[k:]
        rival = max(int(found.high[rest].max(initial=0)), found.others)
        estimates = _estimates(found.low[first], found.high[first])
        certain = (found.low[first] >= max(rival, 1)).tolist()
        return list(map(TopItem, self._named(found.words[first]), estimates, certain))

    def _named(self, words: Words) -> Sequence[int | str | bytes]:
        if self._kind == "text":
            return self._labels.named(words)
        named: list[int] = words.view(np.int64).tolist()
        return named

    def self_join(self, last: Any = None, now: Any = None) -> Estimate:
        """The sum over all items of their squared frequency in `(now - last, now]`; certain."""
        return self.inner_product(self, last, now)

    def inner_product(
        self, other: "HeavyHitterSketch", last: Any = None, now: Any = None
    ) -> Estimate:
        """The sum over all items of their frequency here times that in `other`; certain.

        Both in `(now - last, now]`; `now` is the greater clock unless given. Its interval is at
        most 2 epsilon (1 + epsilon / 2) times the product of the totals wide.
        """
        require_alike([self, other] if other is not self else [self])
        other._require_kind(self._kind)
        latest = max(self, other, key=lambda each: -math.inf if each.now is None else each.now)
        cutoff, _ = latest.door.range(last, now)
        ours = self._range(cutoff)
        theirs = ours if other is self else other._range(cutoff)
        low, high = _product(ours, theirs)
        return Estimate((low + high) / 2, low, high, 1.0)

    @classmethod
    def merge(cls, parts: Iterable[Any]) -> Self:
        """The sketch of several streams, from theirs or their bytes, which stay as they are.

        It keeps each as a part and adds up their bounds: `epsilon` stays what it is, whatever the
        tree of merges, and memory is that of all parts. `flatten` makes one part of them.
        """
        sketches = merging.objects(cls, parts)
        door = common_door(sketches)
        kinds = {sketch.kind for sketch in sketches} - {None}
        if len(kinds) > 1:
            raise NotMergeable("sketches must be all of integers or all of text, got both")
        merged = cls.__new__(cls)
        merged._start(sketches[0]._epsilon, door)
        merged._arrivals = sum(sketch.arrivals for sketch in sketches)
        if merged._arrivals >= COUNT_LIMIT:
            raise OverflowError(f"arrivals must stay below 2**53, got {merged._arrivals}")
        merged._kind = kinds.pop() if kinds else None
        cutoff = 0 if door.now is None else door.now - door.window
        every = [part for sketch in sketches for part in sketch._parts]
        live = [part for part in every if part.totals(cutoff)[1] > 0]
        if live:
            merged._parts = [
                part._replace(chain=part.chain.copy(), total=part.total.copy()) for part in live
            ]
        if merged._kind == "text":
            merged._take_labels(sketches)
        return merged

    def _take_labels(self, sketches: "Sequence[HeavyHitterSketch]") -> None:
        cutoff = 0 if self.now is None else self.now - self.window
        for sketch in sketches:
            words = sketch._held(cutoff)
            self._labels.add(words, sketch._labels.texts(words))

    def flatten(self) -> Self:
        """The same events in one part, in memory of one, for a wider interval: see `epsilon`.

        Once, at the end: what was flattened is not flattened again, as its errors would add up.
        """
        if len(self._parts) == 1:
            return self.from_bytes(self.to_bytes())
        if any(part.flat_before is not None for part in self._parts):
            raise NotMergeable("parts must not have been flattened before, for errors would add up")
        flat = type(self).__new__(type(self))
        flat._start(self._epsilon, Door(self.door.state()))
        flat._kind, flat._arrivals = self._kind, self._arrivals
        now = self.now or 0
        cutoff = now - self.window
        chain, _, _ = flat._parts[0]
        columns = zip(*(part.chain.segments(cutoff) for part in self._parts), strict=True)
        words, ticks, weights = map(np.concatenate, columns)
        order = np.lexsort((words, ticks))  # the parts' own order says nothing
        chain.insert(words[order], Admitted(ticks[order], weights[order], None, None, 0))
        total = merging.merged([part.total for part in self._parts], merging.NOTHING, now)
        before = max(part.chain.exact_after(cutoff) for part in self._parts)
        flat._parts = [_Part(chain, total, before if before > cutoff else None)]
        if flat._kind == "text":
            flat._take_labels([self])
            flat._labels.keep(chain.held(cutoff))
        return flat

    def to_bytes(self) -> bytes:
        """Everything a question or an update can still see."""
        packed = [self._packed(part) for part in self._parts]
        states = [state for state, _ in packed]
        header = _Header(self._epsilon, self.door.state(), self._kind, self._arrivals, states)
        return wire.frame(wire.HEAVY, header, b"".join(payload for _, payload in packed))

    def _packed(self, part: _Part) -> tuple[_PartState, bytes]:
        """Words or texts, chain, total."""
        now = self.now
        cutoff = 0 if now is None else now - self.window
        words = part.chain.held(cutoff)
        chain, total = part.chain.pack(words, now), part.total.pack(now)
        lengths, names = 0, words.astype("<u8").tobytes()
        if self._kind == "text":
            texts = self._labels.texts(words)
            sizes = texts.ends - texts.begins
            lengths = next(i for i in range(4) if sizes.max(initial=0) < 1 << (8 << i))
            names = sizes.astype(f"<u{1 << lengths}").tobytes() + b"".join(
                texts.data[begin:end].tobytes()
                for begin, end in zip(texts.begins, texts.ends, strict=True)
            )
        flat = part.flat_before
        state = _PartState(
            ChainState(part.chain.top, words.size), len(chain), part.total.state(now), len(total),
            lengths, flat if flat is not None and flat > cutoff else None,
        )  # fmt: skip
        return state, chain + total + names

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """The sketch whose `to_bytes` gave `data`; WireError for anything else."""
        header, payload = wire.unframe(data, wire.HEAVY, _Header)
        sketch = cls.__new__(cls)
        sketch._start(header.epsilon, Door(header.door))
        sketch._kind, sketch._arrivals = header.kind, header.arrivals
        if header.arrivals and (header.kind is None or header.door.now is None):
            raise wire.WireError("there were events, but no clock or no kind of items")
        sketch._parts = []
        for state in header.parts:
            payload = sketch._unpack(state, payload)
            if sketch.nbytes > MEMORY_LIMIT:
                raise wire.WireError(f"the parts need more than {MEMORY_LIMIT >> 30} GiB")
        if payload:
            raise wire.WireError(f"{len(payload)} bytes go on beyond the end")
        held = sum(int(part.total.counts[0]) for part in sketch._parts)
        if all(part.total.drift.levels == 0 for part in sketch._parts) and held > header.arrivals:
            raise wire.WireError(f"{held} events are held, but {header.arrivals} ever came")
        return sketch

    def _unpack(self, state: _PartState, payload: memoryview) -> memoryview:
        """Add the part at the beginning of the payload; what follows it."""
        split = [state.chain_bytes, state.chain_bytes + state.total_bytes]
        if split[1] > len(payload):
            raise wire.WireError(f"truncated: {len(payload)} bytes of {split[1]} and the items'")
        words, end = self._read_words(state, payload[split[1] :])
        now, door = self.now, self.door.state()
        chain = Chain.unpack(self._epsilon, door, state.chain, words, payload[: split[0]])
        kept = kept_ranks(self._epsilon / 4)
        total = WaveGrid.unpack(1, kept, door, state.total, payload[split[0] : split[1]])
        flat = state.flat_before
        if flat is not None and (now is None or not now - self.window < flat <= now):
            raise wire.WireError(f"flattened up to {flat}, which is not in the window")
        self._parts.append(_Part(chain, total, flat))
        return payload[split[1] + end :]

    def _read_words(self, state: _PartState, payload: memoryview) -> tuple[Words, int]:
        """Words in order, each once, and how many bytes they took."""
        many = state.chain.words
        if self._kind is None and many:
            raise wire.WireError("there are items, but no kind of them")
        size = 1 << state.lengths if self._kind == "text" else 8
        end = many * size
        if self._kind != "text" and state.lengths:
            raise wire.WireError("integers have no lengths")
        if end > len(payload):
            raise wire.WireError(f"truncated: {len(payload)} bytes cannot name {many} items")
        if self._kind == "text":
            lengths = np.frombuffer(payload, f"<u{size}", many).astype(np.uint64)
            if int(lengths.sum(dtype=object)) > len(payload) - end:
                raise wire.WireError("truncated: the items' text goes on beyond the end")
            if state.lengths and int(lengths.max(initial=0)) < 1 << (4 << state.lengths):
                raise wire.WireError("the lengths of items' text are wider than they need")
            ends = end + np.cumsum(lengths.astype(np.int64))
            begins = ends - lengths.astype(np.int64)
            pieces = [
                bytes(payload[b:e]) for b, e in zip(begins.tolist(), ends.tolist(), strict=True)
            ]
            words, _, texts = item_words.named(pieces)
            if texts is not None:
                self._labels.add(words, texts)
                end = int(ends[-1])
        else:
            words = np.frombuffer(payload, "<u8", many).astype(np.uint64)
        if np.any(words[1:] <= words[:-1]):
            raise wire.WireError("the items are not in order, or one is there twice")
        return words, end


def _kept(named: Named, kept: NDArray[np.bool_] | None) -> Named:
    """The items that a door has let in."""
    if kept is None:
        return named
    texts = named.texts
    if texts is not None:
        texts = Texts(texts.data, texts.begins[kept], texts.ends[kept])
    return Named(named.words[kept], named.kind, texts)


def _estimates(low: Ints, high: Ints) -> list[Estimate]:
    """Whole numbers up to 2**53 are exact; a union of streams stays below that too."""
    rows = zip(low.tolist(), high.tolist(), strict=True)
    return [Estimate((least + most) / 2, float(least), float(most), 1.0) for least, most in rows]


def _by_value(found: _Range) -> NDArray[np.intp]:
    """The places of items by decreasing value, of equal ones by their words."""
    return np.argsort(-(found.low + found.high), kind="stable")


def _product(ours: _Range, theirs: _Range) -> tuple[float, float]:
    """The least and the most that the sum over all items of f g can be.

    At least it is the sum of the products of the lower ends. As g is at most its upper end h, it is
    at most the largest sum of f h: every f at its lower end, and what the total leaves goes to the
    items of the greatest h, up to their upper ends. Or the same with f and g exchanged.
    """
    words = np.union1d(ours.words, theirs.words)
    f, g = ours.of(words), theirs.of(words)
    low = float(np.dot(f[0].astype(np.float64), g[0].astype(np.float64)))
    most = [
        _most(of, total, by[1], others)
        for of, total, by, others in (
            (f, ours, g, theirs.others),
            (g, theirs, f, ours.others),
        )
    ]
    high = min(most)
    # Whole numbers are exact up to 2**53; of larger ones, 2**24 sums and products round by less.
    if high >= COUNT_LIMIT:
        low, high = low * (1 - 2**-28), high * (1 + 2**-28)
    return low, max(high, low)


def _most(of: tuple[Ints, Ints], total: _Range, by: Ints, by_others: int) -> float:
    """The most that the sum of f times `by` can be, that of items named nowhere included."""
    order = np.argsort(-by, kind="stable")
    least, room = of[0][order], (of[1] - of[0])[order]
    spare = max(total.total_high - int(least.sum()), 0)
    if total.others == 0:
        by_others = 0  # there are no items without a name
    taken = np.diff(np.minimum(np.cumsum(room.astype(np.float64)), spare), prepend=0.0)
    gained = np.dot(taken, np.maximum(by[order], by_others).astype(np.float64))
    known = np.dot(least.astype(np.float64), by[order].astype(np.float64))
    return float(known + gained) + (spare - float(taken.sum())) * by_others
