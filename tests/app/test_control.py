"""Signals: first TERM and grace, second KILL; the clock wakes at once."""

import signal
import subprocess
import sys
import threading

import pytest

from recovery.app.control import Control, RealClock, TerminalAsker
from recovery.errors import InterruptedRunError


def controlled():
    calls, ended = [], threading.Semaphore(0)

    def end(grace_s):
        calls.append(grace_s)
        ended.release()

    said = []
    return Control(end_commands=end, say=said.append), calls, ended, said


def test_the_first_signal_gives_a_grace_and_the_second_none():
    control, calls, ended, said = controlled()

    control.take(signal.SIGINT)
    assert ended.acquire(timeout=10)
    control.take(signal.SIGINT)
    assert ended.acquire(timeout=10)

    assert calls == [10.0, 0.0]
    assert control.stopping() == "SIGINT"
    assert len(said) == 2


def test_after_the_engine_heeded_it_finally_can_work_and_a_further_signal_stops_that():
    control, _, ended, _ = controlled()
    control.take(signal.SIGTERM)
    ended.acquire(timeout=10)

    control.heeded()

    assert control.stopping() == ""
    RealClock(control).sleep(0)
    control.take(signal.SIGTERM)
    assert control.stopping() == "SIGTERM"


def test_a_sleeper_wakes_at_once_when_told_to_stop():
    control, _, _, _ = controlled()
    clock = RealClock(control)
    woken = []

    def sleeper():
        try:
            clock.sleep(3600)
        except InterruptedRunError as error:
            woken.append(error)

    thread = threading.Thread(target=sleeper)
    thread.start()
    control.take(signal.SIGINT)
    thread.join(timeout=10)

    assert not thread.is_alive()
    assert "SIGINT" in woken[0].message


HIT_BESIDE = """
import signal, threading
from recovery.app.control import Control
over = threading.Event()
control = Control(end_commands=lambda grace_s: over.set(), say=print)
control.install()
hit = lambda: signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
threading.Thread(target=hit).start()
over.wait()
print(control.stopping())
"""


def test_a_signal_that_another_thread_got_is_heeded_while_the_main_thread_waits():
    done = subprocess.run(
        [sys.executable, "-c", HIT_BESIDE], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.splitlines()[-1] == "SIGTERM"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"yes": True}, (True, "--yes")),
        ({"approvals": frozenset({"relaunch"})}, (True, "--approve relaunch")),
        ({"approvals": frozenset({"other"})}, (None, "no terminal to ask on")),
        ({}, (None, "no terminal to ask on")),
    ],
)
def test_a_question_is_answered_beforehand_or_not_at_all_without_a_terminal(
    options, expected, monkeypatch, tmp_path
):
    (tmp_path / "in").write_text("y\n")
    with (tmp_path / "in").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        asker = TerminalAsker(RealClock(Control()), lambda words: None, **options)

        assert asker.ask("sure?", "relaunch", 1.0) == expected
