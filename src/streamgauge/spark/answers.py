"""A folder of answers: JSON lines, a file for each batch; a batch that comes again writes it again.

    answers/000000012.jsonl    batch, now, query, value, low, high, confidence, as_of
    messages/000000012.jsonl   batch, site, number, bytes

`now` is the moment an answer is for, `as_of` the oldest clock among the sites' last reports.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from streamgauge.spark.desk import Update, replace

Moment = Callable[[int], Any]


class Folder:
    """A sink that writes what a batch made known; `moment` makes of a tick what JSON can hold."""

    def __init__(self, path: Path, moment: Moment) -> None:
        self._path = path
        self._moment = moment
        for kind in ("answers", "messages"):
            (path / kind).mkdir(parents=True, exist_ok=True)

    def __call__(self, update: Update) -> None:
        name = f"{update.batch:09}.jsonl"
        delivered = ({"batch": update.batch, **each._asdict()} for each in update.delivered)
        replace(self._path / "messages" / name, _lines(delivered))
        replace(self._path / "answers" / name, _lines(answer_rows(update, self._moment)))


def answer_rows(update: Update, moment: Moment) -> list[dict[str, Any]]:
    """One row for each answer."""
    return [
        {
            "batch": update.batch,
            "now": None if update.now is None else moment(update.now),
            "query": str(query),
            **answer.estimate._asdict(),
            "as_of": None if answer.as_of is None else moment(answer.as_of),
        }
        for query, answer in update.answers
    ]


def _lines(rows: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
