"""The controller's side of ``payloads/leash.sh``: what is sent to it, and what it says.

Pure text: every transport that can give a node's shell a line and an open standard input
(ssh, local, srun) carries the same leash.
"""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass, field
from enum import StrEnum

from recovery.model.output import Command, Ending, Output

CAP_BYTES = 16 * 1024 * 1024  # a stream, per command; head and tail are kept
START = """/bin/sh -c 'IFS= read -r l && eval "$l"' recover-leash"""
LONGEST_LINE_BYTES = 120_000  # Linux takes 128 KiB in one argument (MAX_ARG_STRLEN)
SHARED_LINE_CHARS = 8_000  # a kept shell reads byte by byte: what is longer has its own
HOLD_S = 2.0  # how long output is waited for after the exit status

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_GOES_ON = re.compile(r"(?:\b(?:do|then|else)|[{(]|&&|\|\|?|&)$")
_SUDO_REFUSES = re.compile(
    rb"sudo: (?:.*password is required|.*not allowed to execute|.*may not run sudo|.*not found)"
    rb"|not in the sudoers file|no tty present|sudo: command not found|sudo: not found"
)
_SIGNALS = {
    1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 5: "TRAP", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL",
    10: "USR1", 11: "SEGV", 12: "USR2", 13: "PIPE", 14: "ALRM", 15: "TERM", 24: "XCPU", 25: "XFSZ",
    31: "SYS",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Leashed:
    """What a node is sent for one command: a line for its shell, and the first input to that."""

    mark: str
    line: str
    opening: bytes


class Cut(StrEnum):
    """Why the controller stopped waiting."""

    NOT = ""
    LIMIT = "limit"
    STOP = "stop"
    LOST = "lost"


@dataclass(slots=True)
class Capture:
    """One stream's bytes, head and tail kept, in bounded memory."""

    cap: int = CAP_BYTES
    _head: list[bytes] = field(default_factory=list)
    _tail: list[bytes] = field(default_factory=list)
    _head_room: int = -1
    _tail_size: int = 0
    dropped: int = 0

    def __post_init__(self) -> None:
        self._head_room = self.cap // 2

    def add(self, piece: bytes) -> None:
        """Takes the next bytes of the stream."""
        if self._head_room:
            self._head.append(piece[: self._head_room])
            piece = piece[self._head_room :]
            self._head_room -= len(self._head[-1])
        if piece:
            self._tail.append(piece)
            self._tail_size += len(piece)
            if self._tail_size > self.cap:
                self._trim()

    def _trim(self) -> None:
        keep = self.cap - self.cap // 2
        tail = b"".join(self._tail)
        self.dropped += len(tail) - keep
        self._tail = [tail[-keep:]]
        self._tail_size = keep

    def take(self) -> tuple[bytes, int]:
        """The bytes kept, and how many were dropped between head and tail."""
        if self._tail_size > self.cap - self.cap // 2:
            self._trim()
        return b"".join([*self._head, *self._tail]), self.dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What a transport saw of one command. ``status`` is None where no exit status came."""

    status: int | None
    stdout: tuple[bytes, int]
    stderr: tuple[bytes, int]
    cut: Cut = Cut.NOT
    why: str = ""  # of a lost session
    held: bool = False  # a background process kept the output open
    is_sent: bool = True  # all of the command: the leash starts nothing before its last byte
    duration_s: float = 0.0


def one_line(script: str, *, part: str = "once") -> str:
    """The leash without comments and line ends, as `read` and `eval` take it.

    ``part`` is what it is for: ``once``, a single command, or ``kept``, a shell for many.
    """
    joined, section = "", "both"
    for line in (line.strip() for line in script.splitlines()):
        if line.startswith("#: "):
            section = line.removeprefix("#: ")
        elif line and not line.startswith("#") and section in ("both", part):
            joined += line + (" " if _GOES_ON.search(line) else "; ")
    return joined.removesuffix("; ")


def refusal(command: Command) -> str:
    """Why a command can never be sent as it is; empty when it can."""
    texts = (command.line, *command.env.values())
    bad = [name for name in command.env if not _NAME.fullmatch(name)]
    if bad:
        return f"not a name for an environment variable: {bad[0]!r}"
    if any("\0" in text for text in texts):
        return "a NUL byte cannot be part of a command or of its environment"
    if len(_bytes(command.line)) > LONGEST_LINE_BYTES:
        return f"the command has over {LONGEST_LINE_BYTES} bytes; send it as standard input of sh"
    return ""


def leashed(command: Command, leash: str, mark: str, *, limit_s: float) -> Leashed:
    """Puts a command on the leash. ``leash`` is one line; ``limit_s`` is the node's own limit."""
    env, line = _environment(command), command.line + "\n"
    lines = (env.count("\n"), line.count("\n"))
    numbers = (math.ceil(limit_s), _grace_s(command), *lines, len(command.stdin))
    header = f"{mark} {' '.join(map(str, numbers))} {int(command.sudo)}"
    opening = _bytes(f"{leash}\n{header}\n{env}{line}") + command.stdin
    return Leashed(mark, f"exec {'sudo -n ' if command.sudo else ''}{START}", opening)


def can_share(command: Command) -> bool:
    """Claims that a kept shell can run it: it asks for no input and for nobody else's rights."""
    size = len(command.line) + sum(map(len, command.env.values()))
    return not command.sudo and not command.stdin and size <= SHARED_LINE_CHARS


def keeping(leash: str, name: str) -> bytes:
    """What makes a shell on a node that takes many commands (``leash``: the part ``kept``)."""
    return _bytes(f"{leash}\nkeep {name}\n")


def shared(command: Command, mark: str, key: str, *, limit_s: float) -> bytes:
    """One command for a kept shell. ``key`` is what its end is known by; nobody else sees it."""
    env, line = _environment(command), command.line + "\n"
    numbers = (math.ceil(limit_s), _grace_s(command), env.count("\n"), line.count("\n"))
    return _bytes(f"{mark} {' '.join(map(str, numbers))} {key}\n{env}{line}")


def end_pattern(key: str) -> re.Pattern[bytes]:
    """What both streams of a command in a kept shell end in; group 1: the status, 2: left."""
    return re.compile(rb"\nrecover-leash:" + key.encode() + rb" end(?: (\d+) (left)?)?\n")


def says(word: str, mark: str, stderr: bytes) -> bool:
    """Claims that the leash said a word to a mark."""
    return f"\nrecover-leash:{mark} {word}".encode() in stderr


def _environment(command: Command) -> str:
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in command.env.items())


