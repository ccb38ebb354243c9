"""A preflight for a job: which nodes it can have, which of them are healthy, which to take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recovery import inventory as inventories
from recovery.app import files, preparing
from recovery.app.groups import RunGroups
from recovery.app.scheduler import Use, kind_of, partition_nodes
from recovery.engine.ending import RunEnd
from recovery.engine.history import RunStory
from recovery.errors import InputError
from recovery.inventory.picking import pick_by_leaf
from recovery.model.inventory import Inventory
from recovery.reading.sbatch import JobRequest, read_job

RUNBOOK = "preflight"
DEPTHS = ("quick", "standard", "full")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked for: ``least`` to ``most`` of ``nodes`` (None: the runbook's own gate).

    ``must`` are nodes that have to be among them; ``excluded`` is what the job excludes itself.
    """

    nodes: tuple[str, ...]
    least: int | None = None
    most: int | None = None
    must: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    script: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The answer: which nodes are healthy, which to take, and which to keep the job away from.

    ``exit_code``: 0 enough healthy nodes, 1 too few, 3 too few answers to say.
    """

    wanted: Wanted
    picked: tuple[str, ...]
    healthy: tuple[str, ...]
    untested: tuple[str, ...]  # they run jobs, or nobody knows whether they do
    reason: str
    exit_code: int

    @property
    def exclude(self) -> tuple[str, ...]:
        """Nodes that the job could get and should not, with those that it excludes itself."""
        unfit = (name for name in self.wanted.nodes if name not in self.healthy)
        return tuple(dict.fromkeys((*self.wanted.excluded, *unfit)))


def wanted(
    inventory: Inventory,
    words: Iterable[str] = (),
    *,
    job: str | None = None,
    options: Sequence[str] = (),
) -> Wanted:
    """What ``--nodes`` (a number, an expression, or both) and ``--for`` ask for.

    Raises:
        InputError: a script or an expression that cannot be read; more nodes than there are.
        SchedulerError: Slurm is to say which nodes a partition has, and does not answer.
    """
    number, expression = _number_and_expression(words)
    names = RunGroups(inventory).select(expression or _default(inventory))
    if job is None:
        return _enough(Wanted(nodes=names, least=number, most=number))
    request = read_job(_text(job), job, options)
    names = _in_partitions(inventory, request, names)
    excluded = inventories.expand(request.exclude)
    must = inventories.expand(request.nodelist)
    strange = [name for name in must if name not in names]
    if strange:
        raise InputError(
            f"{job}: wants {inventories.fold(strange)}, not among the nodes that it can have",
            remedy="correct --nodelist, or the inventory",
        )
    return _enough(
        Wanted(
            nodes=tuple(name for name in names if name not in excluded),
            least=number or max(request.least_nodes, len(must)),
            most=number or max(request.most_nodes, len(must)),
            must=must,
            excluded=excluded,
            script=job,
        )
    )


def _number_and_expression(words: Iterable[str]) -> tuple[int | None, str]:
    found = tuple(words)
    numbers = [int(word) for word in found if word.isdecimal()]
    expressions = [word for word in found if not word.isdecimal()]
    if len(numbers) > 1 or 0 in numbers:
        raise InputError("--nodes: one number, and not 0", remedy="--nodes 16 --nodes @gpu")
    return (numbers[0] if numbers else None), ", ".join(f"({one})" for one in expressions)


def _default(inventory: Inventory) -> str:
    return "@gpu" if "gpu" in inventory.groups else "all"


def _text(job: str) -> str:
    return files.local_file(job).decode("utf-8", "replace")


def _in_partitions(
    inventory: Inventory, request: JobRequest, names: tuple[str, ...]
) -> tuple[str, ...]:
    """A partition's nodes by Slurm's word; without Slurm, by the inventory's group of its name."""
    if not request.partitions:
        return names
    if kind_of(inventory.variables) == "slurm":
        there = partition_nodes(inventory.variables, request.partitions)
    else:
        groups = [inventory.groups.get(name) for name in request.partitions]
        if None in groups:
            raise InputError(
                f"nobody says which nodes are in partition {', '.join(request.partitions)}",
                remedy="write scheduler: slurm into the inventory, or make a group of that name",
            )
        there = frozenset(name for group in groups for name in group or ())
    return tuple(name for name in names if name in there)


def _enough(asked: Wanted) -> Wanted:
    if asked.least is not None and asked.least > len(asked.nodes):
        raise InputError(
            f"{asked.script or '--nodes'}: {asked.least} nodes are wanted, "
            f"and there are {len(asked.nodes)}",
            remedy="ask for fewer, or name more of them with --nodes EXPR",
        )
    return asked


