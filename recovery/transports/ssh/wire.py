"""A TCP socket and a paramiko transport that lose no time and notice a node without power."""

from __future__ import annotations

import contextlib
import errno
import socket
import time
from typing import Any

import paramiko

# A node without power answers nothing, and paramiko alone waits for ever: unanswered data is
# given up after this time, and an idle line is probed from IDLE_S on, PROBES times.
UNANSWERED_MS = 10_000
IDLE_S, PROBE_EVERY_S, PROBES = 4, 2, 3

HOST_KEY_ALGORITHMS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)
_CERTIFICATE = "-cert-v01@openssh.com"
_OPTIONS = (
    ("IPPROTO_TCP", "TCP_NODELAY", 1),
    ("SOL_SOCKET", "SO_KEEPALIVE", 1),
    ("IPPROTO_TCP", "TCP_KEEPIDLE", IDLE_S),
    ("IPPROTO_TCP", "TCP_KEEPINTVL", PROBE_EVERY_S),
    ("IPPROTO_TCP", "TCP_KEEPCNT", PROBES),
    ("IPPROTO_TCP", "TCP_USER_TIMEOUT", UNANSWERED_MS),
)
_QUICKACK = getattr(socket, "TCP_QUICKACK", None)


class NodeSocket(socket.socket):
    """A socket that acknowledges at once.

    sshd leaves Nagle's algorithm on until a session starts, so an acknowledgement that we delay
    stalls it for 40 ms (a connection and two commands: 65 ms with NODELAY alone, 21 with both).
    """

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        """Reads, and asks for the next acknowledgement to go out at once."""
        if _QUICKACK is not None:
            with contextlib.suppress(OSError):
                self.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
        return super().recv(bufsize, flags)


def dial(host: str, port: int, deadline: float) -> NodeSocket:
    """Connects within the deadline, trying every address of the host in turn.

    Raises:
        OSError: no address answered; the error is that of the last one.
    """
    problem: OSError = OSError(errno.EHOSTUNREACH, "the name has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM):
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError(errno.ETIMEDOUT, "no answer in time") from problem
        sock = NodeSocket(family, kind, protocol)
        try:
            _tune(sock)
            sock.settimeout(left_s)
            sock.connect(address)
        except OSError as error:
            sock.close()
            problem = error
        else:
            return sock
    raise problem


def _tune(sock: socket.socket) -> None:
    for level, option, value in _OPTIONS:
        if hasattr(socket, option):  # TCP_USER_TIMEOUT and TCP_KEEPIDLE are Linux words
            sock.setsockopt(getattr(socket, level), getattr(socket, option), value)


class NodeTransport(paramiko.Transport):
    """paramiko's transport: fast algorithms first, host keys that we know first, a quick end."""

    _active_check_timeout = 5.0  # stock 0.1: ten wake-ups a second for each idle connection
    _preferred_kex = (
        "curve25519-sha256@libssh.org",
        "ecdh-sha2-nistp256",
        "ecdh-sha2-nistp384",
        "ecdh-sha2-nistp521",
        "diffie-hellman-group14-sha256",
        "diffie-hellman-group16-sha512",
        "diffie-hellman-group-exchange-sha256",
    )
    _preferred_ciphers = (
        "aes128-gcm@openssh.com",
        "aes256-gcm@openssh.com",
        "aes128-ctr",
        "aes192-ctr",
        "aes256-ctr",
    )

    def __init__(self, sock: Any, **options: Any) -> None:
        super().__init__(sock, **options)
        self.channel_timeout = 30.0
        self.known_types: tuple[str, ...] = ()
        self.certificates_first = False
        self.asked_types: tuple[str, ...] = ()  # no others, where given
        self.host_key_blob = b""

    @property
    def preferred_keys(self) -> tuple[str, ...]:
        """Host-key algorithms in our order: what the table knows of this host comes first.

        Else a node that is known by its ECDSA key would offer an ED25519 key that nobody knows.
        """
        if self.asked_types:
            return self.asked_types
        plain = HOST_KEY_ALGORITHMS
        known = tuple(name for name in plain if name in self.known_types)
        ordered = known + tuple(name for name in plain if name not in known)
        certified = tuple(name + _CERTIFICATE for name in ordered)
        return certified + ordered if self.certificates_first else ordered + certified

    def _verify_key(self, host_key: bytes, sig: bytes) -> None:
        # The host-key check needs the certificate as sent; paramiko keeps only the key in it.
        super()._verify_key(host_key, sig)  # type: ignore[misc]  # not in the stubs
        self.host_key_blob = host_key

    def close(self) -> None:
        """Ends the session at once: paramiko alone waits for its reader to wake up."""
        with contextlib.suppress(OSError, AttributeError):
            self.sock.shutdown(socket.SHUT_RDWR)
        super().close()
        self.sock.close()  # paramiko leaves it open where the session ended before we asked
