"""Draws the pictures of docs/pictures from the tables of benches/results.

    .venv/bin/python -m benches.pictures

Measuring and drawing are apart, so that a picture can be improved without an hour of measuring and
never shows other numbers than its table.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, NullFormatter

from benches.tables import RESULTS, ROOT, read

PICTURES = ROOT / "docs" / "pictures"

Rows = Sequence[dict[str, str]]

COLORS = {"exphist": "tab:blue", "wave": "tab:orange", "randomized": "tab:green"}
LABELS = {
    "exphist": "exponential histograms",
    "wave": "waves",
    "randomized": "randomized waves",
}
PUBLISHED = {"exphist": "histogram, dense", "wave": "wave as published"}
# From the text of section 7.2: bytes on wc98 at epsilon 0.15.
PAPER_BYTES = {"exphist": 22e3, "wave": 50e3, "randomized": 48.8e6}


def draw(results: Path, folder: Path) -> list[Path]:
    """All pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    pictures: dict[str, tuple[str, Callable[[Rows], Figure]]] = {
        "ecm-memory": ("papers_ecm_memory", memory),
        "ecm-network": ("papers_ecm_merging", network),
        "ecm-sites": ("papers_ecm_merging", sites),
    }
    for name, (table, picture) in pictures.items():
        figure = picture(read(results / f"{table}.csv")[1])
        path = folder / f"{name}.png"
        figure.savefig(path, dpi=110, metadata={"Software": None})
        drawn.append(path)
    return drawn


def memory(rows: Rows) -> Figure:
    """Figure 5: average and maximum observed error against memory."""
    names = _distinct(rows, "trace", but="wc98")
    figure, panels = _panels(2, len(names))
    for line, query in enumerate(("point", "self-join")):
        for column, trace in enumerate(names):
            axes = panels[line][column]
            for counter, color in COLORS.items():
                found = _where(rows, trace=trace, query=query, structure=counter)
                xs = _numbers(found, "memory")
                axes.plot(xs, _numbers(found, "average"), "o-", color=color, ms=4)
                axes.plot(xs, _numbers(found, "maximum"), "^:", color=color, ms=4, mfc="none")
                if counter != "wave":  # it lies beside the histograms
                    _annotate(axes, found, xs, "average")
                if counter in PUBLISHED:
                    formula = _where(rows, trace=trace, query=query, structure=PUBLISHED[counter])
                    xs = _numbers(formula, "memory")
                    axes.plot(xs, _numbers(found, "average"), "-.", color=color, lw=0.8)
            if trace == "wc98day" and query == "point":
                for counter, size in PAPER_BYTES.items():
                    axes.axvline(size, color=COLORS[counter], lw=0.8, ls="--")
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(EngFormatter("B"))
            axes.set_title(f"{trace}, {query} queries", fontsize=10)
            axes.set_ylim(bottom=0)
    _finish(figure, panels, "memory", "observed error, share of the events")
    keys = [*_lines(), _line("black", "o-", "average"), _line("black", "^:", "maximum")]
    keys.append(_line("black", "-.", "average, memory as published, by formula"))
    keys.append(_line("black", "--", "the paper's memory on wc98 at epsilon 0.15"))
    _legend(figure, keys)
    return figure


def network(rows: Rows) -> Figure:
    """Figure 6: average observed error of 16 sites' tree against the bytes it sends."""
    rows = _where(rows, figure="6")
    names = _distinct(rows, "trace")
    figure, panels = _panels(2, len(names))
    for line, query in enumerate(("point", "self-join")):
        for column, trace in enumerate(names):
            axes = panels[line][column]
            for counter, color in COLORS.items():
                found = _where(rows, trace=trace, query=query, counter=counter)
                xs = _numbers(found, "network")
                axes.plot(xs, _numbers(found, "distributed"), "o-", color=color, ms=4)
                axes.plot(xs, _numbers(found, "centralized"), "x", color=color, ms=6)
                if counter != "wave":
                    _annotate(axes, found, xs, "distributed")
                printed = [row for row in found if row["paper_distributed"]]
                axes.plot(
                    _numbers(printed, "network"), _numbers(printed, "paper_distributed"),
                    "s", color=color, mfc="none", ms=8,
                )  # fmt: skip
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(EngFormatter("B"))
            axes.set_title(f"{trace}, {query} queries", fontsize=10)
            axes.set_ylim(bottom=0)
    _finish(figure, panels, "sent up the tree of 16 sites", "average error, share of the events")
    keys = [*_lines(), _line("black", "o-", "root of the tree"), _line("black", "x", "centralized")]
    keys.append(_line("black", "s", "the paper's on wc98 (table 4), at our bytes"))
    _legend(figure, keys)
    return figure


