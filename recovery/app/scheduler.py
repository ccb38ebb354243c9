"""The scheduler that an inventory names: who runs jobs, who is drained; giving nodes back."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from recovery.errors import InputError, ParseError, SchedulerError
from recovery.model.ports import Clock
from recovery.reading.occupancy import (
    ANNOTATION,
    OURS,
    SINFO_FORMAT,
    NodeUse,
    read_kubernetes,
    read_sinfo,
)

LIMIT_S = 30
POLL_S = 60.0

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Use:
    """Who is busy among the nodes asked about, and what is known of each.

    ``strangers`` are nodes that the scheduler does not know: nothing says that they are idle.
    """

    by_node: Mapping[str, NodeUse] = field(default_factory=dict)
    strangers: tuple[str, ...] = ()

    @property
    def busy(self) -> tuple[str, ...]:
        """Nodes that run jobs."""
        return tuple(name for name, use in self.by_node.items() if use.busy)

    @property
    def ours(self) -> tuple[str, ...]:
        """Nodes that we drained or cordoned."""
        return tuple(name for name, use in self.by_node.items() if use.out_by_us)


def kind_of(variables: Mapping[str, object]) -> str:
    """``slurm``, ``kubernetes`` or nothing.

    Raises:
        InputError: a scheduler that we do not know.
    """
    named = variables.get("scheduler")
    kind = named.get("kind") if isinstance(named, Mapping) else named
    if kind in (None, "", "none"):
        return ""
    if kind in ("slurm", "kubernetes"):
        return str(kind)
    raise InputError(f"no scheduler {kind!r}", remedy="write scheduler: slurm, or kubernetes")


def use_of(variables: Mapping[str, object], nodes: Iterable[str]) -> Use:
    """What the scheduler says about these nodes; nothing where the inventory names none.

    Raises:
        SchedulerError: it does not answer, or knows none of the nodes.
    """
    wanted = tuple(nodes)
    kind = kind_of(variables)
    if not kind or not wanted:
        return Use()
    try:
        known = _slurm() if kind == "slurm" else _kubernetes()
    except ParseError as error:
        raise SchedulerError(error.message, remedy=error.remedy) from error
    strangers = tuple(name for name in wanted if name not in known)
    if len(strangers) == len(wanted):
        raise SchedulerError(
            f"{kind} knows none of the nodes, such as {wanted[0]!r}",
            remedy="name the nodes in the inventory as the scheduler does",
        )
    return Use({name: known[name] for name in wanted if name in known}, strangers)


def partition_nodes(variables: Mapping[str, object], partitions: Iterable[str]) -> frozenset[str]:
    """Nodes of Slurm partitions, by Slurm's own word.

    Raises:
        SchedulerError: Slurm does not answer.
        InputError: it has no such partition.
    """
    wanted = tuple(partitions)
    try:
        known = _slurm()
    except ParseError as error:
        raise SchedulerError(error.message, remedy=error.remedy) from error
    there = {p for use in known.values() for p in use.partitions}
    for name in wanted:
        if name not in there:
            raise InputError(
                f"Slurm has no partition {name!r}", remedy=f"one of: {', '.join(sorted(there))}"
            )
    return frozenset(n for n, use in known.items() if set(use.partitions) & set(wanted))


def wait_until_idle(
    ask: Callable[[], Use], clock: Clock, *, limit_s: float, say: Tell = lambda words: None
) -> Use:
    """Asks again until no node runs a job, or the time is up; returns the last answer."""
    ends_at = clock.monotonic() + limit_s
    use = ask()
    while use.busy and clock.monotonic() < ends_at:
        say(f"{len(use.busy)} nodes run jobs; asking again in {POLL_S:.0f} s")
        clock.sleep(min(POLL_S, ends_at - clock.monotonic()))
        use = ask()
    return use


def release(
    variables: Mapping[str, object], nodes: Iterable[str], *, mark: str = OURS
) -> tuple[tuple[str, ...], str]:
    """Gives nodes back that we set aside, and no others; returns them and what was done.

    ``mark`` is what the reason of such a node begins with.

    Raises:
        SchedulerError: the scheduler does not answer, or refuses.
    """
    kind = kind_of(variables)
    use = use_of(variables, nodes)
    ours = tuple(name for name in use.ours if use.by_node[name].reason.startswith(mark))
    if not kind:
        return (), "the inventory names no scheduler: nothing to release"
    if not ours:
        return (), f"{kind} held none of them for us"
    if kind == "slurm":
        asked(("scontrol", "update", f"NodeName={','.join(ours)}", "State=RESUME"))
        return ours, "resumed in Slurm"
    asked(("kubectl", "uncordon", *ours))
    asked(("kubectl", "annotate", "node", *ours, f"{ANNOTATION}-"))
    return ours, "uncordoned in Kubernetes"


def _slurm() -> dict[str, NodeUse]:
    return read_sinfo(asked(("sinfo", "--Node", "--noheader", "--all", f"--format={SINFO_FORMAT}")))


def _kubernetes() -> dict[str, NodeUse]:
    nodes = asked(("kubectl", "get", "nodes", "-o", "json"))
    return read_kubernetes(nodes, asked(("kubectl", "get", "pods", "-A", "-o", "json")))


def asked(argv: tuple[str, ...]) -> str:
    """What a command of the scheduler printed.

    Raises:
        SchedulerError: it is not there, is too slow, or failed.
    """
    remedy = f"run it by hand: {' '.join(argv[:3])}"
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        raise SchedulerError(
            f"{argv[0]} is not on this machine",
            remedy=f"run recover where {argv[0]} works, or leave `scheduler` out of the inventory",
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SchedulerError(f"{argv[0]} does not answer: {error}", remedy=remedy) from error
    if done.returncode != 0:
        words = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise SchedulerError(f"{argv[0]} {argv[1]} failed: {words[:160]}", remedy=remedy)
    return done.stdout
