"""Connections to nodes: opened once, through their bastions, and every failure by its class."""

from __future__ import annotations

import contextlib
import itertools
import logging
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import fabric
import paramiko

from recovery.transports.ssh.config import ConfigError, SshConfig, Target
from recovery.transports.ssh.known_hosts import host_name
from recovery.transports.ssh.login import Keys, Login
from recovery.transports.ssh.trust import HostKeyError, HostKeys
from recovery.transports.ssh.watch import Watch
from recovery.transports.ssh.wire import NodeTransport, dial

AT_ONCE = 8  # connections opened at once through one bastion or to one address (MaxStartups is 10)
BUSY_TRIES = 7
BUSY_WAIT_S = 0.15  # then twice as long each time


class ConnectError(Exception):
    """A node could not be logged in to: the reason, and its class as in `Output.trouble`."""

    def __init__(self, reason: str, trouble: str) -> None:
        super().__init__(reason)
        self.trouble = trouble


class PlainConnection(fabric.Connection):  # type: ignore[misc]  # fabric has no types
    """A connection that leaves the configuration alone that it shares with all others.

    fabric keeps this one setting in the configuration, which is emptied and merged anew for it, in
    each constructor: the login of another thread then found it empty now and then, 1 in 3,000.
    """

    inline_ssh_env = None


@dataclass(slots=True)
class _Shared:
    """What all connections have in common."""

    config: Any = field(
        default_factory=lambda: fabric.Config(ssh_config=paramiko.SSHConfig(), lazy=True)
    )
    making: threading.Lock = field(default_factory=threading.Lock)
    hops: dict[str, Any] = field(default_factory=dict)
    hop_locks: dict[str, threading.Lock] = field(default_factory=dict)
    doors: dict[str, threading.BoundedSemaphore] = field(default_factory=dict)


class Connector:
    """Opens connections. Thread-safe; bastions are shared by all nodes behind them."""

    def __init__(self) -> None:
        # What paramiko logs as an error is a finding of ours; nobody shall see tracebacks.
        logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)
        self.config = SshConfig()
        self.host_keys = HostKeys()
        self._keys = Keys()
        self._shared = _Shared()
        self._watch = Watch()
        self._tickets = itertools.count()

    def open(self, target: Target, deadline: float) -> NodeTransport:
        """A logged-in session with a node.

        Raises:
            ConnectError: with its class: connect, busy, auth, hostkey.
        """
        ticket = next(self._tickets)
        for attempt in range(1, BUSY_TRIES + 1):
            try:
                with self._door(target, deadline):
                    transport: NodeTransport = self._open_once(target, deadline).transport
                    return transport
            except ConnectError as error:
                pause_s = BUSY_WAIT_S * 2**attempt * _spread(f"{target.where} {ticket}")
                if error.trouble != "busy" or attempt == BUSY_TRIES:
                    raise
                if time.monotonic() + pause_s >= deadline:
                    raise
                time.sleep(pause_s)
        raise AssertionError("the last attempt returns or raises")

    def reach(self, target: Target, deadline: float) -> Any:
        """A socket, or a channel of the bastion, that leads to the node's server.

        Raises:
            ConnectError: nothing answers there.
        """
        with _classed(target, Login(target, self._keys)):
            if not target.jumps:
                return dial(target.host, target.port, deadline)
            hop = self._hop(target.jumps[-1], deadline).transport
            return hop.open_channel("direct-tcpip", (target.host, target.port), ("", 0))

    def close(self) -> None:
        """Ends the connections to bastions, and the watch."""
        with self._shared.making:
            hops, self._shared.hops = list(self._shared.hops.values()), {}
        for connection in hops:
            if connection.transport is not None:
                connection.transport.close()
        self._watch.close()

    @contextlib.contextmanager
    def _door(self, target: Target, deadline: float) -> Iterator[None]:
        name = target.jumps[-1].where if target.jumps else f"{target.host}:{target.port}"
        with self._shared.making:
            door = self._shared.doors.setdefault(name, threading.BoundedSemaphore(AT_ONCE))
        if not door.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise ConnectError(f"no turn to connect through {name} in time", "busy")
        try:
            yield
        finally:
            door.release()

    def _open_once(self, target: Target, deadline: float) -> Any:
        """A fabric connection that is open."""
        deadline = min(deadline, time.monotonic() + target.connect_s)
        gateway = self._hop(target.jumps[-1], deadline) if target.jumps else None
        login = Login(target, self._keys)
        connection = self._make(target, login, gateway)
        opened: list[NodeTransport] = []
        try:
            with _classed(target, login):
                self._connect(connection, target, deadline, opened)
        except ConnectError as error:
            _close_all(opened)
            if time.monotonic() >= deadline and error.trouble == "busy":  # we closed it
                reason = f"{target.host}:{target.port}: connected, but no login in time"
                raise ConnectError(reason, "connect") from error
            raise
        return connection

    def _connect(
        self, connection: Any, target: Target, deadline: float, opened: list[NodeTransport]
    ) -> None:
        kwargs = connection.connect_kwargs
        name = target.known_as or host_name(target.host, target.port)
        table = self.host_keys.table(target.trust)

        def factory(sock: Any, **options: Any) -> NodeTransport:
            transport = NodeTransport(sock, **options)
            transport.known_types, transport.certificates_first = table.key_types(name)
            opened.append(transport)
            return transport

        left_s = max(0.05, deadline - time.monotonic())
        kwargs.update(timeout=left_s, banner_timeout=left_s, auth_timeout=left_s)
        kwargs["transport_factory"] = factory
        if connection.gateway is None:
            kwargs["sock"] = dial(target.host, target.port, deadline)
        with self._watch.at(deadline, lambda: _close_all(opened)):
            connection.open()

    def _make(self, target: Target, login: Login, gateway: Any) -> Any:
        with self._shared.making:
            connection = PlainConnection(
                target.host, target.user, target.port,
                config=self._shared.config,
                gateway=gateway or target.proxy_command or None,
                connect_kwargs={"auth_strategy": login},
            )  # fmt: skip
        if connection.gateway is False:
            connection.gateway = None
        connection.client.set_missing_host_key_policy(_Check(self.host_keys, target))
        return connection

    def _hop(self, hop: Target, deadline: float) -> Any:
        with self._shared.making:
            lock = self._shared.hop_locks.setdefault(hop.where, threading.Lock())
        if not lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise ConnectError(f"bastion {hop.where} did not answer in time", "connect")
        try:
            connection = self._shared.hops.get(hop.where)
            if connection is None or not connection.transport.is_active():
                try:
                    connection = self._open_once(hop, deadline)
                except ConnectError as error:
                    raise ConnectError(f"bastion: {error}", error.trouble) from error
                connection.transport.channel_timeout = hop.connect_s
                self._shared.hops[hop.where] = connection
            return connection
        finally:
            lock.release()


