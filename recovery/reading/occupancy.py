"""What a scheduler says about its nodes: who runs jobs, who is set aside, why and by whom."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from recovery.errors import ParseError

OURS = "recover:"
"""What the reason of a drained node begins with when we drained it; nobody else's is undone."""
ANNOTATION = "recover.cordoned"
"""The annotation of a node that we cordoned in Kubernetes; its value is the reason."""

SINFO_FORMAT = "%N|%T|%P|%E"
# Slurm appends what it knows besides the state: not responding, powered down, to be rebooted...
_MARKS = "*~#!%$@^+-"
_BUSY = frozenset({"allocated", "mixed", "completing", "draining", "allocated+", "blocked"})
_OUT = frozenset({"drained", "draining", "down", "fail", "failing", "error", "inval", "maint"})
_GPU_RESOURCES = ("nvidia.com/", "amd.com/gpu", "gpu.")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUse:
    """One node as its scheduler sees it. ``out``: it gets no new jobs, for ``reason``."""

    busy: bool = False
    out: bool = False
    reason: str = ""
    state: str = ""
    partitions: tuple[str, ...] = ()

    @property
    def out_by_us(self) -> bool:
        """Claims that we set it aside."""
        return self.out and self.reason.startswith(OURS)


def read_sinfo(text: str) -> dict[str, NodeUse]:
    """Nodes by name, from ``sinfo --Node --noheader --format=SINFO_FORMAT``.

    sinfo tells of every node whatever the caller may see; ``squeue`` hides the jobs of others
    where ``PrivateData`` says so, and a hidden job would read as an idle node.

    Raises:
        ParseError: a line of another shape, or no line at all.

    Source: sinfo(1) of Slurm 24.05; a node comes once for each of its partitions.
    """
    found: dict[str, NodeUse] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, state, partition, reason = _columns(line)
        earlier = found.get(name)
        partitions = (*(earlier.partitions if earlier else ()), partition.rstrip("*"))
        found[name] = _slurm_use(state, reason, partitions)
    if not found:
        raise ParseError("sinfo lists no node", remedy="sinfo --Node --long")
    return found


def _columns(line: str) -> tuple[str, str, str, str]:
    parts = line.split("|", 3)
    if len(parts) != 4 or not parts[0] or not parts[1]:
        raise ParseError(f"not a line of sinfo: {line[:80]!r}", remedy="sinfo --Node --long")
    return parts[0], parts[1], parts[2], parts[3]


def _slurm_use(state: str, reason: str, partitions: tuple[str, ...]) -> NodeUse:
    word = state.rstrip(_MARKS).lower()
    return NodeUse(
        busy=word in _BUSY,
        out=word in _OUT,
        reason="" if reason == "none" else reason,
        state=state,
        partitions=partitions,
    )


def read_kubernetes(nodes: str, pods: str) -> dict[str, NodeUse]:
    """Nodes by name, from ``kubectl get nodes -o json`` and ``kubectl get pods -A -o json``.

    A node is busy when a pod that asks for GPUs runs or starts on it.

    Raises:
        ParseError: not what kubectl prints, or no node.
    """
    busy = {_text(pod, "spec", "nodeName") for pod in _items(pods, "pods") if _takes_gpus(pod)}
    found = {_text(n, "metadata", "name"): _kubernetes_use(n, busy) for n in _items(nodes, "nodes")}
    if not found:
        raise ParseError("kubectl lists no node", remedy="kubectl get nodes")
    return found


def _kubernetes_use(node: Mapping[str, Any], busy: Set[str]) -> NodeUse:
    metadata, spec = node.get("metadata") or {}, node.get("spec") or {}
    ours = (metadata.get("annotations") or {}).get(ANNOTATION)
    out = bool(spec.get("unschedulable"))
    return NodeUse(
        busy=str(metadata.get("name")) in busy,
        out=out,
        reason=str(ours or "cordoned") if out else "",
        state="cordoned" if out else "schedulable",
    )


def _takes_gpus(pod: Mapping[str, Any]) -> bool:
    phase = _text(pod, "status", "phase")
    containers = (pod.get("spec") or {}).get("containers") or []
    wanted = ((c.get("resources") or {}).get("limits") or {} for c in containers)
    names = (name for limits in wanted for name in limits)
    return phase in ("Running", "Pending") and any(n.startswith(_GPU_RESOURCES) for n in names)


def _items(text: str, what: str) -> list[Mapping[str, Any]]:
    try:
        items = json.loads(text)["items"]
    except (ValueError, KeyError, TypeError) as error:
        raise ParseError(
            f"not a list of {what} in JSON: {text.strip()[:60]!r}",
            remedy=f"kubectl get {what} -o json",
        ) from error
    return [item for item in items if isinstance(item, dict)]


def _text(item: Mapping[str, Any], part: str, name: str) -> str:
    return str((item.get(part) or {}).get(name) or "")
