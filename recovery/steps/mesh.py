"""`mesh`: prove the network with nccl-tests: alone, in pairs, suspects against good partners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import join
from statistics import median
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from recovery.checks.nccl_result import NCCL_RESULT
from recovery.engine.judging import Judged, judge_one
from recovery.engine.outcome import ending_finding
from recovery.mesh.ladder import next_round, record, start
from recovery.mesh.verdicts import Kind, MeshVerdict, NodeVerdict, verdicts
from recovery.mesh.words import Group, Level, Member, Options, Outcome, Result, Round, State
from recovery.model.kind import NodeResult, StepResult, Verb
from recovery.model.node import Node
from recovery.model.output import Command, Ending, Output, Printed
from recovery.model.ports import World
from recovery.model.runbook import Effect
from recovery.model.verdict import Finding, failed, passed, single, unknown, warned

FIRST_LIMIT_S = 60.0  # a test of the first round; later ones get 3 x the median of the round before
MOST_LIMIT_S = 600.0  # a round in which nothing ended in time is played again with more, up to this
LEAST_LIMIT_S = 30.0
SIGMAS = 3.0  # below the median of the round, in MAD-sigma
LEAST_SHARE = 0.9  # and at least a tenth below it: equal tests differ by a few percent
_NOT_FOUND = (126, 127)
HANG = "mesh.hang"


class MeshParams(BaseModel):
    """The collective, its payload, the levels to climb, and how to start the tests."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: str = "all_reduce"
    size: str = "8G"
    levels: tuple[str, ...] = ("alone", "pairs", "suspects")
    env: dict[str, str] = Field(default_factory=dict)

    @field_validator("levels", mode="before")
    @classmethod
    def _words(cls, value: object) -> object:
        if value == "all":
            return tuple(level.word for level in Level)
        return (value,) if isinstance(value, str) else value

    @field_validator("levels")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        known = [level.word for level in Level]
        strange = [v for v in value if v not in known]
        if strange:
            raise ValueError(f"{strange[0]!r} is none of {', '.join(known)}")
        return value


@dataclass(frozen=True, slots=True)
class _Mesh:
    """What every test of one step needs."""

    params: MeshParams
    nodes: Mapping[str, Node]
    world: World

    def line(self, group: Group) -> str:
        """The exact line of one test; it runs on the group's first node."""
        gpus = int(self.expectation(group, "expected_gpus") or 8)
        binary = f"{group.collective or self.params.argument}_perf"
        sizes = ("-b", self.params.size, "-e", self.params.size, "-f", "2")
        if len(group.nodes) == 1:
            return join((binary, *sizes, "-g", str(gpus)))
        hosts = ",".join(f"{self.host(name)}:{gpus}" for name in group.nodes)
        keep = "-o ServerAliveInterval=5 -o ServerAliveCountMax=3 -o BatchMode=yes"
        launch = ("mpirun", "--allow-run-as-root", "--tag-output", "--mca", "plm_rsh_args", keep)
        ranks = ("-np", str(gpus * len(group.nodes)), "-H", hosts)
        return join((*launch, *ranks, *self.rail(group), binary, *sizes, "-g", "1"))

    def rail(self, group: Group) -> tuple[str, ...]:
        """What restricts the test to one NIC of each node."""
        if group.rail is None:
            return ()
        names = self.expectation(group, "rails")
        known = isinstance(names, Sequence) and len(names) > group.rail
        return ("-x", f"NCCL_IB_HCA={names[group.rail] if known else f'mlx5_{group.rail}'}")

    def host(self, name: str) -> str:
        """The name by which mpirun reaches a node."""
        return str(self.nodes[name].variables.get("mpi_host") or name)

    def expectation(self, group: Group, name: str) -> Any:
        """An expectation for the group's first node."""
        return self.world.profile(self.nodes[group.nodes[0]]).get(name)

    def played(self, group: Group, limit_s: float) -> Result:
        """Runs one test and judges it by itself."""
        command = Command(self.line(group), timeout_s=limit_s, env=self.params.env)
        output = self.world.run(self.nodes[group.nodes[0]], command)
        kept = self.world.keep("mesh", output.stdout + output.stderr)
        result = self._judged(group, output)
        return replace(result, duration_s=output.duration_s, evidence=kept.digest)

    def _judged(self, group: Group, output: Output) -> Result:
        if output.ending in (Ending.NEVER_STARTED, Ending.LOST) or output.exit_status in _NOT_FOUND:
            return self._not_run(group, output)
        if output.ending is Ending.TIMEOUT:
            words = f"no end within {output.duration_s:.0f} s"
            return Result(group=group, outcome=Outcome.BROKEN, finding=words, code=HANG)
        profile = self.world.profile(self.nodes[group.nodes[0]])
        raw = {**profile, "nodes": len(group.nodes)}
        printed = Printed(output.text, output.error_text, output.exit_status)
        return _result(group, judge_one(NCCL_RESULT, printed, raw))

    def _not_run(self, group: Group, output: Output) -> Result:
        finding = ending_finding(output) or unknown(
            f"not on this node: {output.error_text.strip()[:120]}",
            remedy="install nccl-tests (and Open MPI for pairs) on it",
            code="node.tool-missing",
        )
        return Result(
            group=group,
            outcome=Outcome.NOT_RUN,
            finding=finding.finding,
            remedy=finding.remedy,
            code=finding.code,
            blamed=group.nodes[:1],
        )


