"""Real servers on loopback: a small one of paramiko's that runs anywhere, and OpenSSH's sshd."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import paramiko

from recovery.model.node import Node
from recovery.transports.ssh.known_hosts import host_name

SSHD = "/usr/sbin/sshd"


def until(claim: Callable[[], Any], *, within_s: float = 60.0) -> Any:
    """Polls until the claim holds, and returns its value; its last value when time is up."""
    end = time.monotonic() + within_s
    pause = threading.Event()
    while True:
        value = claim()
        if value or time.monotonic() > end:
            return value
        pause.wait(0.02)


def processes_with(word: str) -> list[str]:
    """``PID: command line`` of every process with the word in its arguments."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            state = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0]
            if word in line and state != "Z":
                found.append(f"{folder.name}: {line[:100]}")
    return found


@dataclass
class Place:
    """Where commands are run: a node, how to cut all its connections, how to end it."""

    node: Node
    cut: Callable[[], None]
    known_hosts: Path
    key: Path
    logins: Callable[[], int] = lambda: 0


class _Door(paramiko.ServerInterface):
    def __init__(self, server: FarmServer) -> None:
        self._server = server

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        self._server.logins += 1
        good = key.asbytes() == self._server.accepted
        return paramiko.AUTH_SUCCESSFUL if good else paramiko.AUTH_FAILED

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_channel_request(self, kind: str, chanid: int) -> int:
        self._server.on_channel()
        return paramiko.OPEN_SUCCEEDED

    def check_channel_direct_tcpip_request(
        self, chanid: int, origin: tuple[str, int], destination: tuple[str, int]
    ) -> int:
        self._server.forward_to = destination
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self._server.asked += 1
        self._server.on_command()
        if self._server.asked <= self._server.cut_first:
            self._server.cut()
            return False
        threading.Thread(target=_serve, args=(channel, command), daemon=True).start()
        return True


