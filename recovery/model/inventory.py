"""A whole inventory, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from recovery.model.node import Node


@dataclass(frozen=True, slots=True)
class Inventory:
    """Nodes by name in file order, groups (children resolved) to node names, and global variables.

    ``variables`` are those of the group ``all``: run-wide settings such as ``min_nodes``,
    ``prepare`` (a local command that makes the nodes reachable) or ``scheduler``.
    """

    name: str
    source: str
    nodes: Mapping[str, Node]
    groups: Mapping[str, tuple[str, ...]]
    variables: Mapping[str, object] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
