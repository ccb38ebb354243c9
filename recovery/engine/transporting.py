"""Transports of a run: opened when first needed, stopped and reopened as a whole."""

from __future__ import annotations

import threading
from collections.abc import Callable

from recovery.model.node import Node
from recovery.model.output import Command, Output
from recovery.model.ports import Transport


class Transports:
    """One transport of each name used; thread-safe."""

    def __init__(self, open_transport: Callable[[str], Transport]) -> None:
        self._open = open_transport
        self._lock = threading.Lock()
        self._by_name: dict[str, Transport] = {}

    def run(self, node: Node, command: Command) -> Output:
        """Runs a command by the node's own transport."""
        with self._lock:
            transport = self._by_name.get(node.transport)
            if transport is None:
                transport = self._by_name[node.transport] = self._open(node.transport)
        return transport.run(node, command)

    def stop(self, grace_s: float) -> None:
        """Ends all running commands; the transports refuse new ones until `reopen`."""
        with self._lock:
            running = list(self._by_name.values())
        for transport in running:
            transport.stop(grace_s)

    def reopen(self) -> None:
        """Forgets stopped transports, so that `finally` can reach nodes again."""
        with self._lock:
            old, self._by_name = list(self._by_name.values()), {}
        for transport in old:
            transport.close()

    close = reopen
