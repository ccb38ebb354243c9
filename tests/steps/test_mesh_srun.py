"""`mesh` by `srun --mpi=pmix`: a real Slurm starts a real Open MPI."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.launchers.realslurm import RealSlurm, real_slurm, why_no_slurm

RECOVER = str(Path(sys.executable).parent / "recover")
TESTBED = Path(__file__).parents[1] / "testbed"
PMIX = Path("/usr/lib/x86_64-linux-gnu/pmix2/lib")  # where Debian's plugin of Slurm looks
PLUGIN = Path("/usr/lib/x86_64-linux-gnu/slurm-wlm/mpi_pmix.so")
NAMES = ("n1", "n2", "n3", "n4")
FLOOR = {"collective": "all_reduce", "nodes": 2, "value": 0.0001, "kind": "floor"}
LIMIT_S = 240


def why_not() -> str:
    """Why no MPI can be started by Slurm here; empty when it can."""
    if why := why_no_slurm():
        return why
    if not PLUGIN.exists() or not (PMIX / "libpmix.so.2").exists():
        return "needs slurm-wlm-basic-plugins and libpmix2: srun --mpi=pmix"
    return "" if shutil.which("mpirun") else "needs openmpi-bin"


pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


@dataclass
class Place:
    """A Slurm of four nodes, and what runs a command where its plugin finds PMIx."""

    slurm: RealSlurm
    inside: tuple[str, ...]
    folder: Path

    def mesh(self, **params: Any) -> tuple[str, dict[str, Any]]:
        """Runs a mesh on all nodes; returns what was said, and the findings by node."""
        general = {
            "transport": "local",
            "nccl_tests_dir": str(TESTBED),
            "expected_gpus": 1,
            "busbw": [FLOOR, {**FLOOR, "algorithm": "ring"}],
        }
        inventory = {"all": {"vars": general, "hosts": {name: {} for name in NAMES}}}
        step = {
            "mesh": "all_reduce", "size": "64K", "runner": "srun", "gate": "any",
            "on_fail": "quarantine", "slow_below": 0.01, "env": {"SLURM_CONF": self.slurm.conf},
            **params,
        }  # fmt: skip
        runbook = {"runbook": "srun", "about": "A test", "nodes": "all", "steps": [step]}
        for name, content in (("inventory", inventory), ("runbook", runbook)):
            (self.folder / f"{name}.yaml").write_text(json.dumps(content))
        state = self.folder / "state"
        done = subprocess.run(
            [*self.inside, RECOVER, "run", str(self.folder / "inventory.yaml"), "--runbook",
             str(self.folder / "runbook.yaml"), "--yes"],
            env={**os.environ, "RECOVER_STATE": str(state)}, capture_output=True, text=True,
            timeout=LIMIT_S, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode in (0, 1, 3), done.stdout + done.stderr
        journal = max(state.glob("runs/*/journal.jsonl"), key=lambda path: path.stat().st_mtime)
        events = [json.loads(line) for line in journal.read_text().splitlines()]
        found = {
            e["result"]["node"]: e["result"]["verdict"]["findings"][0]
            for e in events
            if "result" in e
        }
        return done.stdout + done.stderr, found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("slurm")
    (folder / "own").mkdir()
    for name in NAMES:
        (folder / f"tmp-{name}").mkdir()
    with has_pmix(folder) as inside:
        more = f"TmpFS={folder}/tmp-%n\n"  # PMIx makes folders there; the nodes share one /tmp
        with real_slurm(folder, len(NAMES), more=more, inside=inside) as running:
            yield Place(running, inside, folder / "own")


@contextlib.contextmanager
def has_pmix(folder: Path) -> Iterator[tuple[str, ...]]:
    """Where Slurm's plugin finds ``libpmix.so``: Debian has that name in libpmix-dev only."""
    if (PMIX / "libpmix.so").exists():
        yield ()
        return
    shutil.copytree(PMIX, folder / "pmix")
    (folder / "pmix" / "libpmix.so").symlink_to("libpmix.so.2")
    line = f"mount --bind {folder / 'pmix'} {PMIX} && echo ready && exec sleep 3600"
    with subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", line],
        stdout=subprocess.PIPE, text=True,
    ) as holder:  # fmt: skip
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "ready\n"
            yield ("nsenter", f"--mount=/proc/{holder.pid}/ns/mnt", "--")
        finally:
            holder.kill()


def levels(found: dict[str, Any]) -> str:
    """The level of each node, n1 first."""
    return " ".join(found[name]["level"] for name in NAMES)


def test_pairs_are_started_by_srun_and_their_json_is_read(place: Place) -> None:
    said, found = place.mesh()

    assert levels(found) == "pass pass pass pass", said
    assert "by srun" in said
    kept = [path.read_text(errors="replace") for path in place.folder.rglob("evidence/**/*")
            if path.is_file()]  # fmt: skip
    assert any('"results":[' in text and "Rank  1" in text for text in kept)


def test_all_pairs_are_one_step_of_slurm_when_asked(place: Place) -> None:
    said, found = place.mesh(pooled=True)

    assert levels(found) == "pass pass pass pass", said
    assert "2 pairs in one launch: the slowest at" in said


def test_a_node_that_slurm_has_not_is_unknown_and_nobody_is_convicted(place: Place) -> None:
    place.slurm.ask("scontrol", "update", "NodeName=n4", "State=DOWN", "Reason=test")
    try:
        said, found = place.mesh()
    finally:
        place.slurm.ask("scontrol", "update", "NodeName=n4", "State=RESUME")

    assert found["n4"]["level"] == "unknown", said
    assert "fail" not in levels(found), said
    assert found["n4"]["remedy"]
