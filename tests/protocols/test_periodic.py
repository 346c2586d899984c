"""The periodic protocol: what a silent site hides is bounded, and nothing else is missing."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamgauge as sg
from streamgauge import wire
from streamgauge.protocols import periodic
from streamgauge.protocols.messages import COORDINATOR, ProtocolError
from streamgauge.sim.exact import ExactWindow
from tests import arrivals

WINDOW = 500


def template(window=WINDOW, epsilon=0.1):
    return sg.EcmSketch(window=window, epsilon=epsilon, delta=0.1, seed=5)


def delivered(sends, name, coordinator, log):
    """Deliver as bytes; the log keeps what travelled."""
    for send in sends:
        assert send.to == COORDINATOR
        data = wire.encode(send.message)
        log.append((name, data))
        assert coordinator.receive(name, wire.decode(data, periodic.MESSAGES)) == []


def feed(site, name, coordinator, batches, log):
    for items, ticks, weights in batches:
        taken = 0
        while taken < ticks.size:
            consumed, sends = site.update(items[taken:], ticks[taken:], weights[taken:])
            delivered(sends, name, coordinator, log)
            taken += consumed


@given(arrivals.programs(max_size=250), st.sampled_from([0.02, 0.1, 0.4]))
def test_certain_bounds_hold_after_every_event(program, epsilon):
    """Seen to catch: what a silent site hides is forgotten."""
    empty = template(program.window)
    coordinator = periodic.Coordinator(empty, epsilon)
    sites = [periodic.Site(empty, epsilon) for _ in range(3)]
    exact = ExactWindow(program.window)
    items, ticks, weights = program.arrivals()
    log = []
    clock = int(ticks[0]) if ticks.size else 0
    ends = [clock + program.window, clock + 2 * program.window + 1]
    for i in range(ticks.size + len(ends)):
        if i < ticks.size:
            clock = int(ticks[i])
            one = slice(i, i + 1)
            feed(sites[i % 3], i % 3, coordinator, [(items[one], ticks[one], weights[one])], log)
            exact.update(items[one].tolist(), ticks[one], weights[one])
        else:
            clock = max(clock, ends[i - ticks.size])
        for name, site in enumerate(sites):
            delivered(site.advance(clock), name, coordinator, log)
        exact.advance(clock)
        for last in (None, 1 + program.window // 3):
            total = coordinator.answer(sg.Total(last), clock).estimate
            assert total.low <= exact.total(last) <= total.high
            counts = exact.frequencies(last)
            for item in items[[0, min(i, ticks.size - 1)]].tolist() if ticks.size else []:
                answer = coordinator.answer(sg.Frequency(item, last), clock)
                assert counts.get(item, 0) <= answer.estimate.high
            joined = coordinator.answer(sg.SelfJoin(last), clock).estimate
            assert exact.self_join(last) <= joined.high * (1 + 1e-12)


@given(arrivals.programs(max_size=2000), st.sampled_from([0.02, 0.1, 0.4]), st.integers(0, 99))
def test_batches_do_not_matter(program, epsilon, seed):
    """Seen to catch: the rule is asked at a batch's end alone; too few events are looked at."""
    stream = program.arrivals()
    logs, ends = [], []
    for batches in ([stream], arrivals.cut(seed, *stream)):
        site, coordinator, log = periodic.Site(template(program.window), epsilon), None, []
        coordinator = periodic.Coordinator(template(program.window), epsilon)
        feed(site, "a", coordinator, batches, log)
        logs.append(log)
        ends.append((site.to_bytes(), coordinator.to_bytes()))
    assert logs[0] == logs[1]
    assert ends[0] == ends[1]


