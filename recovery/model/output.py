"""What a node was asked, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Ending(StrEnum):
    """The four ways a remote command ends."""

    FINISHED = "finished"
    TIMEOUT = "timeout"
    LOST = "lost"  # started, then the session went away: unknown whether it did its work
    NEVER_STARTED = "never-started"


@dataclass(frozen=True, slots=True)
class Command:
    """A command line for ``/bin/sh -c`` on the node.

    Build ``line`` with `shlex.join` where it comes from values. ``stdin`` is sent to the command.
    ``timeout_s`` is the limit on the node; the controller waits ``grace_s`` longer for its logs.
    ``secrets`` are values that must not appear in anything that is written.
    """

    line: str
    timeout_s: float = 60.0
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    sudo: bool = False
    grace_s: float = 5.0
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Output:
    """How a command ended. The transport has no opinion on what it means.

    ``exit_status`` is None unless ``ending`` is FINISHED and the command exited by itself;
    ``signal`` names the signal that ended it (``KILL``). ``reason`` explains every other ending
    in one line; ``trouble`` is its class: connect, busy, auth, hostkey, sudo, unkillable, unsure
    (no word from the node that the processes ended), ``""``.
    ``stdout_dropped`` counts bytes cut from the middle when the cap (16 MiB a stream) was reached.
    """

    ending: Ending
    exit_status: int | None = None
    signal: str = ""
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_dropped: int = 0
    stderr_dropped: int = 0
    reason: str = ""
    trouble: str = ""
    duration_s: float = 0.0

    @property
    def text(self) -> str:
        """Standard output for parsers; bytes that are not UTF-8 stay visible as escapes."""
        return self.stdout.decode("utf-8", "backslashreplace")

    @property
    def error_text(self) -> str:
        """Standard error, decoded like ``text``."""
        return self.stderr.decode("utf-8", "backslashreplace")

    @property
    def ok(self) -> bool:
        """Claims that the command finished by itself with status 0."""
        return self.ending is Ending.FINISHED and self.exit_status == 0


@dataclass(frozen=True, slots=True)
class Printed:
    """What a parser is given: the text a command printed, live or from a file.

    ``exit_status`` is None when nobody knows it (a captured file).
    """

    text: str
    error_text: str = ""
    exit_status: int | None = None
    command: str = ""
