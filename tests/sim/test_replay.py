"""A replay's table says what an oracle and a count of their own say."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import streamgauge as sg
from streamgauge.cli import main
from streamgauge.protocols import periodic
from streamgauge.sim import asked, feed, replay
from streamgauge.sim.exact import ExactWindow
from streamgauge.sim.network import Delay
from streamgauge.sim.world import Monitor, Stream


def monitor(window):
    template = sg.EcmSketch(window=window, epsilon=0.1, delta=0.1, seed=5)
    return Monitor(
        "periodic",
        lambda: periodic.Site(template, 0.1),
        lambda: periodic.Coordinator(template, 0.1),
        periodic.MESSAGES,
    )


def test_a_replay_stands_beside_the_truth():
    """Row by row.

    Seen to catch: the truth of the whole window for a shorter range, bytes before the window was
    full counted as after.
    """
    rng = np.random.default_rng(1)
    items, ticks = rng.zipf(1.5, 4000) % 50, np.sort(rng.integers(0, 1000, 4000))
    weights, of = rng.integers(1, 4, 4000), rng.integers(0, 3, 4000)
    streams = {
        site: Stream(items[of == site], ticks[of == site], weights[of == site]) for site in range(3)
    }
    queries = [sg.Total(), sg.Frequency(1, last=100), sg.SelfJoin(last=50)]
    told = []
    found = replay.replay(
        monitor(300), streams, queries, replay.Setting(300, 50), lambda *each: told.append(each)
    )
    assert told[-1] == (found.moments.size, found.moments.size)
    exact, begin = ExactWindow(300), 0
    for i, now in enumerate(found.moments):
        rows = found.rows[3 * i : 3 * i + 3]
        end = int(np.searchsorted(ticks, now, "right"))
        exact.update(items[begin:end].tolist(), ticks[begin:end], weights[begin:end])
        exact.advance(int(now))
        begin = end
        true = [exact.total(), exact.frequency(1, 100), exact.self_join(50)]
        assert [row.truth for row in rows] == true
        totals = [true[0], exact.total(100), true[2]]
        for row, scale in zip(rows, totals, strict=True):
            assert row.tick == now
            assert row.error == abs(row.value - row.truth) / max(scale, 1)
            assert row.staleness >= 0
    assert found.full == ticks[0] + 300
    at_full = found.bytes[found.moments <= found.full][-1]
    assert found.bytes_since_full == found.bytes[-1] - at_full > 0
    assert found.rows[-1].bytes_since_full == found.bytes_since_full
    assert all(each.outside == 0 for each in replay.errors(found)[:1])


def test_a_delay_shows_as_staleness():
    rng = np.random.default_rng(1)
    streams = {0: Stream(rng.integers(0, 9, 2000), np.sort(rng.integers(0, 1000, 2000)))}
    stale = []
    for delay in (Delay(), Delay(60, 60)):
        setting = replay.Setting(200, 20, delay)
        rows = replay.replay(monitor(200), streams, [sg.Total()], setting).rows
        stale.append(np.mean([row.staleness for row in rows if row.staleness is not None]))
    assert stale[1] >= stale[0] + 40


@pytest.fixture
def trace(tmp_path):
    """Text items, timestamps, a router, weights; not in order."""
    rng = np.random.default_rng(1)
    n = 3000
    times = np.datetime64("2026-01-01T00:00", "ms") + rng.integers(0, 60_000, n)
    table = pa.table(
        {
            "src": [f"10.0.0.{i}" for i in rng.zipf(1.5, n) % 20],
            "ts": times,
            "router": [f"r{i}" for i in rng.integers(0, 4, n)],
            "size": rng.integers(1, 3, n),
        }
    )
    path = tmp_path / "trace.parquet"
    pq.write_table(table, path)
    return path


def test_a_file_becomes_streams(trace):
    columns = {"item": "src", "time": "ts", "site": "router", "weight": "size"}
    rows = feed.recorded(trace, columns, None)
    streams = feed.streams(rows, 10**7)
    assert sorted(streams) == ["r0", "r1", "r2", "r3"]
    table = pq.read_table(trace)
    for site, stream in streams.items():
        mine = table.filter(pa.compute.equal(table["router"], site))
        assert stream.weights.sum() == pa.compute.sum(mine["size"]).as_py()
        milliseconds = np.sort(mine["ts"].to_numpy().astype(np.int64))
        assert np.array_equal(stream.ticks, milliseconds // 10)
    assert feed.dealt(rows, 2, 1).sites == [0, 1]


def run(*arguments):
    return CliRunner().invoke(main, ["replay", *map(str, arguments)])


def test_the_command_shows_saves_and_draws(trace, tmp_path):
    out, picture = tmp_path / "out.parquet", tmp_path / "out.png"
    columns = ["--item", "src", "--time", "ts", "--sites", "router", "--window", "10 s"]
    question = ["--query", "frequency(item='10.0.0.1', last=5s)", "--query", "total()"]
    done = run(trace, *columns, *question, "--save", out, "--plot", picture)
    assert done.exit_code == 0, done.output
    for said in ("3,000 events at 4 sites", "total()", "shipping-deflated", "0.00%"):
        assert said in done.output
    table = pq.read_table(out)
    assert set(table["query"].to_pylist()) == {"frequency(item='10.0.0.1', last=250)", "total()"}
    kinds = [name for name in table.column_names if name.startswith("bytes of ")]
    assert sum(table[name][-1].as_py() for name in kinds) == table["bytes"][-1].as_py()
    assert table.schema.metadata[b"protocol"] == b"periodic"
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("protocol", asked.PROTOCOLS)
def test_every_protocol_runs_under_faults(protocol):
    generated = "hot_burst seconds=20 rate=100 sites=3"
    done = run(
        generated, "--window", "5 s", "--protocol", protocol, "--faults", 2, "--network", "fixed:1s"
    )
    assert done.exit_code == 0, done.output
    assert "2,000 events at 3 sites" in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nosuch"], "there is no trace 'nosuch'"),
        (["no.parquet", "--item", "a", "--time", "b"], "there is no file no.parquet"),
        (["no.parquet"], "a file needs --item and --time"),
        (["hot_burst", "--window", "3"], 'window must be a duration such as "10 min"'),
        (["hot_burst", "--item", "x"], "--item goes with a file"),
        (["hot_burst", "--sites", "router"], "sites must be a number, got 'router'"),
        (["hot_burst", "--sites", "0"], "sites must be at least 1, got 0"),
        (["hot_burst seconds=1", "--network", "slow"], "network must be instant"),
        (["hot_burst seconds=1", "--query", "total(last=2min)"], "last must not exceed the window"),
        (["hot_burst seconds=1", "--query", "frequency(item=x)"], "must be integers"),
        (["churn updates=100"], "deletions"),
    ],
)
def test_what_cannot_be_done_is_said(arguments, message):
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.output
