"""What the nodes hold -> the step to resume from, and why not a newer one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recovery.checkpoints.inspection import Checkpoint, Inspection
from recovery.checkpoints.survey import Candidate, Standing, missing_ranks, shared_groups, survey


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a checkpoint must hold, and when it may not be trusted.

    Times are the controller's POSIX seconds; ``clock_offset_s`` is each node's clock minus the
    controller's. A save that ended less than ``young_s`` before the outage is suspect: after real
    power cuts ext4 and xfs lost files that were up to 45 s old, nothing older was tested. Steps
    from ``before`` on are not looked at (0: all are).
    """

    require: tuple[str, ...] = ("model", "optimizer")
    before: int = 0
    outage_at_s: float | None = None
    distrust_from_s: float | None = None
    young_s: float = 120.0
    skew_s: float = 120.0
    clock_offset_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A newer step that is not the one to resume from; ``paths`` says where each node has it."""

    step: int
    reason: str
    by_node: Mapping[str, str]
    rule: str = ""
    paths: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The resume step and everything that was weighed; ``step`` is None when there is none.

    ``undecided`` says that a newer or any step could not be judged, rather than being bad.
    ``lagging`` gives the newest sound step of nodes behind the best, ``torn`` the damaged steps
    of each node, ``alone`` the newest step that would do without the nodes that lack it.
    """

    step: int | None
    candidate: Candidate | None = None
    newest: int | None = None
    refused: tuple[Refusal, ...] = ()
    lagging: Mapping[str, int | None] = field(default_factory=dict)
    torn: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    without: tuple[str, ...] = ()  # nodes with no checkpoint at all: they took no part
    shared: tuple[frozenset[str], ...] = ()
    distrusted: bool = False
    young_s: float | None = None  # age of the chosen save at the outage, when suspect
    undecided: bool = False

    @property
    def paths(self) -> dict[str, str]:
        """Where the chosen step lies on each node."""
        return _paths(self.candidate) if self.candidate else {}

    @property
    def below(self) -> str:
        """Where the chosen step lies below the path asked for; the same on every node."""
        held = self.candidate.at.values() if self.candidate else ()
        tails = [h.checkpoint.path[len(h.checkpoint.place) :] for h in held if h.checkpoint]
        return tails[0].strip("/") if tails else ""

    @property
    def path(self) -> str:
        """Where the chosen step lies on most nodes."""
        paths = list(self.paths.values())
        return max(sorted(set(paths)), key=paths.count, default="")

    @property
    def facts(self) -> Mapping[str, Any]:
        """Facts of the chosen step, from the node that knows most."""
        if self.candidate is None:
            return {}
        known = [h.checkpoint.facts for h in self.candidate.at.values() if h.checkpoint]
        return max(known, key=len, default={})


def choose(inspections: Mapping[str, Inspection], policy: Policy) -> Choice:
    """The newest step that every node holds sound, complete in ranks and components.

    Nodes that hold no checkpoint at all take no part (``without``); their own verdict is a
    failure. A step written after the first uncorrectable error is passed over for the one before,
    unless nothing else is sound.
    """
    found = survey(inspections)
    candidates = tuple(c for c in found if not policy.before or c.step < policy.before)
    refused: list[Refusal] = []
    fallback: Candidate | None = None
    chosen: Candidate | None = None
    for candidate in candidates:
        refusal = _refusal(candidate, policy)
        if refusal is None and _distrusted(candidate, policy):
            words = "written after the first uncorrectable error: not to be trusted"
            refusal = Refusal(candidate.step, words, {}, "distrust", _paths(candidate))
            fallback = fallback or candidate
        if refusal is None:
            chosen = candidate
            break
        refused.append(refusal)
    final = chosen or fallback
    return Choice(
        step=final.step if final else None,
        candidate=final,
        newest=candidates[0].step if candidates else None,
        refused=tuple(r for r in refused if final is None or r.step > final.step),
        lagging=_lagging(candidates),
        torn=_torn(candidates),
        without=_without(inspections),
        shared=shared_groups(inspections),
        distrusted=chosen is None and fallback is not None,
        young_s=_young(final, policy),
        undecided=_undecided(candidates, final),
    )


