"""The randomized wave by itself. Its promise is tested in guarantees/test_randomized_wave.py."""

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import RandomizedWave
from streamgauge.sketches import coins
from streamgauge.sketches import randomized_wave as module
from streamgauge.sketches.door import Admitted
from streamgauge.sketches.merging import NotMergeable
from streamgauge.sketches.randomizedgrid import RandomizedGrid
from tests import arrivals


def new(site=0, **changed):
    given = {"window": 100, "epsilon": 0.5, "delta": 0.2, "seed": 7}
    return RandomizedWave(**(given | changed), site=site)


def test_the_example():
    assert doctest.testmod(module).failed == 0


def test_parameters_can_be_read():
    wave = new("here", window="1 min", tick="1 s", late="drop")
    assert (wave.window, wave.tick, wave.epsilon, wave.delta) == (60, 10**9, 0.5, 0.2)
    wave.update(np.array([5, 6, 4], "M8[s]"))
    assert (wave.now, wave.late_events, wave.seed, wave.sites) == (6, 1, 7, ("here",))
    assert new(np.int64(3)).sites == (3,)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"epsilon": 1.5}, "epsilon must lie in"),
        ({"epsilon": 1e-4}, "epsilon of a randomized wave must be at least 0.001, got 0.0001"),
        ({"delta": 0}, "delta must lie in"),
        ({"delta": 1e-19}, "delta must be at least 1e-18"),
        ({"seed": -1}, "seed must lie in"),
        ({"site": 1.5}, "site must be an integer or text, got 1.5"),
        ({"site": True}, "site must be an integer or text, got True"),
        ({"site": 2**63}, "site must lie in"),
        ({"site": "x" * 257}, "site must have at most 256 characters, got 257"),
    ],
)
def test_bad_parameters_are_refused(changed, says):
    with pytest.raises(ValueError, match=says):
        new(**changed)


def test_samples_that_need_too_much_memory_are_refused():
    with pytest.raises(OverflowError, match="need more than 8 GiB"):
        new(epsilon=0.001, delta=1e-18)


def test_an_event_may_weigh_as_much_as_it_may_toss_coins():
    wave = new()
    wave.update([1], [2**20])
    before = wave.to_bytes()
    with pytest.raises(ValueError, match=r"weights .* at most 2\*\*20, got 1048577"):
        wave.update([2, 3], [1, 2**20 + 1])
    assert wave.to_bytes() == before


def test_memory_follows_what_is_there():
    """Seen to catch: rings that grow without asking what has expired."""
    wave = new(epsilon=0.01, delta=0.05)
    assert wave.nbytes < 1000
    wave.update(np.arange(50))
    assert wave.nbytes < 10_000
    wave.update(np.arange(50, 10_000))  # of which a hundred are in the window
    assert wave.nbytes < 20_000


def test_the_arrivals_of_one_event_can_have_ticks_of_their_own():
    grid = RandomizedGrid(1, 100, 1, 100, 7)
    grid.insert_run(Admitted(np.array([30, 50]), np.array([30, 20]), None, 50, 0, 1))
    cutoffs = 50 - np.array([1, 20, 21, 50, 100])
    assert grid.spans(np.zeros(5, np.int64), cutoffs).value.tolist() == [1, 20, 21, 50, 50]


@given(arrivals.programs(max_size=500), st.integers(1, 4))
def test_no_answer_changes_before_the_next_change(program, steps):
    """Seen to catch: the newest stamp of a list taken for its next."""
    wave = new(window=program.window, epsilon=0.9)
    _, ticks, weights = program.arrivals()
    wave.update(ticks, weights)
    if wave.now is None:
        assert wave.next_change() is None
        return
    last = 1 + program.seed % program.window
    for _ in range(steps):
        change, before = wave.next_change(last), wave.estimate(last)
        if change is None:
            assert before == wave.estimate(last, now=wave.now + program.window) == (0, 0, 0, 1)
            return
        assert change > wave.now
        assert wave.estimate(last, now=change - 1) == before
        wave.advance(change)


def fed(program, sites):
    """Waves of these sites, the stream dealt out to them."""
    _, ticks, weights = program.arrivals()
    weights = np.minimum(weights, 20)
    dealt = np.random.default_rng(program.seed).integers(0, len(sites), ticks.size)
    parts = [new(site, window=program.window, epsilon=0.9) for site in sites]
    for i, part in enumerate(parts):
        part.update(ticks[dealt == i], weights[dealt == i])
    return parts


def content(wave):
    """Everything but the sites and whose turn it is."""
    return wave._grid.pack(wave.now), wave._grid.state(wave.now), wave.door.state()


@given(arrivals.programs(max_size=1000))
def test_merging_loses_nothing_in_any_order(program):
    """In pairs, in threes, the other way round, from bytes; with nothing, and with itself alone.

    Seen to catch: lists joined out of order, the first part's first arrival taken for the union's.
    """
    a, b, c = parts = fed(program, ["a", "b", "c"])
    images = [part.to_bytes() for part in parts]
    merge = RandomizedWave.merge
    together = merge(parts)
    assert merge([merge([a, b]), c]).to_bytes() == together.to_bytes()
    assert merge([a, merge([b.to_bytes(), c]).to_bytes()]).to_bytes() == together.to_bytes()
    assert content(merge([c, b, a])) == content(together)
    assert RandomizedWave.from_bytes(together.to_bytes()).to_bytes() == together.to_bytes()
    assert content(merge([a, new("d", window=program.window, epsilon=0.9)])) == content(a)
    assert merge([a]).to_bytes() == a.to_bytes()
    assert [part.to_bytes() for part in parts] == images
    if together.now is not None:
        b.advance(together.now + program.window)
        assert merge(parts).estimate() == (0, 0, 0, 1)


