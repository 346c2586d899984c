"""How the demo looks: live on a terminal, a line for each update elsewhere, or JSON."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from streamgauge.demo.run import Compared, Frame, Summary

_BARS = "▁▂▃▄▅▆▇█"
_SITES = 10  # of more than so many, the busiest


class View(Protocol):
    """Where the demo shows itself."""

    def status(self, text: str) -> None:
        """What is under way."""

    def frame(self, frame: Frame) -> None:
        """A new frame."""

    def close(self) -> None:
        """There will be no more frames."""

    def end(self, summary: Summary) -> None:
        """What is left."""


class Json:
    """One object for each update."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def status(self, text: str) -> None:
        """Nothing: it is for people."""

    def frame(self, frame: Frame) -> None:
        """The frame's object."""
        self._say(json_of(frame))

    def close(self) -> None:
        """Nothing is open."""

    def end(self, summary: Summary) -> None:
        """The summary's object."""
        self._say(json_of_summary(summary))


class Lines:
    """One line for each update, without colours."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def status(self, text: str) -> None:
        """A line too."""
        self._say(f"... {text}")

    def frame(self, frame: Frame) -> None:
        """The frame's line."""
        answers = "; ".join(
            f"{each.query} = {number(each.estimate.value)} {interval(each)}, exact "
            f"{number(each.exact)}{'' if each.held else ' MISSED'}"
            for each in frame.answers
        )
        self._say(
            f"{clock(frame, frame.replayed)} of {clock(frame, frame.length)}  {answers}; "
            f"sent {size(frame.sent)} of {size(frame.shipped)} in {frame.messages:,} messages"
        )

    def close(self) -> None:
        """Nothing is open."""

    def end(self, summary: Summary) -> None:
        """Some lines."""
        for line in closing(summary):
            self._say(line)


class Terminal:
    """A live view."""

    def __init__(self, title: str) -> None:
        from rich.console import Console
        from rich.live import Live

        self._title = title
        self._status = ""
        self._frames: list[Frame] = []
        self._live = Live(console=Console(highlight=False), get_renderable=self._render)
        self._live.start()

    def status(self, text: str) -> None:
        """Below the rest, with something that moves."""
        self._status = text

    def frame(self, frame: Frame) -> None:
        """Takes the place of the one before."""
        self._status = ""
        self._frames.append(frame)
        self._live.refresh()

    def close(self) -> None:
        """The last frame stays where it is."""
        self._status = ""
        self._live.stop()

    def end(self, summary: Summary) -> None:
        """Below the last frame."""
        for line in closing(summary):
            self._live.console.print(f"  {line}", markup=False, soft_wrap=True)
        self._live.console.print()

    def _render(self) -> Any:
        from rich.console import Group
        from rich.padding import Padding
        from rich.spinner import Spinner
        from rich.text import Text

        parts: list[Any] = [Text(self._title, style="bold")]
        if self._frames:
            frame = self._frames[-1]
            parts += [_progress(frame), "", _answers(frame), "", *_history(self._frames), ""]
            parts += [_bytes(frame), "", _messages(frame)]
        if self._status:
            parts.append(Spinner("dots", Text(self._status, style="dim")))
        return Padding(Group(*parts), (1, 2, 0, 2))


def _progress(frame: Frame) -> Any:
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    line = Table.grid(padding=(0, 2))
    line.add_row(
        ProgressBar(total=frame.length, completed=frame.replayed, width=40),
        f"{clock(frame, frame.replayed)} of {clock(frame, frame.length)}",
        f"{frame.events:,} events",
        f"[red]{frame.left_out:,} left out[/]" if frame.left_out else "",
    )
    return line


def _answers(frame: Frame) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("question")
    for name in ("estimate", "interval", "exact"):
        table.add_column(name, justify="right")
    table.add_column("")
    for each in frame.answers:
        inside = "[green]✓ inside[/]" if each.held else "[bold red]✗ outside[/]"
        table.add_row(
            str(each.query),
            f"[bold cyan]{number(each.estimate.value)}[/]",
            interval(each),
            number(each.exact),
            inside,
        )
    return table


def _history(frames: Sequence[Frame]) -> list[Any]:
    """The first question's answers and the exact ones, as far back as a line goes."""
    from rich.text import Text

    shown = [frame.answers[0] for frame in frames[-60:]]
    top = max(1.0, *(max(each.estimate.value, each.exact) for each in shown))

    def bars(values: Sequence[float]) -> str:
        return "".join(_BARS[round(value / top * (len(_BARS) - 1))] for value in values)

    estimates, exact = [each.estimate.value for each in shown], [each.exact for each in shown]
    return [
        Text.assemble(("estimate  ", "dim"), (bars(estimates), "cyan")),
        Text.assemble(("exact     ", "dim"), bars(exact)),
    ]


