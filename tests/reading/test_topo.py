"""Topologies of both makers."""

from __future__ import annotations

import pytest

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.topo import looks_like_topology, nearest_nics, read_topology

ROCM = """
============================ ROCm System Management Interface ============================
================================ Link Type between two GPUs ===============================
       GPU0         GPU1
GPU0   0            XGMI
GPU1   XGMI         0

======================================= Numa Nodes ========================================
GPU[0]\t\t: (Topology) Numa Node: 0
GPU[1]\t\t: (Topology) Numa Node: -1
================================== End of ROCm SMI Log ===================================
"""
NVIDIA = """\tGPU0\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNODE\tPIX\t0-23\t0-1\t\tN/A
NIC0\tNODE\t X \tSYS\t\t\t\t
NIC1\tPIX\tSYS\t X \t\t\t\t

Legend:

  X    = Self
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_bond_0
"""


def test_rocms_matrix_is_read_by_link_type() -> None:
    seen = read_topology(Printed(ROCM))

    assert seen.pair_links() == {("GPU0", "GPU1"): "XGMI"}
    assert seen.numa == {"GPU0": 0, "GPU1": None}
    assert seen.cut == ""


def test_a_rocm_text_without_its_last_line_is_cut_short() -> None:
    assert read_topology(Printed(ROCM[: ROCM.index("====== End")])).cut != ""


def test_affinities_are_kept_as_text() -> None:
    seen = read_topology(Printed(NVIDIA))

    assert seen.numa_affinity == {"GPU0": "0-1"}
    assert seen.gpu_numa_id == {"GPU0": None}
    assert seen.cpu_affinity == {"GPU0": "0-23"}


def test_the_adapter_behind_the_same_bridge_is_the_nearest() -> None:
    seen = read_topology(Printed(NVIDIA))

    assert nearest_nics(seen) == {"GPU0": "NIC1"}
    assert seen.nic_names["NIC1"] == "mlx5_bond_0"


def test_tabs_that_a_terminal_expanded_read_the_same() -> None:
    seen = read_topology(Printed(NVIDIA.expandtabs(8)))

    assert seen.links == read_topology(Printed(NVIDIA)).links
    assert seen.numa_affinity == {"GPU0": "0-1"}


def test_a_legend_that_lacks_an_adapter_is_cut_short() -> None:
    seen = read_topology(Printed(NVIDIA.replace("  NIC1: mlx5_bond_0\n", "")))

    assert seen.cut == "the legend of the adapters lacks NIC1"


@pytest.mark.parametrize("text", ["", "hello\n", "GPU 0: NVIDIA H200 (UUID: GPU-1)\n"])
def test_what_is_no_topology_cannot_be_read(text: str) -> None:
    with pytest.raises(ParseError):
        read_topology(Printed(text))


def test_a_topology_is_known_by_its_content() -> None:
    assert looks_like_topology(Printed(NVIDIA))
    assert looks_like_topology(Printed(ROCM))
    assert not looks_like_topology(Printed(NVIDIA, command="dmesg"))
