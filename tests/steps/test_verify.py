"""`verify` on a fake cluster whose logs grow while the clock is asked to sleep."""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from recovery.model.kind import NodeResult, StepResult
from recovery.model.node import Node
from recovery.model.output import Command, Ending, Output
from recovery.model.result import Kept
from recovery.model.verdict import Finding, Level, Verdict, passed
from recovery.steps.verify import VERIFY
from recovery.steps.verify.follow import follow_line
from tests.fakes import FakeTransport, FakeWorld, a_step, finished

STEP = 100
RUNNING = "state=running\npid=7\n"


def line(n: int, *, loss: float | None = None, lr: float | None = None) -> str:
    usual = 3.0 - n / 500 + 0.05 * math.sin(n * 12.9898) * math.cos(n * 4.1414)
    rate = 0.02 * (1 - n / 400) if lr is None else lr
    value = usual if loss is None else loss
    return f"step={n} loss={value:.9f} lr={rate:.9e} grad_norm={1 + value / 10:.6f}\n"


def lines(first: int, last: int) -> str:
    return "".join(line(n) for n in range(first, last + 1))


OLD = "rank 0 of 2 is ready\n" + lines(1, 130)


@dataclass
class Cluster:
    """Logs by node: ``grown`` is what has been written since the launch at a given time."""

    grown: Mapping[str, Callable[[float], str]]
    frozen: Mapping[str, str] = field(default_factory=lambda: {"a01": OLD, "a02": OLD})
    rewritten: bool = False
    status: Callable[[str, float], str] = lambda node, after_s: RUNNING
    stop: Mapping[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    world: FakeWorld = field(default_factory=FakeWorld)

    def __post_init__(self) -> None:
        world = self.world
        world.transport = FakeTransport(answer=self.answer)
        world.variables = {"train_log": "log/train.log"}
        world.step = a_step("verify", timeout_s=1200.0)
        self.began = world.clock.at
        world.earlier["freeze"] = {
            node: frozen_result(node, world.keep("train.log", text.encode()))
            for node, text in self.frozen.items()
        }
        world.earlier_values = {"checkpoint": {"last_complete": STEP}, "launch": {"job": "train"}}

    def answer(self, node: Node, command: Command) -> Output:
        after_s = self.world.clock.at - self.began
        self.asked.append(command.line)
        if " stop " in command.line:
            return finished(self.stop.get(node.name, "state=stopped\n"))
        if "status" in command.line:
            return finished(self.status(node.name, after_s))
        grown = self.grown.get(node.name)
        if grown is None:
            return Output(Ending.NEVER_STARTED, reason="no route", trouble="connect")
        old = "" if self.rewritten else self.frozen.get(node.name, "")
        content = (old + grown(after_s)).encode()
        found = re.search(r"o=(\d+);", command.line)
        start = int(found[1]) if found else 0
        return finished(f"42 {start} {len(content)}\n".encode() + content[start:])

    def verify(self, **params: Any) -> StepResult:
        nodes = tuple(Node(name) for name in self.grown)
        return VERIFY.run(VERIFY.params(**params), nodes, self.world)


def frozen_result(node: str, kept: Kept) -> NodeResult:
    return NodeResult(node=node, verdict=Verdict((passed("kept"),)), kept=(kept,))


def steady(first: int = STEP + 1, per_s: float = 2.0) -> Callable[[float], str]:
    """A log that resumes after the checkpoint and gains lines with time."""
    return lambda after_s: "resuming\n" + lines(first, first - 1 + int(per_s * after_s))


def test_a_resume_that_repeats_what_was_logged_before_is_verified() -> None:
    result = Cluster({"a01": steady(), "a02": steady()}).verify()

    assert result.verdict is not None
    assert result.verdict.level is Level.PASS
    assert {r.verdict.level for r in result.nodes.values()} == {Level.PASS}
    assert result.values["strength"] == "strong"
    assert (result.values["first_iteration"], result.values["overlap"]) == (101, 24)


def test_the_logs_are_kept_and_the_curves_drawn() -> None:
    result = Cluster({"a01": steady()}).verify()

    assert [k.name for k in result.nodes["a01"].kept] == ["train-after.log"]
    assert set(result.values["curves"]) == {"loss", "lr", "grad norm"}
    assert result.values["curves"]["loss"]["after"][0][0] == 101
    assert result.values["curves"]["loss"]["before"][-1][0] == 130


def test_a_log_that_was_rewritten_at_the_relaunch_is_read_from_its_beginning() -> None:
    result = Cluster({"a01": steady()}, rewritten=True).verify()

    assert result.nodes["a01"].verdict.level is Level.PASS


def test_a_node_without_a_frozen_log_is_compared_with_another_nodes() -> None:
    cluster = Cluster({"a01": steady()}, frozen={"a07": OLD})

    result = cluster.verify()

    assert result.nodes["a01"].verdict.level is Level.PASS
    assert result.nodes["a01"].values["compared_with"] == "a07"


def test_a_node_whose_own_log_was_cut_short_is_compared_with_another_nodes() -> None:
    cluster = Cluster({"a01": steady()}, frozen={"a01": lines(1, 103), "a07": OLD})

    result = cluster.verify()

    assert result.values["strength"] == "strong"
    assert result.nodes["a01"].values["compared_with"] == "a07"


def test_a_node_that_never_logs_is_told_apart_from_one_that_stopped_logging() -> None:
    cluster = Cluster(
        {"a01": lambda s: "", "a02": lambda s: "", "a03": steady()},
        frozen={"a01": "rank 0 is ready\n", "a02": OLD, "a03": OLD},
    )

    result = cluster.verify()

    assert result.nodes["a01"].verdict.level is Level.PASS
    assert "no training line of its own" in result.nodes["a01"].verdict.worst.finding
    assert result.nodes["a02"].verdict.worst.code == "verify.silent"
    assert result.nodes["a02"].verdict.level is Level.WARN


def test_silence_longer_than_the_limit_is_a_stall() -> None:
    result = Cluster({"a01": lambda s: lines(101, 103)}).verify(stall="1m")

    worst = result.nodes["a01"].verdict.worst
    assert worst.level is Level.FAIL
    assert worst.finding == "stalled: no line after iteration 103"


def test_no_iteration_at_all_is_a_failure_of_node_and_step() -> None:
    result = Cluster({"a01": lambda s: "loading\n"}).verify(stall="1m")

    assert result.verdict is not None
    assert result.verdict.worst.code == "verify.no-progress"
    assert "'loading'" in result.nodes["a01"].verdict.worst.finding


def test_a_job_that_died_is_told_with_its_last_words() -> None:
    cluster = Cluster(
        {"a01": lambda s: lines(101, 104) + "CUDA error: out of memory\n"},
        status=lambda node, after_s: "state=ended\nrc=1\n",
    )

    worst = cluster.verify().nodes["a01"].verdict.worst

    assert worst.level is Level.FAIL
    assert "status 1 after iteration 104: 'CUDA error: out of memory'" in worst.finding


def test_a_job_that_ends_at_once_with_status_0_has_not_resumed() -> None:
    cluster = Cluster(
        {"a01": lambda s: "training is done\n"}, status=lambda n, s: "state=ended\nrc=0\n"
    )

    worst = cluster.verify().nodes["a01"].verdict.worst

    assert worst.level is Level.FAIL
    assert "status 0 without one iteration" in worst.finding


def test_a_rank_that_logs_nothing_and_ends_well_beside_one_that_logs_is_a_warning() -> None:
    cluster = Cluster(
        {"a01": steady(), "a02": lambda s: "training is done\n"},
        frozen={"a01": OLD, "a02": "rank 1 is ready\n"},
        status=lambda n, s: "state=ended\nrc=0\n" if n == "a02" else "state=running\n",
    )

    result = cluster.verify()

    assert result.nodes["a01"].verdict.level is Level.PASS
    assert result.nodes["a02"].verdict.level is Level.WARN
    assert "others log the training" in result.nodes["a02"].verdict.worst.finding


def test_a_training_that_reached_its_end_needs_no_more_iterations() -> None:
    cluster = Cluster(
        {"a01": lambda s: lines(101, 118) + "training is done\n"},
        status=lambda n, s: "state=ended\nrc=0\n",
    )

    result = cluster.verify()

    assert result.nodes["a01"].verdict.level is Level.PASS


def test_a_job_whose_node_rebooted_is_gone() -> None:
    cluster = Cluster(
        {"a01": lambda s: lines(101, 104)}, status=lambda n, s: "state=lost\nreason=rebooted\n"
    )

    assert "the job is gone (rebooted)" in cluster.verify().nodes["a01"].verdict.worst.finding


def test_a_wrong_checkpoint_fails() -> None:
    result = Cluster({"a01": steady(first=41)}).verify()

    assert result.nodes["a01"].verdict.worst.code == "verify.step"
    assert result.nodes["a01"].verdict.level is Level.FAIL


def diverging(**stop: str) -> Cluster:
    """Two nodes whose resumed job has another learning rate."""

    def worse(after_s: float) -> str:
        fresh = range(STEP + 1, STEP + 1 + int(2 * after_s))
        return "resuming\n" + "".join(line(n, lr=0.5) for n in fresh)

    return Cluster({"a01": worse, "a02": worse}, stop=stop)


def way_back(result: StepResult) -> Finding:
    assert result.verdict is not None
    assert result.verdict.level is Level.FAIL
    (found,) = [f for f in result.verdict.findings if f.code == "verify.diverged"]
    return found


def test_a_resume_that_diverged_is_left_alone_and_the_way_back_is_said() -> None:
    cluster = diverging()

    result = cluster.verify()

    assert "recover run test -e before=100" in way_back(result).remedy
    assert not [line for line in cluster.asked if " stop " in line]
    assert result.nodes["a01"].kept


def test_a_job_that_diverged_is_stopped_where_the_runbook_says_so() -> None:
    cluster = diverging()

    result = cluster.verify(on_divergence="stop")

    assert "train was stopped, both logs are kept" in way_back(result).finding
    assert len([line for line in cluster.asked if line.endswith("stop train")]) == 2


def test_a_job_that_does_not_end_is_said_to_run() -> None:
    result = diverging(a02="state=left\npids=7\n").verify(on_divergence="stop")

    assert "train may still run on a02" in way_back(result).finding


def test_a_job_that_is_not_ours_is_not_stopped() -> None:
    cluster = diverging()
    cluster.world.earlier_values = {"checkpoint": {"last_complete": STEP}}

    result = cluster.verify(on_divergence="stop")

    assert "this run did not start it" in way_back(result).finding


def test_few_iterations_in_both_logs_are_not_verified() -> None:
    frozen = {"a01": lines(1, 104)}

    result = Cluster({"a01": steady()}, frozen=frozen).verify()

    assert result.verdict is not None
    assert result.verdict.level is Level.WARN
    assert result.verdict.worst.finding.startswith("not verified")
    assert not result.values["verified"]


def test_a_replay_that_could_not_be_compared_holds_the_gate() -> None:
    result = Cluster({"a01": steady()}, frozen={"a01": lines(1, 104)}).verify(argument="replay")

    assert result.nodes["a01"].verdict.level is Level.UNKNOWN


def test_without_a_log_from_before_nothing_is_verified() -> None:
    result = Cluster({"a01": steady()}, frozen={}).verify()

    assert result.nodes["a01"].verdict.level is Level.UNKNOWN
    assert "there is no log from before" in result.nodes["a01"].verdict.worst.finding


def test_an_old_log_that_nobody_froze_is_not_taken_for_progress() -> None:
    cluster = Cluster({"a01": lambda s: lines(1, 60)}, frozen={})

    assert cluster.verify(stall="1m").nodes["a01"].verdict.worst.code == "verify.stalled"


def test_an_unreachable_node_is_unknown_and_holds_no_other() -> None:
    cluster = Cluster({"a01": steady(), "a02": None})  # type: ignore[dict-item]  # the lost one

    result = cluster.verify(stall="1m")

    assert result.nodes["a01"].verdict.level is Level.PASS
    assert result.nodes["a02"].verdict.level is Level.UNKNOWN


def test_a_node_without_a_named_log_is_unknown() -> None:
    cluster = Cluster({"a01": steady()})
    cluster.world.variables = {}

    assert cluster.verify().nodes["a01"].verdict.worst.code == "verify.no-log"


def test_too_little_time_is_unknown_and_says_so() -> None:
    cluster = Cluster({"a01": steady(per_s=0.1)})
    cluster.world.step = a_step("verify", timeout_s=60.0)

    worst = cluster.verify().nodes["a01"].verdict.worst

    assert worst.level is Level.UNKNOWN
    assert "only 5 of 24 iterations" in worst.finding


def test_progress_is_told_at_each_quarter_of_the_way() -> None:
    cluster = Cluster({"a01": steady()})

    cluster.verify()

    assert len(cluster.world.notes) in range(3, 7)


@pytest.mark.parametrize(
    "params",
    [
        {"argument": "restart"},
        {"format": "csv"},
        {"regex": "("},
        {"regex": "loss"},
        {"every": "2"},
        {"iterations": 0},
    ],
)
def test_a_wrong_parameter_is_refused_before_the_run(params: dict[str, Any]) -> None:
    with pytest.raises((ValidationError, ValueError)):
        VERIFY.params(**params)


def shell(line: str, folder: Path) -> tuple[int, bytes]:
    done = subprocess.run(["/bin/sh", "-c", line], cwd=folder, capture_output=True, check=False)
    return done.returncode, done.stdout


def test_the_line_prints_what_is_new_since_the_offset(tmp_path: Path) -> None:
    (tmp_path / "it's a log").write_bytes(b"one\ntwo\n")

    _, first = shell(follow_line("it's a log"), tmp_path)
    inode = first.split()[0].decode()
    with (tmp_path / "it's a log").open("ab") as file:
        file.write(b"three\n")
    _, second = shell(follow_line("it's a log", inode=inode, offset=8), tmp_path)

    assert first.partition(b"\n")[2] == b"one\ntwo\n"
    assert second == f"{inode} 8 14\nthree\n".encode()


def test_the_line_begins_anew_when_the_log_was_replaced(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"new\n")

    _, printed = shell(follow_line("log", inode="1", offset=3), tmp_path)
    _, shorter = shell(follow_line("log", inode=printed.split()[0].decode(), offset=9), tmp_path)

    assert printed.partition(b"\n")[2] == b"new\n"
    assert shorter.partition(b"\n")[2] == b"new\n"


def test_the_line_says_that_there_is_no_log(tmp_path: Path) -> None:
    assert shell(follow_line("none"), tmp_path)[0] == 3
