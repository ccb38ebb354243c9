"""One test: started by its runner, judged by itself, kept as evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from recovery.checks.nccl_result import NCCL_RESULT
from recovery.engine.judging import Judged, judge_one
from recovery.engine.outcome import ending_finding
from recovery.mesh.launch import (
    Launch,
    alone_line,
    known_hosts,
    mpirun_line,
    srun_line,
    torch_line,
)
from recovery.mesh.relative import HANG
from recovery.mesh.words import Group, Outcome, Result, Round
from recovery.model.output import Command, Ending, Output, Printed
from recovery.model.verdict import Level, unknown
from recovery.steps.mesh.setting import Setting

_NOT_FOUND = (126, 127)
_OWN_FAULT = {"executable_missing", "library_missing", "no_mpi"}
_NEARLY = 0.95  # of its limit: what was cut off earlier had less
_PORTS, _FIRST_PORT = 8000, 21000


def tested(setting: Setting, played: Round, limit_s: float) -> list[Result]:
    """Runs all groups of a round at once, and judges each by itself."""
    if setting.runner == "torch":
        return _by_torch(setting, played, limit_s)

    def run(group: Group) -> Result:
        output = setting.world.run(setting.nodes[group.nodes[0]], command(setting, group, limit_s))
        return concluded(setting, group, (output,), limit_s)

    return setting.world.each(played.groups, run)


def command(setting: Setting, group: Group, limit_s: float) -> Command:
    """The command that runs on the group's first node."""
    return command_of(setting, group, setting.launch(group), limit_s)


def command_of(setting: Setting, group: Group, launch: Launch, limit_s: float) -> Command:
    """The command of a launch, on the first node of the group."""
    if len(group.nodes) == 1:
        return Command(alone_line(launch), timeout_s=limit_s, env=launch.variables)
    if setting.runner == "srun":
        return Command(srun_line(launch), timeout_s=limit_s, env=launch.variables)
    keys = _keys(setting, group)
    return Command(
        mpirun_line(launch, carries_keys=bool(keys)),
        timeout_s=limit_s,
        stdin=keys,
        env=launch.variables,
    )


def _keys(setting: Setting, group: Group) -> bytes:
    """Host keys of the group, where every node of it showed its own over our connection."""
    shown = [setting.probes[name].keys if name in setting.probes else () for name in group.nodes]
    if not all(shown):
        return b""
    names = ((setting.host(n), n, setting.nodes[n].address or "") for n in group.nodes)
    return known_hosts(zip(names, shown, strict=True))


def _by_torch(setting: Setting, played: Round, limit_s: float) -> list[Result]:
    program = setting.world.payload("torch_mesh.py").encode()
    parts = [(at, rank) for at, g in enumerate(played.groups) for rank in range(len(g.nodes))]

    def run(part: tuple[int, int]) -> Output:
        at, rank = part
        group = played.groups[at]
        port = _FIRST_PORT + (setting.world.seed + 131 * played.number + at) % _PORTS
        launch = setting.launch(group)
        line = torch_line(launch, rank, _address(setting, group.nodes[0]), port, limit_s)
        asked = Command(line, timeout_s=limit_s, env=launch.variables, stdin=program)
        return setting.world.run(setting.nodes[group.nodes[rank]], asked)

    together = max((len(group.nodes) for group in played.groups), default=1)
    found = setting.world.each(parts, run, at_least=together)  # ranks wait for each other
    outputs = dict(zip(parts, found, strict=True))
    return [
        concluded(setting, g, [outputs[at, rank] for rank in range(len(g.nodes))], limit_s)
        for at, g in enumerate(played.groups)
    ]


def _address(setting: Setting, name: str) -> str:
    """Where the first node is reached by the others: ``mesh_address``, its address, its name."""
    node = setting.nodes[name]
    return str(node.variables.get("mesh_address") or node.address or name)


def concluded(setting: Setting, group: Group, outputs: Sequence[Output], limit_s: float) -> Result:
    """What the outputs of a test say: one of the first node, or with torch one of each node."""
    raw = b"".join(output.stdout + output.stderr for output in outputs)
    kept = setting.world.keep("mesh", raw)
    longest = max(output.duration_s for output in outputs)
    result = (
        _not_run(group, outputs)
        or _out_of_time(group, outputs, limit_s)
        or _hung(group, outputs)
        or _judged(setting, group, outputs)
    )
    ended = {output.exit_status for output in outputs}
    return replace(
        result,
        duration_s=longest,
        evidence=kept.digest,
        size_bytes=kept.size_bytes,
        status=outputs[0].exit_status if None not in ended else None,
    )


