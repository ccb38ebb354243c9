"""Recorded answers instead of nodes: for tests, for rehearsals, and to see 10,000 nodes run.

``settings["answers"]`` is a mapping of (node, line) to an `Output` (``"*"`` as the node stands
for every node), or a folder: ``FOLDER/NODE/NAME.txt`` (or ``FOLDER/all/...``) whose first line is
``# command: LINE``, with ``# status: N`` and ``# ending: timeout`` below it where it is not 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from recovery.errors import InputError
from recovery.model.node import Node
from recovery.model.output import Command, Ending, Output
from recovery.model.ports import Transport, TransportKind

EVERY = "*"
Answers = Mapping[tuple[str, str], Output]


class ReplayTransport:
    """Answers what was recorded; what was not is never started, so it can never pass."""

    name = "replay"

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._stopped = False

    def run(self, node: Node, command: Command) -> Output:
        """The recorded answer of the node to this line."""
        if self._stopped:
            return Output(Ending.NEVER_STARTED, reason="stopped on request")
        for name in (node.name, EVERY):
            found = self._answers.get((name, command.line))
            if found is not None:
                return found
        reason = f"no answer of {node.name} is recorded for {command.line[:80]!r}"
        return Output(Ending.NEVER_STARTED, reason=reason)

    def stop(self, grace_s: float) -> None:
        """Nothing runs; later commands never start."""
        self._stopped = True

    def close(self) -> None:
        """Nothing is open."""


def read_folder(folder: Path) -> dict[tuple[str, str], Output]:
    """All recordings below a folder.

    Raises:
        InputError: the folder holds none, or a file does not say what it answers.
    """
    answers: dict[tuple[str, str], Output] = {}
    for file in sorted(folder.glob("*/*.txt")):
        name = EVERY if file.parent.name == "all" else file.parent.name
        line, recorded = _read(file)
        answers[name, line] = recorded
    if not answers:
        raise InputError(f"{folder}: no recording in it", remedy="put NODE/NAME.txt files there")
    return answers


def _read(file: Path) -> tuple[str, Output]:
    rest = file.read_bytes()
    said: dict[str, str] = {}
    while rest.startswith(b"# "):
        head, _, after = rest.partition(b"\n")
        word, colon, value = head[2:].decode("utf-8", "replace").partition(":")
        if not colon or word not in ("command", "status", "ending", "trouble", "reason"):
            break
        said[word], rest = value.strip(), after
    if "command" not in said:
        remedy = "begin it with '# command: LINE'"
        raise InputError(f"{file}: does not say which command it answers", remedy=remedy)
    try:
        return said["command"], _recorded(said, rest)
    except ValueError as error:
        raise InputError(f"{file}: {error}", remedy="look at its '# ' lines") from None


def _recorded(said: Mapping[str, str], text: bytes) -> Output:
    ending = Ending(said.get("ending", "finished"))
    plain = Output(
        ending, stdout=text, reason=said.get("reason", ""), trouble=said.get("trouble", "")
    )
    if ending is not Ending.FINISHED:
        return plain
    return replace(plain, exit_status=int(said.get("status", "0")))


def _open(settings: Mapping[str, Any]) -> Transport:
    answers = settings.get("answers", {})
    if isinstance(answers, str | Path):
        answers = read_folder(Path(answers))
    return ReplayTransport(answers)


REPLAY = TransportKind(name="replay", about="recorded answers instead of nodes", open=_open)