def _result(group: Group, judged: Judged) -> Result:
    worst = judged.verdict.worst
    rows = judged.facts.get("busbw_at_max")
    wrong = worst.code == "nccl.wrong-values"
    slow = judged.parsed is not None and judged.parsed.complete and worst.level.blocks
    outcome = Outcome.PASS
    if worst.level.blocks:
        outcome = Outcome.WRONG if wrong else Outcome.SLOW if slow else Outcome.BROKEN
    return Result(
        group=group,
        outcome=outcome,
        busbw_gb_per_s=float(rows) if isinstance(rows, int | float) else None,
        finding=worst.finding,
        remedy=worst.remedy,
        code=worst.code,
    )


def _run(params: MeshParams, nodes: tuple[Node, ...], world: World) -> StepResult:
    mesh = _Mesh(params, {n.name: n for n in nodes}, world)
    levels = frozenset(level for level in Level if level.word in params.levels)
    members = [Member(n.name, n.leaf or "") for n in nodes]
    state, limit_s = start(members, Options(levels=levels, seed=world.seed)), FIRST_LIMIT_S
    while (played := next_round(state)) is not None:
        state, limit_s = _play(mesh, state, played, limit_s)
    return _concluded(verdicts(state), state)


def _play(mesh: _Mesh, state: State, played: Round, limit_s: float) -> tuple[State, float]:
    results = mesh.world.each(played.groups, lambda group: mesh.played(group, limit_s))
    if all(r.code == HANG for r in results) and limit_s < MOST_LIMIT_S:
        # Nobody knows yet how long a test takes here: a hang of all of them is our impatience.
        return _play(mesh, state, played, min(MOST_LIMIT_S, 3 * limit_s))
    results = _relative(results, _speeds(state))
    for result in results:
        _note(mesh.world, played, result)
    took = [r.duration_s for r in results if r.outcome is Outcome.PASS]
    longer = max(LEAST_LIMIT_S, 3 * median(took)) if took else limit_s
    return record(state, played, results), longer


def _speeds(state: State) -> dict[int, list[float]]:
    """Rates of the tests that passed so far, by the number of nodes in them."""
    found: dict[int, list[float]] = {}
    for result in (r for played in state.history for r in played.results):
        if result.outcome is Outcome.PASS and result.busbw_gb_per_s is not None:
            found.setdefault(len(result.group.nodes), []).append(result.busbw_gb_per_s)
    return found