def _bytes(frame: Frame) -> Any:
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    share = frame.sent / max(1, frame.shipped)
    rows = (("every event shipped", frame.shipped, "yellow"), ("reports sent", frame.sent, "cyan"))
    for name, total, colour in rows:
        bar = ProgressBar(
            total=max(frame.shipped, frame.sent, 1),
            completed=total,
            width=30,
            complete_style=colour,
            finished_style=colour,
        )
        table.add_row(f"[dim]{name}[/]", bar, f"[{colour}]{size(total)}[/]", "")
    table.columns[3]._cells[-1] = f"{share:.1%} of it, in {frame.messages:,} messages"
    return table


def _messages(frame: Frame) -> Any:
    from rich.columns import Columns

    busiest = sorted(frame.sites.items(), key=lambda each: -each[1].messages)[:_SITES]
    cells = [
        f"[dim]site {name}[/]  {frame.sites[name].messages:,}"
        for name in frame.sites
        if name in dict(busiest)
    ]
    if len(frame.sites) > _SITES:
        cells.append(f"[dim]and {len(frame.sites) - _SITES} more[/]")
    return Columns(cells, padding=(0, 3), equal=True)


def number(value: float) -> str:
    """A count for people."""
    return f"{value:,.0f}" if abs(value) < 1e9 else f"{value:.2e}".replace("e+", "e")


def interval(compared: Compared) -> str:
    """An answer's interval."""
    return f"[{number(compared.estimate.low)}, {number(compared.estimate.high)}]"


def size(count: float) -> str:
    """Bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"


def clock(frame: Frame, time: float) -> str:
    """A length of the trace."""
    if not frame.calendar:
        return f"{time:,.0f}"
    minutes, seconds = divmod(int(time), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def closing(summary: Summary) -> list[str]:
    """What is to be said at the end, line by line."""
    if not summary.frames:
        return ["stopped before the first update"]
    frame, answers = summary.frames[-1], summary.answers
    held = sum(answer.held for answer in answers)
    times = f", {frame.shipped / frame.sent:,.1f} times as much" if frame.sent else ""
    each = frame.shipped / max(1, frame.events)
    return [
        *([] if summary.is_whole else ["stopped early"]),
        f"answers   {held:,} of {len(answers):,} had the truth in their interval",
        f"reports   {size(frame.sent)} sent in {frame.messages:,} messages; every event shipped by "
        f"itself would be {size(frame.shipped)}{times}",
        f"          (an event is [site, item, time] in msgpack, as the reports are: {each:.1f} "
        "bytes on average)",
        f"picture   {summary.picture}",
        f"log       {summary.log}",
        f"time      {summary.first:.1f} s to the first update, {summary.seconds:.1f} s in all",
    ]


def json_of_summary(summary: Summary) -> str:
    """The summary as one JSON object."""
    answers = summary.answers
    frame = summary.frames[-1] if summary.frames else None
    found = {
        "whole": summary.is_whole,
        "updates": len(summary.frames),
        "answers": len(answers),
        "held": sum(answer.held for answer in answers),
        "events": frame.events if frame else 0,
        "messages": frame.messages if frame else 0,
        "bytes_sent": frame.sent if frame else 0,
        "bytes_shipping_everything": frame.shipped if frame else 0,
        "picture": str(summary.picture) if frame else None,
        "log": str(summary.log) if frame else None,
        "seconds_to_first": round(summary.first, 2),
        "seconds": round(summary.seconds, 2),
    }
    return msgspec.json.encode({"summary": found}).decode()


def json_of(frame: Frame) -> str:
    """A frame as one JSON object."""
    answers = [
        {
            "query": str(each.query),
            **each.estimate._asdict(),
            "exact": each.exact,
            "held": each.held,
        }
        for each in frame.answers
    ]
    return msgspec.json.encode(
        {
            "update": frame.number,
            "time": frame.moment,
            "replayed": round(frame.replayed, 3),
            "length": round(frame.length, 3),
            "events": frame.events,
            "left_out": frame.left_out,
            "answers": answers,
            "bytes_sent": frame.sent,
            "bytes_shipping_everything": frame.shipped,
            "sites": {str(name): site._asdict() for name, site in frame.sites.items()},
        }
    ).decode()
