"""What the journals of all runs say about the nodes of a cluster; giving a node back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from recovery import inventory as inventories
from recovery.app import preparing
from recovery.app.scheduler import Use, release
from recovery.app.stories import stories_of as stories_of
from recovery.engine.health import RELEASED, NodeHistory, histories
from recovery.engine.history import RunStory
from recovery.engine.summary import took
from recovery.errors import InputError
from recovery.model.events import Noted
from recovery.model.inventory import Inventory
from recovery.model.ports import Clock
from recovery.model.verdict import Level
from recovery.store.journal import FileJournal
from recovery.store.runs import RunFolder

RETURN_RUNBOOK = "node-return"
N_PARTNERS = 2
_ORDER = ("set aside", "failing", "undecided", "drained", "never tested", "healthy")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """One node for people: its state, why, since when, and what was found how often."""

    node: str
    state: str
    reason: str = ""
    remedy: str = ""
    since: float | None = None
    last_at: float | None = None
    run: str = ""
    n_runs: int = 0
    n_bad_runs: int = 0
    findings: tuple[tuple[str, int], ...] = ()
    scheduler: str = ""


def rows(
    inventory: Inventory, stories: Iterable[RunStory], use: Use, names: Iterable[str]
) -> list[NodeRow]:
    """One row for each node, worst first."""
    known = histories(stories)
    found = [_row(name, known.get(name), use) for name in names if name in inventory.nodes]
    return sorted(found, key=lambda row: (_ORDER.index(row.state), -row.n_bad_runs))


def _row(name: str, history: NodeHistory | None, use: Use) -> NodeRow:
    seen = use.by_node.get(name)
    held = f"{seen.state}: {seen.reason}" if seen is not None and seen.out else ""
    if history is None:
        return NodeRow(node=name, state="drained" if held else "never tested", scheduler=held)
    state, reason, remedy, since, run = _state(history)
    state = "drained" if state == "healthy" and held else state
    return NodeRow(
        node=name,
        state=state,
        reason=reason,
        remedy=remedy,
        since=since,
        run=run,
        last_at=history.last_at,
        n_runs=history.n_runs,
        n_bad_runs=history.n_bad_runs,
        findings=tuple(history.findings.most_common()),
        scheduler=held,
    )


def _state(history: NodeHistory) -> tuple[str, str, str, float | None, str]:
    aside, worst = history.aside, history.worst
    if aside is not None:
        return "set aside", f"{aside.step}: {aside.reason}", aside.remedy, aside.since, aside.run
    if worst is None:
        return "never tested", "", "", None, ""
    if worst.level.blocks:
        state = "failing" if worst.level is Level.FAIL else "undecided"
        reason = f"{worst.question}: {worst.finding.removeprefix(f'{worst.question}: ')}"
        return state, reason, worst.remedy, worst.at, worst.run
    return "healthy", "", "", None, worst.run


def as_values(row: NodeRow) -> dict[str, Any]:
    """A row as JSON-able values."""
    return {
        "node": row.node,
        "state": row.state,
        "reason": row.reason,
        "remedy": row.remedy,
        "since": row.since,
        "last_tested_at": row.last_at,
        "run": row.run,
        "runs": row.n_runs,
        "bad_runs": row.n_bad_runs,
        "findings": dict(row.findings),
        "scheduler": row.scheduler,
    }


def told(found: Iterable[NodeRow], cluster: str, *, now: float) -> list[str]:
    """The rows for people: what is wrong one by one, what is well folded."""
    lines: list[str] = []
    folded: dict[str, list[NodeRow]] = {}
    for row in found:
        if row.state in ("healthy", "never tested"):
            folded.setdefault(row.state, []).append(row)
        else:
            lines += _lines(row, cluster, now)
    for state, same in folded.items():
        names = inventories.fold(row.node for row in same)
        tested = [row.last_at for row in same if row.last_at is not None]
        when = f", last tested {took(now - min(tested))} ago at the latest" if tested else ""
        lines.append(f"{state:13} {names} ({len(same)} nodes{when})")
        lines += [f"{'':13} {row.node}: {_lemon(row)}" for row in same if row.n_bad_runs > 1]
    return lines


def _lines(row: NodeRow, cluster: str, now: float) -> list[str]:
    since = f" since {took(now - row.since)}" if row.since is not None else ""
    lines = [f"{row.state:13} {row.node}{since}: {row.reason or row.scheduler}"]
    if row.reason and row.scheduler:
        lines.append(f"{'':13} scheduler: {row.scheduler}")
    if row.n_bad_runs:
        lines.append(f"{'':13} {_lemon(row)}")
    if row.remedy:
        lines.append(f"{'':13} remedy: {row.remedy}")
    if row.state == "set aside":
        lines.append(f"{'':13} mended? recover return {cluster} {row.node}")
    return lines


def _lemon(row: NodeRow) -> str:
    often = ", ".join(f"{code} {count}x" for code, count in row.findings[:4])
    return f"bad in {row.n_bad_runs} of {row.n_runs} runs: {often}"


def partners(
    inventory: Inventory, stories: Iterable[RunStory], use: Use, returned: tuple[str, ...]
) -> tuple[str, ...]:
    """Known good, idle nodes to test a returned node with: on its leaf, where there are some.

    Raises:
        InputError: nobody is known to be good.
    """
    found = rows(inventory, stories, use, inventory.nodes)
    taken = {*returned, *use.busy, *use.strangers}
    good = [row.node for row in found if row.state == "healthy" and row.node not in taken]
    leaves = {inventory.nodes[name].leaf for name in returned}
    near = sorted(good, key=lambda name: inventory.nodes[name].leaf not in leaves)
    if len(near) < N_PARTNERS:
        raise InputError(
            f"{len(near)} idle nodes are known to be good, and {N_PARTNERS} partners are needed",
            remedy="name two good, idle nodes: --partners 'node[001-002]'",
        )
    return tuple(near[:N_PARTNERS])


def prepare_return(
    cluster: str, returned: tuple[str, ...], mates: tuple[str, ...], overrides: Mapping[str, str]
) -> preparing.Prepared:
    """The plan that tests nodes before they are given back.

    Raises:
        InputError: what is wrong with the inventory or the runbook.
    """
    fold = inventories.fold
    return preparing.prepare(
        cluster,
        runbook=RETURN_RUNBOOK,
        overrides={"returned": fold(returned), "partners": fold(mates), **overrides},
    )


def give_back(
    folder: RunFolder, variables: Mapping[str, object], nodes: tuple[str, ...], clock: Clock
) -> str:
    """Releases nodes that passed, journals it, and returns what was done.

    Raises:
        SchedulerError: the scheduler does not answer, or refuses; nothing is journaled.
    """
    given, said = release(variables, nodes)
    journal = FileJournal(folder.journal)
    try:
        facts = {"nodes": list(nodes), "released": list(given)}
        journal.append(Noted(at=clock.now(), step="", message=said, kind=RELEASED, facts=facts))
    finally:
        journal.close()
    return f"{said}: {inventories.fold(given)}" if given else said
