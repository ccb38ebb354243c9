"""Every checkpoint as the nodes together hold it: who has it whole, torn, or not at all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from recovery.checkpoints.inspection import Checkpoint, Inspection, Problem, fold_numbers
from recovery.model.verdict import Level

# Types of file systems that several nodes see at once (statfs names in /proc/self/mountinfo).
_NETWORK = re.compile(
    r"^(nfs4?|lustre|gpfs|beegfs|ceph|cifs|smb3|9p|virtiofs|wekafs|glusterfs|orangefs|pvfs2|ocfs2|"
    r"gfs2|panfs|fuse\..*|daos|juicefs)$"
)
_RANK_FILE = re.compile(r"rank_\d|rng_state_\d|random_states_\d|_local\.pt$")
# As the inspector blanks the step in a name when it compares with the checkpoint before.
_NUMBER = re.compile(r"((?:iter_|global_step|step[-=_]|checkpoint[-_]|epoch[-=_]))(\d+)")
# Parts that data-parallel replicas hold in the same content; a rank's own file carries its number.
_REPLICATED = re.compile(
    r"^(model|pytorch_model|optimizer|scheduler)[^/]*\.(safetensors|pt|bin)$|^[^/]*\.(ckpt|pth)$"
)


class Standing(StrEnum):
    """How a node stands to one checkpoint."""

    SOUND = "sound"
    TORN = "torn"
    ABSENT = "absent"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Holding:
    """One node's part of a candidate; ``why`` says what is wrong with it."""

    standing: Standing
    checkpoint: Checkpoint | None = None
    why: str = ""
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One step of one series, over all nodes that take part."""

    series: str
    step: int
    at: Mapping[str, Holding]

    @property
    def whole(self) -> bool:
        """Claims that every node holds it sound."""
        return all(h.standing is Standing.SOUND for h in self.at.values())

    def nodes(self, standing: Standing) -> tuple[str, ...]:
        """The nodes that stand so to it, sorted."""
        return tuple(sorted(n for n, h in self.at.items() if h.standing is standing))

    @property
    def components(self) -> frozenset[str]:
        """Components that all nodes together hold."""
        parts = (h.checkpoint.components for h in self.at.values() if h.checkpoint)
        return frozenset(c for components in parts for c in components)

    @property
    def written_s(self) -> float:
        """When its last file was written, by the nodes' clocks; 0 when nobody knows."""
        times = (h.checkpoint.newest_s for h in self.at.values() if h.checkpoint)
        return max((t for t in times if t is not None), default=0.0)


def survey(inspections: Mapping[str, Inspection]) -> tuple[Candidate, ...]:
    """All candidates, the newest step first.

    Only inspections with at least one checkpoint of a known step take part: a node with none is
    a finding of its own and must not hide what the others have.
    """
    groups = shared_groups(inspections)
    found = _collect(inspections)
    candidates = [
        _views(_replicas(_stand(series, step, at, inspections), groups), groups)
        for (series, step), at in found.items()
    ]
    return tuple(sorted(candidates, key=lambda c: (-c.step, -c.written_s, c.series)))


def shared_groups(inspections: Mapping[str, Inspection]) -> tuple[frozenset[str], ...]:
    """Nodes that look at the same directory, in groups of two and more.

    The same mount source and inode on a network file system; on a local one (two freshly
    installed nodes may agree in both by chance) they must also see one checkpoint with equal
    inodes and times to the nanosecond.
    """
    groups: dict[tuple[str, int, str], set[str]] = {}
    for node, inspection in inspections.items():
        for place in inspection.places[:1]:
            if not place.storage_known:
                continue
            proof = "" if _NETWORK.match(place.fstype) else _proof(inspection)
            if proof is not None:
                groups.setdefault((place.source, place.inode, proof), set()).add(node)
    return tuple(frozenset(g) for g in groups.values() if len(g) > 1)


def _proof(inspection: Inspection) -> str | None:
    """The oldest checkpoint's digest: the one least likely to differ by staleness."""
    seen = [(c.step, c.seen) for c in inspection.checkpoints if c.step is not None and c.seen]
    return min(seen)[1] if seen else None


Found = dict[tuple[str, int], dict[str, Checkpoint]]


def _collect(inspections: Mapping[str, Inspection]) -> Found:
    found: Found = {}
    for node, inspection in inspections.items():
        for checkpoint in inspection.checkpoints:
            if checkpoint.step is None:
                continue
            at = found.setdefault((checkpoint.series, checkpoint.step), {})
            at[node] = _better(at.get(node), checkpoint)
    return found


def _better(one: Checkpoint | None, other: Checkpoint) -> Checkpoint:
    """A name that tells the step counts before an alias; of two such names, the sounder."""
    if one is None:
        return other
    return min(one, other, key=lambda c: (c.alias, c.level))


def _stand(
    series: str, step: int, at: Mapping[str, Checkpoint], inspections: Mapping[str, Inspection]
) -> Candidate:
    whole = _ranks_whole(at.values())
    names = Counter(f.name for c in at.values() for f in c.files)
    holdings = {
        node: _holding(at[node], whole, names) if node in at else Holding(Standing.ABSENT)
        for node, inspection in inspections.items()
        if any(c.step is not None for c in inspection.checkpoints)
    }
    return _one_save(Candidate(series, step, holdings))


