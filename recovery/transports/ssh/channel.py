"""One command on a channel, its own or a kept shell's: bytes, both streams drained, a deadline."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import paramiko

from recovery.model.output import Command
from recovery.reading.leash import HOLD_S, Capture, Cut, Ended, Leashed, says

TICK_S = 0.5  # an exit status alone wakes nobody
PIECE_BYTES = 1 << 18
PIECES = 16  # taken from each stream before the clock is looked at
END_BYTES = 128  # what the end of a command in a kept shell takes at most


@dataclass(slots=True)
class _End:
    """Looks for the end of a command in one stream that is shared by many."""

    found: re.Match[bytes] | None = None
    _last: bytes = b""

    def look_for(self, end: re.Pattern[bytes] | None, piece: bytes) -> None:
        """Takes the next bytes of the stream."""
        if end is not None and not self.found:
            seen = self._last + piece
            self.found = end.search(seen)
            self._last = seen[-END_BYTES:]


class Bell:
    """Rings when something arrives on either stream, or they end.

    In the place of paramiko's own pipe, which two streams share without a lock: now and then a
    ring was lost there, and the whole step waited for the next look.
    """

    def __init__(self, channel: paramiko.Channel) -> None:
        self._rung = threading.Event()
        for buffer in (channel.in_buffer, channel.in_stderr_buffer):
            buffer.set_event(self)  # type: ignore[arg-type]  # asks only for set and clear

    def set(self) -> None:
        """Rings."""
        self._rung.set()

    def clear(self) -> None:
        """Nothing: paramiko says that one stream is empty, which says nothing of the other."""

    def quiet(self) -> None:
        """Forgets earlier rings; then look, then wait."""
        self._rung.clear()

    def wait(self, seconds: float) -> None:
        """Waits for the next ring."""
        self._rung.wait(seconds)


@dataclass(slots=True, eq=False)
class Running:
    """A command that runs on a node, from sending it to its end.

    ``limit_at`` is when it has to have ended by itself, ``give_up_at`` when we stop waiting for
    the node to say that it ended it. Both may be moved closer by another thread (`cut_short`).
    ``end`` is what both streams end in, where the channel is a kept shell's.
    """

    channel: paramiko.Channel
    limit_at: float
    give_up_at: float
    end: re.Pattern[bytes] | None = None
    cut: Cut = Cut.NOT
    is_sent: bool = False  # all of it: the leash starts nothing before it has read the last byte
    stdout: Capture = field(default_factory=Capture)
    stderr: Capture = field(default_factory=Capture)
    _out_end: _End = field(default_factory=lambda: _End())
    _err_end: _End = field(default_factory=lambda: _End())

    def send(self, leashed: Leashed) -> None:
        """Gives the node the command.

        Raises:
            OSError, paramiko.SSHException: the session went away.
        """
        if leashed.line:
            self.channel.exec_command(leashed.line)
        opening = memoryview(leashed.opening)
        self.channel.settimeout(0.25)
        while opening and time.monotonic() < self.give_up_at and not self.channel.closed:
            try:
                opening = opening[self.channel.send(bytes(opening[:PIECE_BYTES])) :]
            except TimeoutError:
                self.drain()  # what it prints meanwhile must not hold up what it reads
                self._mind_the_limit()
        self.is_sent = not opening

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
            out, err = channel.recv_ready(), channel.recv_stderr_ready()
            if out:
                piece = channel.recv(PIECE_BYTES)
                self.stdout.add(piece)
                self._out_end.look_for(self.end, piece)
            if err:
                piece = channel.recv_stderr(PIECE_BYTES)
                self.stderr.add(piece)
                self._err_end.look_for(self.end, piece)
            if not (out or err):
                return bool(channel.eof_received or channel.closed) and not self._more()
        return False

    def _more(self) -> bool:  # the end may have come after the look at the streams
        return bool(self.channel.recv_ready() or self.channel.recv_stderr_ready())

    @property
    def status(self) -> int | None:
        """The exit status, where it has come."""
        if self.end is not None:
            found = self._err_end.found
            return int(found[1]) if found and found[1] else None
        if not self.channel.exit_status_ready():
            return None
        return self.channel.exit_status if self.channel.exit_status >= 0 else None

    @property
    def is_through(self) -> bool:
        """Claims that the command has ended and that its kept shell can take another."""
        if self.end is None or self.cut is not Cut.NOT:
            return False
        found = self._err_end.found
        return bool(found and not found[2] and self._out_end.found)

    def wait(self) -> bool:
        """Waits for the end; returns whether a background process held the output open."""
        bell = Bell(self.channel)
        hold_until = float("inf")
        while True:
            bell.quiet()
            over = self.drain()
            if self.is_through:
                return False
            status_is_here = self._status_is_here()
            now = time.monotonic()
            if over and (status_is_here or self.channel.closed):
                return False
            if status_is_here and hold_until == float("inf"):
                hold_until = now + HOLD_S
            if now >= min(hold_until, self.give_up_at):
                return status_is_here
            self._mind_the_limit()
            until = self.limit_at if self.cut is Cut.NOT else self.give_up_at
            self._sleep(bell, min(TICK_S, until - now, hold_until - now), over=over)

    def _status_is_here(self) -> bool:
        if self.end is None:
            return self.channel.exit_status_ready()
        # The one who ends a command in a kept shell may still have a word to say about it.
        return self.cut is Cut.NOT and self.status is not None

    def _sleep(self, bell: Bell, seconds: float, *, over: bool) -> None:
        if over:  # nothing rings any more
            self.channel.status_event.wait(max(0.0, seconds))
        else:
            bell.wait(max(0.0, seconds))


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
    status = running.status
    if status is None and running.channel.closed and running.cut is Cut.NOT:
        running.cut, why = _gone(running, leashed.mark), why_lost() or why
    return Ended(
        status=status,
        stdout=_without(running.end, running.stdout.take()),
        stderr=_without(running.end, running.stderr.take()),
        cut=running.cut,
        why=why,
        held=held,
        is_sent=running.is_sent,
        duration_s=time.monotonic() - started,
    )


def _gone(running: Running, mark: str) -> Cut:
    """What it means that a channel closed: a kept shell closes it at the node's own limit."""
    content, _ = running.stderr.take()
    return Cut.LIMIT if running.end is not None and says("cut", mark, content) else Cut.LOST


def _without(end: re.Pattern[bytes] | None, captured: tuple[bytes, int]) -> tuple[bytes, int]:
    content, dropped = captured
    return (end.sub(b"", content) if end is not None else content), dropped
