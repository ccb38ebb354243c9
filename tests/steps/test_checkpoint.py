from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pydantic import ValidationError

from recovery.model.kind import StepResult
from recovery.model.node import Node
from recovery.model.output import Command, Ending, Output
from recovery.model.verdict import Level
from recovery.steps.checkpoint import CHECKPOINT, CheckpointParams
from tests.checkpoints import damage, trees
from tests.checkpoints.clusters import without_step
from tests.fakes import FakeClock, FakeTransport, FakeWorld, finished

ASKED = "/ckpt"


def really(root: Path, *, without_python: tuple[str, ...] = ()) -> Callable[..., Output]:
    """Runs the payload on the node's own folder, which stands in for ``/ckpt``."""

    def answer(node: Node, command: Command) -> Output:
        words = [str(root / node.name) if w == ASKED else w for w in command.line.split()]
        if words[0] == "python3" and node.name in without_python:
            return finished(status=127, stderr="sh: 1: python3: not found")
        program = [sys.executable if words[0] == "python3" else words[0], *words[1:]]
        done = subprocess.run(program, input=command.stdin, capture_output=True, check=False)
        return finished(
            done.stdout.replace(str(root / node.name).encode(), ASKED.encode()),
            status=done.returncode,
            stderr=done.stderr.decode(),
        )

    return answer


def a_world(answer: Callable[..., Output]) -> FakeWorld:
    """Its clock agrees with that of the nodes, which is this machine's."""
    return FakeWorld(transport=FakeTransport(answer), clock=FakeClock(at=time.time()))


def run(
    answer: Callable[..., Output],
    nodes: int = 2,
    *,
    world: FakeWorld | None = None,
    **params: object,
) -> StepResult:
    world = world or a_world(answer)
    given = CheckpointParams.model_validate({"argument": ASKED, "quiet": 0, **params})
    names = tuple(Node(name=f"n{i}") for i in range(1, nodes + 1))
    return CHECKPOINT.run(given, names, world)


def lay(
    root: Path, nodes: int = 2, hurt: Mapping[str, Callable[[Path], object]] | None = None
) -> Path:
    for number in range(1, nodes + 1):
        trees.write("hf_replica", root / f"n{number}")
    for node, how in (hurt or {}).items():
        how(root / node)
    return root


def tear(tree: Path) -> None:
    os.truncate(damage.victim(tree), 100)


def test_the_newest_step_that_is_whole_on_every_node_is_chosen(tmp_path: Path) -> None:
    lay(tmp_path, 3, {"n2": tear})

    result = run(really(tmp_path), 3)

    assert result.values["last_complete"] == 200
    assert result.values["newest"] == 300
    assert result.values["path"] == "/ckpt/checkpoint-200"
    assert result.values["torn"] == {"n2": [300]}
    assert result.values["lagging"] == {"n2": 200}
    assert result.values["loss"] == pytest.approx(2.8)
    assert result.values["lr"] == pytest.approx(3e-4 * 0.8)
    assert result.values["framework"] == "hf-trainer"
    assert result.verdict is not None
    assert result.verdict.level is Level.WARN
    assert {n: r.verdict.level for n, r in result.nodes.items()} == {
        "n1": Level.PASS,
        "n2": Level.WARN,
        "n3": Level.PASS,
    }


def test_a_sound_cluster_passes(tmp_path: Path) -> None:
    lay(tmp_path)

    result = run(really(tmp_path))

    assert result.values["last_complete"] == 300
    assert result.verdict is not None
    assert result.verdict.level is Level.PASS


def test_no_step_complete_everywhere_fails_the_step(tmp_path: Path) -> None:
    both = {
        "n1": lambda t: [without_step(s)(t) for s in (200, 300)],
        "n2": without_step(100),
    }
    lay(tmp_path, 2, both)

    result = run(really(tmp_path))

    assert result.values["last_complete"] is None
    assert result.verdict is not None
    assert result.verdict.level is Level.FAIL
    assert "no step is complete on every node" in result.verdict.worst.finding


def test_the_inspector_is_sent_on_standard_input_and_nothing_is_installed(tmp_path: Path) -> None:
    lay(tmp_path)
    seen: list[Command] = []
    real = really(tmp_path)

    def answer(node: Node, command: Command) -> Output:
        seen.append(command)
        return real(node, command)

    run(answer, deep=True)

    assert seen[0].line == "python3 - /ckpt --deep --limit 55"
    assert seen[0].stdin.startswith(b"#!/usr/bin/env python3")


