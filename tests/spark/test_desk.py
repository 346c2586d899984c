"""The coordinator's desk: every message counts once, and its file is whole or refused.

Seen to catch: messages delivered in the order of the rows (test_the_order_of_rows_does_not_matter),
a message that is there twice or missing (test_a_gap_in_a_site_s_messages_is_refused), a file
written in place (test_a_crash_while_writing_leaves_the_file_as_it_was), counts replaced instead of
added (test_counts_are_added_up).
"""

import os

import numpy as np
import pytest

import streamgauge as sg
from streamgauge import wire
from streamgauge.protocols import periodic
from streamgauge.protocols.messages import ProtocolError
from streamgauge.spark import desk
from streamgauge.spark.answers import Folder
from streamgauge.spark.desk import Desk, Row, Traffic

EPSILON = 0.1
TEMPLATE = sg.EcmSketch(window=100, epsilon=0.2, delta=0.1, seed=3, late="drop")
QUERIES = (sg.Total(), sg.Frequency(7, last=50))


def rows_of(site, seed, events=200):
    """What a site sends in its first batch."""
    rng = np.random.default_rng(seed)
    machine = periodic.Site(TEMPLATE, EPSILON)
    items, ticks = rng.integers(0, 20, events), np.sort(rng.integers(0, 150, events))
    rows, taken = [], 0
    while taken < events:
        consumed, sends = machine.update(items[taken:], ticks[taken:])
        taken += consumed
        rows += [Row(site, wire.encode(send.message), None, Traffic()) for send in sends]
    counts = Traffic(events=events, late=3, nulls=2, early=1)
    return [*rows, Row(site, None, int(ticks[-1]), counts)]


@pytest.fixture
def rows():
    return [*rows_of("a", 1), *rows_of("b", 2), Row(None, None, None, Traffic(nulls=4))]


def after(rows):
    taken = Desk(TEMPLATE, EPSILON, QUERIES)
    return taken, taken.take(0, rows)


def test_an_update_says_what_came_and_what_is_known(rows):
    known, update = after(rows)
    sent = [row for row in rows if row.message is not None]
    assert len(update.delivered) == len(sent)
    assert sum(each.bytes for each in update.delivered) == sum(len(row.message) for row in sent)
    for site in ("a", "b"):
        mine = [row.message for row in sent if row.site == site]
        assert update.traffic[site] == Traffic(len(mine), sum(map(len, mine)), 200, 3, 2, 1)
    assert update.nameless == 4
    assert update.now == max(row.now for row in rows if row.now is not None)
    for query, answer in update.answers:
        assert answer == known.coordinator.answer(query, update.now)


def test_the_order_of_rows_does_not_matter(rows, tmp_path):
    first, update = after(rows)
    second, again = after(rows[::-1])
    assert again == update
    for known, name in ((first, "one"), (second, "two")):
        known.keep(tmp_path / name, "q")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_counts_are_added_up(rows):
    known, _ = after(rows)
    update = known.take(1, [Row("a", None, None, Traffic(events=5, nulls=1))])
    assert (update.traffic["a"].events, update.traffic["a"].nulls) == (205, 3)
    assert update.now == after(rows)[1].now


def test_a_desk_without_events_has_no_answers():
    _, update = after([])
    assert (update.now, update.answers) == (None, [])


def test_a_gap_in_a_site_s_messages_is_refused(rows):
    with pytest.raises(ProtocolError, match="report 2 of site 'a' follows 0"):
        after(rows[1:])
    with pytest.raises(ProtocolError, match="report 1 of site 'a' follows 1"):
        after([rows[0], *rows])


def test_a_message_that_cannot_be_read_names_its_site(rows):
    broken = rows[0]._replace(message=rows[0].message[:-5])
    with pytest.raises(ProtocolError, match="a message of site 'a' cannot be read: Input data was"):
        after([broken])
    other = sg.EcmSketch(window=99, epsilon=0.2, delta=0.1, seed=3)
    (send,) = periodic.Site(other, EPSILON).update([1], [1])[1]
    with pytest.raises(ProtocolError, match=r"of site 'a': it is about EcmSketch.* expected EcmS"):
        after([rows[0]._replace(message=wire.encode(send.message))])


