"""`recover preflight` as a person types it, on real SSH servers."""

import json
import signal

import pytest

from tests.app.schedulers import on_path, put_tool
from tests.lab_runs import LabRun

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    run = LabRun(tmp_path_factory.mktemp("preflight"))
    run.up("none", nodes=8)
    run.lab("break", "gpu-lost", "node03")
    script(run, "-N 2", "--partition=leaf1")
    yield run
    run.down()


def script(run, *lines):
    text = "\n".join(("#!/bin/bash", *(f"#SBATCH {line}" for line in lines), "srun train\n"))
    (run.folder / "train.sbatch").write_text(text)


def preflight(cluster, *words):
    return cluster.recover("preflight", cluster.inventory, "--depth", "quick", *words)


def test_it_says_which_nodes_to_take_and_what_to_type(cluster):
    done = preflight(cluster, "--for", "train.sbatch")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "READY for train.sbatch: 2 of 3 healthy nodes on leaf1" in done.stdout
    assert done.stdout.splitlines()[-1] == "next: sbatch --exclude=node03 train.sbatch"


def test_for_a_command_line_only_the_options_are_on_standard_output(cluster):
    done = preflight(cluster, "--for", "train.sbatch", "--format", "sbatch")

    assert (done.returncode, done.stdout) == (0, "--exclude=node03\n")


def test_too_few_healthy_nodes_say_no_and_give_no_options(cluster):
    words = ("--for", "train.sbatch", "--format", "sbatch", "--", "-N", "4")

    done = preflight(cluster, *words)

    assert (done.returncode, done.stdout) == (1, "")
    assert "NOT READY" in done.stderr
    assert "next: recover resume" in done.stderr


def test_deeper_it_tests_the_network_too(cluster):
    words = ("--depth", "standard", "--nodes", "4", "--nodes", "@leaf2", "--format", "json")

    done = cluster.recover("preflight", cluster.inventory, *words)

    answer = json.loads(done.stdout)
    assert (done.returncode, answer["ready"], answer["nodelist"]) == (0, True, "node[05-08]")
    assert "mesh" in cluster.started_steps()


def test_full_climbs_to_the_leaves_and_all_together(cluster):
    words = ("--depth", "full", "--nodes", "@gpu & !node03", "-e", "burn=false")

    done = cluster.recover("preflight", cluster.inventory, *words)

    assert done.returncode == 0, done.stdout
    assert "mesh-full" in cluster.started_steps()
    assert "READY: 7 of 7 healthy nodes on leaf1, leaf2" in done.stdout


def test_a_burn_in_without_its_tools_is_undecided_and_never_passed(cluster):
    words = ("--depth", "full", "--nodes", "1", "--nodes", "node01")

    done = cluster.recover("preflight", cluster.inventory, *words)

    assert done.returncode == 3, done.stdout
    assert "UNKNOWN burn" in done.stdout


def test_nodes_that_run_jobs_are_left_alone(cluster, monkeypatch):
    tools = cluster.folder / "tools"
    lines = [f"node0{i}|{'allocated' if i < 7 else 'idle'}|leaf1|none" for i in range(1, 9)]
    put_tool(tools, "sinfo", says="\n".join(lines))
    monkeypatch.setenv("PATH", on_path(tools))
    with_slurm = cluster.folder / "slurm.yaml"
    text = cluster.folder.joinpath("lab/inventory.yaml").read_text()
    with_slurm.write_text(text.replace("  vars:\n", "  vars:\n    scheduler: slurm\n", 1))
    words = ("preflight", str(with_slurm), "--depth", "standard", "--nodes")

    two = cluster.recover(*words, "2", "--format", "json")
    three = cluster.recover(*words, "3")

    assert json.loads(two.stdout)["nodes"] == ["node07", "node08"]
    assert three.returncode == 3
    assert "6 of 8 nodes run jobs" in three.stdout
    assert "--when-busy wait" in three.stdout


def test_waiting_for_busy_nodes_can_be_stopped(cluster, monkeypatch):
    tools = cluster.folder / "all-busy"
    put_tool(tools, "sinfo", says="".join(f"node0{i}|mixed|gpu|none\n" for i in range(1, 9)))
    monkeypatch.setenv("PATH", on_path(tools))
    inventory = cluster.folder / "busy.yaml"
    text = cluster.folder.joinpath("lab/inventory.yaml").read_text()
    inventory.write_text(text.replace("  vars:\n", "  vars:\n    scheduler: slurm\n", 1))
    process = cluster.start("preflight", str(inventory), "--when-busy", "wait")
    first = process.stdout.readline()

    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)

    assert first == "8 nodes run jobs; asking again in 60 s\n"
    assert (process.returncode, said) == (130, "stopped (SIGINT): nothing was tested\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--nodes", "9"), "9 nodes are wanted, and there are 8"),
        (("--for", "nowhere.sbatch"), "nowhere.sbatch: cannot be read"),
        (("--nodes", "@gqu"), "no group 'gqu'"),
        (("@gpu",), "unexpected '@gpu'"),
        (("--", "-N", "2"), "options of sbatch go with --for"),
        (("-e", "redy=1"), "'redy' is not a variable"),
    ],
)
def test_wrong_input_is_refused_before_a_node_is_touched(cluster, words, said):
    runs = len(list(cluster.state.glob("runs/*")))

    done = preflight(cluster, *words)

    assert done.returncode == 2
    assert said in done.stderr
    assert len(list(cluster.state.glob("runs/*"))) == runs