def _grace_s(command: Command) -> int:
    return max(1, min(10, int(command.grace_s / 2)))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def output(command: Command, mark: str, ended: Ended) -> Output:
    """How the command ended, from what the transport saw and what the leash said."""
    said, stderr = _said(mark, ended.stderr[0])
    ending, reason, trouble = _ending(command, ended, said, stderr)
    status, signal = _status(ended.status) if ending is Ending.FINISHED else (None, "")
    return Output(
        ending,
        exit_status=status,
        signal=signal,
        stdout=ended.stdout[0],
        stderr=stderr,
        stdout_dropped=ended.stdout[1],
        stderr_dropped=ended.stderr[1],
        reason=reason,
        trouble=trouble,
        duration_s=ended.duration_s,
    )


def _said(mark: str, stderr: bytes) -> tuple[dict[str, str], bytes]:
    pattern = re.compile(rb"\nrecover-leash:" + mark.encode() + rb" ([a-z]+) ?([^\n]*)\n")
    said = {m[1].decode(): m[2].decode("utf-8", "replace") for m in pattern.finditer(stderr)}
    return said, pattern.sub(b"", stderr)


def _ending(
    command: Command, ended: Ended, said: dict[str, str], stderr: bytes
) -> tuple[Ending, str, str]:
    if "never" in said:
        return Ending.NEVER_STARTED, f"not started: {said['never']}", ""
    if not ended.is_sent and ended.cut in (Cut.LIMIT, Cut.STOP):
        within = f"the node did not take it within {command.timeout_s:g} s"
        return Ending.NEVER_STARTED, within if ended.cut is Cut.LIMIT else "stopped on request", ""
    if command.sudo and "started" not in said and ended.status is not None:
        return _not_by_sudo(stderr)
    if "cut" in said:
        return _cut(command, ended, said["cut"])
    if ended.status is not None:
        return Ending.FINISHED, _remark(ended, said), ""
    return _no_status(command, ended)


def _not_by_sudo(stderr: bytes) -> tuple[Ending, str, str]:
    last = stderr.strip().splitlines()[-1:] or [b"no word why"]
    text = last[0].decode("utf-8", "replace")[:200]
    trouble = "sudo" if _SUDO_REFUSES.search(stderr) else ""
    return Ending.NEVER_STARTED, f"sudo -n did not start it: {text}", trouble


def _cut(command: Command, ended: Ended, left: str) -> tuple[Ending, str, str]:
    if ended.cut is Cut.STOP:
        ending, why = Ending.LOST, "stopped on request"
    elif ended.cut is Cut.LOST:
        ending, why = Ending.LOST, ended.why
    else:
        ending, why = Ending.TIMEOUT, f"no end within {command.timeout_s:g} s"
    if left:
        pids = ", ".join(left.split())
        return ending, f"{why}; KILL did not end pid {pids} (see ps -o stat,wchan)", "unkillable"
    return ending, f"{why}; its processes were ended", ""


def _remark(ended: Ended, said: dict[str, str]) -> str:
    remarks = []
    if ended.held:
        remarks.append("a background process keeps its output open")
    if "missing" in said:
        remarks.append(f"the node lacks {', '.join(said['missing'].split())}")
    return "; ".join(remarks)


def _no_status(command: Command, ended: Ended) -> tuple[Ending, str, str]:
    if ended.cut in (Cut.LIMIT, Cut.STOP):
        ending = Ending.TIMEOUT if ended.cut is Cut.LIMIT else Ending.LOST
        why = (
            f"no end within {command.timeout_s:g} s"
            if ended.cut is Cut.LIMIT
            else "stopped on request"
        )
        unsure = "and no word from the node that its processes ended; they may be left"
        return ending, f"{why}, {unsure}", "unsure"
    why = ended.why or "the session ended without an exit status"
    return Ending.LOST, f"{why}; the node ends the command by itself, at its limit at latest", ""


def _status(status: int | None) -> tuple[int | None, str]:
    if status is not None and status - 128 in _SIGNALS:
        return None, _SIGNALS[status - 128]
    return status, ""
