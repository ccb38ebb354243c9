"""`command`: the job's line on every node over our own transport, detached, kept on the node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recovery.engine.jobs import Rank, rendezvous, start_ranks
from recovery.model.node import Node
from recovery.model.ports import Launcher, World
from recovery.model.result import NodeResult


def _launch(
    nodes: tuple[Node, ...], job: Mapping[str, Any], world: World
) -> Mapping[str, NodeResult]:
    def rank(number: int, node: Node) -> Rank:
        return Rank(str(job["line"]), rank_environment(nodes[0], number, len(nodes), world))

    return start_ranks(nodes, job, world, rank)


def rank_environment(head: Node, rank: int, size: int, world: World) -> dict[str, str]:
    """The rendezvous variables that torch.distributed and most launchers read (one rank a node)."""
    address, port = rendezvous(head, world)
    return {
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "RANK": str(rank),
        "NODE_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "NNODES": str(size),
    }


COMMAND = Launcher(
    name="command",
    about="the job's line on every node over SSH, one rank a node, detached",
    launch=_launch,
)
