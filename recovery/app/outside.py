"""Telling the scheduler about nodes that were set aside."""

from __future__ import annotations

from collections.abc import Mapping

from recovery.app.scheduler import asked, kind_of, use_of
from recovery.errors import RecoveryError, SchedulerError
from recovery.reading.occupancy import ANNOTATION, OURS

LONGEST = 200  # of a reason: Slurm shows no more


def drain(variables: Mapping[str, object], nodes: tuple[str, ...], reason: str) -> str:
    """Takes nodes away from the scheduler that the inventory names; returns what to journal.

    Nodes that are out already keep the reason they have: it may be somebody else's. A scheduler
    that does not answer is said, never raised: the nodes stay out of this run anyhow.
    """
    try:
        return _drained(kind_of(variables), _not_out(variables, nodes), reason)
    except RecoveryError as error:
        return f"not drained: {error.message}"


def _not_out(variables: Mapping[str, object], nodes: tuple[str, ...]) -> tuple[str, ...]:
    try:
        known = use_of(variables, nodes).by_node
    except SchedulerError:
        return nodes  # drain them all the same: the scheduler will say whether it can
    return tuple(name for name in nodes if name not in known or not known[name].out)


def _drained(kind: str, nodes: tuple[str, ...], reason: str) -> str:
    words = f"{OURS} {reason}"[:LONGEST]
    if not kind:
        return ""
    if not nodes:
        return f"out in {kind} already"
    if kind == "slurm":
        asked(
            ("scontrol", "update", f"NodeName={','.join(nodes)}", "State=DRAIN", f"Reason={words}")
        )
        return "drained in Slurm"
    # The mark first: a node that is cordoned without it would never be given back.
    asked(("kubectl", "annotate", "--overwrite", "node", *nodes, f"{ANNOTATION}={words}"))
    asked(("kubectl", "cordon", *nodes))
    return "cordoned in Kubernetes"
