"""The stand-in tools, read by the project's own checks: what they print is what we can read."""

from __future__ import annotations

import functools
import json

import pytest

from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Level
from recovery.reading.nccl import read_nccl
from recovery.registry import collect
from tests.lab.conftest import Cluster

pytestmark = pytest.mark.lab

PROFILE = {"expected_gpus": 8, "nvlinks": 18, "expected_compute_hcas": 8, "expected_rate": 400}


@functools.cache
def shelf() -> dict[str, Check]:
    return collect("recovery.checks", Check)


def judged(cluster: Cluster, node: str, name: str) -> tuple[Level, str]:
    check = shelf()[name]
    answer = cluster.run(node, check.command)
    printed = Printed(text=answer.out, error_text=answer.err, exit_status=answer.status)
    verdict = check.judge(check.parse(printed), check.expect(PROFILE))
    return verdict.level, str(verdict)


WELL = ("gpu.count", "gpu.state", "gpu.ecc", "gpu.remap", "gpu.thermal", "gpu.power", "gpu.memory",
        "gpu.topology", "gpu.nvlink", "gpu.pcie", "gpu.persistence", "driver.match",
        "ib.state")  # fmt: skip


@pytest.mark.parametrize("name", WELL)
def test_a_healthy_node_fails_no_check(cluster: Cluster, name: str):
    level, words = judged(cluster, "node01", name)

    assert level in (Level.PASS, Level.WARN), words


BROKEN = [
    ("gpu-lost", None, "gpu.count"),
    ("gpu-lost", None, "gpu.xid"),
    ("ecc", None, "gpu.ecc"),
    ("ecc", None, "gpu.remap"),
    ("ecc", None, "gpu.xid"),
    ("nvlink-down", None, "gpu.nvlink"),
    ("slow-nic", None, "ib.state"),
]


@pytest.mark.parametrize(("fault", "value", "name"), BROKEN)
def test_a_broken_node_does_not_pass(well: Cluster, fault: str, value: str | None, name: str):
    well.ask("break", fault=fault, nodes=["node02"], value=value)

    level, words = judged(well, "node02", name)

    assert level is not Level.PASS, words


def test_query_gpu_prints_any_fields_in_the_asked_form(cluster: Cluster):
    asked = "nvidia-smi --query-gpu=index,memory.used,power.limit --format="

    full = cluster.run("node01", f"{asked}csv").out.splitlines()
    bare = cluster.run("node01", f"{asked}csv,noheader,nounits -i 3").out

    assert full[:2] == ["index, memory.used [MiB], power.limit [W]", "0, 4 MiB, 700.00 W"]
    assert bare == "3, 4, 700.00\n"


def test_query_gpu_refuses_an_unknown_field_as_the_tool_does(cluster: Cluster):
    answer = cluster.run("node01", "nvidia-smi --query-gpu=index,colour --format=csv")

    assert answer.status == 2
    assert answer.out == 'Field "colour" is not a valid field to query.\n\n'


def test_a_lost_gpu_is_missing_everywhere(well: Cluster):
    well.ask("break", fault="gpu-lost", nodes=["node03"], value="0")

    count = "nvidia-smi -L | wc -l; nvidia-smi topo -m | grep -c '^GPU'; nvidia-smi | grep -c HBM3"

    assert well.run("node03", count).out.split() == ["7", "7", "7"]
    assert well.run("node03", "all_reduce_perf -g 8").status == 2


def test_a_reset_of_the_gpus_mends_their_memory_and_brings_no_lost_one_back(well: Cluster):
    for fault in ("ecc", "gpu-lost"):
        well.ask("break", fault=fault, nodes=["node03"], value="1" if fault == "ecc" else "0")

    done = well.run("node03", "nvidia-smi --gpu-reset")

    assert done.status == 0
    assert done.out.splitlines()[-1] == "All done."
    assert done.out.count(" was successfully reset.") == 7
    assert judged(well, "node03", "gpu.ecc")[0] is Level.PASS
    assert judged(well, "node03", "gpu.count")[0] is Level.FAIL


def busbw(cluster: Cluster, command: str, env: str = "") -> float:
    answer = cluster.run(
        "node01", f"rm -f out.json; {env} {command} -J out.json >/dev/null; cat out.json"
    )
    return json.loads(answer.out)["results"][-1]["out_of_place"]["bus_bw"]


