"""Ranges, quantiles and heavy prefixes of integers over a sliding window."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, NamedTuple, Self, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamgauge import items as item_words
from streamgauge import ticks, wire
from streamgauge.estimate import Estimate, ItemEstimate
from streamgauge.sketches.buckets import Buckets, BucketsState, BucketState
from streamgauge.sketches.columns import Reader
from streamgauge.sketches.door import (
    COUNT_LIMIT,
    Door,
    DoorState,
    Late,
    require_room,
    require_share,
)
from streamgauge.sketches.merging import common_door, objects
from streamgauge.sketches.prefixes import Level, View
from streamgauge.sketches.sizes import Seed, require_seed
from streamgauge.sketches.stack import MOST_CELLS, Counted, Listed, Stacks, StackSizes

MOST_HEAVY = 1 << 16

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]


class ItemRank(NamedTuple):
    """An item, and how many events were of items up to it."""

    item: int
    rank: Estimate


class PrefixEstimate(NamedTuple):
    """The items that share their first `length` bits with `first`, the lowest of them.

    `estimate` is how often they occurred, `discounted` the same without those that are counted
    under longer prefixes of the same answer.
    """

    first: int
    length: int
    estimate: Estimate
    discounted: Estimate


class _Header(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    bits: Annotated[int, msgspec.Meta(ge=1, le=64)]
    epsilon: Annotated[float, msgspec.Meta(ge=1e-4, lt=1)]
    delta: Annotated[float, msgspec.Meta(ge=1e-18, lt=1)]
    seed: Seed
    door: DoorState
    streams: list[BucketsState]


class DyadicEcmSketch:
    """How events spread over the integers below 2**bits, in the last part of a window.

    The stream is kept as an exponential histogram of its arrivals (sketches/buckets.py) whose
    buckets each carry the counts of their items and of all prefixes of these, exactly while they
    are few and as a stack of count-min sketches beyond (sketches/stack.py). Per question

        high: certain,  low: holds with probability 1 - delta,
        |range - truth| <= epsilon * total            with probability 1 - delta,

    for ranges fixed before the seed is drawn; where nothing that was asked for is hashed, all of it
    is certain and the answer says so (docs/guarantees.md, "Dyadic sketch"). `total` is certain.

    >>> sketch = DyadicEcmSketch(bits=32, window=100, epsilon=0.1, delta=0.05, seed=7)
    >>> sketch.update([10, 20, 20, 30], [1, 2, 3, 4])
    >>> sketch.range(15, 30)
    Estimate(value=3.0, low=3.0, high=3.0, confidence=1.0)
    >>> sketch.quantile(0.5).item
    20

    The prefixes of addresses are networks; of IPv6 the upper 64 bits are the items:

    >>> import ipaddress
    >>> addresses = ["10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.7.7", "10.0.9.9"]
    >>> numbers = [int(ipaddress.ip_address(address)) for address in addresses]
    >>> traffic = DyadicEcmSketch(bits=32, window=100, epsilon=0.1, delta=0.05, seed=7)
    >>> traffic.update(numbers, range(6))
    >>> for first, length, count, discounted in traffic.hierarchical_heavy_hitters(0.3):
    ...     network = ipaddress.ip_network((first, length))
    ...     print(network, count.value, discounted.value)
    10.0.0.1/32 3.0 3.0
    10.0.0.0/16 6.0 3.0
    >>> six = int(ipaddress.ip_address("2001:db8::1")) >> 64
    >>> ipaddress.ip_network((six << 64, 64))
    IPv6Network('2001:db8::/64')
    """

    def __init__(
        self,
        *,
        bits: int,
        window: Any,
        epsilon: float,
        delta: float,
        seed: int,
        tick: Any = None,
        late: Late = "raise",
    ) -> None:
        if not ticks.is_whole(bits) or not 1 <= bits <= 64:
            raise ValueError(f"bits must be an integer in [1, 64], got {bits!r}")
        epsilon, delta = require_share("epsilon", epsilon), require_share("delta", delta)
        for name, value, least in (("epsilon", epsilon, 1e-4), ("delta", delta, 1e-18)):
            if value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")
        sizes = StackSizes(int(bits), epsilon, delta, require_seed(seed))
        self._start(sizes, Door.parse(window, tick, late).require_times())

    def _start(self, sizes: StackSizes, door: Door) -> None:
        if sizes.cells > MOST_CELLS:
            raise OverflowError(
                f"a bucket's {sizes.cells} counters are more than {MOST_CELLS}; "
                "a larger epsilon needs less"
            )
        self.door = door
        self._sizes = sizes
        self._stacks = Stacks(sizes)
        self._streams = [self._stream()]

    def _stream(self) -> Buckets[Counted]:
        return Buckets(self._sizes.kept, self.door.window, self._stacks)

    def __repr__(self) -> str:
        """The specification, as it could be written again, and the clock."""
        sizes = self._sizes
        return (
            f"DyadicEcmSketch(bits={sizes.bits}, {self.door.written()}, epsilon={sizes.epsilon}, "
            f"delta={sizes.delta}, seed={sizes.seed}, late={self.door.late!r}; "
            f"{sizes.hashed} levels of {sizes.depth} x {sizes.width}, now={self.now})"
        )

    @property
    def sizes(self) -> StackSizes:
        """Levels, rows and columns of a bucket's counters, and how many buckets are kept."""
        return self._sizes

    @property
    def bits(self) -> int:
        """Items lie in [0, 2**bits)."""
        return self._sizes.bits

    @property
    def epsilon(self) -> float:
        """The error, relative to the total, that the sizes were chosen for."""
        return self._sizes.epsilon

    @property
    def delta(self) -> float:
        """The probability with which a lower bound may fail."""
        return self._sizes.delta

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
    def arrivals(self) -> int:
        """How many events were ever recorded."""
        return sum(stream.arrivals for stream in self._streams)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        payloads = (bucket.payload for stream in self._streams for bucket in stream.buckets)
        logs = sum(stream.log.nbytes for stream in self._streams)
        return logs + sum(payload.nbytes for payload in payloads)

    @property
    def specification(self) -> dict[str, object]:
        """Every parameter: sketches that agree in all can be merged."""
        sizes = self._sizes
        counted = {name: getattr(sizes, name) for name in ("bits", "epsilon", "delta", "seed")}
        return counted | self.door.specification

    def update(self, items: Any, times: Any, weights: Any = None) -> None:
        """Record that items[i] occurred at times[i], weights[i] times or once."""
        words = self._words(items)
        moments = self.door.ticks(times, words.size, weights)
        if moments.size != words.size:
            raise ValueError(f"times must be as many as items, got {moments.size} for {words.size}")
        admitted = self.door.admit(moments, weights)
        require_room(self.arrivals, admitted)
        self._streams[0].take(words if admitted.kept is None else words[admitted.kept], admitted)
        self.door.enter(admitted)
        if self.door.now is not None:
            for stream in self._streams[1:]:
                stream.expire(self.door.now)

    def _words(self, items: Any) -> Words:
        """Items as words, all of them in the domain."""
        words, kind = item_words.words(items)
        if kind == "text":
            raise ValueError("items must be integers, got text")
        if not words.size:
            return words
        most = int(words.max())
        if most >> self.bits or (most >> 63 and _lowest(items) < 0):
            found = _lowest(items)
            raise ValueError(
                f"items must lie in [0, 2**{self.bits}), got {found if found < 0 else most}"
            )
        return words

    def advance(self, now: Any) -> None:
        """Let time pass without events."""
        self.door.advance(now)
        if self.door.now is not None:
            for stream in self._streams:
                stream.expire(self.door.now)

    def total(self, last: Any = None, now: Any = None) -> Estimate:
        """How many events there were in `(now - last, now]`; certain."""
        return self._view(last, now).total

    @overload
    def estimate(self, item: int, last: Any = None, now: Any = None) -> Estimate: ...
    @overload
    def estimate(self, item: Any, last: Any = None, now: Any = None) -> list[Estimate]: ...
    def estimate(self, item: Any, last: Any = None, now: Any = None) -> Estimate | list[Estimate]:
        """How often an item occurred in `(now - last, now]`, or each of many items."""
        words = self._words(item)
        found = self._view(last, now).nodes(0, words)
        answers = found.estimates(self._sizes.share(), self._hashed(0))
        return answers[0] if item_words.is_one(item) else answers

    def range(self, lo: int, hi: int, last: Any = None, now: Any = None) -> Estimate:
        """How many events were of items from `lo` to `hi`, both included."""
        low, high = (self._one(name, item) for name, item in (("lo", lo), ("hi", hi)))
        if low > high:
            raise ValueError(f"lo must not exceed hi, got {low} and {high}")
        view = self._view(last, now)
        if low == 0 and high == (1 << self.bits) - 1:
            return view.total
        levels, prefixes = zip(*_intervals(low, high), strict=True)
        found = view.read(np.array(levels), np.array(prefixes, np.uint64)).summed()
        hashed = sum(map(self._hashed, levels))
        return found.estimates(self._sizes.share(), hashed)[0]

    def rank(self, item: int, last: Any = None, now: Any = None) -> Estimate:
        """How many events were of items up to `item`."""
        return self.range(0, item, last, now)

    def quantile(self, q: float, last: Any = None, now: Any = None) -> ItemRank:
        """An item of rank q times the total, to within epsilon of that.

        With N events, fewer than (q + epsilon / 2) N + 1 are below the item, certain; and with
        probability 1 - delta at least (q - epsilon) N are of items up to it. `rank` is the rank
        of the item found: its upper end is certain, its lower one holds with probability 1 - delta.
        """
        if isinstance(q, bool) or not isinstance(q, int | float | np.number) or not 0 <= q <= 1:
            raise ValueError(f"q must be a number in [0, 1], got {q!r}")
        view, bits = self._view(last, now), self.bits
        if view.total.high == 0:
            raise ValueError("quantile needs events, got a range without any")
        target = max(float(q) * view.total.value, 0.5)
        # Of each level one half is read, the left one, which is decided by the levels above it.
        before, prefix, passed = None, 0, None
        for level in reversed(range(bits)):
            prefix <<= 1
            left = view.nodes(level, np.array([prefix], np.uint64))
            upto = left if before is None else before.plus(left)
            if float(upto.value[0]) >= target:
                passed = ((prefix + 1) << level) - 1, upto
            else:
                before, prefix = upto, prefix + 1
        if passed is None:
            return ItemRank((1 << bits) - 1, view.total)
        item, rank = passed
        return ItemRank(item, rank.estimates(self._sizes.share(), self._sizes.hashed)[0])

    def heavy_hitters(self, phi: float, last: Any = None, now: Any = None) -> list[ItemEstimate]:
        """Every item whose upper end reaches `phi` times the total's lower end, largest first.

        No item is missed that makes up `phi` of the events or more: certain. The lower ends of all
        items reported hold together with probability 1 - delta.
        """
        view = self._view(last, now)
        least = _share(phi) * view.total.low
        if not least:
            return []
        *_, items = view.descend(_reaching(least, phi))
        return self._items(items)

    def max_frequency(self, last: Any = None, now: Any = None) -> ItemEstimate:
        """How often the most frequent item occurred, with an item that may be it.

        Of each level the 2 / epsilon most promising prefixes are looked into. `high` is certain for
        every item; `low` holds with probability 1 - delta, for the item and so for the maximum.
        """
        view = self._view(last, now)
        if view.total.high == 0:
            raise ValueError("max_frequency needs events, got a range without any")
        beam, passed = math.ceil(2 / self.epsilon), 0

        def promising(most: Ints) -> NDArray[np.bool_]:
            nonlocal passed
            order = np.argsort(-most, kind="stable")
            passed = max(passed, int(most[order[beam:]].max(initial=0)))
            chosen = np.zeros(most.size, np.bool_)
            chosen[order[:beam]] = True
            return chosen

        *_, items = view.descend(promising)
        item, found = self._items(items)[0]
        high = min(max(found.high, float(passed)), view.total.high)
        return ItemEstimate(item, found._replace(high=high))

    def hierarchical_heavy_hitters(
        self, phi: float, last: Any = None, now: Any = None, *, step: int | None = None
    ) -> list[PrefixEstimate]:
        """The prefixes that are heavy by themselves, the longest first.

        From the items up, in steps of `step` bits (8, if there are as many): a prefix is reported
        if it reaches `phi` of the events without those counted under the longest reported prefixes
        below it. With probability 1 - delta no prefix that is not reported reaches that, and all
        lower ends hold.
        """
        step = min(8, self.bits) if step is None else step
        if not ticks.is_whole(step) or not 1 <= step <= self.bits:
            raise ValueError(f"step must be an integer in [1, bits = {self.bits}], got {step!r}")
        view = self._view(last, now)
        least = _share(phi) * view.total.low
        if not least:
            return []
        heavy = {each.level: each for each in view.descend(_reaching(least, phi))}
        levels = range(0, self.bits, step)
        hashed = sum(map(self._hashed, levels))
        answers: list[PrefixEstimate] = []
        # For each prefix of the level: least, value and most of what is counted below it.
        below: dict[int, NDArray[np.float64]] = {}
        for level in [*levels, self.bits]:
            if level == self.bits:
                nodes = [(0, view.total)]
            else:
                nodes = self._estimates(heavy[level], hashed)
            counted: dict[int, NDArray[np.float64]] = {}
            for prefix, (value, low, high, confidence) in nodes:
                under = below.get(prefix, np.zeros(3))
                ends = np.array([low, value, high]) - under[::-1]
                counted[prefix] = under
                if ends[2] >= least:
                    floor = max(ends[0], 0.0)
                    middle = min(max(ends[1], floor), ends[2])
                    own = Estimate(float(middle), float(floor), float(ends[2]), confidence)
                    estimate = Estimate(value, low, high, confidence)
                    first, length = prefix << level, self.bits - level
                    answers.append(PrefixEstimate(first, length, estimate, own))
                    counted[prefix] = np.array([low, value, high])
            below = {}
            up = min(step, self.bits - level)
            for prefix, sums in counted.items():
                parent = prefix >> up
                below[parent] = below.get(parent, np.zeros(3)) + sums
        return answers

    def _hashed(self, level: int) -> int:
        """How many hashed prefixes a prefix of that level is."""
        return int(level < self._sizes.hashed)

    def _estimates(self, level: Level, levels: int = 1) -> list[tuple[int, Estimate]]:
        """What was selected; lower ends hold together, and with those of so many levels."""
        share = self._sizes.share(max(1, level.candidates * levels))
        bounds = level.found.estimates(share, self._hashed(level.level))
        return list(zip(level.prefixes.tolist(), bounds, strict=True))

    def _items(self, level: Level) -> list[ItemEstimate]:
        """Items that were selected, the largest upper end first."""
        found = [ItemEstimate(*each) for each in self._estimates(level)]
        return sorted(found, key=lambda each: (-each.estimate.high, each.item))

    def _one(self, name: str, item: Any) -> int:
        if not ticks.is_whole(item):
            raise ValueError(f"{name} must be an integer, got {item!r}")
        if not 0 <= item < 1 << self.bits:
            raise ValueError(f"{name} must lie in [0, 2**{self.bits}), got {item}")
        return int(item)

    def _view(self, last: Any, now: Any) -> View:
        return View(self._stacks, self._streams, self.door.range(last, now)[0])

    @classmethod
    def merge(cls, parts: Iterable[Any]) -> Self:
        """One sketch of several streams, from sketches or their bytes; these stay as they are.

        The streams are kept side by side and cost their memory together, but no error is added,
        however often merged sketches are merged: a cut bucket of each stream is at most 1 / kept of
        that stream's events. New events join the first. The clock is the greatest of the parts'.
        """
        given = objects(cls, parts)
        door = common_door(given)
        if sum(part.arrivals for part in given) >= COUNT_LIMIT:
            raise OverflowError("arrivals must stay below 2**53, and the parts have more together")
        merged = cls.__new__(cls)
        merged._start(given[0]._sizes, door)
        streams = [stream for part in given for stream in part._streams if stream.arrivals]
        merged._streams = [stream.copy() for stream in streams] or merged._streams
        if door.now is not None:
            for stream in merged._streams:
                stream.expire(door.now)
        return merged

    def to_bytes(self) -> bytes:
        """Everything a question or an update can still see."""
        now, sizes = 0 if self.now is None else self.now, self._sizes
        states, payload = [], []
        for stream in self._streams:
            entries, log = stream.pack_log(now)
            live = stream.live(now)
            payload += [log, *(self._stacks.pack(bucket.payload) for bucket in live)]
            buckets = [
                BucketState(each.first, each.last, each.size, _listed(each.payload))
                for each in live
            ]
            states.append(BucketsState(stream.arrivals, entries, buckets))
        header = _Header(
            sizes.bits, sizes.epsilon, sizes.delta, sizes.seed, self.door.state(), states
        )
        return wire.frame(wire.DYADIC, header, b"".join(payload))

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """The sketch whose `to_bytes` gave `data`; WireError for anything else."""
        header, payload = wire.unframe(data, wire.DYADIC, _Header)
        if header.seed >= 1 << 64:
            raise wire.WireError(f"seed must lie in [0, 2**64), got {header.seed}")
        sketch = cls.__new__(cls)
        try:
            sizes = StackSizes(header.bits, header.epsilon, header.delta, header.seed)
            sketch._start(sizes, Door.of_times(header.door))
        except (ValueError, OverflowError) as error:
            raise wire.WireError(str(error)) from None
        if not header.streams:
            raise wire.WireError("there is no stream")
        if len(header.streams) > 1 and not all(state.arrivals for state in header.streams):
            raise wire.WireError("a stream without arrivals stands beside others")
        reader = Reader(payload)
        sketch._streams = []
        for state in header.streams:
            stream = sketch._stream()
            stream.unpack(header.door, state, 1 << header.bits, reader)
            for i, each in enumerate(state.buckets):
                payloads = sketch._stacks.unpack(reader, each.listed, each.size)
                stream.buckets[i] = stream.buckets[i]._replace(payload=payloads)
            sketch._streams.append(stream)
        reader.close()
        if sketch.arrivals >= COUNT_LIMIT:
            raise wire.WireError(f"{sketch.arrivals} arrivals are more than 2**53")
        return sketch