def _ranks_whole(checkpoints: Iterable[Checkpoint]) -> bool:
    sets = [c.ranks for c in checkpoints if c.ranks]
    have = frozenset(n for s in sets for n in s.have)
    want = frozenset(n for s in sets for n in s.want)
    return bool(sets) and want <= have


def _holding(checkpoint: Checkpoint, whole: bool, names: Counter[str]) -> Holding:  # noqa: FBT001 - private, named at its only call
    blocking = [
        p
        for p in checkpoint.problems
        if p.finding.level.blocks and not _healed(p, names, whole=whole)
    ]
    if not blocking:
        if checkpoint.level.blocks and not checkpoint.problems:
            return Holding(Standing.UNDECIDED, checkpoint, "the inspector gave no reason")
        return Holding(Standing.SOUND, checkpoint)
    worst = max(blocking, key=lambda p: p.finding.level)
    where = f"{worst.finding.component}: " if worst.finding.component else ""
    standing = Standing.TORN if worst.finding.level is Level.FAIL else Standing.UNDECIDED
    return Holding(standing, checkpoint, where + worst.finding.finding, worst.rule)


def _healed(problem: Problem, names: Counter[str], *, whole: bool) -> bool:
    """What looks absent on one node is no fault where another node holds it, by design."""
    if problem.rule == "C17":
        return problem.finding.level is Level.UNKNOWN and whole
    if problem.rule == "C19":
        ranked = bool(problem.absent) and all(map(_RANK_FILE.search, problem.absent))
        held = {_NUMBER.sub(r"\1#", name) for name in names}
        return whole and ranked and held.issuperset(problem.absent)
    if problem.rule == "C13":
        shards = [name for name in problem.absent if name.endswith(".distcp")]
        return bool(shards) and len(shards) == len(problem.absent) and all(names[n] for n in shards)
    return False


def _one_save(candidate: Candidate) -> Candidate:
    """Parts of a distributed checkpoint must come from one save, where the save has an id."""
    ids = {
        node: str(h.checkpoint.facts["save_id"])
        for node, h in candidate.at.items()
        if h.checkpoint and h.checkpoint.facts.get("save_id")
    }
    return _outvoted(candidate, ids, "C27", "comes from another save than on the other nodes")


def _replicas(candidate: Candidate, groups: tuple[frozenset[str], ...]) -> Candidate:
    """Replicas of one file must be equal; a minority is torn, and where all differ none is one."""
    by_name: dict[str, dict[str, str]] = {}
    for node, holding in candidate.at.items():
        if holding.standing is not Standing.SOUND or holding.checkpoint is None:
            continue
        if any(node in group and node != min(group) for group in groups):
            continue  # the same bytes: one look is enough
        for file in holding.checkpoint.files:
            if file.identity and _REPLICATED.match(file.name):
                by_name.setdefault(file.name, {})[node] = file.identity
    for name, ids in sorted(by_name.items()):
        words = f"{name}: differs from the same file on the other nodes"
        candidate = _outvoted(candidate, ids, "C27", words)
    return candidate


def _views(candidate: Candidate, groups: tuple[frozenset[str], ...]) -> Candidate:
    """Nodes on one shared directory must see the same files."""
    for group in groups:
        seen = {
            node: checkpoint.seen
            for node in group
            if node in candidate.at and (checkpoint := candidate.at[node].checkpoint)
        }
        words = "this node sees other files than the others on the same share: a stale view"
        candidate = _outvoted(candidate, seen, "C28", words)
        blind = [n for n in group if n in candidate.at and n not in seen]
        if blind and len(seen) >= 1:
            unseen = Holding(Standing.UNDECIDED, None, "not visible here: a stale view", "C28")
            candidate = replace(candidate, at={**candidate.at, **dict.fromkeys(blind, unseen)})
    return candidate


def _outvoted(candidate: Candidate, ids: Mapping[str, str], rule: str, words: str) -> Candidate:
    """Marks the nodes whose id differs from what more than half have; all of two that differ."""
    counts = Counter(ids.values())
    if len(counts) < 2:
        return candidate
    id_, votes = counts.most_common(1)[0]
    if votes * 2 > len(ids):
        losers = [node for node, own in ids.items() if own != id_]
    elif rule == "C27" and len(counts) == len(ids) and "save" not in words:
        return candidate  # all differ: each node's own state, no replicas
    else:
        losers = list(ids)
    marked = {
        node: replace(candidate.at[node], standing=Standing.TORN, why=words, rule=rule)
        for node in losers
    }
    return replace(candidate, at={**candidate.at, **marked})


def missing_ranks(candidate: Candidate) -> str:
    """Ranks that no node holds, folded; empty when none is missing or nothing is known."""
    sets = [
        h.checkpoint.ranks for h in candidate.at.values() if h.checkpoint and h.checkpoint.ranks
    ]
    have = frozenset(n for s in sets for n in s.have)
    want = frozenset(n for s in sets for n in s.want)
    return fold_numbers(want - have)
