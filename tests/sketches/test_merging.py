"""Which sketches go together, what merging refuses and what it keeps."""

import numpy as np
import pytest

from streamgauge import EcmSketch, Gathered, NotMergeable, Wave, WireError, arrivals
from streamgauge import epsilon_for_levels as levels_for

GIVEN = {"window": 100, "epsilon": 0.1, "delta": 0.1, "seed": 1}


def sketch(items=(), ticks=(), **changed):
    made = EcmSketch(**GIVEN | changed)
    made.update(list(items), list(ticks))
    return made


def concat(two):
    return EcmSketch.concat(*two)


def wave(ticks=(), **changed):
    made = Wave(**{"window": 100, "epsilon": 0.1} | changed)
    made.update(list(ticks))
    return made


def grown(seed, **changed):
    """A sketch of so many events that it is a grid."""
    rng = np.random.default_rng(seed)
    return sketch(
        rng.integers(0, 100, 5000).tolist(), np.sort(rng.integers(0, 150, 5000)), **changed
    )


@pytest.mark.parametrize("changed", [{"seed": 2}, {"epsilon": 0.2}, {"delta": 0.2}, {"window": 99}])
@pytest.mark.parametrize(
    "together", [EcmSketch.merge, Gathered, lambda two: EcmSketch.concat(*two)]
)
def test_sketches_that_differ_are_refused_by_name(together, changed):
    """Seed included. Seen to catch: parts of a merge are not compared."""
    name = next(iter(changed))
    with pytest.raises(NotMergeable, match=f"{name} {GIVEN[name]} and {changed[name]}"):
        together([sketch(), sketch(**changed)])


def test_waves_that_differ_are_refused_by_name():
    for changed in ({"epsilon": 0.2}, {"window": 99}):
        with pytest.raises(NotMergeable, match=next(iter(changed))):
            Wave.merge([wave(), wave(**changed)])
    with pytest.raises(NotMergeable, match="tick"):
        Wave.merge([Wave(window="1 s", epsilon=0.1), Wave(window="1 s", epsilon=0.1, tick="10 ms")])


@pytest.mark.parametrize("together", [Wave.merge, EcmSketch.merge, Gathered])
def test_nothing_to_merge_is_refused(together):
    with pytest.raises(ValueError, match="at least one"):
        together([])


def test_integers_and_text_do_not_go_together():
    text = sketch(["a"], [1])
    with pytest.raises(NotMergeable, match="integers or all of text"):
        EcmSketch.merge([sketch([1], [1]), text])


def test_windows_that_count_arrivals_do_not_go_together():
    counted = [EcmSketch(**GIVEN | {"window": arrivals(10)}) for _ in range(2)]
    for together in (EcmSketch.merge, Gathered, concat):
        with pytest.raises(NotMergeable, match="arrivals"):
            together(counted)
    assert EcmSketch.merge(counted[:1]).to_bytes() == counted[0].to_bytes()


@pytest.mark.parametrize("one", [sketch([1, 2], [1, 2]), grown(3), sketch()])
def test_empty_sketches_add_nothing(one):
    """Not even bytes. Seen to catch: a grid that is alone is placed all the same."""
    assert EcmSketch.merge([one]).to_bytes() == one.to_bytes()
    merged = EcmSketch.merge([sketch(), one, sketch().to_bytes()])
    assert merged.to_bytes() == one.to_bytes()
    assert merged.levels == 0
    gone = sketch([7], [0])
    gone.advance(150)
    if one.now:
        late = EcmSketch.merge([one, gone])
        expected = EcmSketch.from_bytes(one.to_bytes())
        expected.advance(150)
        assert late.estimate(list(range(100))) == expected.estimate(list(range(100)))


