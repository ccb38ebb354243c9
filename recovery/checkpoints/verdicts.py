"""A choice -> what to tell of the step as a whole, and of each node; with the exact commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from recovery.checkpoints.choose import Choice, Policy, Refusal
from recovery.checkpoints.inspection import Inspection, Pointer
from recovery.checkpoints.survey import Holding, Standing
from recovery.model.verdict import Finding, Verdict, failed, passed, unknown, verdict, warned

_GIB = 1 << 30


def step_verdict(choice: Choice, policy: Policy) -> Verdict:
    """FAIL when no step is complete everywhere, UNKNOWN when that could not be judged."""
    if choice.step is None:
        return verdict([_none(choice)], otherwise="")
    findings = [*_newer(choice), *_trust(choice, policy)]
    return verdict(findings or [passed(_summary(choice))], otherwise="")


def node_verdict(
    node: str, inspection: Inspection, choice: Choice, policy: Policy, *, set_aside: str
) -> Verdict:
    """What one node holds, against the chosen step. ``set_aside`` is the folder for torn ones."""
    findings = [
        *_presence(node, inspection, choice),
        *_damage(node, choice, set_aside),
        *_storage(node, inspection, choice),
        *_clock(node, policy),
        *repairs(node, inspection, choice),
        *_weakness(inspection),
    ]
    words = f"step {choice.step} is sound here" if choice.step is not None else "sound steps here"
    return verdict(findings, otherwise=words)


def _none(choice: Choice) -> Finding:
    if not choice.refused:
        return failed(
            "no checkpoint on any node",
            remedy="is the path right, and mounted? `recover checkpoint inspect PATH` on a node",
            code="checkpoint.none",
        )
    best = min(choice.refused, key=lambda r: (len(r.by_node) or 1 << 30, -r.step))
    near = f"nearest: step {best.step}, {best.reason}"
    if best.by_node and len(best.by_node) < 9:
        near += f" ({', '.join(sorted(best.by_node))})"
    tell = unknown if choice.undecided else failed
    return tell(
        f"no step is complete on every node; {near}",
        remedy=_way_out(best),
        code="checkpoint.none-complete",
    )


def _way_out(best: Refusal) -> str:
    if best.rule == "C18":
        return "if the job can do without them, say so: `require: [...]` in the checkpoint step"
    if best.by_node:
        return "leave those nodes out (`--nodes`), or copy the step from a sound node, then resume"
    return "look at each node: `recover checkpoint inspect PATH`"


def _summary(choice: Choice) -> str:
    facts, candidate = choice.facts, choice.candidate
    nodes = len(candidate.at) if candidate else 0
    words = [f"step {choice.step} is complete on {nodes} node{'s' * (nodes != 1)}"]
    for name, label in (("loss", "loss"), ("lr", "LR"), ("epoch", "epoch")):
        if isinstance(facts.get(name), int | float):
            words.append(f"{label} {facts[name]:.6g}")
    if choice.shared and len(choice.shared[0]) == nodes:
        words.append("one shared directory")
    return ", ".join(words)


def _newer(choice: Choice) -> Iterable[Finding]:
    for refusal in choice.refused[:5]:
        who = ", ".join(sorted(refusal.by_node)[:6])
        why = next((w for w in refusal.by_node.values() if w != "not there"), "")
        words = f"step {refusal.step} is not used: {refusal.reason}"
        words += f" ({who})" if who else ""
        words += f": {why}" if why else ""
        yield warned(
            f"{words}; step {choice.step} is",
            remedy="the training repeats the steps between; a torn one stays as evidence",
            code=f"checkpoint.{(refusal.rule or 'behind').lower()}",
        )


def _trust(choice: Choice, policy: Policy) -> Iterable[Finding]:
    if choice.distrusted:
        yield warned(
            f"step {choice.step} was written after the first uncorrectable error,"
            " and nothing older is sound",
            remedy="compare its loss with the log; restart from an export if it diverges",
            code="checkpoint.distrust",
        )
    if choice.young_s is not None:
        yield warned(
            f"step {choice.step} ended {max(choice.young_s, 0.0):.0f} s before the outage"
            f" (limit {policy.young_s:.0f} s): its bytes may not have reached the disk",
            remedy="say `deep: true` to read every checksum before the launch",
            code="checkpoint.young",
        )
    spread = _spread(choice, policy)
    if spread:
        yield spread


def _spread(choice: Choice, policy: Policy) -> Finding | None:
    """C26: save times of one step far apart, clock offsets taken out; it never decides."""
    if choice.candidate is None:
        return None
    times = {
        n: h.checkpoint.newest_s - policy.clock_offset_s.get(n, 0.0)
        for n, h in choice.candidate.at.items()
        if h.checkpoint and h.checkpoint.newest_s is not None
    }
    usual = choice.facts.get("save_s")
    limit = max(policy.skew_s, 3 * usual if isinstance(usual, int | float) else 0.0)
    if len(times) < 2 or max(times.values()) - min(times.values()) <= limit:
        return None
    first, last = min(times, key=times.__getitem__), max(times, key=times.__getitem__)
    return warned(
        f"step {choice.step} was saved {times[last] - times[first]:.0f} s apart on {first}, {last}",
        remedy="was a clock wrong, or a checkpoint copied? compare the training logs",
        code="checkpoint.c26",
    )


def _presence(node: str, inspection: Inspection, choice: Choice) -> Iterable[Finding]:
    gone = [p.path for p in inspection.places if not p.exists]
    if gone:
        yield failed(
            f"{gone[0]} is not there",
            remedy=f"is it mounted? `findmnt -T {shlex.quote(gone[0])}` on the node",
            code="checkpoint.path-missing",
        )
    elif node in choice.without:
        for words in inspection.errors[:1]:
            yield unknown(words, remedy="look at the path on this node", code="checkpoint.unread")
        yield failed(
            "no checkpoint here, and other nodes are judged without this one",
            remedy="is this the right disk? copy the chosen step from another node",
            code="checkpoint.none-here",
        )
    elif node in choice.lagging:
        behind = choice.lagging[node]
        words = f"the newest sound step here is {behind}" if behind else "no sound step here"
        tell = warned if behind is not None and choice.step is not None else failed
        yield tell(
            f"{words}; other nodes have newer ones",
            remedy="nothing to do when it is the chosen step; else copy from a sound node",
            code="checkpoint.behind",
        )


def _damage(node: str, choice: Choice, set_aside: str) -> Iterable[Finding]:
    for refusal in choice.refused[:3]:
        why, path = refusal.by_node.get(node), refusal.paths.get(node)
        if why and path:
            yield warned(
                f"step {refusal.step} is not sound here: {why}",
                remedy=f"move it out of the directory: `{aside(path, set_aside)}`",
                component=path,
                code=f"checkpoint.{(refusal.rule or 'torn').lower()}",
            )


def aside(path: str, folder: str) -> str:
    """The command that moves a torn checkpoint out of its directory; nothing is deleted.

    Renamed in place it would still be picked up: TorchTitan reads ``step-100.bad`` as step 100.
    """
    where = folder or path.rpartition("/")[0].rstrip("/") + ".aside"
    return f"mkdir -p {shlex.quote(where)} && mv -n {shlex.quote(path)} {shlex.quote(where)}/"


def hold(path: str) -> str:
    """The command that keeps a sound checkpoint from pruning by a second link to its files.

    Frameworks delete old checkpoints after the first new save, before the resume is verified.
    """
    where = path.rpartition("/")[0].rstrip("/") + ".hold"
    return f"mkdir -p {shlex.quote(where)} && cp -al {shlex.quote(path)} {shlex.quote(where)}/"


def _storage(node: str, inspection: Inspection, choice: Choice) -> Iterable[Finding]:
    held = choice.candidate.at.get(node) if choice.candidate else None
    size = held.checkpoint.size_bytes if held and held.checkpoint else 0
    for place in inspection.places:
        if place.read_only:
            yield failed(
                f"{place.path} is mounted read-only: the job could not save",
                remedy="look at the kernel log for I/O errors, then `mount -o remount,rw`",
                code="checkpoint.read-only",
            )
        if place.storage_known and size and place.free_bytes < size:
            yield failed(
                f"{place.path}: {place.free_bytes / _GIB:.1f} GiB free,"
                f" the next checkpoint needs {size / _GIB:.1f} GiB",
                remedy="move older checkpoints away before the launch",
                code="checkpoint.space",
            )


def _clock(node: str, policy: Policy) -> Iterable[Finding]:
    offset = policy.clock_offset_s.get(node, 0.0)
    if abs(offset) > policy.skew_s:
        way = "ahead of" if offset > 0 else "behind"
        yield warned(
            f"its clock is {abs(offset):.0f} s {way} ours; steps are compared, not times",
            remedy="`chronyc makestep` on the node; after a power loss look at the RTC battery",
            code="checkpoint.clock",
        )


def _weakness(inspection: Inspection) -> Iterable[Finding]:
    if inspection.power != "full":
        yield warned(
            "judged by the shell alone (no python3): ends and sizes of files, not their content",
            remedy="install python3 on this node, or read the checkpoint on another",
            code="checkpoint.weak",
        )
    yield from (f for f in inspection.findings if f.level.blocks)


def repairs(node: str, inspection: Inspection, choice: Choice) -> list[Finding]:
    """Pointer files that would make the framework load another step, with the exact repair."""
    held: Holding | None = choice.candidate.at.get(node) if choice.candidate else None
    if held is None or held.checkpoint is None or held.standing is not Standing.SOUND:
        return []
    if any(node in group and node != min(group) for group in choice.shared):
        return []  # the same file: one node tells it
    folder, _, name = held.checkpoint.path.rpartition("/")
    mine = [p for p in inspection.pointers if p.path.rpartition("/")[0] == folder]
    return [_repair(p, choice.step, name) for p in mine if _wrong(p, choice.step, name)]


def _wrong(pointer: Pointer, step: int | None, name: str) -> bool:
    """A sound pointer to a newer step is wrong as well, when that is not the chosen one."""
    if pointer.text == "release" and not pointer.problem:
        return False
    return pointer.step != step if pointer.step is not None else pointer.text != name


def _repair(pointer: Pointer, step: int | None, name: str) -> Finding:
    value = str(step) if pointer.path.endswith(".txt") else name
    words = pointer.words or f"the pointer names {pointer.text}"
    return warned(
        f"{words}; the step to resume from is {step}",
        remedy=f"printf %s {shlex.quote(value)} > {shlex.quote(pointer.path)}",
        component=pointer.path,
        code="checkpoint.c05" if pointer.problem == "missing" else "checkpoint.c04",
    )