@given(arrivals.programs(max_size=1000), st.integers(1, 500))
def test_a_merged_wave_lives_on_from_its_bytes(program, more):
    merged = RandomizedWave.merge(fed(program, [1, 2]))
    copy = RandomizedWave.from_bytes(merged.to_bytes())
    later = (merged.now or 0) + np.arange(more) // 3
    merged.update(later)
    copy.update(later[:1])
    copy.update(later[1:])
    assert copy.to_bytes() == merged.to_bytes()


def test_a_merged_wave_tosses_coins_that_none_of_its_parts_tossed():
    """It goes on with its first part's key, from a number that is beyond all of the part's.

    Seen to catch: a union that counts the first part only, or goes on with the last part's coins.
    """
    one, two = new(1), new(2)
    one.update(np.zeros(1000, int))
    two.update(np.zeros(500, int))
    merged = RandomizedWave.merge([one, two])
    assert merged._grid.coins_seed == one._grid.coins_seed != two._grid.coins_seed
    assert merged._grid.counts[0] == 1500


def test_equal_coins_are_not_merged():
    """Seen to catch: sites that are not compared, or of which a union remembers its own only."""
    merge = RandomizedWave.merge
    a, b, c = new("a"), new("b"), new("c")
    with pytest.raises(NotMergeable, match="equal ones flip the same coins, got 'a' twice"):
        merge([a, b, new("a")])
    with pytest.raises(NotMergeable, match="sites must differ"):
        merge([a, a])
    with pytest.raises(NotMergeable, match="sites must differ"):
        merge([merge([a, b]), merge([c, b]).to_bytes()])
    with pytest.raises(NotMergeable, match="sites must differ"):
        RandomizedWave.concat(a, merge([c, a]))
    assert merge([merge([a, b]), c]).sites == ("a", "b", "c")


@pytest.mark.parametrize(
    "changed", [{"window": 99}, {"epsilon": 0.4}, {"delta": 0.1}, {"seed": 8}, {"window": "1 s"}]
)
def test_unlike_waves_are_not_merged(changed):
    with pytest.raises(NotMergeable, match=f"alike, got {next(iter(changed))} .* and "):
        RandomizedWave.merge([new(1), new(2, **changed)])


def test_nothing_is_not_merged():
    with pytest.raises(ValueError, match="sketches must be at least one"):
        RandomizedWave.merge([])


def test_more_sites_than_a_wave_remembers_are_not_merged():
    names = tuple(range(coins.MOST_SITES))
    assert coins.union([names[:1], names[1:]]) == names
    with pytest.raises(NotMergeable, match="at most 65536 together, got 65537"):
        coins.union([names, (-1,)])


def test_the_late_policy_is_that_of_the_first_and_late_events_add_up():
    parts = [new(1, late="clamp"), new(2, late="drop")]
    for part in parts:
        part.update([5, 4, 3, 6])
    merged = RandomizedWave.merge(parts)
    assert (merged.door.late, merged.late_events, merged.now) == ("clamp", 4, 6)


@given(arrivals.programs(max_size=1000), st.floats(0, 1))
def test_parts_of_one_stream_become_one_wave(program, share):
    _, ticks, weights = program.arrivals()
    weights = np.minimum(weights, 20)
    cut = int(share * ticks.size)
    older, newer = (new(site, window=program.window, epsilon=0.9) for site in ("old", "new"))
    older.update(ticks[:cut], weights[:cut])
    newer.update(ticks[cut:], weights[cut:])
    if newer._grid.state(newer.now).first is None and weights[cut:].any():
        return  # its first events have expired: see the next test
    both = RandomizedWave.concat(older, newer.to_bytes())
    assert both.to_bytes() == RandomizedWave.merge([older, newer]).to_bytes()
    assert both._grid.counts[0] == weights.sum()


def test_parts_that_overlap_in_time_are_not_parts_of_one_stream():
    """Seen to catch: an overlap that is not asked for."""
    older, newer = new("old"), new("new")
    older.update([1, 50])
    newer.update([50, 60])
    assert RandomizedWave.concat(older, newer).estimate() == (4, 4, 4, 1)
    with pytest.raises(NotMergeable, match="newer must begin when older ends, at 60, got 1"):
        RandomizedWave.concat(newer, older)
    older.advance(51)
    with pytest.raises(NotMergeable, match="at 51, got 50"):
        RandomizedWave.concat(older, newer)
    newer.advance(151)  # its first event, 50, has expired: the others came at 52 at the earliest
    assert RandomizedWave.concat(older, newer).estimate() == (1, 1, 1, 1)
    older.advance(53)
    with pytest.raises(NotMergeable, match="at 53, got 52"):
        RandomizedWave.concat(older, newer)


def test_a_merged_grid_would_say_when_it_has_too_many_arrivals():
    grids = [RandomizedGrid(1, 100, 1, 10, seed) for seed in (1, 2)]
    for grid in grids:
        grid.counts[0] = 2**52
    with pytest.raises(OverflowError, match=r"arrivals must stay below 2\*\*53"):
        RandomizedGrid.merged(grids, None)
