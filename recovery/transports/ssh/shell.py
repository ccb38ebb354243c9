"""A shell kept on a node: it takes the commands of all steps, so each costs no channel of its own.

What it saves is work on the node: no channel, no login shell and no watcher for each command
(64 nodes and eight commands: half the time). What it must not cost is in ``payloads/leash.sh``.
"""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass, field

import paramiko

from recovery.model.output import Command
from recovery.reading.leash import START, Leashed, keeping, says, shared
from recovery.transports.ssh.channel import Bell
from recovery.transports.ssh.wire import NodeTransport

IDLE_S = 1.0  # a shell that was idle for longer is asked first whether it is still there


@dataclass(slots=True)
class Shell:
    """One kept shell. Not thread-safe: whoever holds its line has it."""

    channel: paramiko.Channel
    session: NodeTransport
    name: str = field(default_factory=lambda: secrets.token_hex(8))
    is_new: bool = True
    last_used: float = field(default_factory=time.monotonic)

    def lead(self, command: Command, mark: str, key: str, *, limit_s: float, leash: str) -> Leashed:
        """What is sent for a command: the shell itself as well, the first time."""
        sent = shared(command, mark, key, limit_s=limit_s)
        if not self.is_new:
            return Leashed(mark, "", sent)
        self.is_new = False
        return Leashed(mark, f"exec {START}", keeping(leash, self.name) + sent)

    def is_there(self, deadline: float) -> bool:
        """Claims that the node answers and has said nothing that nobody asked for."""
        channel = self.channel
        if channel.closed or channel.eof_received or channel.recv_ready():
            return False
        if channel.recv_stderr_ready():
            return False
        return time.monotonic() - self.last_used < IDLE_S or self._answers(deadline)

    def _answers(self, deadline: float) -> bool:
        mark, heard = secrets.token_hex(8), b""
        bell = Bell(self.channel)
        try:
            self.channel.sendall(f"{mark}\n".encode())
            while (left_s := deadline - time.monotonic()) > 0 and not self.channel.closed:
                bell.quiet()
                if self.channel.recv_stderr_ready():
                    heard += self.channel.recv_stderr(1024)
                if says("here\n", mark, heard):
                    return True
                if self.channel.eof_received:
                    return False
                bell.wait(left_s)
        except (OSError, EOFError, paramiko.SSHException):
            return False
        return False


@dataclass(slots=True)
class Line:
    """What we have of one node: its session, its kept shell, and who may touch which.

    ``opening`` is held while a session is opened, ``shell_free`` by the command in the shell.
    """

    session: NodeTransport | None = None
    opening: threading.Lock = field(default_factory=threading.Lock)
    shell: Shell | None = None
    shell_free: threading.Lock = field(default_factory=threading.Lock)
    keeps_none: bool = False  # the node lacks what a kept shell needs
