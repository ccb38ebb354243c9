"""One machine of the cluster, as the inventory describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its name is its identity; everything else says how to reach and judge it.

    ``address``/``port``/``user`` are None where the SSH client configuration decides.
    ``variables`` are all inventory variables of the node, group variables merged in.
    """

    name: str
    address: str | None = None
    port: int | None = None
    user: str | None = None
    groups: tuple[str, ...] = ()
    profile: str | None = None
    leaf: str | None = None
    rack: str | None = None
    transport: str = "ssh"
    variables: Mapping[str, object] = field(default_factory=dict)


CONTROLLER = Node(name="controller", transport="local")
"""The machine that runs `recover`; steps that touch no node report under this name."""
