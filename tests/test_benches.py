"""The benches run, and the documents quote what they found."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from benches import countmin, pictures, quotes, tables, traces
from benches.literal import LiteralGrid
from benches.rounds import Case, take_turns
from benches.stream import PER_TICK, Stream
from streamgauge import kernels, seeds

ROOT = Path(__file__).parents[1]
BENCHES = sorted(
    f"{folder}.{path.stem}"
    for folder in ("papers", "speed", "traffic")
    for path in (ROOT / "benches" / folder).glob("*.py")
)


@pytest.mark.parametrize("name", BENCHES)
def test_a_bench_runs_to_its_end(name, tmp_path):
    bench = importlib.import_module(f"benches.{name}")
    about, rows = tables.read(tables.write(name, bench.measure(1e-4), tmp_path))
    assert {"commit", "machine", "python", "numpy", "numba", "pyarrow", "seed", "trace"} <= set(
        about
    )
    assert rows and all(None not in row and None not in row.values() for row in rows)


@pytest.mark.parametrize("path", quotes.documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_quoted_numbers_are_those_of_the_tables(path):
    """Seen failing on a digit changed in a document, and in a table."""
    assert quotes.renewed(path.read_text()) == path.read_text()


TABLE = """\
# commit: 0123456789ab
name,baseline,median,ratio
sketch,loop,1234.5,10.69
sketch,limit,1234.5,0.253
"""


@pytest.mark.parametrize(
    ("stale", "fresh"),
    [
        ("9.1<!-- t.csv; sketch; loop; ratio -->x", "10.7<!-- t.csv; sketch; loop; ratio -->x"),
        ("9<!-- t.csv; sketch; loop; ratio -->", "11<!-- t.csv; sketch; loop; ratio -->"),
        ("1,999.0<!-- t.csv; sketch; median -->", "1,234.5<!-- t.csv; sketch; median -->"),
        ("no number is quoted", "no number is quoted"),
    ],
)
def test_a_stale_number_is_renewed_in_its_own_form(stale, fresh, tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    assert quotes.renewed(stale, tmp_path) == fresh


@pytest.mark.parametrize(
    "text",
    [
        "10.7<!-- t.csv; sketch; ratio -->",  # two rows, two values
        "10.7<!-- t.csv; sketch; other; ratio -->",
        "10.7 <!-- t.csv; sketch; loop; ratio -->",
        "<!-- t.csv; sketch; loop; ratio -->",
        "10.7<!-- t.csv -->",
    ],
)
def test_a_quote_of_nothing_is_refused(text, tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    with pytest.raises(ValueError, match=r"a quote is|values at"):
        quotes.renewed(text, tmp_path)


def test_every_case_has_a_turn_in_every_round():
    turns = []
    cases = [
        Case("slow", turns.append, lambda: ("slow",), unit="events/s", amount=5),
        Case("fast", turns.append, lambda: ("fast",), unit="events/s", against={"slow": 2}),
    ]
    slow, fast = take_turns(cases, rounds=4, warm_up=2)
    assert len(turns) == 12
    assert all(set(turns[at : at + 2]) == {"slow", "fast"} for at in range(0, 12, 2))
    assert (slow.goal, slow.ratio, slow.rounds) == ("", None, 4)
    assert (fast.goal, fast.baseline) == ("at least 2", "slow")


def test_rates_and_times_are_not_compared():
    cases = [Case("rate", list, unit="events/s"), Case("time", list, against={"rate": None})]
    with pytest.raises(ValueError, match="time is in ms, rate in events/s"):
        take_turns(cases, rounds=1)


def test_a_stream_goes_on_where_it_stopped():
    stream, pool = Stream(), np.arange(1000)
    ticks = np.concatenate([stream.take(pool, size)[1] for size in (1, 136, 500, 137)])
    assert np.array_equal(ticks, 1 + np.arange(774) // PER_TICK)


def test_the_limit_counts_every_word_in_every_row():
    """Seen failing with the last chunk left out."""
    words = np.random.default_rng(1).integers(0, 1 << 64, 5000, np.uint64)
    row_seeds = seeds.expand(1, 9).reshape(3, 3)
    counts = np.zeros((3, 30), np.uint32)
    countmin.update(counts, row_seeds, words)
    columns = np.empty((3, 5000), np.int64)
    kernels.hashing.columns(row_seeds, 30, words, columns)
    assert np.array_equal(counts, [np.bincount(row, minlength=30) for row in columns])


@pytest.mark.parametrize("k", [2, 3, 10])
def test_the_literal_histogram_counts_within_one_k_th(k):
    """At every tick, with arrivals or without, over every window that it has seen.

    Seen failing with the older stamp kept of two joined buckets, and with ceil(k / 2) + 1 buckets
    of size 1.
    """
    rng, window = np.random.default_rng(k), 500
    arrivals = np.repeat(rng.integers(0, 4, 40), 100)[rng.permutation(4000)]
    arrivals[1500:2200] = 0
    grid = LiteralGrid(2, k, window, 4 * window)
    row_seeds = seeds.expand(1, 6).reshape(2, 3)
    for now, count in enumerate(arrivals.tolist(), 1):
        words = rng.integers(0, 1 << 64, count, np.uint64)
        grid.insert(row_seeds, words, np.full(count, now))
        truth = int(arrivals[max(0, now - window) : now].sum())
        for row in (0, 1):  # of one cell each
            assert abs(grid.estimate(row, now) - truth) * k <= truth


def test_a_trace_that_is_not_there_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(traces, "DATA", tmp_path)
    found, left_out = traces.load.__wrapped__(1e-4)
    assert [trace.name for trace in found] == ["wc98day"]
    assert "osdf: there is no osdf_caches_2025_08.parquet in ../shared/data" in left_out
    assert f"left out: {left_out}" in capsys.readouterr().out


def test_the_pictures_are_drawn_from_the_tables(tmp_path):
    drawn = pictures.draw(tables.RESULTS, tmp_path)
    assert {path.name for path in drawn} <= {path.name for path in pictures.PICTURES.glob("*.png")}
