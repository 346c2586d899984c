"""How fast the simulator replays the periodic protocol, beside the same sketches without it.

10^7 events at 16 sites, an instant network, a window of half the stream. Every report is made,
encoded, decoded and taken into the coordinator's copy, so what a replay costs beyond updating is a
matter of how many reports there are: about 2 / change for each site and window.
"""

from functools import partial

import numpy as np

from benches import stream, tables
from benches.rounds import Case, take_turns
from streamgauge import EcmSketch
from streamgauge.protocols import periodic
from streamgauge.sim.world import Monitor, Stream, World
from streamgauge.traces.generate import digest

EVENTS, SITES, ROUNDS, SEED = 10_000_000, 16, 5, 3
PER_TICK = 1370
ITEMS, EXPONENT = 90_000, 1.1
STEPS = 40  # of the network's time: twenty a window
PIECE = 1 << 14
GOAL = 0.2


def measure(scale: float) -> tables.Table:
    """All rows; `scale` shrinks the stream."""
    size = max(1000, round(scale * EVENTS))
    pool = stream.integers(ITEMS, SEED)[stream.ranks(size, ITEMS, EXPONENT, SEED)]
    ticks = 1 + np.arange(size) // PER_TICK
    of = np.random.default_rng(SEED).integers(0, SITES, size)
    streams = {site: Stream(pool[of == site], ticks[of == site]) for site in range(SITES)}
    end = int(ticks[-1])
    cases = []
    for epsilon in (0.1, 0.01):
        template = EcmSketch(window=max(1, end // 2), epsilon=epsilon, delta=0.1, seed=SEED)
        plain = f"16 sketches epsilon {epsilon}"
        cases.append(
            Case(plain, partial(_update, template, streams), unit="M events/s", amount=size / 1e6)
        )
        for change in (0.2, 0.05):
            cases.append(
                Case(
                    f"replay epsilon {epsilon} change {change}",
                    partial(_replay, template, change, streams, end),
                    unit="M events/s",
                    amount=size / 1e6,
                    against={plain: GOAL},
                )
            )
    about = {
        "seed": str(SEED),
        "trace": f"Zipf {EXPONENT} over {ITEMS} random 64-bit items, {PER_TICK} events a tick; "
        f"sha256 of their ts, site and item {digest({'ts': ticks, 'site': of, 'item': pool})}",
    }
    return tables.Table(take_turns(cases, max(1, round(min(1, 10 * scale) * ROUNDS))), about)


def _update(template: EcmSketch, streams: dict[int, Stream]) -> None:
    for events in streams.values():
        sketch = template.fresh()
        for begin in range(0, events.ticks.size, PIECE):
            piece = slice(begin, begin + PIECE)
            sketch.update(events.items[piece], events.ticks[piece])


def _replay(template: EcmSketch, change: float, streams: dict[int, Stream], end: int) -> None:
    monitor = Monitor(
        "periodic",
        lambda: periodic.Site(template, change),
        lambda: periodic.Coordinator(template, change),
        periodic.MESSAGES,
    )
    world = World(monitor, streams)
    for now in np.unique(np.linspace(1, end, STEPS).astype(np.int64)).tolist():
        world.run(now)


if __name__ == "__main__":
    tables.command("replay", measure)
