"""Bytes that were a sketch's once, and what must be true of whatever is read from them.

Run as a program, with seeds as arguments, it tries some hundred mutants of every golden sketch:
so other builds of the kernels can be tried as well.
"""

import copy
import math
import sys
from pathlib import Path

import msgspec
import numpy as np

from streamgauge import (
    CountMin,
    DyadicEcmSketch,
    EcmSketch,
    ExponentialHistogram,
    HeavyHitterSketch,
    PerfectWindowSketch,
    ProportionalWindowSketch,
    RandomizedWave,
    SimpleWindowSketch,
    SplitterWindowSketch,
    Wave,
    wire,
)
from streamgauge.sketches.randomizedgrid import capacity_for
from streamgauge.ticks import LIMIT
from streamgauge.wire import WireError

GOLDEN = Path(__file__).parents[1] / "golden"
IMAGES = [path.read_bytes() for path in sorted(GOLDEN.glob("*.bin")) if path.stem != "report"]
KINDS = {
    wire.WAVE: Wave,
    wire.ECM: EcmSketch,
    wire.EXPHIST: ExponentialHistogram,
    wire.RANDOMIZED: RandomizedWave,
    wire.DYADIC: DyadicEcmSketch,
    wire.HEAVY: HeavyHitterSketch,
    wire.COUNTMIN: CountMin,
    wire.PERFECT: PerfectWindowSketch,
    wire.SIMPLE: SimpleWindowSketch,
    wire.PROPORTIONAL: ProportionalWindowSketch,
    wire.SPLITTER: SplitterWindowSketch,
}
HEURISTIC = (SimpleWindowSketch, ProportionalWindowSketch, SplitterWindowSketch)
WINDOWED = (PerfectWindowSketch, *HEURISTIC)
COUNTERS = (Wave, ExponentialHistogram, RandomizedWave)
LEAD = 8
EXERCISED = 1 << 26  # a sketch of more memory than this is asked, but not updated

ABSURD = [
    *(None, True, False, b"", "", "drop", "arrival", "integers", "x", [], [None], {}, {"a": 1}),
    *(-(2**63), -(2**61) - 1, -(2**61), -1, 0, 1, 2, 3, 53, 54, 64, 65, 2**20, 2**24, 2**31),
    *(2**53 - 1, 2**53, 2**61, 2**61 + 1, 2**64 - 1),
    *(0.0, -1.0, 1e-300, 9.9e-7, 1e-6, 0.5, 1 - 2**-53, 1.0, math.inf, -math.inf, math.nan),
]


def parts(data):
    """The lead without its length, the header as plain lists, the payload."""
    end = LEAD + int.from_bytes(data[4:LEAD], "little")
    return data[:4], msgspec.msgpack.decode(data[LEAD:end]), data[end:]


def joined(lead, header, payload):
    head = msgspec.msgpack.encode(header)
    return lead + len(head).to_bytes(4, "little") + head + payload


def places(node, path=()):
    """The paths of all values in nested lists."""
    yield path
    if isinstance(node, list):
        for i, child in enumerate(node):
            yield from places(child, (*path, i))


def with_value(header, path, value):
    if not path:
        return value
    changed = copy.deepcopy(header)
    node = changed
    for i in path[:-1]:
        node = node[i]
    node[path[-1]] = value
    return changed


def field_mutants(data):
    """Every field, and every list of fields, replaced by every absurd value."""
    lead, header, payload = parts(data)
    for path in places(header):
        for value in ABSURD:
            yield joined(lead, with_value(header, path, value), payload)


def random_mutant(data, rng):
    """A few fields replaced, or a payload of noise, or bits flipped, or something cut or added."""
    lead, header, payload = parts(data)
    match rng.integers(5):
        case 0:
            for _ in range(rng.integers(2, 5)):
                paths = [path for path in places(header) if path]
                value = ABSURD[rng.integers(len(ABSURD))]
                header = with_value(header, paths[rng.integers(len(paths))], value)
            return joined(lead, header, payload)
        case 1:
            noise = rng.bytes(rng.integers(0, 2 * len(payload) + 2))
            if rng.integers(2):
                noise = bytes(a & b for a, b in zip(noise, rng.bytes(len(noise)), strict=True))
            return joined(lead, header, noise)
        case 2:
            flipped = bytearray(data)
            for _ in range(rng.integers(1, 9)):
                flipped[rng.integers(len(data))] ^= 1 << rng.integers(8)
            return bytes(flipped)
        case 3:
            at = rng.integers(len(data))
            return data[:at] + rng.bytes(rng.integers(9)) + data[at:]
        case _:
            begin, end = np.sort(rng.integers(0, len(data) + 1, 2))
            return data[:begin] + data[end:]


