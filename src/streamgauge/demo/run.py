"""What the demo does, without saying how it looks: of a Plan it makes a Frame for each batch."""

import queue
import re
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from streamgauge.demo.truth import Truth
from streamgauge.estimate import Estimate
from streamgauge.protocols.messages import SiteName
from streamgauge.queries import Query
from streamgauge.sketches.ecm import EcmSketch
from streamgauge.traces.timeline import Timeline

if TYPE_CHECKING:
    from streamgauge.spark.desk import Update

_LASTING = 35  # seconds, in which a trace of any length is replayed
_STEP = 3  # seconds of the replay, of which a batch holds at most so many


class DemoFailed(Exception):
    """Spark gave up; the text is for the user."""


@dataclass(frozen=True)
class Plan:
    """All that the demo needs to know before it begins."""

    title: str
    trace: Callable[[Path], Path]  # the trace's path; one that is generated goes to that folder
    columns: dict[str, str]
    unit: str | None
    seconds: float | None  # of the trace, or integers; None: all
    template: EcmSketch
    epsilon: float
    queries: list[Query]
    speed: float | None  # seconds (or integers) of the trace in a second; None: all in 35 s
    out: Path


class Compared(NamedTuple):
    """An answer beside the truth."""

    query: Query
    estimate: Estimate
    exact: int

    @property
    def held(self) -> bool:
        """Whether the truth is in the interval."""
        return self.estimate.low <= self.exact <= self.estimate.high


class Site(NamedTuple):
    """What a site has seen and said so far."""

    events: int
    messages: int
    bytes: int


@dataclass(frozen=True)
class Frame:
    """What is known after a batch."""

    number: int  # from 1
    moment: str  # the time of the newest event
    replayed: float  # of the trace, in seconds (or integers)
    length: float
    calendar: bool  # seconds, that is, and not integers
    events: int
    left_out: int  # rows with a null, late or early ones
    answers: list[Compared]
    sites: dict[SiteName, Site]
    shipped: int  # the bytes of all events, each sent by itself

    @property
    def sent(self) -> int:
        """The bytes of all messages."""
        return sum(site.bytes for site in self.sites.values())

    @property
    def messages(self) -> int:
        """How many messages there were."""
        return sum(site.messages for site in self.sites.values())


def frames(plan: Plan, status: Callable[[str], None]) -> Iterator[Frame]:
    """Run the demo; who stops asking for frames, or interrupts, ends it."""
    from streamgauge.spark.java import JavaNotFound
    from streamgauge.spark.local import SparkDidNotStart, local_session

    log = plan.out / "spark.log"
    with (
        tempfile.TemporaryDirectory(prefix="streamgauge-", ignore_cleanup_errors=True) as name,
        ThreadPoolExecutor(1) as background,
    ):
        folder = Path(name)
        status("starting Spark")
        starting = background.submit(local_session, folder, log)
        try:
            path = plan.trace(folder)
            yield from _watched(plan, path, starting.result(), folder, status)
        except (JavaNotFound, SparkDidNotStart) as error:
            raise DemoFailed(str(error)) from error
        finally:
            status("stopping Spark")
            _stop(starting)


def _watched(
    plan: Plan, path: Path, session: Any, folder: Path, status: Callable[[str], None]
) -> Iterator[Frame]:
    from streamgauge.spark.source import replay
    from streamgauge.spark.streaming import monitor

    timeline = Timeline(path, plan.columns, plan.unit)
    end = timeline.end(plan.seconds)
    length = (end - timeline.first) / timeline.second
    speed = plan.speed or length / _LASTING
    status("starting the query")
    stream = replay(
        session,
        path,
        site=plan.columns["site"],
        item=plan.columns["item"],
        time=plan.columns["time"],
        weight=plan.columns.get("weight"),
        unit=plan.unit,
        seconds=plan.seconds,
        speed=speed,
        step=speed * _STEP,
    )
    updates: queue.Queue[Update] = queue.Queue()
    query = monitor(
        stream,
        plan.queries,
        template=plan.template,
        epsilon=plan.epsilon,
        site="site",
        item="item",
        time="time",
        weight="weight" if "weight" in plan.columns else None,
        checkpoint=folder / "checkpoint",
        sink=updates.put,
    )
    status("waiting for the first batch")
    door = plan.template.door
    ranges = [door.range(each.last, None) for each in plan.queries]
    lasts = {each: now - cutoff for each, (cutoff, now) in zip(plan.queries, ranges, strict=True)}
    truth = Truth(timeline, end, plan.template.tick, lasts)
    number = 0
    while not truth.is_over:
        try:
            update = updates.get(timeout=0.25)
        except queue.Empty:
            if not query.isActive:
                reason = _reason(str(query.exception()))
                raise DemoFailed(f"{reason} (more in {plan.out / 'spark.log'})") from None
            continue
        exact = truth.after(_rows(update), update.now)
        if update.now is None:
            continue
        number += 1
        yield Frame(
            number=number,
            moment=str(door.time(update.now)),
            replayed=(truth.newest - timeline.first) / timeline.second,
            length=length,
            calendar=timeline.has_instants,
            events=truth.events,
            left_out=_rows(update) - truth.events,
            answers=[
                Compared(asked, answer.estimate, true)
                for (asked, answer), true in zip(update.answers, exact, strict=True)
            ],
            sites={
                site: Site(each.events, each.messages, each.bytes)
                for site, each in sorted(update.traffic.items())
            },
            shipped=truth.shipped,
        )


@dataclass
class Summary:
    """What is left of the demo."""

    out: Path
    frames: list[Frame]
    first: float = 0.0  # seconds until the first frame
    seconds: float = 0.0
    is_whole: bool = False

    @property
    def answers(self) -> list[Compared]:
        """All of them."""
        return [answer for frame in self.frames for answer in frame.answers]

    @property
    def picture(self) -> Path:
        """One picture of it."""
        return self.out / "demo.png"

    @property
    def log(self) -> Path:
        """All answers, as JSON lines."""
        return self.out / "answers.jsonl"


def _rows(update: "Update") -> int:
    """How many rows of the trace have been delivered."""
    sites = update.traffic.values()
    return update.nameless + sum(each.events + each.nulls + each.early for each in sites)


def _stop(starting: "Future[Any]") -> None:
    """End Spark, if it has begun."""
    if starting.exception():
        return
    session = starting.result()
    for query in session.streams.active:
        query.stop()
    session.stop()


def _reason(error: str) -> str:
    """The line of a Java error with a Python one in it that says what happened."""
    said = re.findall(r"^(?:[\w.]*\.)?(\w*(?:Error|Exception): .+)$", error, re.MULTILINE)
    return str(said[-1] if said else error)[:500]
