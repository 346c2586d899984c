"""The command line. What a command needs is loaded when it runs: `--help` answers at once."""

import importlib.util
import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from streamgauge.demo.run import Plan, Summary
    from streamgauge.demo.view import View

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
