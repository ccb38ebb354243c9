"""What a node says that it has, and who differs from the others."""

import subprocess

from recovery.mesh.probe import Probe, odd_ones, probe_line, read_probe, strange_hcas

SAID = """tool all_reduce_perf /opt/nccl-tests/all_reduce_perf
tool mpirun /usr/bin/mpirun
sum all_reduce_perf 1234abcd  -
mpi mpirun (Open MPI) 4.1.4
hca mlx5_0
hca mlx5_1
key ssh-ed25519 AAAA root@node01
leaf leaf3
something else
"""


def test_every_line_is_read_by_its_kind():
    probe = read_probe(SAID)

    assert probe.has("mpirun")
    assert not probe.has("srun")
    assert probe.hcas == ("mlx5_0", "mlx5_1")
    assert (probe.leaf, probe.mpi) == ("leaf3", "mpirun (Open MPI) 4.1.4")
    assert probe.digests == {"all_reduce_perf": "1234abcd"}


def test_a_node_that_says_nothing_has_nothing():
    assert read_probe("") == Probe()


def test_who_has_another_version_than_most_is_named():
    probes = {f"n{i}": Probe(mpi="4.1.4", digests={"p": "a"}) for i in range(3)}
    probes["n3"] = Probe(mpi="5.0.1", digests={"p": "b"})

    assert [(o.node, "4.1.4" in o.finding or "p" in o.finding) for o in odd_ones(probes)] == [
        ("n3", True), ("n3", True)]  # fmt: skip


def test_hca_names_are_prefixes_unless_exact_and_unknown_devices_are_no_fault():
    assert strange_hcas("mlx5_0,mlx5_9:1", ["mlx5_0", "mlx5_1"]) == ("mlx5_9",)
    assert strange_hcas("mlx5", ["mlx5_0"]) == ()
    assert strange_hcas("=mlx5", ["mlx5_0"]) == ("mlx5",)
    assert strange_hcas("^mlx5_7", ["mlx5_0"]) == ()
    assert strange_hcas("mlx5_0", []) == ()


def test_a_build_knows_json_by_the_words_it_would_say(tmp_path):
    new, old = tmp_path / "new_perf", tmp_path / "old_perf"
    new.write_bytes(b"\x7fELF\0# Writing JSON output to %s\0")
    old.write_bytes(b"\x7fELF\0")
    for program in (new, old):
        program.chmod(0o755)

    line = probe_line((str(new), str(old)))
    said = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False)

    assert read_probe(said.stdout).json == (str(new),)
    assert set(read_probe(said.stdout).tools) >= {str(new), str(old)}


LLDP = """#!/bin/sh
echo lldp.eth0.via=LLDP
echo lldp.eth0.chassis.name=leaf3
echo lldp.eth0.port.descr=Eth1/7
echo lldp.eth1.chassis.name=leaf3
echo lldp.eth2.chassis.name=mgmt1
"""


def test_the_leaf_is_the_switch_that_most_ports_of_the_node_hear_of(tmp_path):
    tool = tmp_path / "lldpctl"
    tool.write_text(LLDP)
    tool.chmod(0o755)

    said = subprocess.run(
        ["/bin/sh", "-c", probe_line(("none_perf",))], capture_output=True, text=True, check=False,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
    )  # fmt: skip

    assert read_probe(said.stdout).leaf == "leaf3"