def _serve(channel: paramiko.Channel, command: bytes) -> None:
    """Like sshd: an own session, the status at once, and nobody killed when the client goes."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        ["/bin/sh", "-c", command], stdin=pipe, stdout=pipe, stderr=pipe,
        start_new_session=True, bufsize=0,
    )  # fmt: skip
    readers = [
        threading.Thread(target=_pour, args=(process.stdout, channel.sendall), daemon=True),
        threading.Thread(target=_pour, args=(process.stderr, channel.sendall_stderr), daemon=True),
    ]
    threading.Thread(target=_feed, args=(channel, process.stdin), daemon=True).start()
    for reader in readers:
        reader.start()
    status = process.wait()
    with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
        if status >= 0:
            channel.send_exit_status(status)
        for reader in readers:
            reader.join()
        channel.close()
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()


def _pour(stream: Any, send: Callable[[bytes], None]) -> None:
    with contextlib.suppress(OSError, EOFError, paramiko.SSHException, ValueError):
        while piece := stream.read(1 << 16):
            send(piece)


def _feed(channel: paramiko.Channel, stdin: Any) -> None:
    with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
        while piece := channel.recv(1 << 16):
            view = memoryview(piece)
            while view:
                view = view[stdin.write(view) :]
    with contextlib.suppress(OSError):
        stdin.close()


@dataclass
class FarmServer:
    """One SSH server in this process, with a host key of its own."""

    accepted: bytes
    host_key: paramiko.PKey = field(default_factory=lambda: paramiko.ECDSAKey.generate())
    banner_hang: bool = False
    close_first: int = 0  # so many connections are closed without a word
    cut_first: int = 0  # so many requests for a command cut all connections
    asked: int = 0  # for a command
    on_channel: Callable[[], None] = lambda: None  # before a channel is granted
    on_command: Callable[[], None] = lambda: None  # before a command is taken
    logins: int = 0
    connections: int = 0
    forward_to: tuple[str, int] = ("", 0)
    sockets: list[socket.socket] = field(default_factory=list)
    transports: list[paramiko.Transport] = field(default_factory=list)
    channels: list[paramiko.Channel] = field(default_factory=list)  # paramiko holds them weakly

    def __post_init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                self.connections += 1
                if self.connections <= self.close_first:
                    sock.close()
                    continue
                self.sockets.append(sock)
                if not self.banner_hang:
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    threading.Thread(target=self._welcome, args=(sock,), daemon=True).start()

    def _welcome(self, sock: socket.socket) -> None:
        transport = paramiko.Transport(sock)
        self.transports.append(transport)
        transport.add_server_key(self.host_key)
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            transport.start_server(server=_Door(self))
            while (channel := transport.accept(60)) is not None:
                self.channels.append(channel)
                if self.forward_to[1]:
                    threading.Thread(target=self._forward, args=(channel,), daemon=True).start()

    def _forward(self, channel: paramiko.Channel) -> None:
        if channel.chanid is None or not self.forward_to[1]:
            return
        onward = socket.create_connection(self.forward_to)
        self.sockets.append(onward)
        back = threading.Thread(
            target=_pour, args=(onward.makefile("rb", 0), channel.sendall), daemon=True
        )
        back.start()
        with contextlib.suppress(OSError):
            while piece := channel.recv(1 << 16):
                onward.sendall(piece)

    def cut(self) -> None:
        """Ends all connections as a router would: nobody is told."""
        for sock in tuple(self.sockets):  # whoever comes back meanwhile stays
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Ends the server."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()
        for transport in self.transports:
            transport.close()
        for sock in self.sockets:
            sock.close()


def make_key(path: Path) -> paramiko.PKey:
    """A client key pair in files."""
    key = paramiko.ECDSAKey.generate()
    key.write_private_key_file(str(path))
    Path(f"{path}.pub").write_text(f"{key.get_name()} {key.get_base64()} test\n")
    return key


def node_at(port: int, key: Path, known_hosts: Path, **variables: object) -> Node:
    """A node on a loopback port."""
    values = {
        "ansible_ssh_private_key_file": str(key),
        "identities_only": True,
        "known_hosts": str(known_hosts),
        "host_keys": "file",
        **variables,
    }
    return Node("n1", "127.0.0.1", port, "root", variables=values)


def know(known_hosts: Path, port: int, key: paramiko.PKey) -> None:
    """Writes a host key down."""
    name = host_name("127.0.0.1", port)
    with known_hosts.open("a") as file:
        file.write(f"{name} {key.get_name()} {key.get_base64()}\n")


@contextlib.contextmanager
def farm_place(folder: Path) -> Iterator[Place]:
    """A node served by paramiko."""
    key = make_key(folder / "id")
    server = FarmServer(key.asbytes())
    known_hosts = folder / "known_hosts"
    know(known_hosts, server.port, server.host_key)
    node = node_at(server.port, folder / "id", known_hosts)
    try:
        yield Place(node, server.cut, known_hosts, folder / "id", lambda: server.logins)
    finally:
        server.close()


def why_no_sshd() -> str:
    """Why OpenSSH's sshd cannot be started here; empty when it can."""
    if not shutil.which(SSHD):
        return f"needs {SSHD} (apt-get install openssh-server)"
    return "" if os.geteuid() == 0 else "needs root: sshd logs in as its own user only"


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@dataclass
class OpenSsh:
    """One OpenSSH sshd on a loopback port."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    def sessions(self) -> list[int]:
        """Pids of the processes that serve connections."""
        pids = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                words = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
                if int(words[1]) == self.process.pid:
                    pids.append(int(stat.parent.name))
        return pids

    def cut(self) -> None:
        """Kills the processes that serve connections."""
        for pid in self.sessions():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """Ends the server."""
        self.cut()
        self.process.kill()
        self.process.wait()


def start_sshd(folder: Path, *, extra: str = "", host_keys: tuple[str, ...] = ("hk",)) -> OpenSsh:
    """Starts sshd with the host keys in the folder; ``id.pub`` there may log in as root."""
    Path("/run/sshd").mkdir(exist_ok=True)
    port = free_port()
    for name in host_keys:
        if not (folder / name).exists():
            keygen("-t", "ed25519", "-f", str(folder / name))
    lines = [
        f"Port {port}", "ListenAddress 127.0.0.1", "StrictModes no", "UsePAM no", "PidFile none",
        f"AuthorizedKeysFile {folder}/authorized", "PasswordAuthentication no",
        # What the machine's user starts at login takes time, and a lock that a killed one leaves.
        f"SetEnv HOME={folder / 'home'}",
        *(f"HostKey {folder / name}" for name in host_keys), extra,
    ]  # fmt: skip
    (folder / "home").mkdir(exist_ok=True)
    (folder / "sshd_config").write_text("\n".join(lines) + "\n")
    log = str(folder / "log")
    arguments = [SSHD, "-D", "-f", str(folder / "sshd_config"), "-E", log]
    process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL)
    assert until(lambda: _listens(port)), (folder / "log").read_text()
    return OpenSsh(folder, port, process)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def keygen(*arguments: str) -> None:
    """ssh-keygen without a passphrase, quietly."""
    subprocess.run(["ssh-keygen", "-q", "-N", "", *arguments], check=True)


@contextlib.contextmanager
def sshd_place(folder: Path, **options: Any) -> Iterator[Place]:
    """A node served by OpenSSH."""
    keygen("-t", "ed25519", "-f", str(folder / "id"))
    shutil.copy(folder / "id.pub", folder / "authorized")
    server = start_sshd(folder, **options)
    known_hosts = folder / "known_hosts"
    words = (folder / "hk.pub").read_text().split()
    known_hosts.write_text(f"[127.0.0.1]:{server.port} {words[0]} {words[1]}\n")
    node = node_at(server.port, folder / "id", known_hosts)
    try:
        yield Place(node, server.cut, known_hosts, folder / "id")
    finally:
        server.close()
