"""A replay as one picture: an answer's interval around the truth, and the bytes of all ways."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from streamgauge.sim.replay import Replay

_INK, _ANSWER, _FAINT = "#1c2330", "#1f6fb2", "#d9dde3"
_OTHERS = ("#c2571a", "#7a5aa6", "#4f8f4f")


def draw(title: str, found: Replay, others: Sequence[Replay], second: float, path: Path) -> None:
    """Write it; `second` is how many ticks are one unit of the axis."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    look: dict[Any, Any] = {
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": _INK,
        "axes.titlelocation": "left",
        "axes.titlesize": 11,
        "axes.grid": True,
        "grid.color": _FAINT,
        "grid.linewidth": 0.7,
    }
    first = int(found.moments[0])
    query = found.rows[0].query
    rows = [row for row in found.rows if row.query == query]
    times = [(row.tick - first) / second for row in rows]
    with mpl.rc_context(look):
        figure = Figure(figsize=(9.6, 7.2), dpi=130, layout="constrained")
        answer, cost = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        figure.suptitle(title, x=0.012, ha="left", fontsize=12, fontweight="bold", color=_INK)
        highs = np.array([row.high for row in rows])
        top = 1.15 * max(1.0, *(row.truth for row in rows), *highs[np.isfinite(highs)])
        answer.fill_between(
            times, [row.low for row in rows], np.minimum(highs, top), color=_ANSWER, alpha=0.18,
            lw=0, label="interval",
        )  # fmt: skip
        answer.plot(times, [row.value for row in rows], color=_ANSWER, lw=1.8, label="estimate")
        answer.plot(times, [row.truth for row in rows], color=_INK, lw=1.2, label="exact answer")
        answer.set_title(f"{query}, {found.name}")
        answer.set_ylim(0, top)
        answer.yaxis.set_major_formatter(EngFormatter(sep=""))
        answer.legend(frameon=False, loc="upper left")
        ways = [found, *(other for other in others if other.name != found.name)]
        for way, colour in zip(ways, (_ANSWER, *_OTHERS), strict=False):
            total = EngFormatter("B", places=1)(way.bytes[-1])
            name = f"{way.name}: {total}"
            cost.plot((way.moments - first) / second, way.bytes, color=colour, lw=1.8, label=name)
        cost.set_title("bytes so far, of all sites")
        cost.set_yscale("log")
        cost.legend(frameon=False, loc="lower right")
        cost.margins(x=0.02)
        cost.yaxis.set_major_formatter(EngFormatter("B"))
        cost.set_xlabel("ticks of the trace" if second == 1 else "seconds of the trace")
        figure.savefig(path, metadata={"Software": None})
