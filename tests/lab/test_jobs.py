"""The training job: exact over any number of ranks, exact over a resume, torn by a power loss."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import zipfile
from pathlib import Path

import pytest

from recovery.lab.layout import plain_python
from tests.lab.conftest import Cluster, eventually

pytestmark = pytest.mark.lab

TRAIN = Path(__file__).parents[2] / "recovery" / "lab" / "jobs" / "train.py"
QUICK = ("--pause", "0", "--piece-pause", "0", "--iterations", "60")


def train(root: Path, n_ranks: int, *options: str) -> list[int]:
    port = _free_port()
    job = []
    for rank in range(n_ranks):
        home = root / f"rank{rank}"
        (home / "ckpt").mkdir(parents=True, exist_ok=True)
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "RANK": str(rank),
               "WORLD_SIZE": str(n_ranks), "MASTER_PORT": str(port)}  # fmt: skip
        argv = [plain_python(), str(TRAIN), *QUICK, *options]
        job.append(
            subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )
    return [process.wait() for process in job]


def losses(root: Path, rank: int = 0) -> dict[int, tuple[float, ...]]:
    log = (root / f"rank{rank}" / "log" / "train.log").read_text()
    rows = re.findall(r"step=(\d+) loss=(\S+) lr=(\S+) grad_norm=(\S+)", log)
    return {int(step): tuple(map(float, rest)) for step, *rest in rows}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("whole")
    assert train(root, 1) == [0]
    return root


def test_the_loss_falls(uninterrupted: Path):
    curve = losses(uninterrupted)

    assert len(curve) == 60
    assert sum(curve[s][0] for s in range(51, 61)) < 0.9 * sum(curve[s][0] for s in range(1, 11))


def test_the_number_of_ranks_does_not_change_the_losses(tmp_path: Path, uninterrupted: Path):
    assert train(tmp_path, 3) == [0, 0, 0]

    assert losses(tmp_path) == losses(uninterrupted)
    assert losses(tmp_path, rank=2) == losses(uninterrupted)


def test_a_resume_on_fewer_nodes_goes_on_exactly(tmp_path: Path, uninterrupted: Path):
    train(tmp_path / "before", 3)
    for rank in range(2):
        here = tmp_path / "after" / f"rank{rank}" / "ckpt"
        shutil.copytree(tmp_path / "before" / f"rank{rank + 1}" / "ckpt", here)

    assert train(tmp_path / "after", 2, "--resume", "40") == [0, 0]

    after = losses(tmp_path / "after")
    assert list(after) == list(range(41, 61))
    whole = losses(uninterrupted)
    assert all(after[step] == pytest.approx(whole[step], abs=1e-6) for step in after)


def test_a_torn_checkpoint_is_not_resumed_from(tmp_path: Path):
    train(tmp_path, 1)
    torn = tmp_path / "rank0" / "ckpt" / "checkpoint-60" / "optimizer.pt"
    torn.write_bytes(torn.read_bytes()[:4000])

    assert train(tmp_path, 1, "--resume", "auto") != [0]


def test_a_checkpoint_has_the_members_that_torch_writes(uninterrupted: Path):
    folder = uninterrupted / "rank0" / "ckpt" / "checkpoint-40"

    with zipfile.ZipFile(folder / "optimizer.pt") as file:
        names = set(file.namelist())
        assert file.testzip() is None
        assert all(i.compress_type == zipfile.ZIP_STORED for i in file.infolist())

    assert {"optimizer/data.pkl", "optimizer/byteorder", "optimizer/version"} <= names
    assert {f"optimizer/data/{k}" for k in range(12)} <= names
    assert sorted(p.name for p in folder.iterdir()) == [
        "model.safetensors", "optimizer.pt", "rng_state.pth", "scheduler.pt", "trainer_state.json",
    ]  # fmt: skip


def test_a_running_job_shows_in_nvidia_smi_and_ends_with_the_power(well: Cluster):
    job = "setsid lab-train --iterations 100000 > out 2>&1 < /dev/null & echo $!"
    pid = well.run("node01", job).out.strip()
    asks = "nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader"
    eventually(lambda: pid in well.run("node01", asks).out)

    well.ask("power-loss", nodes=["node01"])
    well.ask("power-on", nodes=["node01"])

    assert well.run("node01", asks).out == ""
    assert well.node("node01")["processes"] == []
