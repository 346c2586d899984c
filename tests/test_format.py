"""A reader written from docs/format.md alone, in plain Python, answers what streamgauge answers.

Nothing of streamgauge takes part in reading: what the page leaves out or gets wrong fails here.
What the page forbids is refused; more of that is in tests/fuzz.
"""

import math
import re
import statistics
import struct
from fractions import Fraction
from itertools import accumulate, pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest

from streamgauge import (
    DyadicEcmSketch,
    EcmSketch,
    ExponentialHistogram,
    RandomizedWave,
    Wave,
    WireError,
    kernels,
    seeds,
)
from streamgauge.sketches import coins

HERE = Path(__file__).parent
PAGE = (HERE.parent / "docs/format.md").read_text()

M64 = 2**64 - 1
G = 0x9E3779B97F4A7C15


def frame(data):
    """Type, header and payload."""
    magic, version, kind, length = struct.unpack_from("<2sBBI", data)
    assert (magic, version) == (b"SG", 0)
    return kind, msgspec.msgpack.decode(data[8 : 8 + length]), data[8 + length :]


class Bits:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, width):
        found = 0
        for i in range(width):
            byte = self.data[(self.at + i) // 8]
            found |= (byte >> (self.at + i) % 8 & 1) << i
        self.at += width
        return found

    def count(self):
        return self.take(self.take(6))

    def stamps(self, live, now):
        """Newest first."""
        gaps = []
        while len(gaps) < live:
            width = self.take(6)
            gaps += [self.take(width) for _ in range(min(8, live - len(gaps)))]
        return [now - back for back in accumulate(gaps)]

    def close(self):
        assert (self.at + 7) // 8 == len(self.data)
        assert self.take(-self.at % 8) == 0


def drifted(drift, low, high):
    if drift is None or drift[1:] == [1, 1]:
        return low, high, (low + high) / 2
    least = math.ceil(low / (drift[2] * (1 + 2**-50)))
    most = min(math.floor(high / (drift[1] * (1 - 2**-50))), 2**53)
    return least, most, min(max((low + high) / 2, least), most)


class WaveCell:
    def __init__(self, bits, epsilon, door, grid):
        levels, self.first, self.drift = grid
        self.kept = max(2, math.ceil((1 / epsilon + 1) / 2))
        self.top = 2 ** (levels - 1)
        n = self.count = bits.count()
        ranks = [*range(self.top, n + 1, self.top)[-self.kept :]]
        for level in range(levels - 1):
            ranks += range(2**level, n + 1, 2 ** (level + 1))[-self.kept :]
        stored = min(self.kept, n >> (levels - 1))
        stored += sum(min(self.kept, ((n >> level) + 1) >> 1) for level in range(levels - 1))
        assert len(ranks) == stored
        self.ranks = sorted(ranks, reverse=True)
        live = bits.take(stored.bit_length())
        self.stamps = bits.stamps(live, door[3])

    def asked(self, cutoff):
        if self.first is not None and cutoff < self.first:
            return drifted(self.drift, self.count, self.count)
        later = sum(stamp > cutoff for stamp in self.stamps)
        newer = self.ranks[later - 1] if later else self.count + 1
        gone = self.top * max(self.count // self.top - self.kept, 0)
        older = self.ranks[later] if later < len(self.ranks) else gone
        return drifted(self.drift, self.count - newer + 1, self.count - older)


class HistogramCell:
    def __init__(self, bits, epsilon, door, grid):
        levels, self.first, self.drift = grid
        k = max(2, math.ceil(1 / epsilon))
        a = self.count = bits.count()
        sizes = []
        for level in range(levels):
            most = k + 1 if level == 0 else math.ceil(k / 2) + 1
            carried = max(a - most + 1, 0) // 2
            sizes += [2**level] * (a - 2 * carried)
            a = carried
        live = bits.take(len(sizes).bit_length())
        self.buckets = list(zip(bits.stamps(live, door[3]), sizes, strict=False))

    def asked(self, cutoff):
        if self.first is not None and cutoff < self.first:
            return drifted(self.drift, self.count, self.count)
        sizes = [size for stamp, size in self.buckets if stamp > cutoff]
        high = sum(sizes)
        return drifted(self.drift, high - sizes[-1] + 1 if sizes else 0, high)


class SampleCell:
    def __init__(self, bits, epsilon, delta, door):
        self.capacity = max(72, math.ceil(36 / epsilon**2))
        self.count = bits.count()
        self.copies = []
        for copy in range(copies(delta)):
            top = bits.take(6)
            lists = {0: []}
            for level in range(min(copy, 1), top + 1):
                length = bits.take((self.capacity + 1).bit_length())
                lists[level] = bits.stamps(length, door[3])
            self.copies.append(lists)

    def asked(self, cutoff):
        exact = sum(stamp > cutoff for stamp in self.copies[0][0])
        if exact <= self.capacity:
            return exact, exact, exact
        v = statistics.median(self.guess(lists, cutoff) for lists in self.copies)
        v = min(max(v, self.capacity + 1), self.count)
        e = 6 / math.sqrt(self.capacity)
        low = max(self.capacity + 1, math.ceil(v / ((1 + e) * (1 + 2**-50))))
        return low, min(self.count, math.floor(v / ((1 - e) * (1 - 2**-50)))), v

    def guess(self, lists, cutoff):
        s = 0
        for level in range(48, 0, -1):
            more = sum(stamp > cutoff for stamp in lists.get(level, []))
            if s + more > self.capacity:
                return 2 ** (level + 1) * s
            s += more
        return 2 * s


def copies(delta):
    d = 1
    while (
        sum(math.comb(d, j) * 3 ** (d - j) for j in range((d + 1) // 2, d + 1))
        > Fraction(delta) * 4**d
    ):
        d += 2
    return d


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M64
    return z ^ z >> 31


def expand(seed, many):
    return [mix(seed + i * G & M64) for i in range(1, many + 1)]


def rotated(word, by):
    return (word << by | word >> (64 - by)) & M64


def xxh64(text):
    """Of fewer than 32 bytes, by Collet's specification."""
    p1, p2, p3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
    p4, p5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
    data, at = text.encode(), 0
    h = 42 + p5 + len(data) & M64
    while at + 8 <= len(data):
        lane = int.from_bytes(data[at : at + 8], "little") * p2 & M64
        h = rotated(h ^ rotated(lane, 31) * p1 & M64, 27) * p1 + p4 & M64
        at += 8
    if at + 4 <= len(data):
        lane = int.from_bytes(data[at : at + 4], "little") * p1 & M64
        h = rotated(h ^ lane, 23) * p2 + p3 & M64
        at += 4
    for byte in data[at:]:
        h = rotated(h ^ byte * p5 & M64, 11) * p1 & M64
    h = (h ^ h >> 33) * p2 & M64
    h = (h ^ h >> 29) * p3 & M64
    return h ^ h >> 32


def word(item):
    return xxh64(item) if isinstance(item, str) else item & M64


def column(item, row, seed, width):
    a, b, c = expand(seed, 3 * row + 3)[-3:]
    h = ((a + (word(item) >> 32)) * (b + word(item) % 2**32) + c & M64) >> 32
    return h * width >> 32


def heads(number, seed, site, copy):
    key = expand(expand(expand(seed, 1)[0] ^ word(site), 1)[0], copy + 1)[copy]
    tossed = mix(key ^ mix(G) ^ (number * G & M64)) | 2**48
    return (tossed & -tossed).bit_length() - 1


class Columns:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, many):
        code, begin = self.data[self.at], self.at + 1
        self.at = begin + many * 2**code
        octets = self.data[begin : self.at]
        return [number for (number,) in struct.iter_unpack("<" + "BHIQ"[code], octets)]

    def log(self, entries, now):
        """(word, tick, weight), oldest first."""
        words, gaps, weights = (self.take(entries) for _ in range(3))
        ticks = [now - back for back in accumulate(reversed(gaps))][::-1]
        return list(zip(words, ticks, weights, strict=True))

    def close(self):
        assert self.at == len(self.data)


class Ecm:
    """Of waves."""

    def __init__(self, header, payload):
        sizes, sites, self.door, self.kind, self.arrivals, held = header
        assert sizes[1] == "wave"
        assert sites == []
        self.seed, self.cells = sizes[-1], None
        if sizes[0] == "given":
            self.depth, self.width, epsilon_w = sizes[2:5]
        else:
            _, _, epsilon, delta, products, _ = sizes
            self.depth = math.ceil(math.log(1 / delta))
            self.width = math.ceil(math.e * (1 + epsilon) / epsilon)
            epsilon_w = math.sqrt(1 + epsilon) - 1 if products else epsilon
        if held[0] == "log":
            reader = Columns(payload)
            self.entries = reader.log(held[1], self.door[3])
            reader.close()
            return
        _, cells, total, total_bytes = held
        bits = Bits(payload[:total_bytes])
        self.all = WaveCell(bits, epsilon_w, self.door, total)
        bits.close()
        bits = Bits(payload[total_bytes:])
        many = self.depth * self.width
        self.cells = [WaveCell(bits, epsilon_w, self.door, cells) for _ in range(many)]
        bits.close()

    def total(self, cutoff):
        if self.cells:
            return self.all.asked(cutoff)
        exact = sum(self.since(entry, cutoff) for entry in self.entries)
        return exact, exact, exact

    def since(self, entry, cutoff):
        _, tick, weight = entry
        return (weight if self.door[1] != "arrival" else min(weight, tick - cutoff)) * (
            tick > cutoff
        )

    def most(self, item, cutoff):
        """The upper end of its frequency."""
        rows = [column(item, row, self.seed, self.width) for row in range(self.depth)]
        if self.cells:
            places = [row * self.width + at for row, at in enumerate(rows)]
            high = min(self.cells[place].asked(cutoff)[1] for place in places)
            return min(high, self.all.asked(cutoff)[1])
        return min(
            sum(
                self.since(entry, cutoff)
                for entry in self.entries
                if column(entry[0], row, self.seed, self.width) == at
            )
            for row, at in enumerate(rows)
        )


class Dyadic:
    def __init__(self, header, payload):
        bits, epsilon, delta, self.seed, self.door, streams = header
        self.kept = math.ceil(1 / epsilon)
        self.depth = math.ceil(math.log(1 / delta))
        share = delta ** (-1 / self.depth)

        def w(t):
            return math.ceil(2 * t * share / (epsilon / (2 + epsilon)))

        sizes = [t * self.depth * w(t) + 2 ** (bits - t) + 1 for t in range(bits + 1)]
        self.hashed = sizes.index(min(sizes))
        self.width, self.cells = max(1, w(self.hashed)), min(sizes)
        reader = Columns(payload)
        self.streams = [self.stream(reader, *stream) for stream in streams]
        reader.close()

    def stream(self, reader, arrivals, entries, buckets):
        log = reader.log(entries, self.door[3])
        assert sum(weight for *_, weight in log) <= arrivals - self.edge(0, arrivals)
        places, level = [], 0
        while end := self.edge(level, arrivals):
            places += [64 * 2**level] * ((end - self.edge(level + 1, arrivals)) >> (6 + level))
            level += 1
        found = []
        for (first, last, size, listed), room in zip(
            buckets, places[: len(buckets)][::-1], strict=True
        ):
            assert size <= room
            assert size == room or not found
            if listed:
                items = accumulate(reader.take(listed))
                found.append(
                    (first, last, size, dict(zip(items, reader.take(listed), strict=True)))
                )
                assert sum(found[-1][3].values()) == size
            else:
                found.append((first, last, size, reader.take(self.cells)))
                assert found[-1][3][-1] == size
        return log, found

    def edge(self, level, n):
        size = 64 * 2**level
        return size * max(n // size - self.kept, 0)

    def of(self, summary, item):
        if isinstance(summary, dict):
            return summary.get(item, 0)
        if not self.hashed:
            sums = summary[-(self.cells - self.hashed * self.depth * self.width) :]
            return sums[item + 1] - sums[item]
        rows = range(self.depth)
        return min(
            summary[row * self.width + column(item, row, self.seed, self.width)] for row in rows
        )

    def asked(self, item, cutoff):
        """The total's ends, and the upper end of the item's frequency."""
        inside = most = cut = cut_most = edges = 0
        for log, buckets in self.streams:
            late = [(word, weight) for word, tick, weight in log if tick > cutoff]
            inside += sum(weight for _, weight in late)
            most += sum(weight for word, weight in late if word == item)
            for first, last, size, summary in buckets:
                if first > cutoff:
                    inside, most = inside + size, most + self.of(summary, item)
                elif last > cutoff:
                    edges, cut = edges + 1, cut + size
                    cut_most += self.of(summary, item)
        high = inside + cut - edges
        return inside + edges, high, min(most + min(cut_most, cut - edges), high)


def golden(name):
    return (HERE / f"golden/{name}.bin").read_bytes()


def lengths(window):
    """Some last parts of it."""
    every = (1, 2, window // 100 + 1, window // 7 + 1, window // 2 + 1, window - 1 or 1, window)
    return {min(last, window) for last in every}


@pytest.mark.parametrize(
    "name",
    ["wave", "wave_of_weights", "wave_of_two", "exphist", "exphist_of_weights"],
)
def test_waves_and_histograms(name):
    """Seen to catch: kept = ceil(1 / epsilon) + 1 as in the paper, ceil(k / 2), drifts left out."""
    assert_read(golden(name))


@pytest.mark.parametrize("whose", [Wave, ExponentialHistogram])
@pytest.mark.parametrize("arrivals", [lambda tick: tick * tick % 5, lambda tick: 3 * (tick < 1)])
def test_waves_and_histograms_all_their_life(whose, arrivals):
    """Also where a wave has nothing left of a window before: three arrivals a window, kept = 3.

    Seen to catch: rank 0 taken for the greatest one that is stored no more.
    """
    counter = whose(window=20, epsilon=0.2)
    for tick in range(200):
        counter.update([tick] * arrivals(tick % 20))
        assert_read(counter.to_bytes())


def assert_read(data):
    kind, (epsilon, door, grid), payload = frame(data)
    cell, whose = {1: (WaveCell, Wave), 3: (HistogramCell, ExponentialHistogram)}[kind]
    bits = Bits(payload)
    read = cell(bits, epsilon, door, grid)
    bits.close()
    if door[3] is not None:
        assert_same(whose.from_bytes(data), read.asked, door)


@pytest.mark.parametrize("name", ["randomized_wave", "randomized_wave_of_few"])
def test_samples(name):
    """Seen to catch: guesses of half the size, a list 0 in every copy."""
    kind, (epsilon, delta, *_, door, grid), payload = frame(golden(name))
    assert (kind, grid[0], grid[2]) == (4, 1, None)
    bits = Bits(payload)
    read = SampleCell(bits, epsilon, delta, door)
    bits.close()
    assert_same(RandomizedWave.from_bytes(golden(name)), read.asked, door)


def assert_same(known, asked, door):
    window, _, _, now, late = door
    assert (known.window, known.now, known.late_events) == (window, now, late)
    for last in lengths(window):
        value, low, high, _ = known.estimate(last)
        assert (low, high, value) == asked(now - last)


def items_of(sketch):
    return [f"10.0.0.{i}" for i in range(-1, 17)] if sketch.kind == "text" else range(-1, 17)


@pytest.mark.parametrize(
    "name", ["ecm_of_integers", "ecm_of_text", "ecm_of_few", "ecm_of_arrivals", "ecm_empty"]
)
def test_sketches_by_item(name):
    """Seen to catch: seeds that rows share, arrivals before the window counted."""
    kind, header, payload = frame(golden(name))
    assert kind == 2
    read, known = Ecm(header, payload), EcmSketch.from_bytes(golden(name))
    assert (read.depth, read.width) == (known.depth, known.width)
    assert (read.arrivals, read.kind) == (known.arrivals, known.kind)
    window, tick, _, now, _ = read.door
    for last in lengths(window):
        given = f"{last} s" if tick == 10**9 else last
        cutoff = (now or 0) - last
        value, low, high, _ = known.total(given)
        assert (low, high, value) == read.total(cutoff)
        for item in items_of(known):
            assert known.estimate(item, given).high == read.most(item, cutoff)


@pytest.mark.parametrize("name", ["dyadic", "dyadic_of_addresses"])
def test_sketches_by_prefix(name):
    """Seen to catch: buckets at the oldest ranks instead of the newest."""
    kind, header, payload = frame(golden(name))
    assert kind == 5
    read, known = Dyadic(header, payload), DyadicEcmSketch.from_bytes(golden(name))
    assert (read.depth, read.width, read.hashed) == (
        known.sizes.depth,
        known.sizes.width,
        known.sizes.hashed,
    )
    window, tick, _, now, _ = read.door
    for last in lengths(window):
        given = f"{last} s" if tick else last
        for item in [*range(20), 2 ** header[0] - 1, 2 ** header[0] - 5]:
            total = known.total(given)
            ends = total.low, total.high, known.estimate(item, given).high
            assert ends == read.asked(item, now - last)


def page(label):
    """The row of the table of golden values that begins so."""
    (row,) = re.findall(rf"^\| {re.escape(label)}.* \| (.*) \|$", PAGE, re.MULTILINE)
    return row


def numbers(row):
    return [int(number, 0) for number in re.findall(r"\w+", row)]


def test_the_hashes_are_those_of_the_page():
    assert expand(7, 3) == numbers(page("expand(7)"))
    assert [xxh64(text) for text in ("", "a", "10.0.0.4")] == numbers(page("XXH64"))
    words = [0, 1, 2**32, 2**64 - 1]
    assert [column(word, row, 7, 1000) for row in (0, 1) for word in words] == numbers(
        page("columns of")
    )
    assert [heads(n, 7, "north", 0) for n in range(1, 9)] == numbers(page("heads of"))
    for site in ("north", "", 0, -1):
        keys = seeds.expand(coins.coins_seed(7, site), 3)
        tossed = np.empty((3, 100), np.int64)
        kernels.randomized.tosses(keys, 0, np.arange(1, 101, dtype=np.uint64), tossed)
        for copy in range(3):
            assert tossed[copy].tolist() == [heads(n, 7, site, copy) for n in range(1, 101)]


def test_the_example_of_the_page():
    data = bytes.fromhex(page("Wave(window=100").strip("`"))
    times = [1, 2, 50, 51, 51, 60, 61, 62, 63, 64]
    wave = Wave(window=100, epsilon=0.2)
    wave.update(times)
    assert wave.to_bytes() == data
    _, (epsilon, door, grid), payload = frame(data)
    cell = WaveCell(Bits(payload), epsilon, door, grid)
    assert (cell.count, cell.ranks) == (10, [10, 9, 8, 7, 6, 5, 4, 2])
    assert cell.stamps == [times[rank - 1] for rank in cell.ranks]
    assert all(newer >= older for newer, older in pairwise(cell.stamps))


def reframed(data, *path, value):
    """The same with another value of one header field."""
    _, header, payload = frame(data)
    node = header
    for at in path[:-1]:
        node = node[at]
    node[path[-1]] = value
    head = msgspec.msgpack.encode(header)
    return data[:4] + struct.pack("<I", len(head)) + head + payload


def assert_refused(kind, data, message):
    with pytest.raises(WireError, match=message):
        kind.from_bytes(data)


@pytest.mark.parametrize("now", [None, -5, 149, 151, 2**61])
def test_the_clock_of_a_window_of_arrivals_is_their_number(now):
    """Else a crafted total would be negative, and certain.

    Seen to catch: the check left out, in `EcmSketch.from_bytes`.
    """
    image = reframed(golden("ecm_of_arrivals"), 2, 3, value=now)
    assert_refused(EcmSketch, image, "no clock" if now is None else "the clock of 150 arrivals")


@pytest.mark.parametrize(
    ("kind", "name", "door"),
    [
        (ExponentialHistogram, "exphist", 1),
        (RandomizedWave, "randomized_wave", 4),
        (DyadicEcmSketch, "dyadic", 4),
    ],
)
def test_no_other_sketch_has_a_window_of_arrivals(kind, name, door):
    assert_refused(kind, reframed(golden(name), door, 1, value="arrival"), "window of arrivals")


def test_streams_without_arrivals_are_not_piled_up():
    """A megabyte of them would become a gigabyte of objects."""
    image = DyadicEcmSketch(bits=8, window=100, epsilon=0.1, delta=0.1, seed=7).to_bytes()
    assert DyadicEcmSketch.from_bytes(image).to_bytes() == image
    streams = reframed(image, 5, value=[[0, 0, []]] * 2) + bytes(3)
    assert_refused(DyadicEcmSketch, streams, "a stream without arrivals stands beside others")


def test_columns_are_as_narrow_as_they_can_be():
    few = golden("ecm_of_arrivals")
    _, (*_, (_, entries)), payload = frame(few)
    doubled = b"".join(bytes([octet, 0]) for octet in payload[1 : 1 + entries])
    wide = bytes([payload[0] + 1]) + doubled
    image = few[: -len(payload)] + wide + payload[1 + entries :]
    assert_refused(EcmSketch, image, "need fewer")
