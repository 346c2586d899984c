"""Table 4 and figures 6 and 7 of the ECM-sketch paper: what merging up a tree of sites costs.

Sites are the leaves of a balanced binary tree; every sketch is sent to its parent as bytes and
`network` adds them up. For figure 6 there are 16 sites, those of the trace dealt round where it has
that many and else drawn at random; for figure 7 there are 2 to 256, drawn at random for each event,
and epsilon is 0.15. `flat` is the error when one merge takes all leaves, which is what the
documentation advises and sends less. Merging randomized waves loses nothing; as in the paper they
stop at 64 sites.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benches import observed, tables, traces
from benches.observed import DELTA, EPSILONS, JOIN, POINT, SEED, Asked, Errors
from benches.traces import Trace
from streamgauge import EcmSketch

SITES = 16
MANY_SITES = [1 << i for i in range(1, 9)]
MOST_RANDOMIZED = 64

# Table 4: centralized and distributed errors on wc98, by query, counter and epsilon.
PAPER = {
    (POINT, "exphist", 0.1): (0.018, 0.020, 1.114),
    (POINT, "exphist", 0.2): (0.034, 0.040, 1.181),
    (JOIN, "exphist", 0.1): (0.018, 0.019, 1.053),
    (JOIN, "exphist", 0.2): (0.034, 0.037, 1.092),
    (POINT, "randomized", 0.1): (0.017, 0.017, None),
    (POINT, "randomized", 0.2): (0.031, 0.031, None),
}
ASKED = [(POINT, "exphist"), (POINT, "wave"), (POINT, "randomized")]
ASKED += [(JOIN, "exphist"), (JOIN, "wave")]


class Row(NamedTuple):
    """Average errors of one sketch of all events, of a tree's root, and of one flat merge."""

    figure: int
    trace: str
    query: str
    counter: str
    epsilon: float
    sites: int
    centralized: float
    distributed: float
    inflation: float
    maximum: float
    bound: float  # of the root
    beyond: float  # share of the root's answers whose error is above the bound
    network: int
    flat: float
    flat_bound: float
    flat_network: int
    queries: int
    paper_centralized: float | None
    paper_distributed: float | None
    paper_inflation: float | None


def measure(scale: float) -> tables.Table:
    """All rows; `scale` shrinks the traces."""
    rows = [row for trace in traces.load(scale)[0] for row in _rows(trace)]
    about = {
        "seed": str(SEED),
        **traces.about(scale),
        "delta": str(DELTA),
        "point queries": f"at most {observed.MOST} items a range",
    }
    return tables.Table(rows, about)


class _Setting(NamedTuple):
    """What all sketches of a tree have in common."""

    trace: Trace
    query: str
    counter: str
    epsilon: float

    def sketch(self, rows: NDArray[np.int64] | slice, site: int | None = None) -> EcmSketch:
        """Of these rows, at the end of the trace."""
        own = site if self.counter == "randomized" else None
        sketch = observed.new(self.query, self.counter, self.epsilon, self.trace.window, own)
        sketch.update(self.trace.items[rows], self.trace.ticks[rows])
        sketch.advance(self.trace.now)
        return sketch

    def reports(self, at: NDArray[np.int64], sites: int) -> list[bytes]:
        """Every site's sketch; row i came to site at[i]."""
        ends = np.cumsum(np.bincount(at, minlength=sites))[:-1]
        parts = np.split(np.argsort(at, kind="stable"), ends)
        return [self.sketch(rows, site).to_bytes() for site, rows in enumerate(parts)]

    def errors(self, sketch: EcmSketch, questions: Sequence[Asked]) -> Errors:
        """How far its answers are from the truth."""
        return observed.errors(sketch, self.query, questions, self.trace.now)


def _rows(trace: Trace) -> list[Row]:
    questions = observed.asked(trace)
    rng = np.random.default_rng(SEED)
    own = np.unique(trace.sites, return_inverse=True)[1] % SITES
    sixteen = own if own.max() == SITES - 1 else rng.integers(0, SITES, own.size)
    drawn = {sites: rng.integers(0, sites, own.size) for sites in MANY_SITES}
    rows = []
    for query, counter in ASKED:
        for epsilon in EPSILONS:
            setting = _Setting(trace, query, counter, epsilon)
            central = setting.errors(setting.sketch(slice(None)), questions)
            shares = [(6, SITES, sixteen)]
            if epsilon == DELTA:
                most = MOST_RANDOMIZED if counter == "randomized" else MANY_SITES[-1]
                shares += [(7, sites, drawn[sites]) for sites in MANY_SITES if sites <= most]
            for figure, sites, at in shares:
                reports = setting.reports(at, sites)
                rows.append(_row(figure, setting, questions, central, reports))
    return rows


def sent_up(reports: Sequence[bytes]) -> tuple[EcmSketch, int]:
    """The root's sketch, and the bytes that were sent to get there."""
    network = 0
    while len(reports) > 2:
        network += sum(map(len, reports))
        pairs = [reports[i : i + 2] for i in range(0, len(reports), 2)]
        reports = [EcmSketch.merge(pair).to_bytes() for pair in pairs]
    return EcmSketch.merge(reports), network + sum(map(len, reports))


def _row(
    figure: int,
    setting: _Setting,
    questions: Sequence[Asked],
    central: Errors,
    reports: list[bytes],
) -> Row:
    root, network = sent_up(reports)
    found = setting.errors(root, questions)
    flat, bound = found, root.epsilon
    if setting.counter != "randomized":
        merged = EcmSketch.merge(reports)
        flat, bound = setting.errors(merged, questions), merged.epsilon
    trace, *what = setting
    printed = PAPER.get(tuple(what)) if (figure, trace.name) == (6, "wc98day") else None
    return Row(
        figure, trace.name, *what, len(reports),
        central.average, found.average, found.average / central.average,
        found.maximum, root.epsilon, found.beyond, network,
        flat.average, bound, sum(map(len, reports)), found.queries, *(printed or (None,) * 3),
    )  # fmt: skip


if __name__ == "__main__":
    tables.command("papers_ecm_merging", measure)