def crafted(rng):
    """Counters that fit together bit by bit, though no stream need have made them."""
    return crafted_histogram(rng) if rng.integers(3) == 0 else crafted_waves(rng)


def crafted_histogram(rng):
    """As many buckets as its arrivals make, with stamps drawn from `rng`."""
    window, k = int(rng.choice([1, 7, 2**30, 2**61])), int(rng.integers(2, 19))
    now = int(rng.integers(-LIMIT, LIMIT + 1))
    total = int(rng.integers(0, 2 ** int(rng.integers(1, 54))))
    door = [window, None, "drop", now, 0]
    levels, payload = histogram(total, window, k, rng)
    return joined(b"SG\0\3", [1 / k, door, [levels, None]], payload)


def histogram(count, window, k, rng):
    """Up to which level buckets are live, and their bits; of none where `rng` is None."""
    held, given, level = [], count, 0
    while given:
        carried = max(given - (k if level == 0 else -(-k // 2)), 0) // 2
        held.append(given - 2 * carried)
        given, level = carried, level + 1
    live = int(rng.integers(0, sum(held) + 1)) if rng else 0
    levels = next((at for at in range(1, level) if sum(held[:at]) >= live), max(level, 1))
    return levels, bits_of([(count, sum(held[:levels]), live)], window, rng)


def crafted_waves(rng):
    """One wave, or an ECM-sketch of some."""
    window, kept = int(rng.choice([1, 7, 2**30, 2**61])), int(rng.integers(2, 9))
    now = int(rng.integers(-LIMIT, LIMIT + 1))
    total = int(rng.integers(0, 2 ** int(rng.integers(1, 54))))
    first = rng.choice([None, now, max(now - window + 1, -LIMIT)]) if total else None
    door = [window, None, "drop", now, 0]
    levels, payload = waves([total], window, kept, rng)
    if rng.integers(2):
        return joined(b"SG\0\1", [1 / (2 * kept - 1), door, [levels, first]], payload)
    columns = int(rng.integers(1, 5))
    cuts = np.sort(rng.integers(0, total + 1, columns - 1))
    levels_of_cells, cells = waves(np.diff([0, *cuts, total]).tolist(), window, kept, rng)
    grids = ["grids", [levels_of_cells, first], [levels, first], len(payload)]
    sizes = ["given", "wave", 1, columns, 1 / (2 * kept - 1), 7]
    return joined(b"SG\0\2", [sizes, [], door, "integers", total, grids], payload + cells)


def crafted_samples(rng):
    """Samples that fit together bit by bit, though no coins need have made them."""
    window = int(rng.choice([1, 7, 2**30, 2**61]))
    epsilon = float(rng.choice([0.999, 0.7, 0.4]))
    copies = int(rng.choice([1, 3, 7]))
    delta = {1: 0.25, 3: 0.2, 7: 0.1}[copies]
    capacity = capacity_for(epsilon)
    now = int(rng.integers(-LIMIT, LIMIT + 1))
    total = int(rng.integers(0, 2 ** int(rng.integers(1, 54))))
    first = rng.choice([None, now, max(now - window + 1, -LIMIT)]) if total else None
    fields = [(total.bit_length(), 6), (total, total.bit_length())]
    for each in range(copies):
        top = int(rng.choice([0, 1, 5, 48], p=[0.3, 0.3, 0.3, 0.1])) if total else 0
        fields.append((top, 6))
        for level in range(1 if each else 0, top + 1):
            most = min(total, capacity + 1)
            least = int(0 < level == top)
            length = int(rng.choice([least, rng.integers(least, most + 1), most]))
            fields.append((length, (capacity + 1).bit_length()))
            fields += gaps(length, window, rng)
    header = [epsilon, delta, 7, [3, "b"], [window, None, "drop", now, 0], [1, first]]
    return joined(b"SG\0\4", header, written(fields))


def gaps(live, window, rng):
    """The fields of so many gaps between stamps that are all in the window."""
    found = rng.integers(0, (window - 1) // live + 1, live).tolist() if live else []
    for begin in range(0, live, 8):
        width = max(found[begin : begin + 8]).bit_length()
        yield width, 6
        yield from ((gap, width) for gap in found[begin : begin + 8])


def written(fields):
    """(value, width) pairs as bytes."""
    bits, at = 0, 0
    for value, width in fields:
        bits |= value << at
        at += width
    return bits.to_bytes((at + 7) // 8, "little")


def waves(counts, window, kept, rng):
    """At most as many levels as the largest count can need, and the bits of that many."""
    most = 1
    while max(counts) > kept << (most - 1):
        most += 1
    levels = int(rng.integers(1, most + 1))
    return levels, encoded(counts, levels, kept, window, rng)


def encoded(counts, levels, kept, window, rng):
    """The bits of waves with stamps drawn from `rng`, or with none."""
    cells = []
    for count in counts:
        stored = min(kept, count >> (levels - 1))
        stored += sum(min(kept, ((count >> level) + 1) >> 1) for level in range(levels - 1))
        live = int(rng.choice([0, stored, rng.integers(0, stored + 1)])) if rng else 0
        cells.append((count, stored, live))
    return bits_of(cells, window, rng)


def bits_of(cells, window, rng):
    """The bits of counters of which (arrivals, stamps there are, stamps that are live) is given."""
    fields = []
    for count, stored, live in cells:
        fields += [(count.bit_length(), 6), (count, count.bit_length())]
        fields.append((live, stored.bit_length()))
        fields += gaps(live, window, rng)
    return written(fields)


def giants():
    """Claims of more memory than the bytes could ever fill; some keep within the limit."""
    door = [100, None, "raise", 5, 0]
    for kept, depth, columns, levels, count in [
        (400_000, 64, 1 << 24, 53, 1),
        (400_000, 64, 1000, 1, 0),
        (400_000, 1, 19, 53, 1 << 52),
        (400_000, 1, 19, 33, 1 << 52),
        (400_000, 1, 500, 2, 1 << 30),
        (400_000, 1, 1000, 1, 1 << 30),
        (2, 64, 200, 53, 1 << 52),
    ]:
        rows = [count, *[0] * (min(columns, 1000) - 1)] * min(depth, 64)
        total, cells = (encoded(counts, levels, kept, 100, None) for counts in ([count], rows))
        first = 5 if count else None
        sizes = ["given", "wave", depth, columns, 1 / (2 * kept - 1), 7]
        grids = ["grids", [levels, first], [levels, first], len(total)]
        header = [sizes, [], door, "integers", count, grids]
        yield joined(b"SG\0\2", header, total + cells)
    for parts_of_27_levels in (1, 100):
        states = [[[27, 0], 121, [1, None], 1, 0, None]] * parts_of_27_levels
        header = [1e-5, door, "integers", 0, states]
        yield joined(b"SG\0\7", header, bytes(122 * parts_of_27_levels))
    for levels in (53, 33):
        wave = encoded([1 << 52], levels, 500_001, 100, None)
        yield joined(b"SG\0\1", [1e-6, door, [levels, 5]], wave)
        _, histogram_of_none = histogram(1 << 52, 100, 10**6, None)
        yield joined(b"SG\0\3", [1e-6, door, [levels, None]], histogram_of_none)
    for epsilon, delta in ((1e-3, 1e-18), (1e-3, 0.1), (0.1, 1e-18)):
        yield joined(b"SG\0\4", [epsilon, delta, 7, [0], door, [1, None]], bytes(1000))


def survives(data):
    """Whether an object comes of the bytes; then it can all that a sketch can."""
    kind = KINDS.get(data[3] if len(data) > 3 else wire.WAVE, Wave)
    try:
        sketch = kind.from_bytes(data)
    except WireError:
        return False
    image = sketch.to_bytes()
    again = type(sketch).from_bytes(image)
    assert again.to_bytes() == image
    if isinstance(sketch, CountMin):
        item = "a" if sketch.kind == "text" else 1
        assert again.estimate(item) == sketch.estimate(item)
        return True
    now = sketch.now or 0
    for moment in {now, min(now + 1, LIMIT), min(now + sketch.window, LIMIT)}:
        assert_sound(sketch, again, moment)
    if sketch.nbytes <= EXERCISED:
        for ahead in (0, 1, sketch.window, 2**31, 2**40):
            live_on(sketch, min((sketch.now or 0) + ahead, LIMIT))
    return True


def is_sayable(sketch, tick):
    """Whether a calendar can express the tick; no time passes where ticks are arrivals."""
    if sketch.door.counts_arrivals:
        return tick == (sketch.now or 0)
    return sketch.door.tick is None or abs(tick * sketch.door.tick) < 2**63


def assert_sound(sketch, again, tick):
    """Every answer is an interval around its value, and the copy gives the same."""
    if not is_sayable(sketch, tick):
        return
    item = an_item(sketch)
    if sketch.door.counts_arrivals:
        tick = sketch.now or 0
    now = sketch.door.time(tick)
    for found, same in zip(answers(sketch, item, now), answers(again, item, now), strict=True):
        assert found == same
        assert 0 <= found.low <= found.value <= found.high < math.inf


def an_item(sketch):
    return "a" if getattr(sketch, "kind", None) == "text" else 1


def answers(sketch, item, now):
    if isinstance(sketch, WINDOWED):
        found = sketch.estimate(item, now)
        if isinstance(sketch, HEURISTIC):
            assert math.isnan(found.low) and math.isnan(found.high)
            found = found._replace(low=0, high=found.value)
        return [found]
    if isinstance(sketch, ExponentialHistogram):
        return [sketch.estimate(now=now), sketch.half_bucket_estimate(now=now)]
    if isinstance(sketch, COUNTERS):
        return [sketch.estimate(now=now)]
    found = [sketch.total(now=now), sketch.estimate(item, now=now)]
    if isinstance(sketch, DyadicEcmSketch):
        if found[0].high:
            found.append(sketch.quantile(0.3, now=now).rank)
            prefixes = sketch.hierarchical_heavy_hitters(0.3, now=now)
            found += [each.discounted for each in prefixes]
        return [*found, sketch.range(0, 1, now=now), sketch.rank(1, now=now)]
    if isinstance(sketch, HeavyHitterSketch):
        return [
            *found,
            sketch.self_join(now=now),
            *(each.estimate for each in sketch.top(9, now=now)),
        ]
    return [*found, sketch.self_join(now=now)] if sketch.depth * sketch.width < 10**5 else found


def live_on(sketch, tick):
    """Take events, or say that there were too many."""
    if not is_sayable(sketch, tick):
        return
    times = None if sketch.door.counts_arrivals else [sketch.door.time(tick)] * 3
    if times is None and isinstance(sketch, Wave):
        return  # a site's report of how many arrivals its window holds
    items = ["a", "b", "a"] if an_item(sketch) == "a" else [1, 2, 1]
    one_by_one = isinstance(sketch, RandomizedWave | SplitterWindowSketch)
    heaviest = 2**7 if one_by_one else 2**20
    if times is None and isinstance(sketch, HeavyHitterSketch):
        heaviest = 1  # all of an event's arrivals would be of one time
    for weights in (None, [0, min(5, heaviest), heaviest]):
        try:
            if isinstance(sketch, COUNTERS):
                sketch.update(times, weights)
            else:
                sketch.update(items, times, weights)
        except OverflowError as error:
            assert "arrivals must stay below 2**53" in str(error)
    image = sketch.to_bytes()
    assert type(sketch).from_bytes(image).to_bytes() == image


def main(seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        for data in IMAGES:
            for _ in range(40):
                survives(random_mutant(data, rng))
        assert all(survives(crafted(rng)) for _ in range(40))
        assert all(survives(crafted_samples(rng)) for _ in range(5))


if __name__ == "__main__":
    main(map(int, sys.argv[1:]))
