"""`torchrun`: one torchrun a node over our own transport; node ranks follow the leaf switches."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from recovery.engine.jobs import Rank, rendezvous, start_ranks
from recovery.model.node import Node
from recovery.model.ports import Launcher, World
from recovery.model.result import NodeResult

# The word that starts torchrun in a line such as `cd /work && torchrun train.py`.
_TORCHRUN = re.compile(
    r"(?<![\w./$-])((?:[\w./~-]*/)?torchrun|[\w./~-]*python[\d.]*\s+-m\s+torch\.distributed\.run)"
    r"(?=\s)"
)
_DIGITS = re.compile(r"(\d+)")


def _launch(
    nodes: tuple[Node, ...], job: Mapping[str, Any], world: World
) -> Mapping[str, NodeResult]:
    ordered = by_leaf(nodes)
    address, port = rendezvous(ordered[0], world)
    endpoint = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"

    def rank(number: int, node: Node) -> Rank:
        options = (
            f"--nnodes={len(ordered)}",
            f"--node-rank={number}",
            f"--nproc-per-node={_processes(node, world)}",
            # The static back end alone keeps the rank that a node is given.
            "--rdzv-backend=static",
            f"--rdzv-endpoint={endpoint}",
            f"--rdzv-id={job['name']}",
        )
        return Rank(torchrun_line(str(job["line"]), options))

    return start_ranks(ordered, job, world, rank)


def by_leaf(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The nodes in rank order: leaf after leaf, by number within a leaf, those without one last.

    Neighbours in rank talk most, and then mostly inside a leaf. The order depends on names and
    leaves alone: the same nodes get the same ranks at every launch.
    """
    return tuple(sorted(nodes, key=lambda n: (n.leaf is None, _natural(n.leaf), _natural(n.name))))


def _natural(name: str | None) -> tuple[tuple[int, str], ...]:
    parts = _DIGITS.split(name or "")
    return tuple((int(p), p) if p.isdecimal() else (-1, p) for p in parts if p)


def torchrun_line(line: str, options: tuple[str, ...]) -> str:
    """The job's line with our options; what the line gives itself comes later and wins.

    A line that names torchrun nowhere is what torchrun is to run.
    """
    words = shlex.join(options)
    found = _TORCHRUN.search(f"{line} ")
    if found is None:
        return f"torchrun {words} {line}"
    return f"{line[: found.end()]} {words}{line[found.end() :]}"


def _processes(node: Node, world: World) -> str:
    """How many ranks on the node: as many as GPUs, which torchrun counts where we do not know."""
    known = world.profile(node)
    return str(known.get("processes_per_node") or known.get("expected_gpus") or "gpu")


TORCHRUN = Launcher(
    name="torchrun",
    about="one torchrun a node over SSH, node ranks by leaf switch, detached",
    launch=_launch,
)