def _close_all(opened: list[NodeTransport]) -> None:
    for transport in opened:
        transport.close()


class _Check(paramiko.MissingHostKeyPolicy):
    """Asks our own table; fabric's default would accept anything."""

    def __init__(self, host_keys: HostKeys, target: Target) -> None:
        self._host_keys = host_keys
        self._target = target

    def missing_host_key(
        self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey
    ) -> None:
        """Refuses a key that the table does not hold.

        Raises:
            HostKeyError: unknown, changed or revoked.
        """
        transport = client.get_transport()
        if not isinstance(transport, NodeTransport):
            raise HostKeyError("the session has no host key")
        name = self._target.known_as or host_name(self._target.host, self._target.port)
        self._host_keys.check(name, transport, self._target.trust)


@contextlib.contextmanager
def _classed(target: Target, login: Login) -> Iterator[None]:
    """Gives what goes wrong its class."""
    where = f"{target.host}:{target.port}"
    try:
        yield
    except HostKeyError as error:
        raise ConnectError(str(error), "hostkey") from error
    except paramiko.AuthenticationException as error:
        reason, trouble = _login_failed(error, target, login)
        raise ConnectError(reason, trouble) from error
    except (TimeoutError, socket.gaierror, ConnectionRefusedError) as error:
        raise ConnectError(f"{where}: {_words(error)}", "connect") from error
    except (paramiko.SSHException, EOFError, ConnectionResetError, BrokenPipeError) as error:
        raise ConnectError(*_session_failed(where, error)) from error
    except OSError as error:
        raise ConnectError(f"{where}: {_words(error)}", "connect") from error


def _login_failed(error: Exception, target: Target, login: Login) -> tuple[str, str]:
    causes = [r.result for r in getattr(error, "result", ()) or ()]
    dropped = [c for c in causes if not isinstance(c, paramiko.AuthenticationException)]
    if dropped and len(dropped) == len(causes):
        return _session_failed(f"{target.host}:{target.port}", dropped[-1])
    return f"{target.user}@{target.host} refused the login: {login.explain()}", "auth"


def _session_failed(where: str, error: Exception) -> tuple[str, str]:
    text = _words(error)
    if isinstance(error, paramiko.ssh_exception.IncompatiblePeer):
        return f"{where}: {text}", "connect"
    if "channel" in text.lower() and "open" in text.lower():
        return f"{where}: the bastion cannot reach it ({text})", "connect"
    # sshd closes a connection without a word when too many log in at once (MaxStartups).
    closed = isinstance(error, EOFError | ConnectionResetError | BrokenPipeError)
    if closed or "banner" in text or "existing session" in text or "EOF" in text:
        return f"{where}: closed before the login ({text}); too many at once?", "busy"
    return f"{where}: {text}", "connect"


def _words(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error)[:200] or type(error).__name__


def _spread(name: str) -> float:
    """0.5 to 1.5, by the name: those who were refused together shall not come back together."""
    return 0.5 + zlib.crc32(name.encode()) / 2**32


def resolve(config: SshConfig, node: Any) -> Target:
    """Where a node is.

    Raises:
        ConnectError: its configuration cannot be used.
    """
    try:
        return config.target(node)
    except ConfigError as error:
        raise ConnectError(str(error), "connect") from error
