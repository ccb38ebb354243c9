"""The transport: one session a node, kept for all steps; every command on a leash."""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Mapping
from typing import Any

import paramiko

from recovery.model.node import Node
from recovery.model.output import Command, Ending, Output
from recovery.reading.leash import (
    Cut,
    Ended,
    Leashed,
    can_share,
    end_pattern,
    leashed,
    one_line,
    output,
    refusal,
    says,
)
from recovery.transports.ssh.channel import Running, carry_out
from recovery.transports.ssh.connect import ConnectError, Connector, resolve
from recovery.transports.ssh.shell import Line, Shell
from recovery.transports.ssh.wire import NodeTransport

NODE_LIMIT_LATER_S = 1.0  # our limit comes first; the node's own is for when we are gone


class UnsentError(ConnectError):
    """The session died before the node had all of a command: nothing can have begun."""


class SshTransport:
    """Carries commands over SSH."""

    name = "ssh"

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._leash = one_line(str(settings["leash"]))
        self._kept_leash = one_line(str(settings["leash"]), part="kept")
        self._connector = Connector()
        self._lines: dict[tuple[str, ...], Line] = {}
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
            try:
                return self._once(node, command, started)
            except UnsentError:
                return self._once(node, command, started)
        except ConnectError as error:
            return _never(str(error), error.trouble, started)

    def _once(self, node: Node, command: Command, started: float) -> Output:
        found = self._in_shell(node, command, started) if can_share(command) else None
        return found or self._on_its_own(node, command, started)

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

    def _on_its_own(self, node: Node, command: Command, started: float) -> Output:
        channel, session = self._channel(node, started + command.timeout_s)
        mark = secrets.token_hex(8)
        limit_s = _node_limit_s(command, started)
        sent = leashed(command, self._leash, mark, limit_s=limit_s)
        ended = self._carry_out(_running(channel, command, started), session, command, sent)
        channel.close()
        return output(command, mark, ended)

    def _in_shell(self, node: Node, command: Command, started: float) -> Output | None:
        """By the node's kept shell; None when it is busy or there can be none."""
        line = self._line(node)
        if line.keeps_none or not line.shell_free.acquire(blocking=False):
            return None
        try:
            return self._by_shell(self._shell(line, node, started, command), line, command, started)
        finally:
            line.shell_free.release()

    def _by_shell(
        self, shell: Shell, line: Line, command: Command, started: float
    ) -> Output | None:
        mark, key = secrets.token_hex(8), secrets.token_hex(8)
        limit_s = _node_limit_s(command, started)
        sent = shell.lead(command, mark, key, limit_s=limit_s, leash=self._kept_leash)
        running = _running(shell.channel, command, started, end=end_pattern(key))
        ended = self._carry_out(running, shell.session, command, sent)
        shell.last_used = time.monotonic()
        if not running.is_through:
            shell.channel.close()
            line.shell = None
        if ended.status is None and says("lacks", shell.name, ended.stderr[0]):
            line.keeps_none = True
            return None
        return output(command, mark, ended)

    def _shell(self, line: Line, node: Node, started: float, command: Command) -> Shell:
        deadline = started + command.timeout_s
        shell = line.shell
        if shell is not None and shell.session.is_active() and shell.is_there(deadline):
            return shell
        if shell is not None:
            shell.channel.close()
        line.shell = None
        line.shell = Shell(*self._channel(node, deadline))
        return line.shell

    def _carry_out(
        self, running: Running, session: NodeTransport, command: Command, sent: Leashed
    ) -> Ended:
        with self._lock:
            self._running.add(running)
        if self._stopped:  # between the first look and now
            running.cut_short(Cut.STOP, command.grace_s)
        started = time.monotonic()
        try:
            ended = carry_out(running, command, sent, lambda: _why_lost(session, started))
        finally:
            with self._lock:
                self._running.discard(running)
        if ended.status is None and not running.is_sent and _is_gone(session, ended):
            session.close()
            raise UnsentError(f"{ended.why or 'the session ended'}, before it began", "connect")
        if ended.status is None and ended.cut is not Cut.NOT:
            self._forget(session)
        return ended

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
            if is_new or session.is_active():  # others may use it
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

    def _line(self, node: Node) -> Line:
        key = (node.name, node.address or "", str(node.port), str(node.user))
        with self._lock:
            return self._lines.setdefault(key, Line())

    def _session(self, node: Node, deadline: float) -> tuple[NodeTransport, bool]:
        line = self._line(node)
        if not line.opening.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise ConnectError("no connection in time", "connect")
        try:
            if line.session is not None and line.session.is_active():
                return line.session, False
            target = resolve(self._connector.config, node)
            line.session = self._connector.open(target, deadline)
            return line.session, True
        finally:
            line.opening.release()


def _node_limit_s(command: Command, started: float) -> float:
    left_s = max(0.1, started + command.timeout_s - time.monotonic())
    return left_s + NODE_LIMIT_LATER_S


def _running(
    channel: paramiko.Channel,
    command: Command,
    started: float,
    *,
    end: re.Pattern[bytes] | None = None,
) -> Running:
    limit_at = started + command.timeout_s
    return Running(channel, limit_at, limit_at + command.grace_s, end=end)


def _why_lost(session: NodeTransport, started: float) -> str:
    session.join(0.5)  # it closes its channels just before it ends
    if session.is_active():
        return ""
    after_s = time.monotonic() - started
    cause = str(session.get_exception() or "")
    return f"the connection was lost after {after_s:.1f} s" + (f" ({cause})" if cause else "")


def _is_gone(session: NodeTransport, ended: Ended) -> bool:
    if ended.cut not in (Cut.NOT, Cut.LOST):
        return False
    session.join(0.5)
    return not session.is_active()


def _never(reason: str, trouble: str, started: float) -> Output:
    spent_s = time.monotonic() - started
    return Output(Ending.NEVER_STARTED, reason=reason, trouble=trouble, duration_s=spent_s)