def _share(phi: Any) -> float:
    if isinstance(phi, bool) or not isinstance(phi, int | float | np.number) or not 0 < phi <= 1:
        raise ValueError(f"phi must be a number in (0, 1], got {phi!r}")
    return float(phi)


def _reaching(least: float, phi: Any) -> Callable[[Ints], NDArray[np.bool_]]:
    """Selects the upper ends of `least` or more; few prefixes reach it unless phi is tiny."""

    def select(most: Ints) -> NDArray[np.bool_]:
        heavy = most >= least
        if np.count_nonzero(heavy) > MOST_HEAVY:
            raise ValueError(f"phi must leave at most {MOST_HEAVY} prefixes of a level, got {phi}")
        return heavy

    return select


def _lowest(items: Any) -> int:
    if item_words.is_one(items):
        return int(items)
    return int(min(items) if isinstance(items, list | tuple) else np.asarray(items).min())


def _listed(payload: Counted) -> int:
    return payload.words.size if isinstance(payload, Listed) else 0


def _intervals(low: int, high: int) -> Iterator[tuple[int, int]]:
    """Level and prefix of the fewest intervals that make up low .. high, not of all the domain."""
    level, end = 0, high + 1
    while low < end:
        if low & 1:
            yield level, low
            low += 1
        if end & 1:
            end -= 1
            yield level, end
        low, end, level = low >> 1, end >> 1, level + 1
