"""One node's SSH server: paramiko's protocol, real ``/bin/sh``, bytes both ways.

Like sshd, it closes the pipes of a command when the connection goes away and leaves the command
alone: whoever started it has to see to its end.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import paramiko
from paramiko.common import cMSG_CHANNEL_REQUEST

_CHUNK = 32768
_OK: int = paramiko.AUTH_SUCCESSFUL  # type: ignore[attr-defined] # the stub lacks it
_NO: int = paramiko.AUTH_FAILED  # type: ignore[attr-defined] # the stub lacks it
_OPEN: int = paramiko.OPEN_SUCCEEDED  # type: ignore[attr-defined] # the stub lacks it
_CLOSED: int = paramiko.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED  # type: ignore[attr-defined] # as above


class Door(paramiko.ServerInterface):
    """Who may come in, and what a channel may ask for."""

    def __init__(
        self, key: paramiko.PKey, environment: Mapping[str, str], home: Path, *, refuse: bool
    ) -> None:
        self._key, self._environment, self._home, self._refuse = key, environment, home, refuse
        self._sent: dict[int, dict[str, str]] = {}
        self._opened: dict[int, paramiko.Channel] = {}
        self.transport: paramiko.Transport | None = None

    def get_allowed_auths(self, username: str) -> str:
        """Keys only."""
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        """The lab's key opens every account."""
        return _OK if key == self._key and not self._refuse else _NO

    def check_channel_request(self, kind: str, chanid: int) -> int:
        """Sessions only."""
        return _OPEN if kind == "session" else _CLOSED

    def check_channel_direct_tcpip_request(
        self, chanid: int, origin: tuple[str, int], destination: tuple[str, int]
    ) -> int:
        """Every node is a bastion to the others."""
        threading.Thread(target=_forward, args=(self.transport, destination), daemon=True).start()
        return _OPEN if destination[0] in ("127.0.0.1", "localhost") else _CLOSED

    def check_channel_env_request(
        self, channel: paramiko.Channel, name: bytes, value: bytes
    ) -> bool:
        """Takes every variable, unlike most real servers, so nothing depends on AcceptEnv."""
        self._sent.setdefault(channel.get_id(), {})[name.decode()] = value.decode()
        return True

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        """Starts the command in the node's home."""
        self._take_from_queue()
        self._opened.pop(channel.get_id(), None)
        environment = {**self._environment, **self._sent.pop(channel.get_id(), {})}
        run = Execution(channel, os.fsencode(command), environment, self._home)
        threading.Thread(target=run.carry, daemon=True).start()
        return True

    def _take_from_queue(self) -> None:
        """Holds the oldest new channel until it is asked for something, in whatever order.

        The queue alone keeps it alive: one that is dropped is closed, and a request for it then
        ends the whole connection.
        """
        accepted = self.transport.accept(0) if self.transport is not None else None
        if accepted is not None:
            self._opened[accepted.get_id()] = accepted


