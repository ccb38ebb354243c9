"""One command on one channel: bytes, both streams drained, one deadline."""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import paramiko

from recovery.model.output import Command
from recovery.reading.leash import HOLD_S, Capture, Cut, Ended, Leashed

TICK_S = 0.5  # an exit status alone wakes nobody
PIECE_BYTES = 1 << 18
PIECES = 16  # taken from each stream before the clock is looked at


@dataclass(slots=True, eq=False)
class Running:
    """A command that runs on a node, from sending it to its end.

    ``limit_at`` is when it has to have ended by itself, ``give_up_at`` when we stop waiting for
    the node to say that it ended it. Both may be moved closer by another thread (`cut_short`).
    """

    channel: paramiko.Channel
    limit_at: float
    give_up_at: float
    cut: Cut = Cut.NOT
    stdout: Capture = field(default_factory=Capture)
    stderr: Capture = field(default_factory=Capture)

    def send(self, leashed: Leashed) -> None:
        """Gives the node the command.

        Raises:
            OSError, paramiko.SSHException: the session went away.
        """
        self.channel.exec_command(leashed.line)
        opening = memoryview(leashed.opening)
        self.channel.settimeout(0.25)
        while opening and time.monotonic() < self.give_up_at and not self.channel.closed:
            try:
                opening = opening[self.channel.send(bytes(opening[:PIECE_BYTES])) :]
            except TimeoutError:
                self.drain()  # what it prints meanwhile must not hold up what it reads
                self._mind_the_limit()

    def cut_short(self, why: Cut, grace_s: float) -> None:
        """Tells the leash to end the command, by ending its standard input."""
        self.cut = why
        self.give_up_at = min(self.give_up_at, time.monotonic() + grace_s)
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            self.channel.shutdown_write()

    def _mind_the_limit(self) -> None:
        now = time.monotonic()
        if self.cut is Cut.NOT and now >= self.limit_at:
            self.cut_short(Cut.LIMIT, self.give_up_at - now)

    def drain(self) -> bool:
        """Takes what has arrived; returns whether both streams are at their end."""
        channel = self.channel
        for _ in range(PIECES):  # not without end: a flood must not hide the limit
            if channel.recv_ready():
                self.stdout.add(channel.recv(PIECE_BYTES))
            if channel.recv_stderr_ready():
                self.stderr.add(channel.recv_stderr(PIECE_BYTES))
        over = bool(channel.eof_received or channel.closed)
        return over and not channel.recv_ready() and not channel.recv_stderr_ready()

    def wait(self) -> bool:
        """Waits for the end; returns whether a background process held the output open."""
        poll = select.poll()
        poll.register(self.channel.fileno(), select.POLLIN)
        hold_until = float("inf")
        while True:
            over = self.drain()
            status_is_here = self.channel.exit_status_ready()
            now = time.monotonic()
            if over and (status_is_here or self.channel.closed):
                return False
            if status_is_here and hold_until == float("inf"):
                hold_until = now + HOLD_S
            if now >= min(hold_until, self.give_up_at):
                return status_is_here
            self._mind_the_limit()
            until = self.limit_at if self.cut is Cut.NOT else self.give_up_at
            self._sleep(poll, min(TICK_S, until - now, hold_until - now), over=over)

    def _sleep(self, poll: select.poll, seconds: float, *, over: bool) -> None:
        if over:  # the pipe stays readable after the end of both streams
            self.channel.status_event.wait(max(0.0, seconds))
        else:
            poll.poll(max(0.0, seconds) * 1000)


def carry_out(
    running: Running, command: Command, leashed: Leashed, why_lost: Callable[[], str]
) -> Ended:
    """Runs a leashed command to its end, or to where we have to give up."""
    started = time.monotonic()
    held, why = False, ""
    try:
        running.send(leashed)
        held = running.wait()
    except (OSError, EOFError, paramiko.SSHException) as error:
        why = str(error) or type(error).__name__
        running.drain()
    status = running.channel.exit_status if running.channel.exit_status_ready() else -1
    if status < 0 and running.channel.closed and running.cut is Cut.NOT:
        running.cut, why = Cut.LOST, why_lost() or why
    return Ended(
        status=status if status >= 0 else None,
        stdout=running.stdout.take(),
        stderr=running.stderr.take(),
        cut=running.cut,
        why=why,
        held=held,
        duration_s=time.monotonic() - started,
    )
