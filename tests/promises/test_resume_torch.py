"""Trainings with real torch that resume after a power loss of two hosts, and with a thing left out.

The first is `recover run` on hosts of the testbed, the others are `recover verify` with two logs.
"""

from __future__ import annotations

import importlib
import json
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from recovery.cli.verify import COMMAND
from tests.testbed.bed import Bed, bed
from tests.testbed.controller import Controller, Done
from tests.testbed.host import Host
from tests.transports.servers import until

pytest.importorskip("torch", reason="torch is not installed (make setup-torch)")
TRAINER = Path(__file__).with_name("torch_trainer.py")
LOG, SAVES, PLACE = "/root/train.log", "/data/ckpt", "/root/torch_trainer.py"
LAST, EVERY, TORN_SAVE, EARLY = 200, 30, 150, 90
LAUNCH_S = 120.0


@pytest.fixture(scope="module")
def pair(testbed_here: None) -> Iterator[Bed]:
    """Two hosts with a disk each."""
    with bed(2, data_mib=16) as made:
        for host in made.hosts.values():
            if "there" not in host.do(f"test -x {sys.executable} && echo there", check=False):
                pytest.skip(f"{sys.executable} is in a folder that the hosts have of their own")
            host.do(f"printf %s {shlex.quote(TRAINER.read_text())} >{PLACE}")
        yield made


def launch(*, last: int = LAST, every: int = EVERY, **env: str) -> dict[str, object]:
    line = f"exec {sys.executable} -W ignore {PLACE} {SAVES} {last} {every} $RESUME_STEP"
    return {
        "launch": line,
        "name": "tiny",
        "log": LOG,
        "env": {"GLOO_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": "1", **env},
        "detach": True,
        "timeout": "60s",
    }


def stands_or_died(host: Host) -> str:
    said = host.do(f"cat {LOG}", check=False)
    return "stands" if "half of it" in said else "died" if "Error" in said else ""


def lose_power_in_the_middle_of_a_save(pair: Bed, operator: Controller) -> None:
    started = operator.run(launch(STOP_IN_SAVE=str(TORN_SAVE)))
    assert started.code == 0, started.said
    for host in pair.hosts.values():
        said = until(partial(stands_or_died, host), within_s=LAUNCH_S)
        assert said == "stands", host.do(f"tail -c 4000 {LOG}")
    for host in pair.hosts.values():
        host.off()
    for host in pair.hosts.values():
        host.on()
    pair.await_ssh()


def nothing_left(pair: Bed) -> bool:
    return not any(host.left() for host in pair.hosts.values())