@given(arrivals.programs(max_size=1000), st.sampled_from([0.02, 0.1, 0.4]), st.integers(0, 99))
def test_nothing_is_hidden_beyond_the_allowance(program, epsilon, seed):
    """Seen to catch: a report counts one event more than it holds."""
    site = periodic.Site(template(program.window), epsilon)
    coordinator = periodic.Coordinator(template(program.window), epsilon)
    log, exact = [], ExactWindow(program.window)
    since, held = 0, 0
    for items, ticks, weights in arrivals.cut(seed, *program.arrivals()):
        for i in range(ticks.size):
            one = slice(i, i + 1)
            before = len(log)
            feed(site, "a", coordinator, [(items[one], ticks[one], weights[one])], log)
            exact.update(items[one].tolist(), ticks[one], weights[one])
            since += int(weights[i])
            if len(log) > before:
                since, held = 0, exact.total()
            # in exact arithmetic the rule gives this; the report's own lower end is below `held`
            assert since * (1 - epsilon) <= epsilon * held * (1 + 1e-12)


def test_silence_is_reported():
    """Seen to catch: the expirations are left out of the rule."""
    site = periodic.Site(template(), 0.1)
    coordinator = periodic.Coordinator(template(), 0.1)
    log = []
    rng = np.random.default_rng(1)
    ticks = np.sort(rng.integers(0, WINDOW, 3000))
    ones = np.ones(3000, np.int64)
    feed(site, "a", coordinator, [(rng.integers(0, 50, 3000), ticks, ones)], log)
    spoken = len(log)
    for now in range(WINDOW, 2 * WINDOW + 5):
        delivered(site.advance(now), "a", coordinator, log)
    assert len(log) > spoken + 5, "expirations alone must make the site speak"
    answer = coordinator.answer(sg.Total(), 2 * WINDOW + 5)
    assert answer.estimate == sg.Estimate(0, 0, 0, 1)
    quiet = len(log)
    for now in range(2 * WINDOW + 5, 9 * WINDOW, WINDOW):
        delivered(site.advance(now), "a", coordinator, log)
    assert len(log) == quiet, "no news costs no bytes"


@given(arrivals.programs(max_size=600), st.integers(0, 99))
def test_a_snapshot_changes_nothing(program, seed):
    """Seen to catch: a snapshot forgets the number of reports."""
    plain, restored = [], []
    for log in (plain, restored):
        site = periodic.Site(template(program.window), 0.1)
        coordinator = periodic.Coordinator(template(program.window), 0.1)
        for batch in arrivals.cut(seed, *program.arrivals()):
            feed(site, "a", coordinator, [batch], log)
            if log is restored:
                assert site.to_bytes() == periodic.Site.from_bytes(site.to_bytes()).to_bytes()
                site = periodic.Site.from_bytes(site.to_bytes())
                coordinator = periodic.Coordinator.from_bytes(coordinator.to_bytes())
        log.append(coordinator.to_bytes())
    assert plain == restored


def test_a_repeated_report_changes_nothing():
    """Seen to catch: a report older than the last is taken."""
    site, coordinator = periodic.Site(template(), 0.1), periodic.Coordinator(template(), 0.1)
    _, first = site.update([1], [1])
    _, second = site.update([2], [2])
    for send in (*first, *second):
        coordinator.receive("a", send.message)
    state = coordinator.to_bytes()
    for send in (*second, *first):
        coordinator.receive("a", send.message)
    assert coordinator.to_bytes() == state


def test_update_stops_at_the_event_that_speaks():
    site = periodic.Site(template(), 0.1)
    consumed, sends = site.update(np.arange(1000), np.arange(1000))
    assert (consumed, len(sends)) == (1, 1), "a site introduces itself with its first event"
    assert site.update([], []) == (0, [])


