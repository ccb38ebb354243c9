"""Recorded answers are given as recorded; what was not recorded never starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from recovery.errors import InputError
from recovery.model.node import Node
from recovery.model.output import Command, Ending, Output
from recovery.transports.replay import REPLAY

A, B = Node("a"), Node("b")


def test_a_recorded_answer_is_given_and_the_nodes_own_comes_first() -> None:
    own = Output(Ending.FINISHED, exit_status=0, stdout=b"own")
    general = Output(Ending.LOST, reason="gone")
    transport = REPLAY.open({"answers": {("a", "x"): own, ("*", "x"): general}})

    assert transport.run(A, Command("x")) == own
    assert transport.run(B, Command("x")) == general


def test_what_was_not_recorded_never_starts() -> None:
    output = REPLAY.open({}).run(A, Command("x"))

    assert output.ending is Ending.NEVER_STARTED
    assert "no answer of a is recorded" in output.reason


def test_nothing_starts_after_stop() -> None:
    transport = REPLAY.open({"answers": {("a", "x"): Output(Ending.FINISHED, exit_status=0)}})

    transport.stop(1)

    assert transport.run(A, Command("x")).ending is Ending.NEVER_STARTED


def test_a_folder_of_recordings_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "all").mkdir()
    (tmp_path / "a" / "1.txt").write_bytes(b"# command: x --all\n# status: 3\nline\xff\n# more\n")
    (tmp_path / "all" / "2.txt").write_text("# command: y\n# ending: timeout\n# reason: slow\n")
    transport = REPLAY.open({"answers": str(tmp_path)})

    first, second = transport.run(A, Command("x --all")), transport.run(B, Command("y"))

    assert (first.exit_status, first.stdout) == (3, b"line\xff\n# more\n")
    assert (second.ending, second.reason, second.exit_status) == (Ending.TIMEOUT, "slow", None)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (None, "no recording in it"),
        ("just text\n", "does not say which command"),
        ("# command: x\n# ending: odd\n", "odd"),
        ("# command: x\n# status: many\n", "many"),
    ],
)
def test_a_folder_that_cannot_be_read_is_refused(
    tmp_path: Path, text: str | None, word: str
) -> None:
    if text is not None:
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "1.txt").write_text(text)

    with pytest.raises(InputError, match=word):
        REPLAY.open({"answers": tmp_path})
