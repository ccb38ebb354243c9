"""Are there enough healthy nodes? Answered from the journals alone, no node is touched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from recovery import inventory as inventories
from recovery.engine.health import MESH, Answer, NodeHistory
from recovery.engine.summary import took
from recovery.model.verdict import Level

MOST_REASONS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the journals say about one node: PASS, UNKNOWN or FAIL, and why."""

    node: str
    level: Level
    reason: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateAnswer:
    """The answer. ``exit_code``: 0 enough, 1 too few, 3 nodes without a fresh answer could do."""

    needed: int
    standings: tuple[Standing, ...]

    def with_level(self, level: Level) -> tuple[str, ...]:
        """Nodes that stand so."""
        return tuple(s.node for s in self.standings if s.level is level)

    @property
    def exit_code(self) -> int:
        """As of `recover preflight`."""
        n_good = len(self.with_level(Level.PASS))
        if n_good >= self.needed:
            return 0
        return 3 if n_good + len(self.with_level(Level.UNKNOWN)) >= self.needed else 1


def ask(
    known: Mapping[str, NodeHistory],
    nodes: Iterable[str],
    *,
    needed: int,
    oldest: float,
    with_mesh: bool,
) -> GateAnswer:
    """Judges nodes by their newest answers that are not older than ``oldest``.

    ``with_mesh``: a network test must be among them.
    """
    found = (_standing(name, known.get(name), oldest, with_mesh=with_mesh) for name in nodes)
    return GateAnswer(needed=needed, standings=tuple(found))


def _standing(
    name: str, history: NodeHistory | None, oldest: float, *, with_mesh: bool
) -> Standing:
    if history is None:
        return _unknown(name, "never tested")
    bad = _bad(history, oldest)
    if bad is not None:
        return Standing(node=name, level=bad.level, reason=_words(bad), remedy=bad.remedy)
    if history.aside is not None:
        aside = history.aside
        reason = f"set aside: {aside.step}: {aside.reason}"
        return Standing(node=name, level=Level.FAIL, reason=reason, remedy=aside.remedy)
    fresh = {a.question for a in history.answers.values() if a.at >= oldest}
    if not fresh:
        return _unknown(name, "not tested in this time")
    if with_mesh and MESH not in fresh:
        return _unknown(name, "its network was not tested in this time")
    return Standing(node=name, level=Level.PASS)


def _bad(history: NodeHistory, oldest: float) -> Answer | None:
    """The worst answer that counts: a failure stands until it is asked again, however old."""
    counting = (
        a
        for a in history.answers.values()
        if a.level is Level.FAIL or (a.level.blocks and a.at >= oldest)
    )
    return max(counting, key=lambda a: (a.level, a.at), default=None)


def _words(answer: Answer) -> str:
    own = answer.finding.removeprefix(f"{answer.question}: ")
    return f"{answer.question}: {own} (run {answer.run})"


def _unknown(name: str, reason: str) -> Standing:
    return Standing(
        node=name, level=Level.UNKNOWN, reason=reason, remedy="test it: recover preflight"
    )


def as_values(answer: GateAnswer) -> dict[str, Any]:
    """The answer as JSON-able values."""
    good = answer.with_level(Level.PASS)
    return {
        "ready": answer.exit_code == 0,
        "exit_code": answer.exit_code,
        "needed": answer.needed,
        "nodes": list(good),
        "nodelist": inventories.fold(good),
        "not_ready": {
            s.node: {"level": s.level.word, "reason": s.reason, "remedy": s.remedy}
            for s in answer.standings
            if s.level is not Level.PASS
        },
    }


def told(answer: GateAnswer, cluster: str, *, age_s: float) -> list[str]:
    """The answer for people, worst first."""
    lines = _reasons(answer)
    good = answer.with_level(Level.PASS)
    word = {0: "READY", 1: "NOT READY", 3: "UNDECIDED"}[answer.exit_code]
    within = f"within {took(age_s)}"
    names = f": {inventories.fold(good)}" if good else ""
    lines.append(f"{word}: {len(good)} nodes passed {within}, {answer.needed} needed{names}")
    if answer.exit_code != 0:
        lines.append(f"next: recover preflight {cluster}")
    return lines


def _reasons(answer: GateAnswer) -> list[str]:
    same: dict[tuple[Level, str, str], list[str]] = {}
    for one in answer.standings:
        if one.level is not Level.PASS:
            same.setdefault((one.level, one.reason, one.remedy), []).append(one.node)
    lines: list[str] = []
    worst_first = sorted(same.items(), key=lambda item: -item[0][0])
    for (level, reason, remedy), names in worst_first[:MOST_REASONS]:
        lines.append(f"{level.name:7} {inventories.fold(names)}: {reason}")
        lines.append(f"        remedy: {remedy}")
    if len(worst_first) > MOST_REASONS:
        lines.append(f"        and {len(worst_first) - MOST_REASONS} more: --format json")
    return lines
