"""`recover gate`, `nodes` and `return`, one after the other on real SSH servers."""

import json

import pytest

from tests.app.schedulers import asked, on_path, put_tool
from tests.cli.places import operators_folder, recover
from tests.lab_runs import LabRun


@pytest.fixture
def cluster(tmp_path):
    run = LabRun(tmp_path)
    run.up("none", nodes=4)
    yield run
    run.down()


@pytest.mark.lab
def test_from_a_broken_node_to_its_return(cluster, monkeypatch):
    tools = cluster.folder / "tools"
    states = dict.fromkeys(("node01", "node02", "node03", "node04"), "idle|gpu|none")
    put_tool(tools, "sinfo", says=sinfo(states))
    put_tool(tools, "scontrol")
    monkeypatch.setenv("PATH", on_path(tools))
    inventory = cluster.folder / "slurm.yaml"
    text = cluster.folder.joinpath("lab/inventory.yaml").read_text()
    inventory.write_text(text.replace("  vars:\n", "  vars:\n    scheduler: slurm\n", 1))
    cluster.lab("break", "gpu-lost", "node03")

    assert cluster.recover("gate", str(inventory), "--nodes", "3").returncode == 3
    cluster.recover("preflight", str(inventory), "--nodes", "3", check=True)
    assert cluster.recover("gate", str(inventory), "--nodes", "3").returncode == 0
    shut = cluster.recover("gate", str(inventory), "--nodes", "4")
    assert shut.returncode == 1
    assert "FAIL    node03: gpu.count: 7 of 8 GPUs" in shut.stdout
    drain = "scontrol update NodeName=node03 State=DRAIN Reason=recover: gpu-health: gpu.count"
    assert any(line.startswith(drain) for line in asked(tools))

    states["node03"] = "drained|gpu|recover: gpu-health: gpu.count"
    states["node04"] = "drained|gpu|kernel update"
    put_tool(tools, "sinfo", says=sinfo(states))
    told = cluster.recover("nodes", str(inventory), check=True).stdout
    assert "set aside     node03 since" in told
    assert "drained: kernel update" in told

    still = cluster.recover("return", str(inventory), "node03", "--yes")
    assert still.returncode == 1
    assert "not released: node03" in still.stderr
    assert not resumed(tools)

    cluster.lab("mend", "node03")
    done = cluster.recover("return", str(inventory), "node03", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert resumed(tools) == ["scontrol update NodeName=node03 State=RESUME"]
    rows = json.loads(cluster.recover("nodes", str(inventory), "--format", "json").stdout)
    assert {row["node"]: row["state"] for row in rows}["node03"] == "drained"  # sinfo still says so
    assert cluster.recover("gate", str(inventory), "--nodes", "4").returncode == 0


def sinfo(states):
    return "".join(f"{name}|{rest}\n" for name, rest in states.items())


def resumed(tools):
    return [line for line in asked(tools) if "RESUME" in line]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(operators_folder(tmp_path))
    monkeypatch.setenv("RECOVER_STATE", str(tmp_path / "state"))


@pytest.mark.usefixtures("folder")
def test_before_the_first_run_nodes_are_never_tested_and_the_gate_is_undecided():
    told = recover("nodes", "c")
    gate = recover("gate", "c")

    assert "never tested  n[1-3] (3 nodes)" in told.output
    assert gate.exit_code == 3
    assert "UNDECIDED: 0 nodes passed within 24 h 0 min, 3 needed" in gate.output


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "words", [("gate", "c", "--nodes", "9"), ("nodes", "x"), ("nodes", "c", "n9"),
              ("return", "c", "n1")],
)  # fmt: skip
def test_wrong_input_is_refused_with_a_remedy(words):
    result = recover(*words)

    assert getattr(result.exception, "exit_code", result.exit_code) == 2
    assert result.exception.remedy


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "words", [("gate", "c", "--max-age", "24"), ("nodes", "c", "--since", "x")]
)
def test_a_duration_needs_a_unit(words):
    result = recover(*words)

    assert result.exit_code == 2
    assert "is no duration; write 90s, 15m, 24h or 30d" in result.output
