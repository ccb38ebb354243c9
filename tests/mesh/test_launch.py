"""The exact lines: what is forced, what is passed on, and what nobody is asked for."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

from recovery.mesh.launch import (
    Launch,
    alone_line,
    known_hosts,
    mpirun_line,
    on_pairs,
    on_rail,
    pooled,
    srun_line,
    torch_line,
)

PAIR = Launch(collective="all_reduce", size="8G", gpus=8, hosts=("n1", "n2"),
              env={"NCCL_IB_HCA": "mlx5"})  # fmt: skip


def test_one_node_runs_all_its_gpus_in_one_process():
    assert alone_line(PAIR) == "all_reduce_perf -b 8G -e 8G -f 2 -g 8"


def test_the_ring_is_forced_on_pairs_unless_somebody_chose():
    assert on_pairs(PAIR).env["NCCL_ALGO"] == "Ring"
    chosen = replace(PAIR, env={"NCCL_ALGO": "Tree"})
    assert on_pairs(chosen) == chosen
    assert "NCCL_ALGO" not in on_pairs(replace(PAIR, hosts=("n1", "n2", "n3"))).env


def test_mpirun_passes_every_variable_on_and_never_asks():
    line = mpirun_line(on_pairs(PAIR))

    assert "-np 16 -H n1:8,n2:8 -x NCCL_IB_HCA=mlx5 -x NCCL_ALGO=Ring all_reduce_perf" in line
    assert "BatchMode=yes" in line
    assert "mktemp" not in line


def test_host_keys_come_on_standard_input_and_are_removed():
    line = mpirun_line(PAIR, carries_keys=True)

    assert line.startswith('d=$(mktemp -d) && trap \'rm -rf "$d"\' EXIT && cat > "$d/k" && mpirun')
    assert known_hosts([(("n1", "n1", ""), ("ssh-ed25519 AAAA root@n1",))]) == (
        b"n1 ssh-ed25519 AAAA\n"
    )


def test_srun_names_its_nodes_and_exports_what_it_can():
    line = srun_line(replace(PAIR, env={"NCCL_ALGO": "Ring", "NCCL_IB_HCA": "a,b"}))

    assert "--nodes=2 --nodelist=n1,n2 --ntasks-per-node=8" in line
    assert "--export=ALL,NCCL_ALGO=Ring " in line


def test_a_rail_is_one_nic_with_the_gpu_next_to_it():
    rail = on_rail(PAIR, 3, "mlx5_3", 8)

    assert rail.gpus == 1
    assert (rail.env["NCCL_IB_HCA"], rail.env["CUDA_VISIBLE_DEVICES"]) == ("mlx5_3", "3")


def test_torch_takes_the_python_that_has_it():
    line = torch_line(replace(PAIR, python="/opt/t/bin/python"), 1, "10.0.0.1", 21000, 60.0)

    assert line.startswith("/opt/t/bin/python - --collective all_reduce --size 8G --gpus 8")
    assert line.endswith("--node-rank 1 --address 10.0.0.1 --port 21000 --timeout 60")


def test_all_pairs_in_one_launch_are_split_by_the_ranks_of_a_pair():
    line = mpirun_line(pooled(replace(PAIR, hosts=("n1", "n2", "n3", "n4")), 2))

    assert "-np 32 -H n1:8,n2:8,n3:8,n4:8" in line
    assert "-x 'NCCL_TESTS_SPLIT=DIV 16' all_reduce_perf" in line
    assert "-a 3" in line  # the slowest rank, not the mean


# What a build that knows -J does: text, a file with the whole environment, and its status.
PROGRAM = """#!/bin/sh
echo "# text"
while [ "$1" != -J ]; do shift; done
printf '%s' '{"version":3,"args":["x"],"env":["T=do-not-log],\\"config\\":"],' >"$2"
printf '%s' '"nccl_version":22809,"config":{"ngpus":8},"results":[]}' >>"$2"
echo "$2" >"$KEEP"
exit "$STATUS"
"""


def run(tmp_path, status):
    program = tmp_path / "all_reduce_perf"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    line = alone_line(replace(PAIR, folder=str(tmp_path), writes_json=True))
    env = {"PATH": "/usr/bin:/bin", "STATUS": str(status), "KEEP": str(tmp_path / "where")}
    return subprocess.run(["/bin/sh", "-c", line], env=env, capture_output=True, text=True,
                          check=False)  # fmt: skip


def test_the_json_file_is_printed_without_the_environment_and_removed(tmp_path):
    done = run(tmp_path, 0)

    first, second, *_ = done.stdout.splitlines()
    assert (done.returncode, done.stderr, first) == (0, "", "# text")
    assert json.loads(second) == {"version": 3, "args": ["x"], "nccl_version": 22809,
                                  "config": {"ngpus": 8}, "results": []}  # fmt: skip
    where = Path((tmp_path / "where").read_text().strip())
    assert where.name == "j"
    assert not where.parent.exists()


def test_a_test_that_fails_keeps_its_status_and_its_file_is_not_read(tmp_path):
    done = run(tmp_path, 3)

    assert (done.returncode, done.stdout) == (3, "# text\n")