def _not_run(group: Group, outputs: Sequence[Output]) -> Result | None:
    for name, output in zip(group.nodes, outputs, strict=False):
        finding = None
        if output.ending in (Ending.NEVER_STARTED, Ending.LOST):
            finding = ending_finding(output)
        elif output.exit_status in _NOT_FOUND or "No module named 'torch'" in output.error_text:
            finding = unknown(
                f"not on this node: {output.error_text.strip()[-120:]}",
                remedy="install nccl-tests (and Open MPI, or torch, for pairs) on it",
                code="node.tool-missing",
            )
        if finding is not None:
            return Result(
                group=group,
                outcome=Outcome.NOT_RUN,
                finding=finding.finding,
                remedy=finding.remedy,
                code=finding.code,
                blamed=() if output.ending is Ending.LOST else (name,),
            )
    return None


def _out_of_time(group: Group, outputs: Sequence[Output], limit_s: float) -> Result | None:
    """A test cut off before its limit: the step's time was over, and nobody is to blame."""
    late = next((output for output in outputs if output.ending is Ending.TIMEOUT), None)
    if late is None or late.duration_s >= _NEARLY * limit_s:
        return None
    return Result(
        group=group,
        outcome=Outcome.NOT_RUN,
        finding="the step's time was over before this test",
        remedy="give the step a longer `timeout`, or fewer nodes or levels",
        code="mesh.no-time",
    )


def _hung(group: Group, outputs: Sequence[Output]) -> Result | None:
    late = next((output for output in outputs if output.ending is Ending.TIMEOUT), None)
    if late is None:
        return None
    words = f"no end within {late.duration_s:.0f} s"
    return Result(group=group, outcome=Outcome.BROKEN, finding=words, code=HANG)


def expected(setting: Setting, group: Group) -> Mapping[str, object]:
    """What the test is held against besides the profile."""
    launch = setting.launch(group)
    return {
        "nodes": len(group.nodes),
        "expected_gpus": launch.gpus,
        "algorithm": launch.algorithm,
    }


def _judged(setting: Setting, group: Group, outputs: Sequence[Output]) -> Result:
    raw = {**setting.world.profile(setting.nodes[group.nodes[0]]), **expected(setting, group)}
    errors = "".join(output.error_text for output in outputs)
    first = outputs[0]
    judged = judge_one(NCCL_RESULT, Printed(first.text, errors, first.exit_status), raw)
    hosts = {setting.host(name): name for name in group.nodes}
    return result_of(group, judged, hosts)


def result_of(group: Group, judged: Judged, hosts: Mapping[str, str]) -> Result:
    """What a judged output says about its group; ``hosts`` are nodes by their launcher's names."""
    worst = judged.verdict.worst
    speed = judged.facts.get("busbw_at_max")
    return Result(
        group=group,
        outcome=_outcome(judged),
        busbw_gb_per_s=float(speed) if isinstance(speed, int | float) else None,
        finding=worst.finding,
        remedy=worst.remedy,
        code=worst.code,
        blamed=_blamed(group, judged, hosts),
    )


def _outcome(judged: Judged) -> Outcome:
    worst = judged.verdict.worst
    if not worst.level.blocks:
        return Outcome.PASS
    if worst.code == "nccl.wrong-values":
        return Outcome.WRONG
    if worst.level is Level.UNKNOWN or judged.parsed is None or judged.parsed.launcher is not None:
        return Outcome.NOT_RUN  # nothing was learned about GPUs or network
    if worst.code == "nccl.not-collective":
        return Outcome.NOT_RUN
    return Outcome.SLOW if judged.parsed.complete else Outcome.BROKEN


def _blamed(group: Group, judged: Judged, hosts: Mapping[str, str]) -> tuple[str, ...]:
    launcher = judged.parsed.launcher if judged.parsed is not None else None
    if launcher is None or launcher.kind not in _OWN_FAULT:
        return ()
    named = {**hosts, **{name: name for name in group.nodes}}
    return (named[launcher.node],) if launcher.node in named else group.nodes[:1]
