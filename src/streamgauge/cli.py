"""The command line. What a command needs is loaded when it runs: `--help` answers at once."""

import importlib.util
import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.table import Table

    from streamgauge.demo.run import Plan, Summary
    from streamgauge.demo.view import View
    from streamgauge.sim.asked import Asked
    from streamgauge.sim.replay import Replay

_PATH = click.Path(path_type=Path)
_POSITIVE = click.FloatRange(min=0, min_open=True)


class Refused(click.ClickException):
    """What the user asked for cannot be done: why, on stderr, and exit status 2."""

    exit_code = 2


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="streamgauge")
def main() -> None:
    """Questions about the recent past of many streams at once, answered where the streams are."""


@main.command(short_help="Spark replays a trace, its answers beside the exact ones.")
@click.option(
    "--input", "path", type=_PATH, metavar="TRACE", help="Your Parquet file, sorted by time."
)
@click.option("--site", metavar="COLUMN", help="Its column that says where an event happened.")
@click.option("--item", metavar="COLUMN", help="Its column of what is counted.")
@click.option("--time", metavar="COLUMN", help="Its column of timestamps or integers.")
@click.option("--weight", metavar="COLUMN", help="Its column of how often an event counts.")
@click.option(
    "--unit",
    type=click.Choice(["s", "ms", "us", "ns"]),
    help="What integer times count since 1970; without it they are ticks of no known length.",
)
@click.option(
    "--window",
    default="1 min",
    show_default=True,
    metavar="LENGTH",
    help="What a site remembers: '10 min', or a number of ticks.",
)
@click.option(
    "--query",
    "queries",
    multiple=True,
    metavar="QUESTION",
    help="'frequency(item=10.0.0.1, last=30s)', 'total()', 'self_join()'; may be repeated.",
)
@click.option(
    "--epsilon",
    type=float,
    default=0.05,
    show_default=True,
    help="The error of a site's sketch, relative to the number of its events.",
)
@click.option(
    "--change",
    type=float,
    default=0.05,
    show_default=True,
    help="A site reports as soon as this share of its window has changed.",
)
@click.option(
    "--seconds",
    type=_POSITIVE,
    help="How much of the trace to replay, in its own time.  [default: all, or 180 generated]",
)
@click.option(
    "--speed",
    type=_POSITIVE,
    help="Seconds of the trace in a second, if Spark can.  [default: all of it in 35 s]",
)
@click.option(
    "--out",
    type=_PATH,
    default="streamgauge-demo",
    show_default=True,
    metavar="FOLDER",
    help="For the picture, the answers and Spark's log.",
)
@click.option("--json", "as_json", is_flag=True, help="A JSON object a line; the last sums up.")
def demo(
    *,
    path: Path | None,
    site: str | None,
    item: str | None,
    time: str | None,
    weight: str | None,
    unit: str | None,
    window: str,
    queries: tuple[str, ...],
    epsilon: float,
    change: float,
    seconds: float | None,
    speed: float | None,
    out: Path,
    as_json: bool,
) -> None:
    """Spark on this machine replays a trace of several sites, each of which keeps a sketch.

    A site sends its sketch only when enough has changed. What that lets the coordinator answer
    about the last window stands beside the exact answers, and the bytes sent beside those of
    shipping every event. Without --input the trace is generated: 8 sites, one item becomes hot.
    """
    began = monotonic()
    _require_installed()
    from streamgauge.demo import plans

    columns = {"site": site, "item": item, "time": time, "weight": weight}
    given = {role: column for role, column in columns.items() if column is not None}
    asked = plans.Asked(window, queries, epsilon, change, seconds, speed, out)
    try:
        if path is None:
            if given or unit:
                raise ValueError(f"--{next(iter([*given, 'unit']))} goes with --input")
            plan = plans.generated(asked)
        else:
            plan = plans.own(path, given, unit, asked)
        summary = _watched(plan, _view(plan, as_json=as_json), began)
    except (ValueError, OSError) as error:
        raise Refused(str(error)) from error
    if not summary.is_whole and not summary.frames:
        raise Refused("stopped before the first update")


