"""The runbook of `recover power`, and how the nodes stood at its end."""

from __future__ import annotations

import json
from collections.abc import Mapping

from recovery import inventory as inventories
from recovery.app import preparing
from recovery.engine.history import story_of
from recovery.store.journal import read_journal
from recovery.store.runs import RunFolder

RUNBOOK = "power"


def prepare(
    cluster: str, expression: str, action: str, overrides: Mapping[str, str]
) -> preparing.Prepared:
    """The plan that switches the nodes of an expression.

    Raises:
        InputError: what is wrong with the inventory or the expression; too many nodes.
    """
    return preparing.prepare(
        cluster,
        runbook=RUNBOOK,
        # A value of -e is YAML, and a bare `off` is no text there.
        overrides={"targets": json.dumps(expression), "action": json.dumps(action), **overrides},
    )


def told(folder: RunFolder, cluster: str) -> list[str]:
    """How the nodes stand by their BMCs' last words, what is not as it should be first."""
    step = story_of(read_journal(folder.journal)).steps.get("power")
    if step is None:
        return ["nothing was asked"]
    by_state: dict[str, list[str]] = {"no answer": [], "off": [], "on": []}
    for name, result in step.results.items():
        by_state[str(result.values.get("power") or "no answer")].append(name)
    lines = [
        f"{state:10} {inventories.fold(names)} ({len(names)} nodes)"
        for state, names in by_state.items()
        if names
    ]
    lines += [str(line) for line in step.values.get("losses", ())]
    if by_state["off"] and step.values.get("action") == "status":
        lines.append(f"next: recover power {cluster} '{inventories.fold(by_state['off'])}' on")
    return lines