def test_a_batch_out_of_turn_is_refused(rows):
    known, _ = after(rows)
    for batch in (0, 2):
        with pytest.raises(RuntimeError, match=f"batch {batch} follows batch 0: .* new checkpoint"):
            known.take(batch, [])


def test_a_desk_resumes_where_its_file_was_kept(rows, tmp_path):
    known, _ = after(rows)
    known.keep(tmp_path / "file", "q")
    resumed = Desk(TEMPLATE, EPSILON, QUERIES)
    resumed.resume(tmp_path / "file", "q")
    more = [Row("a", None, 150, Traffic(events=1))]
    assert resumed.take(1, more) == known.take(1, more)
    known.keep(tmp_path / "one", "q")
    resumed.keep(tmp_path / "two", "q")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_crash_while_writing_leaves_the_file_as_it_was(rows, tmp_path, monkeypatch):
    known, _ = after(rows)
    known.keep(tmp_path / "file", "q")
    before = (tmp_path / "file").read_bytes()

    def crash(*_):
        raise KeyboardInterrupt

    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(os, step, crash)
            desk.replace(tmp_path / "file", b"newer")
        assert (tmp_path / "file").read_bytes() == before
    desk.replace(tmp_path / "file", b"newer")
    assert (tmp_path / "file").read_bytes() == b"newer"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_torn_or_hostile_file_is_refused(rows, tmp_path):
    known, _ = after(rows)
    path = tmp_path / "coordinator"
    known.keep(path, "q")
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    damaged = [whole[:length] for length in range(0, len(whole), 37)]
    damaged += [b"", b"SG", rng.bytes(500), whole[:9] + rng.bytes(len(whole) - 9)]
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(RuntimeError, match=r"coordinator cannot be read .*: restore it, or"):
            Desk(TEMPLATE, EPSILON, QUERIES).resume(path, "q")


def test_another_query_s_file_is_refused(rows, tmp_path):
    known, _ = after(rows)
    known.keep(tmp_path / "file", "the one")
    with pytest.raises(RuntimeError, match="belongs to query the one and this is another"):
        Desk(TEMPLATE, EPSILON, QUERIES).resume(tmp_path / "file", "another")


@pytest.mark.parametrize("epsilon", [EPSILON, 0.05])
def test_another_template_or_epsilon_is_refused(rows, tmp_path, epsilon):
    known, _ = after(rows)
    known.keep(tmp_path / "file", "q")
    window = 100 if epsilon != EPSILON else 101
    other = sg.EcmSketch(window=window, epsilon=0.2, delta=0.1, seed=3, late="drop")
    with pytest.raises(ValueError, match="template and epsilon must be those of the checkpoint"):
        Desk(other, epsilon, QUERIES).resume(tmp_path / "file", "q")


def test_a_folder_holds_a_batch_once(rows, tmp_path):
    import json

    known, update = after(rows)
    folder = Folder(tmp_path, known.moment)
    folder(update)
    folder(update)
    (answers,) = (tmp_path / "answers").iterdir()
    (messages,) = (tmp_path / "messages").iterdir()
    lines = [json.loads(line) for line in answers.read_text().splitlines()]
    assert [line["query"] for line in lines] == ["total()", "frequency(item=7, last=50)"]
    for line, (_, answer) in zip(lines, update.answers, strict=True):
        assert (line["value"], line["low"], line["high"], line["confidence"]) == answer.estimate
        assert (line["batch"], line["now"], line["as_of"]) == (0, update.now, answer.as_of)
    sizes = [json.loads(line)["bytes"] for line in messages.read_text().splitlines()]
    assert sizes == [each.bytes for each in update.delivered]


def test_instants_are_shown_in_iso_8601(tmp_path):
    template = sg.EcmSketch(window="1 min", epsilon=0.2, delta=0.1, seed=3)
    moment = Desk(template, EPSILON, []).moment(1_767_225_600_123)
    assert moment == "2026-01-01T00:00:00.123Z"