def _relative(results: Sequence[Result], before: Mapping[int, list[float]]) -> list[Result]:
    """Results with those marked slow that fall far behind tests of as many nodes.

    Those of earlier rounds count too: a round of two suspects has no median of its own.
    """
    speeds = {size: list(found) for size, found in before.items()}
    for r in results:
        if r.outcome is Outcome.PASS and r.busbw_gb_per_s is not None:
            speeds.setdefault(len(r.group.nodes), []).append(r.busbw_gb_per_s)
    return [_against(r, speeds.get(len(r.group.nodes), [])) for r in results]


def _against(result: Result, speeds: Sequence[float]) -> Result:
    if len(speeds) < 3:
        return result
    middle = median(speeds)
    sigma = 1.4826 * median(abs(s - middle) for s in speeds)
    floor = min(middle * LEAST_SHARE, middle - SIGMAS * sigma)
    return _slow(result, middle) if _below(result, floor) else result


def _below(result: Result, floor: float) -> bool:
    speed = result.busbw_gb_per_s
    return result.outcome is Outcome.PASS and speed is not None and speed < floor


def _slow(result: Result, middle: float) -> Result:
    words = f"{result.busbw_gb_per_s:.1f} GB/s, the median of such tests is {middle:.1f}"
    return replace(result, outcome=Outcome.SLOW, finding=words, code="mesh.slow")


def _note(world: World, played: Round, result: Result) -> None:
    speed = f"{result.busbw_gb_per_s:.1f} GB/s" if result.busbw_gb_per_s is not None else "no rate"
    names = "+".join(result.group.nodes)
    ok = result.outcome is Outcome.PASS
    words = f"{speed}" if ok else f"{result.outcome.value}: {result.finding}"
    facts = {
        "round": played.number,
        "level": result.group.level.word,
        "group": list(result.group.nodes),
        "subject": result.group.subject,
        "rail": result.group.rail,
        "busbw_gb_per_s": result.busbw_gb_per_s,
        "ok": ok,
        "outcome": result.outcome.value,
        "finding": "" if ok else result.finding,
        "evidence": result.evidence,
    }
    world.note(f"round {played.number}: {names}: {words}", kind="mesh.test", facts=facts)


def _concluded(found: MeshVerdict, state: State) -> StepResult:
    tests = [r for played in state.history for r in played.results]
    speeds = [r.busbw_gb_per_s for r in tests if r.busbw_gb_per_s is not None]
    values = {
        "tests": len(tests),
        "rounds": len(state.history),
        "median_busbw": median(speeds) if speeds else None,
        "leaves": [leaf for one in found.leaves for leaf in one.leaves],
    }
    results = {v.node: NodeResult(node=v.node, verdict=single(_finding(v))) for v in found.nodes}
    return StepResult(nodes=results, values=values)


def _finding(one: NodeVerdict) -> Finding:
    match one.kind:
        case Kind.HEALTHY:
            return passed(one.finding)
        case Kind.BEHIND_BAD_LEAF:
            return warned(one.finding, remedy=one.remedy, code=one.code)
        case Kind.UNKNOWN:
            return unknown(one.finding, remedy=one.remedy, code=one.code)
        case Kind.BAD_NODE | Kind.BAD_RAIL:
            return failed(one.finding, remedy=one.remedy, code=one.code)


MESH = Verb(
    name="mesh",
    about="prove the network with nccl-tests and name the node that is bad",
    effect=Effect.READ,
    params=MeshParams,
    describe=lambda p: f"{p.argument} of {p.size}: {', '.join(p.levels)}",
    commands=lambda p: (
        f"{p.argument}_perf -b {p.size} -e {p.size} -f 2 -g GPUS",
        f"mpirun -np RANKS -H NODE:GPUS,NODE:GPUS {p.argument}_perf -b {p.size} -e {p.size} -g 1",
    ),
    run=_run,
    together=True,
    timeout_s=1800.0,
)