@main.command(short_help="What a sketch in a file is, and how its error is split.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def inspect(*, file: Path, as_json: bool) -> None:
    """Print what the sketch in FILE (its to_bytes) is: time, sizes, promise and contents."""
    import json

    from streamgauge.sketches import described

    try:
        rows = described.rows(file.read_bytes())
    except (ValueError, OSError) as error:
        raise Refused(f"{file}: {error}") from error
    if as_json:
        click.echo(json.dumps(dict(rows)))
        return
    for name, value in rows:
        click.echo(f"{name:<12} {value}")


def _require_installed() -> None:
    for module in ("pyspark", "pandas", "google.protobuf", "matplotlib"):
        if not _is_installed(module):
            raise Refused(f"the demo needs {module}: pip install 'streamgauge[spark,java,plots]'")


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its parent
        return False


def _view(plan: "Plan", *, as_json: bool) -> "View":
    from streamgauge.demo import view

    if as_json:
        return view.Json(click.echo)
    return view.Terminal(plan.title) if sys.stdout.isatty() else view.Lines(click.echo)


def _watched(plan: "Plan", view: "View", began: float) -> "Summary":
    """Show the demo to its end, or until Ctrl-C, and draw what there was."""
    from streamgauge.demo import run
    from streamgauge.demo.view import json_of

    plan.out.mkdir(parents=True, exist_ok=True)
    summary = run.Summary(plan.out, [])
    try:
        with summary.log.open("w") as log:
            for frame in run.frames(plan, view.status):
                summary.first = summary.first or monotonic() - began
                summary.frames.append(frame)
                view.frame(frame)
                log.write(json_of(frame) + "\n")
            summary.is_whole = True
    except KeyboardInterrupt:
        pass  # what there is up to here is worth showing
    except run.DemoFailed as error:
        raise Refused(str(error)) from error
    finally:
        view.close()
    if summary.frames:
        from streamgauge.demo.picture import draw

        draw(summary, plan)
    summary.seconds = monotonic() - began
    view.end(summary)
    return summary


@main.command(short_help="A trace under a protocol on a simulated network, beside the truth.")
@click.argument("trace")
@click.option("--item", metavar="COLUMN", help="The file's column of what is counted.")
@click.option("--time", metavar="COLUMN", help="Its column of timestamps or integers.")
@click.option("--weight", metavar="COLUMN", help="Its column of how often an event counts.")
@click.option(
    "--unit",
    type=click.Choice(["s", "ms", "us", "ns"]),
    help="What integer times count; without it they are ticks of no known length.",
)
@click.option(
    "--sites",
    metavar="N|COLUMN",
    help="Deal the events to so many sites, or where they happened.  [default: as generated]",
)
@click.option(
    "--window",
    default="1 min",
    show_default=True,
    metavar="LENGTH",
    help="What a site remembers: '10 min', or a number of ticks.",
)
@click.option("--every", metavar="LENGTH", help="When it is asked.  [default: window / 20]")
@click.option(
    "--query",
    "queries",
    multiple=True,
    metavar="QUESTION",
    help="'frequency(item=10.0.0.1, last=30s)', 'total()', 'self_join()'; may be repeated.",
)
@click.option(
    "--protocol",
    type=click.Choice(["periodic", "polling", "shipping-raw", "shipping-deflated"]),
    default="periodic",
    show_default=True,
    help="When sites speak, and what they say.",
)
@click.option(
    "--epsilon", type=float, default=0.05, show_default=True, help="The error of a site's sketch."
)
@click.option(
    "--delta", type=float, default=0.1, show_default=True, help="How often a lower end may fail."
)
@click.option(
    "--change",
    type=float,
    default=0.05,
    show_default=True,
    help="periodic: a site reports as soon as this share of its window has changed.",
)
@click.option(
    "--network",
    default="instant",
    show_default=True,
    metavar="DELAY",
    help="'instant', 'fixed:200ms', 'random:0ms-5s', or numbers of ticks.",
)
@click.option(
    "--faults",
    type=click.IntRange(min=0),
    metavar="SEED",
    help="Drop and double messages, crash, cut off, join and leave, as drawn from this seed.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--plot", type=_PATH, metavar="FILE", help="A picture of it, .png, .svg or .pdf.")
@click.option("--save", type=_PATH, metavar="FILE", help="Every answer, as Parquet.")
def replay(
    *,
    trace: str,
    item: str | None,
    time: str | None,
    weight: str | None,
    unit: str | None,
    sites: str | None,
    window: str,
    every: str | None,
    queries: tuple[str, ...],
    protocol: str,
    epsilon: float,
    delta: float,
    change: float,
    network: str,
    faults: int | None,
    seed: int,
    plot: Path | None,
    save: Path | None,
) -> None:
    """Feed TRACE to sites, and compare what their coordinator answers with the exact answers.

    TRACE is a file (Parquet, CSV) or a generated trace with its options, such as "hot_burst
    seconds=60 rate=5000". The same trace also runs under polling and under shipping every event,
    so that the bytes have something to be compared with.
    """
    from streamgauge.sim import asked as wishes

    if plot is not None and not _is_installed("matplotlib"):
        raise Refused("--plot needs matplotlib: pip install 'streamgauge[plots]'")
    given = {"item": item, "time": time, "weight": weight}
    columns = {role: column for role, column in given.items() if column is not None}
    options = wishes.Asked(
        trace, columns, unit, sites, window, every, queries, epsilon, delta, change, network,
        faults, seed,
    )  # fmt: skip
    try:
        _replayed(options, protocol, plot, save)
    except (ValueError, OSError, OverflowError) as error:
        raise Refused(str(error)) from error


def _replayed(options: "Asked", protocol: str, plot: Path | None, save: Path | None) -> None:
    from rich.console import Console
    from rich.progress import Progress

    from streamgauge.sim import asked as wishes
    from streamgauge.sim import replay as replays

    job = wishes.job(options)
    others = []
    with Progress(console=Console(stderr=True), transient=True) as progress:

        def run(name: str, *, asks: bool) -> "Replay":
            bar = progress.add_task(name, total=None)
            return replays.replay(
                job.monitors[name],
                job.streams,
                job.queries if asks else [],
                job.setting,
                lambda done, of: progress.update(bar, completed=done, total=of),
            )

        found = run(protocol, asks=True)
        for name in wishes.BASELINES:
            others.append(found if name == protocol else run(name, asks=False))
    console = Console(highlight=False)
    console.print(f"\n  [bold]{job.title}[/]", soft_wrap=True)
    console.print(f"  {protocol}, window {options.window}, network {options.network}\n")
    console.print(_error_table(found), "", _byte_table(found, others), "", sep="\n")
    if save is not None:
        about = {name: str(value) for name, value in options._asdict().items()}
        replays.write(found, save, about | {"protocol": protocol, "tick": str(job.tick)})
        click.echo(f"  answers   {save}")
    if plot is not None:
        from streamgauge.sim.picture import draw

        second = 1.0 if job.tick is None else 10**9 / job.tick
        draw(job.title, found, others, second, plot)
        click.echo(f"  picture   {plot}")


def _error_table(found: "Replay") -> "Table":
    from rich.table import Table

    from streamgauge.sim.replay import errors

    table = Table(box=None, padding=(0, 1), header_style="dim")
    table.add_column("errors, once the window is full", no_wrap=True)
    for name in ("mean", "p99", "worst", "outside", "no high"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in errors(found):
        shares = (each.mean, each.p99, each.worst, each.outside, each.unbounded)
        table.add_row(each.query, *(f"{share:.2%}" for share in shares))
    return table


def _byte_table(found: "Replay", others: "list[Replay]") -> "Table":
    from rich.table import Table

    from streamgauge.demo.view import size

    table = Table(box=None, padding=(0, 1), header_style="dim")
    table.add_column("bytes", no_wrap=True)
    for name in ("messages", "in all", "once full", "of which it sends"):
        table.add_column(name, justify="right")
    for way in [found, *(other for other in others if other is not found)]:
        share = found.bytes_since_full / max(1, way.bytes_since_full)
        table.add_row(
            way.name,
            f"{way.messages[-1]:,}",
            size(int(way.bytes[-1])),
            size(way.bytes_since_full),
            "" if way is found else f"{share:.1%}",
        )
    return table


@main.command(short_help="What each sketch and protocol would need, from formulas.")
@click.option("--query", default="frequency(item=0)", show_default=True, metavar="QUESTION")
@click.option(
    "--tolerance",
    type=float,
    required=True,
    help="The error, relative to the events in the window (for joins, to their square).",
)
@click.option("--delta", type=float, default=0.1, show_default=True)
@click.option("--window", required=True, metavar="LENGTH", help="'10 min', or a number of ticks.")
@click.option("--sites", type=click.IntRange(min=1), required=True)
@click.option(
    "--rate", type=_POSITIVE, required=True, help="Events a second (or tick) at all sites."
)
@click.option("--every", metavar="LENGTH", help="When it is asked.  [default: window / 20]")
@click.option(
    "--item-bits",
    type=click.IntRange(1, 64),
    default=32,
    show_default=True,
    help="Of an item, or of its number among the distinct ones.",
)
def plan(
    *,
    query: str,
    tolerance: float,
    delta: float,
    window: str,
    sites: int,
    rate: float,
    every: str | None,
    item_bits: int,
) -> None:
    """Sketches and protocols for a question, by the bytes that they would send.

    Predictions are for one window's length once windows have filled, and within a factor of 2 of
    what a replay finds where sites and popularities are much the same.
    """
    from rich.console import Console
    from rich.table import Table

    from streamgauge import plan as plans
    from streamgauge import queries, ticks
    from streamgauge.demo.view import size

    try:
        tick = None if window.isdecimal() else ticks.coarse([ticks.nanoseconds(window, "window")])
        length = ticks.length(window, tick, "window")
        asked = ticks.length(every, tick, "every") if every else max(1, length // 20)
        a_tick = rate if tick is None else rate * tick / 10**9
        need = plans.Need(
            queries.parse_number(query), tolerance, delta, length, sites, a_tick, asked, item_bits
        )
        found = plans.best(plans.choices(need))
    except (ValueError, OverflowError) as error:
        raise Refused(str(error)) from error
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for name in ("protocol", "sketch", "epsilon", "change", "site's memory", "bytes a window"):
        is_text = name in ("protocol", "sketch")
        table.add_column(name, justify="left" if is_text else "right", no_wrap=is_text)
    for each in found:
        shares = ("" if share is None else f"{share:.3g}" for share in (each.epsilon, each.change))
        table.add_row(each.protocol, each.sketch, *shares, size(each.memory), size(each.bytes))
    Console(highlight=False).print(table)
