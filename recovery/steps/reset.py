"""`reset`: reset GPUs that nobody uses, and see that all of them come back."""

from __future__ import annotations

import re
import shlex
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

from recovery.engine.blast import DISRUPT
from recovery.engine.outcome import ending_finding, excused, node_result
from recovery.model.kind import NodeResult, StepResult, Verb
from recovery.model.node import Node
from recovery.model.output import Command, Output
from recovery.model.ports import World
from recovery.model.runbook import Effect, Rerun
from recovery.model.verdict import Finding, failed, passed, unknown

APPS = "nvidia-smi --query-compute-apps=pid,process_name --format=csv,noheader"
LIST = "nvidia-smi -L"
_GPU = re.compile(r"^GPU \d+:", re.MULTILINE)
_APP = re.compile(r"\d+, \S")


class ResetParams(BaseModel):
    """Which GPUs: ``all``, or indices. ``may_fail``: what comes after says whether it helped."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: tuple[str, ...]
    may_fail: bool = False

    @field_validator("argument", mode="before")
    @classmethod
    def _gpus(cls, raw: Any) -> tuple[str, ...]:
        words = tuple(str(one) for one in (raw if isinstance(raw, list | tuple) else (raw,)))
        if words != ("all",) and not all(word.isdecimal() for word in words):
            raise ValueError("name GPUs by index, as [0, 3], or all")
        return words

    @property
    def line(self) -> str:
        """Source: nvidia-smi(1), GPU reset: root, no process on the GPU, no display."""
        which = () if self.argument == ("all",) else ("-i", ",".join(self.argument))
        return shlex.join(("nvidia-smi", "--gpu-reset", *which))


def _run(params: ResetParams, nodes: tuple[Node, ...], world: World) -> StepResult:
    return StepResult(nodes=world.fan_out(nodes, lambda node: _reset(params, node, world)))


def _reset(params: ResetParams, node: Node, world: World) -> NodeResult:
    def ask(line: str, limit_s: float = 60.0) -> Output:
        return world.run(node, Command(line, timeout_s=limit_s, sudo=world.step.sudo))

    apps, before = ask(APPS), ask(LIST)
    held = _held(apps, before)
    if held is not None:
        return node_result(node.name, apps, [held])
    spent = world.spent(node)
    if spent is not None:
        return node_result(node.name, apps, [_may(params, spent)])
    world.intend(DISRUPT, {"node": node.name, "what": params.line})
    done = ask(params.line, world.step.timeout_s)
    finding = _may(params, _judged(done, before, ask(LIST)))
    kept = [world.keep("reset", done.stdout + done.stderr)]
    return node_result(node.name, done, [finding], kept=kept)


def _may(params: ResetParams, finding: Finding) -> Finding:
    return excused(finding, may_fail=params.may_fail)


def _held(apps: Output, before: Output) -> Finding | None:
    """Why the GPUs are left alone: somebody uses them, or nobody can say whether."""
    lines = [line for line in apps.text.splitlines() if _APP.match(line.strip())]
    if lines:
        return failed(
            f"not reset: {len(lines)} processes use the GPUs, such as {lines[0].strip()[:80]}",
            remedy="drain the node and stop them first",
            code="reset.in-use",
        )
    if not apps.ok or apps.text.strip() or not _GPU.search(before.text):
        return ending_finding(apps) or unknown(
            "not reset: the driver does not say which GPUs there are and who uses them",
            remedy="no driver, no reset: reboot the node",
            code="reset.no-answer",
        )
    return None


def _judged(done: Output, before: Output, after: Output) -> Finding:
    there, back = (len(_GPU.findall(text)) for text in (before.text, after.text))
    if done.ok and after.ok and back == there:
        return passed(f"reset; {back} GPUs are there")
    lines = (done.error_text.strip() or done.text.strip() or "it said nothing").splitlines()
    why = f"{back} of {there} GPUs came back" if done.ok else f"the reset failed: {lines[-1]}"
    return ending_finding(done) or failed(
        why[:200], remedy="reboot the node; then power cycle it", code="reset.failed"
    )


RESET = Verb(
    name="reset",
    about="reset GPUs that nobody uses",
    effect=Effect.DISRUPTIVE,
    rerun=Rerun.ASK,
    params=ResetParams,
    describe=lambda p: f"{p.line}, where no process uses a GPU",
    commands=lambda p: (APPS, LIST, p.line),
    run=_run,
    timeout_s=180.0,
)
