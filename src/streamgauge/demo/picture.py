"""The demo as one picture: an answer's interval around the truth, and what it cost."""

from typing import Any

from streamgauge.demo.run import Plan, Summary
from streamgauge.queries import Frequency

_INK, _ANSWER, _SHIPPED, _FAINT = "#1c2330", "#1f6fb2", "#c2571a", "#d9dde3"


def draw(summary: Summary, plan: Plan) -> None:
    """Write the summary's picture."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    frames = summary.frames
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
    with mpl.rc_context(look):
        figure = Figure(figsize=(9.6, 7.2), dpi=130, layout="constrained")
        answer, cost = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        figure.suptitle(plan.title, x=0.012, ha="left", fontsize=12, fontweight="bold", color=_INK)

        asked = [compared.query for compared in frames[-1].answers]
        at = next((i for i, query in enumerate(asked) if isinstance(query, Frequency)), 0)
        times = [frame.replayed for frame in frames]
        shown = [frame.answers[at] for frame in frames]
        lows = [each.estimate.low for each in shown]
        highs = [each.estimate.high for each in shown]
        answer.fill_between(times, lows, highs, color=_ANSWER, alpha=0.18, lw=0, label="interval")
        values = [each.estimate.value for each in shown]
        answer.plot(times, values, color=_ANSWER, lw=1.8, label="estimate")
        exact = [each.exact for each in shown]
        answer.plot(times, exact, color=_INK, lw=1.2, marker="o", ms=3, label="exact answer")
        answer.set_title(f"{asked[at]}, over the last window")
        answer.set_ylim(bottom=0)
        answer.yaxis.set_major_formatter(EngFormatter(sep=""))
        answer.legend(frameon=False, loc="upper left")

        cost.plot(times, [f.shipped for f in frames], color=_SHIPPED, lw=1.8)
        cost.plot(times, [f.sent for f in frames], color=_ANSWER, lw=1.8)
        last = frames[-1]
        for name, total, colour in (
            ("every event shipped", last.shipped, _SHIPPED),
            ("reports sent", last.sent, _ANSWER),
        ):
            text = f"{name}: {EngFormatter('B', places=1)(total)}"
            cost.annotate(
                text, (times[-1], total), (-6, 6), textcoords="offset points", ha="right",
                va="bottom", color=colour, fontweight="bold",
            )  # fmt: skip
        cost.set_title("bytes so far, of all sites")
        cost.set_ylim(bottom=0)
        cost.margins(x=0.02)
        cost.yaxis.set_major_formatter(EngFormatter("B"))
        cost.set_xlabel("seconds of the trace" if frames[-1].calendar else "ticks of the trace")
        figure.savefig(summary.picture, metadata={"Software": None})
