"""What the engine is given by the app: ports and shelves, joined once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recovery.model.bmc import BmcAsk
from recovery.model.check import Check
from recovery.model.kind import Verb
from recovery.model.node import Node
from recovery.model.output import Output
from recovery.model.ports import Asker, Clock, Evidence, Journal, Launcher, Transport
from recovery.model.result import NodeResult


def _no_bmc(node: Node, question: BmcAsk, limit_s: float) -> Output | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything outside the engine.

    ``transport`` opens a transport by name; ``expectations`` are those of a node (profile and
    inventory); ``report`` writes reports of the run so far; ``stopping`` names the signal when the
    operator said stop, and ``heeded`` says that the engine did, so that `finally` can work;
    ``drain`` tells the scheduler of quarantined nodes and returns a line for
    the journal, empty when there is none to tell; ``bmc`` asks a node's BMC within some seconds,
    None where none is known; ``disrupted`` names the nodes that runs of this cluster switched,
    rebooted or reset since a time; ``attempted`` says when the runs before this one did so, by
    node and verb. ``controller`` is this machine's state folder, by a name that no other has; empty
    where nodes are not to be leased. ``take_over`` pushes out whoever holds them.
    """

    clock: Clock
    journal: Journal
    evidence: Evidence
    asker: Asker
    nodes: Mapping[str, Node]
    verbs: Mapping[str, Verb[Any]]
    transport: Callable[[str], Transport]
    check: Callable[[str], Check[Any, Any]]
    launcher: Callable[[str], Launcher]
    expectations: Callable[[Node], Mapping[str, Any]]
    payload: Callable[[str], str]
    local_file: Callable[[str], bytes]
    report: Callable[[tuple[str, ...]], tuple[str, ...]]
    playbook: Callable[[str, tuple[Node, ...], Mapping[str, Any]], dict[str, NodeResult]]
    stopping: Callable[[], str]
    heeded: Callable[[], None]
    drain: Callable[[tuple[str, ...], str], str]
    secrets: tuple[str, ...] = ()
    bmc: Callable[[Node, BmcAsk, float], Output | None] = _no_bmc
    disrupted: Callable[[float], Collection[str]] = lambda since: ()
    controller: str = ""
    take_over: bool = False
    attempted: Callable[[], Mapping[tuple[str, str], Sequence[float]]] = dict