def test_a_node_without_python_is_judged_by_the_shell_and_says_so(tmp_path: Path) -> None:
    lay(tmp_path)

    result = run(really(tmp_path, without_python=("n2",)))

    assert result.values["last_complete"] == 300
    findings = result.nodes["n2"].verdict.findings
    assert any("judged by the shell alone" in f.finding for f in findings)
    assert result.nodes["n2"].verdict.level is Level.WARN


def test_the_whole_inspection_is_kept_as_evidence(tmp_path: Path) -> None:
    lay(tmp_path)
    world = a_world(really(tmp_path))

    result = run(really(tmp_path), world=world)

    (kept,) = result.nodes["n1"].kept
    assert b'"checkpoints"' in world.evidence[kept.digest]


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (Output(Ending.TIMEOUT, reason="no end within 60 s"), "no end within 60 s"),
        (Output(Ending.NEVER_STARTED, reason="refused", trouble="connect"), "refused"),
        (finished(""), "no inspection"),
        (finished('{"checkpoints": ['), "cut short"),
        (finished("", status=1, stderr="Traceback\nMemoryError"), "status 1: MemoryError"),
        (
            Output(Ending.FINISHED, exit_status=0, stdout=b"{", stdout_dropped=9),
            "9 bytes were cut",
        ),
    ],
)
def test_a_node_that_gives_no_whole_answer_is_unknown_and_does_not_decide(
    output: Output, words: str, tmp_path: Path
) -> None:
    lay(tmp_path)
    real = really(tmp_path)

    def answer(node: Node, command: Command) -> Output:
        return output if node.name == "n2" else real(node, command)

    result = run(answer)

    assert result.values["last_complete"] == 300
    assert result.nodes["n2"].verdict.level is Level.UNKNOWN
    assert words in result.nodes["n2"].verdict.worst.finding


def test_no_answer_at_all_is_unknown_not_a_step() -> None:
    result = run(lambda node, command: finished(""))

    assert result.verdict is not None
    assert result.verdict.level is Level.UNKNOWN
    assert "last_complete" not in result.values


def test_a_required_component_that_is_missing_fails(tmp_path: Path) -> None:
    lay(tmp_path)

    result = run(really(tmp_path), require=["model", "data"])

    assert result.values["last_complete"] is None
    assert result.values["refused"]["300"] == "no data in it"


def test_a_wrong_clock_on_a_node_only_warns(tmp_path: Path) -> None:
    lay(tmp_path)
    world = a_world(really(tmp_path))
    world.clock.at = 0.0  # ours is far behind theirs

    result = run(really(tmp_path), world=world)

    assert result.values["last_complete"] == 300
    assert any(f.code == "checkpoint.clock" for f in result.nodes["n1"].verdict.findings)


def test_the_time_of_the_outage_comes_from_the_frozen_evidence(tmp_path: Path) -> None:
    lay(tmp_path)
    newest = max(p.stat().st_mtime for p in tmp_path.rglob("*.json"))
    world = a_world(really(tmp_path))
    world.earlier_values["freeze"] = {"outage_at": newest + 5}

    result = run(really(tmp_path), world=world)

    assert result.verdict is not None
    assert result.verdict.worst.code == "checkpoint.young"


@pytest.mark.parametrize("params", [{"argument": ""}, {"argument": "/c", "require": ["weights"]}])
def test_a_mistake_in_the_runbook_is_refused(params: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        CheckpointParams.model_validate(params)


def test_a_path_relative_to_the_login_s_home_stays_relative(tmp_path: Path) -> None:
    lay(tmp_path)

    def answer(node: Node, command: Command) -> Output:
        done = subprocess.run(
            [sys.executable, *command.line.split()[1:]],
            input=command.stdin,
            capture_output=True,
            check=True,
            cwd=tmp_path / node.name,
        )
        return finished(done.stdout)

    for number in (1, 2):
        home = tmp_path / f"n{number}"
        (home / "run").mkdir()
        for path in list(home.glob("checkpoint-*")):
            path.rename(home / "run" / path.name)

    result = run(answer, argument="run")

    assert result.values["path"] == "run/checkpoint-300"
    assert result.values["hold"].startswith("mkdir -p run.hold && cp -al run/checkpoint-300")


def test_the_plan_shows_the_exact_command() -> None:
    params = CheckpointParams.model_validate({"argument": "/a b"})

    assert CHECKPOINT.commands(params) == ("python3 - '/a b' --limit 600 --quiet 10",)
    assert CHECKPOINT.describe(params) == "find the newest step in /a b with model, optimizer"