def test_small_sketches_merge_as_if_their_events_had_come_to_one():
    """Byte for byte, whether they fit into one log or not."""
    rng = np.random.default_rng(1)
    for size in (10, 300):
        ticks = np.sort(rng.permutation(100)[: min(size, 100)]).repeat(size // min(size, 100))
        items = rng.integers(0, 1000, ticks.size)
        site = rng.integers(0, 9, ticks.size)
        parts = [sketch(items[site == k].tolist(), ticks[site == k]) for k in range(9)]
        order = np.lexsort([np.arange(ticks.size), site, ticks])
        one = sketch(items[order].tolist(), ticks[order])
        assert EcmSketch.merge(parts).to_bytes() == one.to_bytes()


def test_what_was_late_stays_counted_and_clocks_meet():
    early, late = sketch([1], [5], late="drop"), sketch([2], [50], late="drop")
    late.update([3], [7])
    merged = EcmSketch.merge([early, late])
    assert (merged.now, merged.late_events, merged.arrivals) == (50, 1, 2)


def test_parts_of_one_stream_must_be_in_order():
    older, newer = grown(1), sketch([1, 2], [140, 160])
    with pytest.raises(ValueError, match="newer must begin when older ends, at 149, got 140"):
        EcmSketch.concat(older, newer)
    with pytest.raises(ValueError, match="newer must begin"):
        EcmSketch.concat(older, grown(2))
    with pytest.raises(ValueError, match="newer must begin"):
        Wave.concat(wave([1, 9]), wave([8, 10]))
    assert EcmSketch.concat(older, sketch([1], [149])).arrivals == 5001


def test_merged_sketches_say_what_it_cost():
    merged = EcmSketch.merge([grown(1), grown(2)])
    assert merged.levels == 1
    assert 0.1 < merged.epsilon <= (1 + 0.1) ** 2 - 1
    again = EcmSketch.from_bytes(merged.to_bytes())
    assert (again.levels, again.epsilon) == (1, merged.epsilon)
    assert EcmSketch.merge([merged, grown(3)]).levels == 2


def test_levels_end_somewhere():
    deep = wave([1, 1, 2, 3, 5, 8, 13, 21, 34, 55])
    for _ in range(64):
        deep = Wave.merge([deep, wave([55])])
    with pytest.raises(NotMergeable, match="64 levels"):
        Wave.merge([deep, wave([55])])
    for levels in (-1, 65, 1.5, True):
        with pytest.raises(ValueError, match="levels"):
            levels_for(0.1, levels)


def test_segments_are_what_lies_between_stored_arrivals():
    one = wave([1, 3, 3, 7], epsilon=0.5)
    assert one.segments() == [(3, 7, 1), (3, 3, 1), (1, 3, 1), (1, 1, 1)]
    assert one.segments(last=5) == [(3, 7, 1), (3, 3, 1), (None, 3, 1)]
    many = wave(range(1, 80), epsilon=0.5)
    assert sum(segment.size for segment in many.segments()) == 79
    assert wave().segments() == []


def test_next_change_is_when_an_answer_may_change_by_itself():
    """Until then it stays the same.

    Seen to catch: a stamp is given instead of the tick at which it leaves.
    """
    rng = np.random.default_rng(2)
    one = wave(np.sort(rng.integers(0, 300, 2000)), epsilon=0.2)
    for last in (1, 10, 100):
        now = one.now
        while (change := one.next_change(last)) is not None:
            assert change > now
            assert {one.estimate(last, t) for t in range(now, change)} == {one.estimate(last, now)}
            now = change
            one = Wave.from_bytes(one.to_bytes())
            one.advance(now)
        assert one.estimate(last).high == 0
        one = wave(np.sort(rng.integers(0, 300, 2000)), epsilon=0.2)
    assert wave().next_change() is None


def test_gathered_sketches_come_back_from_their_bytes():
    gathered = Gathered([grown(1), sketch([1], [150])])
    again = Gathered.from_bytes(gathered.to_bytes())
    assert again.estimate([1, 2]) == gathered.estimate([1, 2])
    assert again.inner_product(gathered) == gathered.inner_product(again)
    unlike = wire_of([sketch(), sketch(seed=2)])
    for data in (b"", gathered.to_bytes()[:-1], unlike):
        with pytest.raises(WireError):
            Gathered.from_bytes(data)


def wire_of(sketches):
    image = Gathered(sketches[:1])
    image.sketches = sketches
    return image.to_bytes()
