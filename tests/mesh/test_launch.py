"""The exact lines: what is forced, what is passed on, and what nobody is asked for."""

from dataclasses import replace

from recovery.mesh.launch import (
    Launch,
    alone_line,
    known_hosts,
    mpirun_line,
    on_pairs,
    on_rail,
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

    assert line.startswith('k=$(mktemp) && trap \'rm -f "$k"\' EXIT && cat > "$k" && mpirun')
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