class Execution:
    """One command on one channel, from start to exit status."""

    def __init__(
        self, channel: paramiko.Channel, command: bytes, environment: Mapping[str, str], home: Path
    ) -> None:
        self._channel, self._command = channel, command
        self._environment, self._home = environment, home

    def carry(self) -> None:
        """Runs the command and carries its bytes until it ends or the connection is lost."""
        isolate = self._environment.get("RECOVER_LAB_ISOLATE")
        argv: list[str | bytes] = [isolate] if isolate else []
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            process = subprocess.Popen(
                [*argv, "/bin/sh", "-c", self._command],
                cwd=self._home,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                bufsize=0,
            )
            try:
                self._pump(process)
            finally:
                _close(process.stdin, process.stdout, process.stderr)
                self._channel.close()
                process.wait()

    def _pump(self, process: subprocess.Popen[bytes]) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            return
        ended, bell = os.pipe()
        threading.Thread(target=_ring, args=(process, bell), daemon=True).start()
        sends: dict[int, Callable[[bytes], object]] = {
            process.stdout.fileno(): self._channel.sendall,
            process.stderr.fileno(): self._channel.sendall_stderr,
        }
        try:
            with selectors.DefaultSelector() as selector:
                for fd in (*sends, ended, self._channel.fileno()):
                    selector.register(fd, selectors.EVENT_READ)
                self._carry_until_quiet(selector, sends, (process, ended))
        finally:
            os.close(ended)

    def _carry_until_quiet(
        self,
        selector: selectors.BaseSelector,
        sends: dict[int, Callable[[bytes], object]],
        child: tuple[subprocess.Popen[bytes], int],
    ) -> None:
        process, ended = child
        inward = self._channel.fileno()
        running = True
        while sends or running:
            for key, _ in selector.select():
                if key.fd == ended:
                    selector.unregister(ended)
                    running = False
                    self._tell_end(process.wait())
                elif key.fd == inward:
                    if not self._feed(process):
                        selector.unregister(inward)
                elif not _move(key.fd, sends[key.fd]):
                    selector.unregister(key.fd)
                    del sends[key.fd]
            if self._channel.closed or self._lost():
                return

    def _lost(self) -> bool:
        transport = self._channel.get_transport()
        return not transport.is_active()

    def _feed(self, process: subprocess.Popen[bytes]) -> bool:
        """Carries standard input; False when there will be no more."""
        data = self._channel.recv(_CHUNK)
        if process.stdin is None:
            return False
        if data and process.poll() is None:
            try:
                while data:
                    data = data[process.stdin.write(data) :]
            except BrokenPipeError:
                process.stdin.close()
            return True
        _close(process.stdin)
        return bool(data)

    def _tell_end(self, status: int) -> None:
        if status >= 0:
            self._channel.send_exit_status(status)
            return
        _send_exit_signal(self._channel, signal.Signals(-status).name.removeprefix("SIG"))


def _send_exit_signal(channel: paramiko.Channel, name: str) -> None:
    """Tells the client that a signal ended the command; paramiko's server has no call for it."""
    transport = channel.get_transport()
    message = paramiko.Message()
    message.add_byte(cMSG_CHANNEL_REQUEST)
    message.add_int(channel.remote_chanid)
    message.add_string("exit-signal")
    message.add_boolean(False)  # noqa: FBT003 - the protocol's field "want reply"
    message.add_string(name)
    message.add_boolean(False)  # noqa: FBT003 - the protocol's field "core dumped"
    message.add_string("")
    message.add_string("")
    transport._send_user_message(message)  # type: ignore[attr-defined] # noqa: SLF001 - no other way


def _ring(process: subprocess.Popen[bytes], bell: int) -> None:
    process.wait()
    os.close(bell)


def _move(fd: int, send: Callable[[bytes], object]) -> bool:
    data = os.read(fd, _CHUNK)
    if data:
        send(data)
    return bool(data)


def _close(*streams: object) -> None:
    for stream in streams:
        with contextlib.suppress(OSError):
            if hasattr(stream, "close"):
                stream.close()


def _forward(transport: paramiko.Transport | None, destination: tuple[str, int]) -> None:
    channel = transport.accept(5) if transport is not None else None
    if channel is None:
        return
    with contextlib.suppress(OSError), socket.create_connection(destination, 5) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = threading.Thread(target=_copy, args=(link.recv, channel.sendall), daemon=True)
        back.start()
        _copy(channel.recv, link.sendall)
        link.shutdown(socket.SHUT_WR)
        back.join()
    channel.close()


def _copy(read: Callable[[int], bytes], write: Callable[[bytes], object]) -> None:
    with contextlib.suppress(OSError):
        while data := read(_CHUNK):
            write(data)


def serve(link: socket.socket, host_key: paramiko.PKey, door: Door) -> paramiko.Transport:
    """Speaks SSH on an accepted connection; returns at once, the transport has its own thread."""
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    transport = paramiko.Transport(link)
    transport.add_server_key(host_key)
    door.transport = transport
    transport.start_server(event=threading.Event(), server=door)
    return transport


def drop(link: socket.socket) -> None:
    """Ends a connection without a farewell, as a machine that lost its power does."""
    with contextlib.suppress(OSError):
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        link.close()