def without_busy(asked: Wanted, use: Use) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Nodes that may be tested, and those that may not: they run jobs, or may run some."""
    untested = {*use.busy, *use.strangers}
    names = asked.nodes
    return tuple(n for n in names if n not in untested), tuple(n for n in names if n in untested)


def prepare(
    cluster: str,
    asked: Wanted,
    nodes: tuple[str, ...],
    *,
    depth: str,
    overrides: Mapping[str, str] | None = None,
) -> preparing.Prepared:
    """The plan of a preflight of these nodes.

    Raises:
        InputError: what is wrong with the inventory or the runbook.
    """
    gate = {"ready": str(asked.least)} if asked.least is not None else {}
    return preparing.prepare(
        cluster,
        runbook=RUNBOOK,
        overrides={"depth": depth, **gate, **(overrides or {})},
        nodes=inventories.fold(nodes),
    )


def too_few_idle(asked: Wanted, nodes: tuple[str, ...], untested: tuple[str, ...]) -> Choice | None:
    """The answer before anything is touched, when so many nodes run jobs that none can be given."""
    if nodes and len(nodes) >= (asked.least or 1):
        return None
    return Choice(
        wanted=asked,
        picked=(),
        healthy=(),
        untested=untested,
        reason=f"{len(untested)} of {len(asked.nodes)} nodes run jobs; they were not tested",
        exit_code=3,
    )


def choose(
    asked: Wanted, inventory: Inventory, story: RunStory, end: RunEnd, untested: tuple[str, ...]
) -> Choice:
    """What a preflight that has ended says: the nodes to take, on the fewest leaves."""
    healthy = _healthy(story) if end.exit_code == 0 else ()
    missing = tuple(name for name in asked.must if name not in healthy)
    least = asked.least or 1
    code, reason = end.exit_code, end.reason
    if code == 0 and (missing or len(healthy) < least):
        code = 3 if set(missing) & set(untested) else 1
        reason = f"not healthy: {inventories.fold(missing)}, which the job names"
        reason = reason if missing else f"{len(healthy)} healthy nodes, {least} wanted"
    picked = _picked(asked, inventory, healthy) if code == 0 else ()
    return Choice(
        wanted=asked,
        picked=picked,
        healthy=healthy,
        untested=untested,
        reason=reason,
        exit_code=code,
    )


def _healthy(story: RunStory) -> tuple[str, ...]:
    planned = story.started.nodes if story.started else ()
    blocked = {
        name
        for step in story.steps.values()
        for name in step.with_level(lambda level: level.blocks)
    }
    answered = {name for step in story.steps.values() for name in step.results}
    bad = blocked | set(story.quarantined)
    return tuple(name for name in planned if name in answered and name not in bad)


def _picked(asked: Wanted, inventory: Inventory, healthy: tuple[str, ...]) -> tuple[str, ...]:
    left = (inventory.nodes[name] for name in healthy if name not in asked.must)
    most = asked.most if asked.most is not None else len(healthy)
    return (*asked.must, *pick_by_leaf(left, most - len(asked.must)))


def leaves_of(inventory: Inventory, names: Iterable[str]) -> tuple[str, ...]:
    """The leaf switches of nodes, sorted."""
    found = (inventory.nodes[name].leaf for name in names)
    return tuple(sorted({leaf for leaf in found if leaf}))


def sbatch_options(choice: Choice) -> str:
    """Options that keep a job on healthy nodes; empty when all that it can get are healthy."""
    return f"--exclude={inventories.fold(choice.exclude)}" if choice.exclude else ""


def as_values(choice: Choice, inventory: Inventory, run: str) -> dict[str, Any]:
    """The answer as JSON-able values."""
    return {
        "ready": choice.exit_code == 0,
        "exit_code": choice.exit_code,
        "reason": choice.reason,
        "run": run,
        "wanted": choice.wanted.least,
        "nodes": list(choice.picked),
        "nodelist": inventories.fold(choice.picked),
        "leaves": list(leaves_of(inventory, choice.picked)),
        "healthy": list(choice.healthy),
        "not_tested": list(choice.untested),
        "exclude": inventories.fold(choice.exclude),
    }


def told(choice: Choice, inventory: Inventory, run: str) -> list[str]:
    """The answer for people, with what to type next."""
    script = Path(choice.wanted.script).name if choice.wanted.script else ""
    who = f" for {script}" if script else ""
    lines = []
    if choice.untested:
        names = inventories.fold(choice.untested)
        lines.append(f"not tested: {names}: they run jobs, or the scheduler does not know them")
    if choice.exit_code != 0:
        again = f"next: recover resume {run}" if run else "next: --when-busy wait waits for them"
        return [*lines, f"NOT READY{who}: {choice.reason}", again]
    leaves = leaves_of(inventory, choice.picked)
    where = f" on {', '.join(leaves)}" if leaves and len(leaves) <= 8 else ""
    where = where or (f" on {len(leaves)} leaves" if leaves else "")
    count = f"{len(choice.picked)} of {len(choice.healthy)} healthy nodes"
    lines.append(f"READY{who}: {count}{where}")
    lines.append(f"  --nodelist={inventories.fold(choice.picked)}")
    options = sbatch_options(choice)
    if options:
        lines.append(f"  {options}")
    if choice.wanted.script:
        words = " ".join(filter(None, ("sbatch", options, choice.wanted.script)))
        lines.append(f"next: {words}")
    return lines