def kept_by(operator: Controller, step: str, node: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = operator.results(step)[node]["kept"]
    return found


def bring_back(
    operator: Controller, job: dict[str, object], *, before: int = 0, **checks: str
) -> Done:
    """The runbook after a power loss, as short as it gets."""
    components = ["model", "optimizer", "scheduler", "rng"]
    checkpoint = {
        "checkpoint": SAVES,
        "require": components,
        "before": "{{ before }}",
        "save": {"step": "last_complete"},
        "timeout": "60s",
    }
    return operator.run(
        {"freeze": ["training-state"], "timeout": "60s"},
        {"check": ["fs.space"], "timeout": "60s"},
        checkpoint,
        job,
        {"verify": "resume", "timeout": "300s", **checks},
        vars={"before": 0},
        words=("--yes", *(("-e", f"before={before}") if before else ())),
    )


@pytest.mark.root
def test_a_training_torn_by_a_power_loss_is_brought_back_and_verified(pair: Bed) -> None:
    operator = Controller(pair, pair.folder)
    operator.write_inventory({name: {} for name in pair.hosts}, train_log=LOG, checkpoints=SAVES)
    lose_power_in_the_middle_of_a_save(pair, operator)
    newest = f"{SAVES}/checkpoint-{TORN_SAVE}"
    whole = pair["n1"].do(f"find {newest} -type f -size +0", check=False)

    done = bring_back(operator, launch())

    assert done.code == 0, done.said
    assert whole == ""  # all that had been written of it is gone, as after a real power cut
    assert f"saved: step = {TORN_SAVE - EVERY}" in done.said
    result = operator.results("verify-1")["n1"]
    assert result["values"]["strength"] == "strong"
    assert result["values"]["overlap"] >= EVERY - 1
    assert "resumed: iterations 121 to" in operator.findings("verify-1")["n1"]


@pytest.mark.root
def test_a_job_that_diverged_is_stopped_and_goes_on_from_the_checkpoint_before(pair: Bed) -> None:
    operator = Controller(pair, pair.folder)
    operator.write_inventory({name: {} for name in pair.hosts}, train_log=LOG, checkpoints=SAVES)
    endless = launch(last=10**6, every=10**6, LEAVE_OUT="scheduler")
    assert until(lambda: nothing_left(pair), within_s=LAUNCH_S)  # the job of the test before

    done = bring_back(operator, endless, before=TORN_SAVE, on_divergence="stop")

    assert done.code == 1, done.said
    assert f"saved: step = {TORN_SAVE - EVERY}" in done.said
    assert "the learning rate at iteration 121 is" in done.said, done.said
    assert "tiny was stopped, both logs are kept" in done.said
    assert f"recover run testbed -e before={TORN_SAVE - EVERY}" in done.said
    assert nothing_left(pair)
    kept = {k["name"] for step in ("freeze-1", "verify-1") for k in kept_by(operator, step, "n1")}
    assert {"train.log", "train-after.log"} <= kept


@dataclass(frozen=True)
class Trained:
    """One training that was never interrupted: its saves and its log, line by line."""

    saves: Path
    log: list[str]

    def job(self) -> Any:
        return importlib.import_module("tests.promises.torch_trainer").Job(self.saves)

    def verdict(self, job: Any, tmp_path: Path, *, twice: int = 48) -> dict[str, Any]:
        """What `recover verify` says of 48 iterations of a resumed job."""
        step = job.step
        before, after = tmp_path / "before.log", tmp_path / "after.log"
        before.write_text("".join(f"{line}\n" for line in self.log[: step + twice]))
        after.write_text("".join(f"{job.iterate()}\n" for _ in range(48)))
        words = [str(before), str(after), "--step", str(EARLY), "--format", "json"]
        found: dict[str, Any] = json.loads(CliRunner().invoke(COMMAND, words).output)
        return found


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    found = Trained(tmp_path_factory.mktemp("saves"), [])
    job = found.job()
    while job.step < EARLY + 48:
        found.log.append(job.iterate())
        if job.step % EVERY == 0:
            job.save()
    return found


@pytest.mark.parametrize(
    ("left_out", "level", "likely"),
    [
        ("", "pass", ""),
        ("rng", "pass", ""),
        ("data order", "warn", "data order"),
        ("optimizer", "fail", "optimizer state, learning rate or batch"),
        ("scheduler", "fail", "learning rate"),
        ("model", "fail", "weights"),
    ],
)
def test_what_a_resume_leaves_out_is_told(
    trained: Trained, tmp_path: Path, left_out: str, level: str, likely: str
) -> None:
    job = trained.job()
    job.load(EARLY, leave_out=left_out)

    found = trained.verdict(job, tmp_path)

    assert found["level"] == level, found["findings"]
    assert likely in found["diagnosis"]


def test_a_resume_at_another_step_than_told_fails(trained: Trained, tmp_path: Path) -> None:
    job = trained.job()
    job.load(EARLY - EVERY)

    found = trained.verdict(job, tmp_path)

    assert found["level"] == "fail"
    assert "before the checkpoint at 90" in found["findings"][0]["finding"]


def test_older_weights_under_the_right_step_fail(trained: Trained, tmp_path: Path) -> None:
    job = trained.job()
    job.load(EARLY - EVERY)
    job.go_on_as(EARLY)

    found = trained.verdict(job, tmp_path)

    assert found["level"] == "fail"


def test_a_resume_right_after_a_save_is_not_verified(trained: Trained, tmp_path: Path) -> None:
    job = trained.job()
    job.load(EARLY)

    found = trained.verdict(job, tmp_path, twice=0)

    assert (found["level"], found["verified"]) == ("warn", False)
