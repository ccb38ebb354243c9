"""`checkpoint`: find the newest step complete on every node, and say why not a newer one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from shlex import join
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from recovery.checkpoints.choose import Choice, Policy, choose
from recovery.checkpoints.inspection import Inspection, read_inspection
from recovery.checkpoints.verdicts import hold, node_verdict, step_verdict
from recovery.engine.outcome import ending_finding, node_result
from recovery.errors import ParseError
from recovery.model.kind import NodeResult, StepResult, Verb
from recovery.model.node import Node
from recovery.model.output import Command, Output
from recovery.model.ports import World
from recovery.model.runbook import Effect
from recovery.model.verdict import Finding, Verdict, passed, single, unknown

PYTHON_PAYLOAD = "checkpoint_inspector.py"
SHELL_PAYLOAD = "checkpoint_inspector.sh"
COMPONENTS = ("model", "optimizer", "scheduler", "rng", "data", "scaler")
_NO_PYTHON = (126, 127)
# The inspector gives up by itself before the step's limit, so that what it has still arrives.
_SPARE_S = 5.0


class CheckpointParams(BaseModel):
    """Where the checkpoints lie, what they must hold, and how closely to look.

    ``outage`` is when the power went, ``distrust_from`` when the first uncorrectable error was
    logged (both POSIX seconds): saves near the first are suspect, saves after the second are
    passed over for the one before. ``before`` asks for one older than that step (0: the newest),
    as after a resume that diverged. ``set_aside`` is the folder named in the commands for torn
    checkpoints. ``quiet`` is how many seconds a torn checkpoint that is younger is watched: a save
    that still goes on looks torn.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: str = Field(min_length=1)
    require: tuple[str, ...] = ("model", "optimizer")
    before: int = Field(default=0, ge=0)
    deep: bool = False
    outage: float | None = None
    distrust_from: float | None = None
    set_aside: str = ""
    quiet: float = Field(default=10.0, ge=0, le=60)

    @field_validator("require")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        strange = [v for v in value if v not in COMPONENTS]
        if strange:
            raise ValueError(f"{strange[0]!r} is none of {', '.join(COMPONENTS)}")
        return value


def _commands(params: CheckpointParams) -> tuple[str, ...]:
    return (_line(params, 600.0),)


def _line(params: CheckpointParams, limit_s: float) -> str:
    deep = ("--deep",) if params.deep else ()
    quiet = ("--quiet", f"{params.quiet:g}") if params.quiet else ()
    return join(("python3", "-", params.argument, *deep, "--limit", f"{limit_s:.0f}", *quiet))


def _run(params: CheckpointParams, nodes: tuple[Node, ...], world: World) -> StepResult:
    inspections: dict[str, Inspection] = {}
    offsets: dict[str, float] = {}

    def on(node: Node) -> NodeResult:
        return _inspect(params, node, world, inspections, offsets)

    results = world.fan_out(nodes, on)
    if not inspections:
        return StepResult(nodes=results, verdict=single(_nobody()))
    policy = Policy(
        require=params.require,
        before=params.before,
        outage_at_s=_moment(params.outage, world, "outage_at"),
        distrust_from_s=_moment(params.distrust_from, world, "first_error_at"),
        clock_offset_s=offsets,
    )
    choice = choose(inspections, policy)
    for name, inspection in inspections.items():
        judged = node_verdict(name, inspection, choice, policy, set_aside=params.set_aside)
        results[name] = replace(results[name], verdict=_also(results[name], judged))
    return StepResult(
        nodes=results, values=_values(params, choice), verdict=step_verdict(choice, policy)
    )


def _nobody() -> Finding:
    return unknown(
        "no node could be inspected",
        remedy="look at the findings of the nodes; then resume the run",
        code="checkpoint.nobody",
    )


def _moment(given: float | None, world: World, name: str) -> float | None:
    """A time of the runbook's, else the one that freezing the evidence found."""
    if given is not None:
        return given
    found = world.values("freeze").get(name)
    return float(found) if isinstance(found, int | float) else None


