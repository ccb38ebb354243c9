"""The transport: one session a node, kept for all steps; every command on a leash."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import paramiko

from recovery.model.node import Node
from recovery.model.output import Command, Ending, Output
from recovery.reading.leash import Cut, leashed, one_line, output, refusal
from recovery.transports.ssh.channel import Running, carry_out
from recovery.transports.ssh.connect import ConnectError, Connector, resolve
from recovery.transports.ssh.wire import NodeTransport

NODE_LIMIT_LATER_S = 1.0  # our limit comes first; the node's own is for when we are gone


@dataclass(slots=True)
class _Line:
    """A node's session and the lock under which it is opened."""

    session: NodeTransport | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class SshTransport:
    """Carries commands over SSH."""

    name = "ssh"

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._leash = one_line(str(settings["leash"]))
        self._connector = Connector()
        self._lines: dict[tuple[str, ...], _Line] = {}
        self._running: set[Running] = set()
        self._lock = threading.Lock()
        self._forgotten: list[NodeTransport] = []
        self._stopped = False

    def run(self, node: Node, command: Command) -> Output:
        """Runs a command to one of the four endings; login and command share one deadline."""
        started = time.monotonic()
        why_not = refusal(command)
        if why_not or self._stopped:
            return _never(why_not or "stopped on request", "", started)
        try:
            channel, session = self._channel(node, started + command.timeout_s)
        except ConnectError as error:
            return _never(str(error), error.trouble, started)
        return self._carry_out(channel, session, command, started)

    def stop(self, grace_s: float) -> None:
        """Ends all running commands; those asked for later never start."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for one in running:
            one.cut_short(Cut.STOP, grace_s)

    def close(self) -> None:
        """Ends all sessions."""
        with self._lock:
            self._stopped = True
            lines, self._lines = list(self._lines.values()), {}
        sessions = [line.session for line in lines if line.session is not None]
        for session in [*sessions, *self._forgotten]:
            session.close()
        self._connector.close()

    def _carry_out(
        self, channel: paramiko.Channel, session: NodeTransport, command: Command, started: float
    ) -> Output:
        limit_at = started + command.timeout_s
        mark = secrets.token_hex(8)
        limit_s = max(0.1, limit_at - time.monotonic())
        sent = leashed(command, self._leash, mark, limit_s=limit_s + NODE_LIMIT_LATER_S)
        running = Running(channel, limit_at, limit_at + command.grace_s)
        with self._lock:
            self._running.add(running)
        if self._stopped:  # between the first look and now
            running.cut_short(Cut.STOP, command.grace_s)
        try:
            ended = carry_out(running, command, sent, lambda: _why_lost(session, started))
        finally:
            with self._lock:
                self._running.discard(running)
        channel.close()
        if ended.status is None and ended.cut is not Cut.NOT:
            self._forget(session)
        return output(command, mark, ended)

    def _forget(self, session: NodeTransport) -> None:
        """Lets the next command log in anew; other commands may still have an answer to come."""
        with self._lock:
            lines = [line for line in self._lines.values() if line.session is session]
            self._forgotten.append(session)
        for line in lines:
            line.session = None

    def _channel(self, node: Node, deadline: float) -> tuple[paramiko.Channel, NodeTransport]:
        session, is_new = self._session(node, deadline)
        try:
            return self._open_channel(session, deadline), session
        except (paramiko.SSHException, EOFError, OSError) as error:
            if is_new or isinstance(error, paramiko.ChannelException):
                raise ConnectError(
                    f"no channel: {str(error) or type(error).__name__}", "busy"
                ) from error
            session.close()  # died since the last step: nothing was started, so log in again
        session, _ = self._session(node, deadline)
        try:
            return self._open_channel(session, deadline), session
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise ConnectError(
                f"no channel: {str(error) or type(error).__name__}", "connect"
            ) from error

    def _open_channel(self, session: NodeTransport, deadline: float) -> paramiko.Channel:
        return session.open_session(timeout=max(0.1, deadline - time.monotonic()))

    def _session(self, node: Node, deadline: float) -> tuple[NodeTransport, bool]:
        key = (node.name, node.address or "", str(node.port), str(node.user))
        with self._lock:
            line = self._lines.setdefault(key, _Line())
        if not line.lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise ConnectError("no connection in time", "connect")
        try:
            if line.session is not None and line.session.is_active():
                return line.session, False
            target = resolve(self._connector.config, node)
            line.session = self._connector.open(target, deadline)
            return line.session, True
        finally:
            line.lock.release()


def _why_lost(session: NodeTransport, started: float) -> str:
    session.join(0.5)  # it closes its channels just before it ends
    if session.is_active():
        return ""
    after_s = time.monotonic() - started
    cause = str(session.get_exception() or "")
    return f"the connection was lost after {after_s:.1f} s" + (f" ({cause})" if cause else "")


def _never(reason: str, trouble: str, started: float) -> Output:
    spent_s = time.monotonic() - started
    return Output(Ending.NEVER_STARTED, reason=reason, trouble=trouble, duration_s=spent_s)
