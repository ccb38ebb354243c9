"""The controller itself: the same leash, by a subprocess instead of a channel."""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from recovery.model.node import Node
from recovery.model.output import Command, Ending, Output
from recovery.model.ports import Transport, TransportKind
from recovery.reading.leash import (
    HOLD_S,
    Capture,
    Cut,
    Ended,
    Leashed,
    leashed,
    one_line,
    output,
    refusal,
)

PIECE_BYTES = 1 << 16
OWN_LIMIT_LATER_S = 1.0  # our limit comes first; the leash's own is for when we are gone


@dataclass(slots=True, eq=False)
class _Running:
    """A command under way: its process, and what it printed so far."""

    process: subprocess.Popen[bytes]
    limit_at: float
    give_up_at: float
    opening: memoryview
    cut: Cut = Cut.NOT
    stdout: Capture = field(default_factory=Capture)
    stderr: Capture = field(default_factory=Capture)
    wake: tuple[int, int] = field(default_factory=os.pipe)

    def cut_short(self, why: Cut, grace_s: float) -> None:
        """Asks the thread that carries the command to end it."""
        self.cut = why
        self.give_up_at = min(self.give_up_at, time.monotonic() + grace_s)
        with contextlib.suppress(OSError):
            os.write(self.wake[1], b".")

    def carry_out(self) -> Ended:
        """Feeds and drains to the end, or to where we give up."""
        started = time.monotonic()
        with selectors.DefaultSelector() as selector:
            self._register(selector)
            held = self._loop(selector)
        self._end_input()
        if self.process.poll() is not None:
            status: int | None = self.process.returncode
        else:
            status = None
        if status is not None and status < 0:  # somebody killed the leash itself
            self.cut, status = Cut.LOST, None
        return Ended(
            status=status,
            stdout=self.stdout.take(),
            stderr=self.stderr.take(),
            cut=self.cut,
            why="the leash was killed" if self.cut is Cut.LOST else "",
            held=held,
            duration_s=time.monotonic() - started,
        )

    def _register(self, selector: selectors.BaseSelector) -> None:
        out, err, in_ = self.process.stdout, self.process.stderr, self.process.stdin
        for stream, what in ((out, self.stdout), (err, self.stderr), (in_, None)):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
                mode = selectors.EVENT_READ if what is not None else selectors.EVENT_WRITE
                selector.register(stream, mode, what)
        selector.register(self.wake[0], selectors.EVENT_READ, self)

    def _loop(self, selector: selectors.BaseSelector) -> bool:
        hold_until = float("inf")
        while True:
            now = time.monotonic()
            self._mind_the_limit(now)
            over = not any(isinstance(k.data, Capture) for k in selector.get_map().values())
            ended = self.process.poll() is not None
            if ended and hold_until == float("inf"):
                hold_until = now + HOLD_S
            if (over and ended) or now >= min(hold_until, self.give_up_at):
                return ended and not over
            until = self.limit_at if self.cut is Cut.NOT else self.give_up_at
            # The end of a process wakes nobody when something else holds its output.
            patience_s = max(0.0, min(0.01 if over else 0.2, until - now, hold_until - now))
            for key, _ in selector.select(patience_s):
                self._attend(selector, key)

    def _mind_the_limit(self, now: float) -> None:
        if self.cut is Cut.NOT and now >= self.limit_at:
            self.cut = Cut.LIMIT
        if self.cut is not Cut.NOT:
            self._end_input()

    def _attend(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        if isinstance(key.data, Capture):
            piece = os.read(key.fd, PIECE_BYTES)
            key.data.add(piece)
            if not piece:
                selector.unregister(key.fileobj)
        elif key.data is self:
            os.read(key.fd, 64)
        elif not self._feed(key.fd):
            selector.unregister(key.fileobj)

    def _feed(self, handle: int) -> bool:
        try:
            self.opening = self.opening[os.write(handle, self.opening[:PIECE_BYTES]) :]
        except OSError:  # it ended before it read everything, or its input has been ended
            return False
        return bool(self.opening)

    def _end_input(self) -> None:
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()

    def close(self) -> None:
        """Gives the file handles back."""
        streams: tuple[IO[bytes] | None, ...] = (self.process.stdout, self.process.stderr)
        for stream in streams:
            if stream is not None:
                stream.close()
        for handle in self.wake:
            os.close(handle)


class LocalTransport:
    """Runs commands on the controller."""

    name = "local"

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._leash = one_line(str(settings["leash"]))
        self._running: set[_Running] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, node: Node, command: Command) -> Output:
        """Runs a command here, whatever the node is called."""
        why_not = refusal(command) or ("stopped on request" if self._stopped else "")
        if why_not:
            return Output(Ending.NEVER_STARTED, reason=why_not)
        mark = secrets.token_hex(8)
        limit_s = command.timeout_s + OWN_LIMIT_LATER_S
        sent = leashed(command, self._leash, mark, limit_s=limit_s)
        try:
            running = self._start(command, sent)
        except OSError as error:
            reason = f"cannot start a shell: {error.strerror}"
            return Output(Ending.NEVER_STARTED, reason=reason)
        try:
            ended = running.carry_out()
        finally:
            with self._lock:
                self._running.discard(running)
                running.close()
        return output(command, mark, ended)

    def _start(self, command: Command, sent: Leashed) -> _Running:
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            ["/bin/sh", "-c", sent.line], stdin=pipe, stdout=pipe, stderr=pipe,
            start_new_session=True, bufsize=0,
        )  # fmt: skip
        limit_at = time.monotonic() + command.timeout_s
        give_up_at = limit_at + command.grace_s
        running = _Running(process, limit_at, give_up_at, memoryview(sent.opening))
        with self._lock:
            self._running.add(running)
        if self._stopped:
            running.cut_short(Cut.STOP, command.grace_s)
        return running

    def stop(self, grace_s: float) -> None:
        """Ends all running commands; those asked for later never start."""
        with self._lock:
            self._stopped = True
            for one in self._running:
                one.cut_short(Cut.STOP, grace_s)

    def close(self) -> None:
        """Nothing is kept open."""


def _open(settings: Mapping[str, Any]) -> Transport:
    return LocalTransport(settings)


LOCAL = TransportKind(
    name="local", about="the controller itself, by a subprocess on the same leash", open=_open
)