def _refusal(candidate: Candidate, policy: Policy) -> Refusal | None:
    bad = {n: h for n, h in candidate.at.items() if h.standing is not Standing.SOUND}
    if bad:
        by_node = {n: h.why or "not there" for n, h in bad.items()}
        rule = next((h.rule for h in bad.values() if h.rule), "")
        gone = missing_ranks(candidate)
        words = f"ranks {gone} are on no node" if gone else _counted(candidate)
        return Refusal(candidate.step, words, by_node, rule, _paths(candidate))
    lacking = [c for c in policy.require if c not in candidate.components]
    if lacking:
        words = f"no {', '.join(lacking)} in it"
        return Refusal(candidate.step, words, {}, "C18", _paths(candidate))
    return None


def _counted(candidate: Candidate) -> str:
    words = {
        Standing.TORN: "torn on",
        Standing.ABSENT: "missing on",
        Standing.UNDECIDED: "undecided on",
    }
    counts = [(w, candidate.nodes(standing)) for standing, w in words.items()]
    total = len(candidate.at)
    return ", ".join(f"{w} {len(nodes)} of {total} nodes" for w, nodes in counts if nodes)


def _paths(candidate: Candidate) -> dict[str, str]:
    return {n: h.checkpoint.path for n, h in candidate.at.items() if h.checkpoint}


def _written(checkpoint: Checkpoint | None, node: str, policy: Policy) -> float | None:
    """When it was written, by the controller's clock."""
    if checkpoint is None or checkpoint.newest_s is None:
        return None
    return checkpoint.newest_s - policy.clock_offset_s.get(node, 0.0)


def _times(candidate: Candidate, policy: Policy) -> list[float]:
    found = (_written(h.checkpoint, n, policy) for n, h in candidate.at.items())
    return [t for t in found if t is not None]


def _distrusted(candidate: Candidate, policy: Policy) -> bool:
    after = policy.distrust_from_s
    return after is not None and any(t >= after for t in _times(candidate, policy))


def _young(candidate: Candidate | None, policy: Policy) -> float | None:
    """Age of the newest file at the outage, when it is below the limit; files from after it, too.

    A clock that was reset makes a file look old: several nodes are asked, the youngest counts.
    """
    if candidate is None or policy.outage_at_s is None:
        return None
    ages = [policy.outage_at_s - t for t in _times(candidate, policy)]
    young = [age for age in ages if age < policy.young_s]
    return min(young) if young else None


def _sound_steps(candidates: tuple[Candidate, ...]) -> dict[str, list[int]]:
    steps: dict[str, list[int]] = {n: [] for c in candidates for n in c.at}
    for candidate in candidates:
        for node in candidate.nodes(Standing.SOUND):
            steps[node].append(candidate.step)
    return steps


def _lagging(candidates: tuple[Candidate, ...]) -> dict[str, int | None]:
    newest = {n: max(steps, default=None) for n, steps in _sound_steps(candidates).items()}
    best = max((s for s in newest.values() if s is not None), default=None)
    return {n: s for n, s in sorted(newest.items()) if best is not None and s != best}


def _torn(candidates: tuple[Candidate, ...]) -> dict[str, tuple[int, ...]]:
    torn: dict[str, list[int]] = {}
    for candidate in candidates:
        for node in candidate.nodes(Standing.TORN):
            torn.setdefault(node, []).append(candidate.step)
    return {node: tuple(sorted(set(steps))) for node, steps in sorted(torn.items())}


def _without(inspections: Mapping[str, Inspection]) -> tuple[str, ...]:
    empty = (
        n for n, i in inspections.items() if not any(c.step is not None for c in i.checkpoints)
    )
    return tuple(sorted(empty))


def _undecided(candidates: tuple[Candidate, ...], final: Candidate | None) -> bool:
    newer = [c for c in candidates if final is None or c.step > final.step]
    return any(
        c.nodes(Standing.UNDECIDED) and not c.nodes(Standing.TORN) and not missing_ranks(c)
        for c in newer
    )
