"""The host keys that nodes show now, beside those that we know: to trust them after a re-image."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import paramiko

from recovery.model.node import Node
from recovery.transports.ssh.config import Target
from recovery.transports.ssh.connect import ConnectError, Connector, resolve
from recovery.transports.ssh.known_hosts import fingerprint, host_name, short_type
from recovery.transports.ssh.trust import replace_keys
from recovery.transports.ssh.wire import NodeTransport

WAIT_S = 10.0
WIDTH = 32
KINDS = (
    ("ssh-ed25519",),
    ("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"),
    ("rsa-sha2-512", "rsa-sha2-256"),
)


@dataclass(frozen=True, slots=True)
class Seen:
    """What one node shows: ``shown`` are (type, key), ``known`` those of its known_hosts file."""

    node: str
    name: str = ""
    file: str = ""
    known: tuple[tuple[str, bytes], ...] = ()
    shown: tuple[tuple[str, bytes], ...] = ()
    problem: str = ""

    @property
    def is_known(self) -> bool:
        """Claims that every key shown is in the file already."""
        return bool(self.shown) and set(self.shown) <= set(self.known)

    @property
    def is_changed(self) -> bool:
        """Claims that the node was known by another key of a kind that it shows."""
        kinds = {kind for kind, _ in self.known}
        return any(kind in kinds and (kind, key) not in self.known for kind, key in self.shown)


def look(nodes: Iterable[Node]) -> tuple[Seen, ...]:
    """Asks the nodes for their keys, without logging in, in the order given."""
    connector = Connector()
    try:
        with ThreadPoolExecutor(WIDTH) as pool:
            return tuple(pool.map(lambda node: _look_at(connector, node), nodes))
    finally:
        connector.close()


def trust(seen: Seen) -> None:
    """Makes the keys that a node shows the only plain ones that its file has for it."""
    replace_keys(seen.file, seen.name, seen.shown)


def describe(keys: Iterable[tuple[str, bytes]]) -> str:
    """Fingerprints for people."""
    return ", ".join(f"{fingerprint(key)} ({short_type(kind)})" for kind, key in keys) or "none"


def _look_at(connector: Connector, node: Node) -> Seen:
    try:
        target = resolve(connector.config, node)
    except ConnectError as error:
        return Seen(node.name, problem=str(error))
    name = target.known_as or host_name(target.host, target.port)
    entries = connector.host_keys.table(target.trust).of(name)
    known = tuple((entry.key_type, entry.key) for entry in entries if not entry.marker)
    try:
        shown = _shown(connector, target)
    except ConnectError as error:
        return Seen(node.name, name, target.trust.file, known, problem=str(error))
    problem = "" if shown else f"{target.where} shows no host key"
    return Seen(node.name, name, target.trust.file, known, shown, problem)


def _shown(connector: Connector, target: Target) -> tuple[tuple[str, bytes], ...]:
    deadline = time.monotonic() + WAIT_S
    found = []
    for kinds in KINDS:
        transport = NodeTransport(connector.reach(target, deadline))
        transport.asked_types = kinds
        with contextlib.closing(transport), contextlib.suppress(paramiko.SSHException, EOFError):
            transport.banner_timeout = WAIT_S
            transport.start_client(timeout=WAIT_S)
            key = transport.get_remote_server_key()
            found.append((key.get_name(), key.asbytes()))
    return tuple(found)
