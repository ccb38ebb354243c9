"""What kubectl says of a job, its pods and the nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.errors import ParseError

NODES = (
    '{range .items[*]}{.metadata.name}{"\\t"}{.metadata.labels.kubernetes\\.io/hostname}{"\\t"}'
    '{.spec.unschedulable}{"\\t"}{.status.conditions[?(@.type=="Ready")].status}{"\\n"}{end}'
)
"""The jsonpath that `read_nodes` reads: all that we need of a node, whose JSON is long."""

_OVER = {"Complete", "Completed", "Succeeded", "Failed"}
# What a container that cannot start waits for, and what to do about it.
_STUCK = {
    "ErrImagePull": "is the image's name right, and does the node reach its registry?",
    "ImagePullBackOff": "is the image's name right, and does the node reach its registry?",
    "InvalidImageName": "correct the image's name in the manifest",
    "CrashLoopBackOff": "read `kubectl logs --previous` of the pod",
    "CreateContainerConfigError": "does every ConfigMap and Secret that it names exist?",
    "CreateContainerError": "`kubectl describe pod` says more",
    "RunContainerError": "`kubectl describe pod` says more",
}


@dataclass(frozen=True, slots=True)
class KubeNode:
    """A node: its hostname label, whether new pods may come, whether its kubelet answers."""

    name: str
    hostname: str
    schedulable: bool
    ready: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod of the job. ``trouble`` and ``remedy`` say why it does not run, where it says so."""

    name: str
    node: str
    phase: str
    going: bool = False
    trouble: str = ""
    remedy: str = ""

    @property
    def runs(self) -> bool:
        """Claims that its containers run and that nobody asked it to end."""
        return self.phase == "Running" and not self.going and not self.trouble


def read_nodes(text: str) -> dict[str, KubeNode]:
    """All nodes by name, from ``kubectl get nodes -o jsonpath`` with `NODES`.

    Raises:
        ParseError: no node, or a line without its four parts.
    """
    found = {}
    for line in text.splitlines():
        parts = line.split("\t")
        if len(parts) != 4 or not parts[0]:
            raise ParseError(f"not a line about a node: {line[:80]!r}", remedy="kubectl get nodes")
        name, hostname, shut, ready = parts
        found[name] = KubeNode(name, hostname or name, shut != "true", ready == "True")
    if not found:
        raise ParseError("kubectl lists no node", remedy="kubectl get nodes")
    return found


def read_job(text: str) -> dict[str, Any] | None:
    """The job as it is, from ``kubectl get --ignore-not-found -o json``; None: there is none.

    Raises:
        ParseError: neither nothing nor a job.
    """
    if not text.strip():
        return None
    found = _json(text)
    if not (found.get("metadata") or {}).get("name"):
        raise ParseError(f"not a job: {text.strip()[:60]!r}", remedy="kubectl get -o json")
    return found


def ended(job: Mapping[str, Any]) -> str:
    """How the job ended: the word of its condition, and the reason; nothing when it did not."""
    for condition in (job.get("status") or {}).get("conditions") or []:
        if condition.get("type") in _OVER and condition.get("status") == "True":
            words = (condition.get("type"), condition.get("reason"), condition.get("message"))
            return ", ".join(str(w) for w in words if w)[:200]
    return ""


def read_pods(text: str) -> tuple[Pod, ...]:
    """The pods of ``kubectl get pods -o json``.

    Raises:
        ParseError: not a list of pods.
    """
    items = _json(text).get("items")
    if not isinstance(items, list):
        raise ParseError(f"not a list of pods: {text[:60]!r}", remedy="kubectl get pods -o json")
    return tuple(_pod(item) for item in items)


def _pod(item: Mapping[str, Any]) -> Pod:
    metadata, status = item.get("metadata") or {}, item.get("status") or {}
    trouble, remedy = _trouble(status)
    return Pod(
        name=str(metadata.get("name")),
        node=str((item.get("spec") or {}).get("nodeName") or ""),
        phase=str(status.get("phase") or "Unknown"),
        going=bool(metadata.get("deletionTimestamp")),
        trouble=trouble,
        remedy=remedy,
    )


def _trouble(status: Mapping[str, Any]) -> tuple[str, str]:
    all_of_them = (
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    )
    for container in all_of_them:
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in _STUCK:
            words = f"{waiting['reason']}: {waiting.get('message', 'no message')}"
            return words[:200], _STUCK[waiting["reason"]]
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            words = str(condition.get("message") or condition.get("reason") or "not scheduled")
            return words[:200], "free or uncordon nodes; the message names what is missing"
    return "", ""


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ParseError(f"not JSON: {text.strip()[:60]!r}", remedy="kubectl -o json") from error
    if not isinstance(found, dict):
        raise ParseError(f"not an object: {text.strip()[:60]!r}", remedy="kubectl -o json")
    return found
