"""What the network does to bytes: FIFO within a link, drawn from one seed, counted on arrival.

Seen to catch: a delay that overtakes within a link (test_within_a_link_nothing_is_overtaken), what
nobody received counted (test_who_is_not_there_costs_nothing), a partition that lets answers
through (test_a_partition_cuts_both_ways).
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.protocols.messages import COORDINATOR
from streamgauge.sim.network import Crash, Delay, Delivery, Faults, Network, Partition, Traffic


def kind(data):
    return "long" if len(data) > 3 else "short"


def everyone(name):
    return True


@given(st.integers(0, 10**6))
def test_within_a_link_nothing_is_overtaken(seed):
    rng = np.random.default_rng(seed)
    network = Network(kind, Delay(0, 30), seed=seed)
    sent, arrived = {}, {}
    for now in range(200):
        sender = int(rng.integers(3))
        sent.setdefault(sender, []).append(b"%d" % now)
        network.send(sender, COORDINATOR, b"%d" % now, now)
        for each in network.due(now, everyone):
            assert each.at <= now
            arrived.setdefault(each.sender, []).append(each.data)
    for each in network.due(300, everyone):
        arrived[each.sender].append(each.data)
    assert arrived == sent
    assert network.is_empty


def test_a_seed_is_a_reproduction():
    def run(seed):
        network = Network(kind, Delay(0, 9), Faults(seed, drop=0.3, duplicate=0.3))
        for now in range(300):
            network.send(now % 4, COORDINATOR, b"%d" % now, now)
        return list(network.due(400, everyone))

    assert run(1) == run(1)
    assert run(1) != run(2)
    assert 200 < len(run(1)) < 400


def test_who_is_not_there_costs_nothing():
    network = Network(kind)
    network.send(1, COORDINATOR, b"abcd", 0)
    network.send(2, COORDINATOR, b"ab", 0)
    network.send(COORDINATOR, 1, b"gone", 0)
    found = list(network.due(0, lambda name: name == COORDINATOR))
    assert found == [Delivery(0, 1, COORDINATOR, b"abcd"), Delivery(0, 2, COORDINATOR, b"ab")]
    assert network.traffic() == Traffic(2, 6)
    assert network.by_kind() == {"long": Traffic(1, 4), "short": Traffic(1, 2)}


def test_a_partition_cuts_both_ways():
    faults = Faults(partitions=(Partition(10, 20, (1,)),), silences=((2, 5),))
    network = Network(kind, Delay(), faults)
    for now in (4, 5, 9, 10, 19, 20):
        for site in (1, 2, 3):
            network.send(site, COORDINATOR, b"up", now)
            network.send(COORDINATOR, site, b"down", now)
    found = [(each.at, each.sender, each.receiver) for each in network.due(99, everyone)]
    for site, times in ((1, [4, 5, 9, 20]), (2, [4]), (3, [4, 5, 9, 10, 19, 20])):
        assert [at for at, sender, _ in found if sender == site] == times
        assert [at for at, _, receiver in found if receiver == site] == times


def test_a_plan_is_drawn_whole_and_mended_before_the_end():
    """All but silence; and every kind of fault is in some plan."""
    names = [0, 1, 2, 3]
    plans = [Faults.drawn(seed, names, 100, 1100, coordinator=COORDINATOR) for seed in range(50)]
    assert plans[3] == Faults.drawn(3, names, 100, 1100, coordinator=COORDINATOR)
    for plan in plans:
        assert {crash.who for crash in plan.crashes} == {*names, COORDINATOR}
        assert all(100 <= crash.at <= crash.back <= 1100 for crash in plan.crashes)
        assert all(100 <= cut.begin <= cut.end <= 1100 for cut in plan.partitions)
        fates = [site for site, _ in (*plan.joins, *plan.leaves, *plan.silences)]
        assert len(set(fates)) == len(fates)
    for fate in ("joins", "leaves", "silences", "partitions"):
        assert any(getattr(plan, fate) for plan in plans)
    assert isinstance(plans[0].crashes[0], Crash)


@pytest.mark.parametrize(
    ("text", "tick", "delay"),
    [
        ("instant", None, Delay()),
        ("fixed:5", None, Delay(5, 5)),
        ("random:1-20", None, Delay(1, 20)),
        ("fixed:5ms", 2_000_000, Delay(3, 3)),
        ("random:0ms-2s", 10**9, Delay(0, 2)),
    ],
)
def test_a_delay_is_read(text, tick, delay):
    assert Delay.parse(text, tick) == delay


@pytest.mark.parametrize("text", ["", "fast", "fixed", "fixed:x", "random:1", "random:1-2-3"])
def test_no_delay_is_refused(text):
    with pytest.raises(ValueError, match="network must be"):
        Delay.parse(text)


def test_a_delay_goes_up():
    with pytest.raises(ValueError, match="a delay must go from at least 0 up, got 5 to 1"):
        Delay(5, 1)
