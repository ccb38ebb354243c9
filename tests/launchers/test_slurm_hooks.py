"""`recover check --local` as HealthCheckProgram and as prolog of a real Slurm."""

import sys
from pathlib import Path

import pytest

from tests.app.schedulers import on_path, put_tool
from tests.launchers.realslurm import real_slurm, why_no_slurm
from tests.transports.servers import until

WHY_NOT = why_no_slurm()
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "can")]
RECOVER = Path(sys.executable).parent / "recover"
ROOT = Path(__file__).parents[2]
HOOK = """#!/bin/sh
export PATH={path} SLURM_CONF={conf} PYTHONPATH={root}
cd {folder} || exit 0
exec {recover} check gpu.count --local --profile h100-sxm8 --budget 20s {more} >>{folder}/said 2>&1
"""
CONF = """\
HealthCheckProgram={folder}/health
HealthCheckInterval=1
HealthCheckNodeState=ANY
Prolog={folder}/prolog
PrologFlags=Alloc
PrologEpilogTimeout=60
"""


def cards(tools, n_gpus):
    lines = [
        f"GPU {i}: NVIDIA H100 80GB HBM3 (UUID: GPU-{i:08x}-0000-0000-0000-000000000000)"
        for i in range(n_gpus)
    ]
    put_tool(tools, "nvidia-smi", says="\n".join(lines) + "\n")


def hook(folder, name, more, tools):
    words = {"path": on_path(tools), "conf": folder / "slurm.conf", "root": ROOT,
             "folder": folder, "recover": RECOVER, "more": more}  # fmt: skip
    (folder / name).write_text(HOOK.format(**words))
    (folder / name).chmod(0o755)


def test_a_health_check_drains_and_gives_back_and_a_prolog_stops_a_job(tmp_path):
    tools = tmp_path / "tools"
    cards(tools, 8)
    hook(tmp_path, "health", "--drain", tools)
    cards(tmp_path / "seven", 7)
    hook(tmp_path, "prolog", "", tmp_path / "seven")

    with real_slurm(tmp_path, 1, more=CONF.format(folder=tmp_path)) as slurm:

        def state():
            return slurm.ask("sinfo", "--Node", "--noheader", "--format=%T|%E", check=False).strip()

        def said():
            return (tmp_path / "said").read_text() if (tmp_path / "said").exists() else "nothing"

        cards(tools, 7)
        assert until(lambda: "drained|recover: check: gpu.count: 7 of 8 GPUs" in state()), said()

        cards(tools, 8)
        assert until(lambda: state() == "idle|none"), f"{state()}: {said()}"

        slurm.ask("scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=kernel update")
        before = said().count("PASS")
        assert until(lambda: said().count("PASS") > before + 1)
        assert state() == "drained|kernel update"  # not ours to give back

        slurm.ask("scontrol", "update", "NodeName=n1", "State=RESUME")
        slurm.ask("sbatch", "--wrap", f"touch {tmp_path}/ran")
        assert until(lambda: "Prolog" in state()), f"{state()}: {said()}"
        assert not (tmp_path / "ran").exists()