def sites(rows: Rows) -> Figure:
    """Figure 7: error and network cost against the number of sites; point queries."""
    rows = _where(rows, figure="7", query="point")
    names = _distinct(rows, "trace")
    figure, panels = _panels(2, len(names))
    for column, trace in enumerate(names):
        for counter, color in COLORS.items():
            found = _where(rows, trace=trace, counter=counter)
            xs = _numbers(found, "sites")
            panels[0][column].plot(xs, _numbers(found, "distributed"), "o-", color=color, ms=4)
            panels[0][column].plot(xs, _numbers(found, "centralized"), "--", color=color, lw=0.8)
            panels[1][column].plot(xs, _numbers(found, "network"), "o-", color=color, ms=4)
        panels[0][column].set_title(f"{trace}, epsilon = delta = 0.15", fontsize=10)
        panels[0][column].set_ylim(0, 1.3 * max(_numbers(_where(rows, trace=trace), "distributed")))
        panels[1][column].set_yscale("log")
        panels[1][column].yaxis.set_major_formatter(EngFormatter("B"))
        for axes in (panels[0][column], panels[1][column]):
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter("{x:.0f}")
    _finish(figure, panels, "sites", "average error, share of the events")
    panels[1][0].set_ylabel("sent up the tree")
    keys = [
        *_lines(),
        _line("black", "o-", "root of the tree"),
        _line("black", "--", "centralized"),
    ]
    _legend(figure, keys)
    return figure


def _panels(lines: int, columns: int) -> tuple[Figure, Any]:
    figure = Figure(figsize=(4.2 * columns, 3.4 * lines + 0.6), layout="constrained")
    return figure, figure.subplots(lines, columns, squeeze=False)


def _finish(figure: Figure, panels: Any, xlabel: str, ylabel: str) -> None:
    for axes in panels.flat:
        axes.grid(alpha=0.3)
        axes.xaxis.set_minor_formatter(NullFormatter())
    for axes in panels[-1]:
        axes.set_xlabel(xlabel)
    for axes in panels[:, 0]:
        axes.set_ylabel(ylabel)


def _annotate(axes: Axes, rows: Rows, xs: list[float], column: str) -> None:
    """The smallest and the largest epsilon."""
    for row, x in list(zip(rows, xs, strict=True))[:: max(1, len(rows) - 1)]:
        at = (x, float(row[column]))
        axes.annotate(f"ε {row['epsilon']}", at, (4, 3), textcoords="offset points", fontsize=7)


def _line(color: str, style: str, label: str) -> Any:
    hollow = {"mfc": "none"} if style in {"s", "^:"} else {}
    (line,) = Axes(Figure(), (0, 0, 1, 1)).plot([], [], style, color=color, label=label, **hollow)
    return line


def _lines() -> list[Any]:
    return [_line(color, "-", LABELS[counter]) for counter, color in COLORS.items()]


def _legend(figure: Figure, keys: list[Any]) -> None:
    figure.legend(handles=keys, loc="outside lower center", ncols=3, fontsize=8, frameon=False)


def _where(rows: Rows, **cells: str) -> list[dict[str, str]]:
    return [row for row in rows if all(row[name] == value for name, value in cells.items())]


def _distinct(rows: Rows, column: str, but: str = "") -> list[str]:
    return [name for name in dict.fromkeys(row[column] for row in rows) if name != but]


def _numbers(rows: Rows, column: str) -> list[float]:
    return [float(row[column]) for row in rows]


def main() -> None:
    """Draw them where the documents show them."""
    for path in draw(RESULTS, PICTURES):
        print(f"drew {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