ALONE = "all_reduce_perf -b 8G -e 8G -f 2 -g 8"
PAIR = "mpirun -np 16 -N 8 -H node01:8,{other}:8 all_reduce_perf -b 8G -e 8G -g 1"


def test_bandwidth_follows_from_the_scripted_fabric(well: Cluster):
    well.ask("break", fault="slow-nic", nodes=["node02"], value=None)
    well.ask("break", fault="slow-pair", nodes=["node03"], value="node01")

    assert 470 < busbw(well, ALONE) < 490
    assert 360 < busbw(well, ALONE, env="NCCL_NVLS_ENABLE=0") < 375
    assert 90 < busbw(well, PAIR.format(other="node02")) < 100
    assert 80 < busbw(well, PAIR.format(other="node03")) < 90


def test_a_slow_adapter_shows_where_nccl_is_told_to_use_it(well: Cluster):
    well.ask("break", fault="slow-nic", nodes=["node02"], value="mlx5_3")
    rail = PAIR.format(other="node02").replace("-np 16 -N 8", "-np 2 -N 1 -x NCCL_IB_HCA={hca}")

    assert 10 < busbw(well, rail.format(hca="mlx5_3")) < 14
    assert 42 < busbw(well, rail.format(hca="mlx5_4")) < 52
    assert 300 < busbw(well, rail.format(hca="^mlx5_3")) < 360
    assert "No device found" in well.run("node01", rail.format(hca="=mlx5")).out


def test_the_same_pair_always_reaches_the_same(cluster: Cluster):
    pair = PAIR.format(other="node02")

    assert busbw(cluster, pair) == busbw(cluster, pair)
    assert 375 < busbw(cluster, pair) < 392


POOLED = (
    "mpirun -np 4 -x NCCL_ALGO=Ring -x 'NCCL_TESTS_SPLIT=DIV 2'"
    " -H node01:1,node02:1,node03:1,node01:1 all_reduce_perf -b 8G -e 8G -a 3"
)


def test_one_launch_of_several_pairs_gives_the_number_of_the_slowest(well: Cluster):
    clean = read_nccl(well.run("node01", POOLED).out)
    well.ask("break", fault="slow-nic", nodes=["node03"], value=None)
    slow = read_nccl(well.run("node01", POOLED).out)

    assert (clean.body.n_groups, clean.n_ranks, clean.body.copies) == (2, 2, 1)
    assert 360 < clean.rows[-1].busbw_gb_per_s < 380
    assert 85 < slow.rows[-1].busbw_gb_per_s < 100


def test_a_json_file_that_is_there_is_not_overwritten(well: Cluster):
    said = well.run("node01", f"rm -f out.json*; {ALONE} -J out.json; {ALONE} -J out.json; ls")

    assert "# Writing JSON output to out.json.0" in said.out
    assert well.run("node01", f"{ALONE} -J /none/x").out.startswith("# skipping json output")


def test_mpirun_names_the_node_that_is_off(well: Cluster):
    well.ask("power-loss", nodes=["node02"])

    answer = well.run("node01", PAIR.format(other="node02"))

    assert answer.status != 0
    assert "node02" in answer.err
    assert "ORTE was unable to reliably start one or more daemons." in answer.err


def test_a_hang_stops_the_table_in_the_middle_of_a_row(well: Cluster):
    well.ask("break", fault="hang", nodes=["node02"], value="all_reduce_perf")
    sizes = PAIR.format(other="node02").replace("-b 8G", "-b 1G -f 2")

    answer = well.run("node01", f"timeout 1 {sizes}")

    assert answer.status == 124
    assert answer.out.splitlines()[-1].split()[-1] == "-1"


def test_counters_and_versions_are_the_nodes_own(cluster: Cluster):
    counters = cluster.run(
        "node01", "grep -s . /sys/class/infiniband/*/ports/*/counters/*; cat /etc/hostname"
    ).out

    assert "/sys/class/infiniband/mlx5_7/ports/1/counters/link_downed:0\n" in counters
    assert counters.endswith("node01\n")


def test_the_bug_report_is_one_compressed_file(cluster: Cluster):
    collect = "cd data && nvidia-bug-report.sh --output-file report >&2 && gzip -t report*"

    assert cluster.run("node01", collect).status == 0