def _also(result: NodeResult, judged: Verdict) -> Verdict:
    blocking = tuple(f for f in result.verdict.findings if f.level.blocks)
    return Verdict(tuple(sorted((*blocking, *judged.findings), key=lambda f: -f.level)))


def _inspect(
    params: CheckpointParams,
    node: Node,
    world: World,
    inspections: dict[str, Inspection],
    offsets: dict[str, float],
) -> NodeResult:
    limit_s = max(world.step.timeout_s - _SPARE_S, 1.0)
    output = _ask(node, world, _line(params, limit_s), PYTHON_PAYLOAD)
    if output.exit_status in _NO_PYTHON:
        line = join(("sh", "-s", "--", params.argument))
        output = _ask(node, world, line, SHELL_PAYLOAD)
    came_s = world.clock.now()
    kept = [world.keep("inspection.json", output.stdout)] if output.stdout else []
    finding = ending_finding(output) or _incomplete(output)
    if finding is None:
        try:
            inspections[node.name] = inspection = read_inspection(output.text)
        except ParseError as error:
            finding = unknown(error.message, remedy=error.remedy, code="checkpoint.unread")
        else:
            # The node looked at its clock at the end: what is left is the way back.
            offsets[node.name] = inspection.now_s - came_s
            values = _node_values(inspection)
            inspected = passed(f"{len(inspection.checkpoints)} checkpoints inspected")
            return node_result(node.name, output, [inspected], kept=kept, values=values)
    return node_result(node.name, output, [finding], kept=kept)


def _ask(node: Node, world: World, line: str, payload: str) -> Output:
    text = world.payload(payload).encode()
    limit_s = world.step.timeout_s
    return world.run(node, Command(line, timeout_s=limit_s, stdin=text, sudo=world.step.sudo))


def _incomplete(output: Output) -> Finding | None:
    if output.stdout_dropped:
        return unknown(
            f"the inspection is too long: {output.stdout_dropped} bytes were cut from it",
            remedy="name a folder with fewer checkpoints below it",
            code="checkpoint.unread",
        )
    if output.exit_status == 0:
        return None
    said = (output.error_text.strip().splitlines() or ["it said nothing"])[-1][:160]
    return unknown(
        f"the inspector ended with status {output.exit_status}: {said}",
        remedy="run it by hand on the node: `recover checkpoint inspect PATH`",
        code="checkpoint.unread",
    )


def _node_values(inspection: Inspection) -> Mapping[str, Any]:
    levels = {str(c.step): c.level.word for c in inspection.checkpoints if c.step is not None}
    newest = max((c.step for c in inspection.checkpoints if c.step is not None), default=None)
    return {"newest": newest, "steps": dict(list(levels.items())[-20:])}


def _values(params: CheckpointParams, choice: Choice) -> dict[str, Any]:
    facts = choice.facts
    path = "/".join(filter(None, (params.argument.rstrip("/"), choice.below)))
    found: dict[str, Any] = {
        "last_complete": choice.step,
        "path": path if choice.step is not None else "",
        "newest": choice.newest,
        "lagging": dict(choice.lagging),
        "torn": {node: list(steps) for node, steps in choice.torn.items()},
        "refused": {str(r.step): r.reason for r in choice.refused},
        "shared": bool(choice.shared),
        "distrusted": choice.distrusted,
    }
    for name in ("loss", "lr", "epoch", "grad_norm", "bytes", "save_s", "newest", "shape"):
        if name in facts and name not in found:
            found[name] = facts[name]
    if choice.candidate is not None:
        held = [h.checkpoint for h in choice.candidate.at.values() if h.checkpoint]
        found["framework"] = held[0].framework if held else ""
        found["components"] = sorted(choice.candidate.components)
        found["written_at"] = choice.candidate.written_s
        found["hold"] = hold(path)
    return found


CHECKPOINT = Verb(
    name="checkpoint",
    about="find the newest checkpoint that is complete on every node",
    effect=Effect.READ,
    params=CheckpointParams,
    describe=lambda p: (
        f"find the newest step in {p.argument} with {', '.join(p.require) or 'anything'}"
        + (", every checksum read" if p.deep else "")
    ),
    run=_run,
    commands=_commands,
    timeout_s=600.0,
)
