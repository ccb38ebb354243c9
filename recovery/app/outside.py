"""Telling the scheduler about nodes that were set aside."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

LIMIT_S = 30


def drain(variables: Mapping[str, object], nodes: tuple[str, ...], reason: str) -> str:
    """Takes nodes away from the scheduler that the inventory names; returns what to journal.

    A scheduler that does not answer is said, never raised: the nodes stay out of this run anyhow.
    """
    scheduler = variables.get("scheduler")
    if scheduler == "slurm":
        words = f"recover: {reason}"[:200]
        return _told(
            ["scontrol", "update", f"NodeName={','.join(nodes)}", "State=DRAIN", f"Reason={words}"],
            done="drained in Slurm",
        )
    if scheduler == "kubernetes":
        return _told(["kubectl", "cordon", *nodes], done="cordoned in Kubernetes")
    return ""


def _told(argv: list[str], *, done: str) -> str:
    try:
        asked = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"not {done}: {error}"
    if asked.returncode == 0:
        return done
    return f"not {done}: {(asked.stderr.strip() or 'no reason given')[:160]}"