@given(
    arrivals.long_programs(max_size=1000), st.sampled_from(["drop", "clamp"]), st.integers(0, 99)
)
def test_batches_do_not_matter_when_events_are_late(program, late, seed):
    """The same messages and the same site, though a batch may hold events that are left out.

    Seen to catch: the rule is asked at a batch's end alone; late events are not among those taken.
    """
    items, ticks, weights = program.arrivals()
    jitter = np.random.default_rng(seed).integers(-1 - program.window // 4, 1, ticks.size)
    stream = arrivals.Arrivals(items, ticks + jitter, weights)
    empty = sg.EcmSketch(window=program.window, epsilon=0.1, delta=0.1, seed=5, late=late)
    ends = []
    for batches in ([stream], arrivals.cut(seed, *stream)):
        site, log = periodic.Site(empty, 0.1), []
        feed(site, "a", periodic.Coordinator(empty, 0.1), batches, log)
        ends.append((log, site.to_bytes()))
    assert ends[0] == ends[1]


def test_sites_of_another_specification_are_refused():
    """Seen to catch: reports are read without asking what they are about."""
    coordinator = periodic.Coordinator(template(), 0.1)
    for other in (template(WINDOW + 1), template(epsilon=0.2)):
        _, sends = periodic.Site(other, 0.1).update([1], [1])
        with pytest.raises(ProtocolError, match="report 1 of site 'a': it is about EcmSketch"):
            coordinator.receive("a", sends[0].message)
    with pytest.raises(ProtocolError, match="report 1 of site 'a': truncated"):
        coordinator.receive("a", periodic.Report(1, "sketch", b"no"))
    with pytest.raises(ProtocolError, match="a site of the periodic protocol received"):
        periodic.Site(template(), 0.1).receive(periodic.Report(1, "sketch", b""))


def test_a_site_refuses_a_batch_whole():
    """Seen to catch: a text is cut into its letters."""
    for items, message in [
        ("hello", "times must be as many as items, got 2 for 1"),
        (["a", "b", "c"], "times must be as many as items, got 2 for 3"),
        (["a", 1], "items must be all integers or all text, got both"),
        (5, "times must be as many as items, got 2 for 1"),
    ]:
        site = periodic.Site(template(), 0.1)
        with pytest.raises(ValueError, match=f"^{message}$"):
            site.update(items, [1, 2])
        assert site.to_bytes() == periodic.Site(template(), 0.1).to_bytes()


def test_sites_count_the_same_kind_of_items():
    coordinator = periodic.Coordinator(template(), 0.1)
    for name, item in (("a", 1), ("b", "text")):
        _, sends = periodic.Site(template(), 0.1).update([item], [1])
        if name == "a":
            coordinator.receive(name, sends[0].message)
    with pytest.raises(ProtocolError, match="its items are text, those of other sites integers"):
        coordinator.receive("b", sends[0].message)


def test_bytes_that_hold_what_no_machine_says_are_refused():
    """Seen to catch: reports are read without asking what they are about."""
    site, coordinator = periodic.Site(template(), 0.1), periodic.Coordinator(template(), 0.1)
    _, sends = site.update([1], [1])
    coordinator.receive("a", sends[0].message)
    for machine in (site, coordinator):
        with pytest.raises(wire.WireError, match="3 bytes go on beyond the end"):
            type(machine).from_bytes(machine.to_bytes() + b"end")
    state = wire.unframe_bare(
        coordinator.to_bytes(), wire.PERIODIC_COORDINATOR, periodic._CoordinatorState
    )
    _, others = periodic.Site(template(WINDOW + 1), 0.1).update([1], [1])
    for reports, message in [
        (2 * state.reports, "site 'a' is there twice"),
        ([("a", 1, others[0].message.payload)], "it is about EcmSketch.window=501"),
    ]:
        forged = wire.frame(
            wire.PERIODIC_COORDINATOR, msgspec.structs.replace(state, reports=reports)
        )
        with pytest.raises(wire.WireError, match=message):
            periodic.Coordinator.from_bytes(forged)
    said = wire.unframe_bare(site.to_bytes(), wire.PERIODIC_SITE, periodic._SiteState)
    other = sg.Wave(window=WINDOW + 1, epsilon=0.1).to_bytes()
    forged = wire.frame(wire.PERIODIC_SITE, msgspec.structs.replace(said, reported=other))
    with pytest.raises(wire.WireError, match="the report is about another window"):
        periodic.Site.from_bytes(forged)


def test_hidden_arrivals_never_lower_a_self_join():
    """Beyond 2**53 the root and the square are rounded, which once took one off the truth."""
    k, h = 67_108_666, 100_662_999
    sketch = sg.EcmSketch(window=10, epsilon=0.9, delta=0.9, seed=1)
    sketch.update([1], [1], [k])
    assert int(sg.SelfJoin().answer(sketch, hidden=h).high) >= (k + h) ** 2


@pytest.mark.parametrize("epsilon", [0, 1, -0.1, float("nan"), "0.1", True])
def test_epsilon_is_a_share(epsilon):
    for machine in (periodic.Site, periodic.Coordinator):
        with pytest.raises(ValueError, match=r"epsilon must .* in \(0, 1\), got"):
            machine(template(), epsilon)


def test_a_template_is_empty():
    used = template()
    used.update([1], [1])
    for machine in (periodic.Site, periodic.Coordinator):
        with pytest.raises(ValueError, match="template must be an empty sketch, got EcmSketch"):
            machine(used, 0.1)


@given(st.binary(max_size=60), st.integers(0, 10**6), st.integers(0, 255))
def test_hostile_bytes_give_wire_error(noise, at, byte):
    site, coordinator = periodic.Site(template(), 0.1), periodic.Coordinator(template(), 0.1)
    _, sends = site.update(["x"], [3])
    coordinator.receive("a", sends[0].message)
    for machine in (site, coordinator):
        data = bytearray(machine.to_bytes())
        data[at % len(data)] = byte
        for hostile in (noise, bytes(data), bytes(data[: at % len(data)])):
            try:
                found = type(machine).from_bytes(hostile)
            except wire.WireError:
                continue
            assert type(machine).from_bytes(found.to_bytes()).to_bytes() == found.to_bytes()
    for hostile in (noise, wire.encode(sends[0].message)[: at % 50]):
        with pytest.raises(wire.WireError):
            wire.decode(hostile, periodic.MESSAGES)


def test_few_events_are_reported_as_events_and_rebuild_the_very_sketch():
    """Whichever encoding is shorter; the coordinator has the site's bytes after each report.

    Seen to catch: late events left out of what is sent, the coordinator's clock left behind.
    """
    empty = sg.EcmSketch(window=WINDOW, epsilon=0.2, delta=0.2, seed=5, late="drop")
    site, coordinator = periodic.Site(empty, 0.05), periodic.Coordinator(empty, 0.05)
    rng = np.random.default_rng(1)
    ticks = np.sort(rng.integers(0, 3 * WINDOW, 6000)) - 20 * (rng.random(6000) < 0.05)
    items, taken, sizes = rng.zipf(1.3, 6000), 0, {"sketch": [], "updates": []}
    while taken < ticks.size:
        consumed, sends = site.update(items[taken:], ticks[taken:])
        taken += consumed
        for send in sends:
            whole = len(site.sketch.to_bytes())
            sizes[send.message.encoding].append(len(send.message.payload))
            assert len(send.message.payload) <= whole + 100
            coordinator.receive("a", wire.decode(wire.encode(send.message), periodic.MESSAGES))
            assert coordinator.sites["a"].to_bytes() == site.sketch.to_bytes()
    assert site.sketch.late_events > 50
    assert len(sizes["updates"]) > 5 * len(sizes["sketch"]) > 0
    assert np.mean(sizes["updates"]) * 5 < np.mean(sizes["sketch"][1:] or [whole])


def reported(site, start=0, events=50):
    _, sends = site.update(np.arange(events) % 7, start + np.arange(events))
    return [send.message for send in sends]


def test_events_that_do_not_follow_what_is_known_are_refused():
    """Seen to catch: events given to a sketch of another report."""
    site, coordinator = periodic.Site(template(), 0.1), periodic.Coordinator(template(), 0.1)
    said = []
    for tick in range(30):
        _, sends = site.update([tick % 7], [tick])
        said += [send.message for send in sends]
    first, second, third = said[:3]
    assert [first.encoding, second.encoding, third.encoding] == ["sketch", "updates", "updates"]
    with pytest.raises(ProtocolError, match="report 2 of site 'a': it goes on from report 1, 0 is"):
        coordinator.receive("a", second)
    coordinator.receive("a", first)
    with pytest.raises(ProtocolError, match="report 3 of site 'a': it goes on from report 2, 1 is"):
        coordinator.receive("a", third)
    state = coordinator.to_bytes()
    said = wire.decode(second.payload, periodic.Updates)
    for changed, message in [
        ({"now": -1}, "it goes back in time"),
        ({"now": None}, "it goes back in time"),
        ({"kind": "text"}, "its items are text, those before integers"),
        ({"kind": None}, "its items are None, those before integers"),
    ]:
        payload = wire.encode(msgspec.structs.replace(said, **changed))
        with pytest.raises(ProtocolError, match=f"report 2 of site 'a': {message}"):
            coordinator.receive("a", periodic.Report(2, "updates", payload))
        assert coordinator.to_bytes() == state


def test_who_is_silent_is_named_and_may_hide_anything():
    """Seen to catch: a silent site that hides only what its last report allows."""
    coordinator = periodic.Coordinator(template(), 0.1, patience=20)
    coordinator.join("a", 0)
    coordinator.join("b", 0)
    for name in ("a", "b"):
        for message in reported(periodic.Site(template(), 0.1)):
            coordinator.receive(name, message)
    coordinator.hear("a", 100)
    fine = coordinator.answer(sg.Total(), 20)
    assert (fine.silent, fine.estimate.high < np.inf) == ((), True)
    late = coordinator.answer(sg.Total(), 100)
    assert late.silent == ("b",)
    assert late.estimate.high == np.inf
    assert late.estimate.low == coordinator.answer(sg.Total(), 20).estimate.low
    for query in (sg.Frequency(1), sg.SelfJoin()):
        assert coordinator.answer(query, 100).estimate.high == np.inf
    assert late.as_of == 0
    coordinator.hear("b", 90)
    assert coordinator.answer(sg.Total(), 100)[1:] == (90, 0, ())
    coordinator.join("c")
    assert coordinator.answer(sg.Total(), 100).silent == ("c",), "never heard of"


def test_what_a_site_reported_outlives_it_until_it_expires():
    """Seen to catch: a site that left is forgotten at once; its remains are never forgotten."""
    site, coordinator = periodic.Site(template(), 0.4), periodic.Coordinator(template(), 0.4, 20)
    coordinator.join("a", 0)
    sends = []
    taken = 0
    while taken < 40:
        consumed, sent = site.update(np.arange(taken, 40), np.arange(taken, 40))
        taken += consumed
        sends += sent
    sends += site.leave()
    for send in sends:
        coordinator.receive("a", send.message)
    answer = coordinator.answer(sg.Total(), 300)
    assert answer.estimate == sg.Estimate(40, 40, 40, 1), "nothing is hidden by who has left"
    assert answer.silent == ()
    again = coordinator.to_bytes()
    for send in sends:
        coordinator.receive("a", send.message)
    assert coordinator.to_bytes() == again, "what comes late changes nothing"
    coordinator.join("a", 300)
    _, sends = periodic.Site(template(), 0.4).update([1], [300])
    coordinator.receive("a", sends[0].message)
    assert coordinator.answer(sg.Total(), 300).estimate.low == 41, "another site of that name"
    coordinator.advance(39 + WINDOW)
    assert coordinator._departed == []
    assert coordinator.answer(sg.Total(), 39 + WINDOW).estimate.low == 1


def test_a_coordinator_that_has_forgotten_is_told_everything():
    site, coordinator = periodic.Site(template(), 0.1), periodic.Coordinator(template(), 0.1)
    reported(site)
    reported(site, start=100)
    (send,) = site.renew()
    coordinator.receive("a", send.message)
    assert coordinator.sites["a"].to_bytes() == site.sketch.to_bytes()
    assert coordinator.number("a") == site.number == 1


def test_a_snapshot_keeps_what_decides_between_the_encodings():
    """Seen to catch: the size of the last sketch left out, the number of held events left out."""
    rng = np.random.default_rng(1)
    items, ticks = rng.integers(0, 200, 20_000), np.sort(rng.integers(0, 30 * WINDOW, 20_000))
    said = []
    for restores in (False, True):
        site, log = periodic.Site(template(30 * WINDOW), 0.1), []
        for begin in range(0, 20_000, 50):
            taken = begin
            while taken < begin + 50:
                end = slice(taken, begin + 50)
                consumed, sends = site.update(items[end], ticks[end])
                taken += consumed
                log += [send.message for send in sends]
            if restores:
                site = periodic.Site.from_bytes(site.to_bytes())
        said.append(log)
    assert {message.encoding for message in said[0][1:]} == {"sketch", "updates"}
    assert said[0] == said[1]
