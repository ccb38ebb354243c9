"""The view: one line an event where there is no terminal, a live table where there is one."""

import io
import os
import pty
import select

import pytest

from recovery.inventory import fold
from recovery.model.events import StepStarted
from recovery.reports.terminal import View, left_words
from tests.reports.stories import EVIL, Shelf, events_of, names


def shown(stream, words="GPU 3 fell off the bus", **options):
    view = View(stream, fold, now=lambda: 5.0, **options)
    with view:
        for event in events_of(8, Shelf(), words):
            view.tell(event)
    return view


def test_without_a_terminal_there_is_a_line_an_event():
    stream = io.StringIO()

    shown(stream)

    lines = stream.getvalue().splitlines()
    assert lines[0] == "run 20261201-000000-c-ab12: power-loss on node[001-008]"
    assert "check-1: node002 fail: GPU 3 fell off the bus" in lines
    assert "check-1: gate open-without node[002-003]" in lines
    assert "check-1: done 5 pass, 1 warn, 1 unknown, 1 fail" in lines


def test_quiet_shows_nothing_but_the_summary():
    stream = io.StringIO()

    view = shown(stream, quiet=True)

    assert stream.getvalue() == ""
    assert view.summary().endswith("DONE: all steps done (8.0 s)")


def test_words_from_a_node_cannot_move_the_cursor():
    stream = io.StringIO()

    shown(stream, EVIL)

    assert "\x1b" not in stream.getvalue()


def read_until(fd: int, words: str) -> str:
    """What is there, read on until the words came; without them the test's own asserts fail."""
    text = ""
    while words not in text and select.select([fd], [], [], 30)[0]:
        text += os.read(fd, 1 << 16).decode()
    return text


def test_on_a_terminal_there_is_a_row_a_step():
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w") as stream:
        shown(stream)
        stream.flush()
        text = read_until(leader, "1 fail")
    os.close(leader)

    assert "check-1" in text
    assert "5 pass, 1 warn, 1 unknown, 1 fail" in text


@pytest.mark.parametrize(("done", "words"), [(0, ""), (2, "about 3.0 s left, ")])
def test_the_time_left_follows_from_the_nodes_that_ended(done, words):
    view = View(io.StringIO(), fold, now=lambda: 0.0, quiet=True)
    events = [
        e for e in events_of(8, Shelf()) if type(e).__name__ in ("RunStarted", "NodeFinished")
    ]
    view.tell(events[0])
    view.tell(
        StepStarted(at=1.0, step="check-1", verb="check", attempt=1, nodes=names(8), deadline_s=60)
    )
    for event in events[1 : 1 + done]:
        view.tell(event)

    assert left_words(view._story.steps["check-1"], 2.0) == words
