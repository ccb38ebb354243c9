"""The topology matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from recovery.checks.gpu_topology import GPU_TOPOLOGY
from recovery.model.output import Printed
from recovery.model.verdict import Level
from recovery.reading.topo import read_topology
from tests.checks.smi_texts import ask

LEGEND = "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n"


def matrix(n_gpus: int, usual: str, odd: Mapping[tuple[int, int], str] | None = None) -> str:
    names = [f"GPU{i}" for i in range(n_gpus)]
    lines = ["\t" + "\t".join([*names, "CPU Affinity", "NUMA Affinity"])]
    links = {(b, a): link for (a, b), link in (odd or {}).items()} | dict(odd or {})
    for i, name in enumerate(names):
        cells = [" X " if i == j else links.get((i, j), usual) for j in range(n_gpus)]
        lines.append("\t".join([name, *cells, "0-55", "0"]))
    return "\n".join(lines) + "\n" + LEGEND


def alone(gpu: int, n_gpus: int, link: str) -> dict[tuple[int, int], str]:
    return {(gpu, other): link for other in range(n_gpus) if other != gpu}


def test_the_link_of_the_profile_passes() -> None:
    judged = ask(GPU_TOPOLOGY, matrix(8, "NV18"), {"expected_gpu_link": "NV18"})

    assert judged.verdict.level is Level.PASS


def test_nv1_is_not_nv18() -> None:
    judged = ask(GPU_TOPOLOGY, matrix(2, "NV1"), {"expected_gpu_link": "NV18"})

    assert judged.verdict.level is Level.FAIL


def test_more_links_than_expected_are_no_fault() -> None:
    judged = ask(GPU_TOPOLOGY, matrix(2, "NV18"), {"expected_gpu_link": "NV12"})

    assert judged.verdict.level is Level.PASS


@pytest.mark.parametrize("context", [{"expected_gpu_link": "NV18"}, {}])
def test_one_gpu_off_the_fabric_is_named_with_and_without_a_profile(
    context: dict[str, Any],
) -> None:
    judged = ask(GPU_TOPOLOGY, matrix(8, "NV18", alone(2, 8, "SYS")), context)

    assert judged.verdict.level is Level.FAIL
    assert judged.verdict.worst.component == "GPU2"
    assert judged.facts["bad_gpus"] == ["GPU2"]
    assert judged.facts["degraded_pairs"] == 7


def test_two_narrow_gpus_are_both_named() -> None:
    odd = {**alone(1, 8, "NV17"), **alone(5, 8, "NV17")}

    judged = ask(GPU_TOPOLOGY, matrix(8, "NV18", odd), {"expected_gpu_link": "NV18"})

    assert judged.facts["bad_gpus"] == ["GPU1", "GPU5"]
    assert judged.verdict.worst.code == "gpu.topology.narrow"


def test_one_bad_pair_names_both_ends() -> None:
    judged = ask(GPU_TOPOLOGY, matrix(8, "NV18", {(0, 3): "SYS"}), {"expected_gpu_link": "NV18"})

    assert judged.facts["bad_gpus"] == ["GPU0", "GPU3"]


def test_no_link_at_all_names_the_fabric() -> None:
    judged = ask(GPU_TOPOLOGY, matrix(8, "SYS"), {"expected_gpu_link": "NV18"})

    assert judged.verdict.worst.code == "gpu.topology.absent"
    assert judged.facts["degraded_pairs"] == 28


def test_plain_pcie_passes_without_a_profile_and_says_so() -> None:
    judged = ask(GPU_TOPOLOGY, matrix(4, "SYS"))

    assert judged.verdict.level is Level.PASS
    assert "names no links" in judged.verdict.worst.finding


def test_a_matrix_in_the_profile_is_held_pair_by_pair() -> None:
    wanted = [["X", "NV2", "NV1"], ["NV2", "X", "SYS"], ["NV1", "SYS", "X"]]
    good = matrix(3, "SYS", {(0, 1): "NV2", (0, 2): "NV1"})
    bad = matrix(3, "SYS", {(0, 1): "NV1", (0, 2): "NV1"})

    assert ask(GPU_TOPOLOGY, good, {"expected_gpu_links": wanted}).verdict.level is Level.PASS
    judged = ask(GPU_TOPOLOGY, bad, {"expected_gpu_links": wanted})
    assert judged.verdict.worst.finding.startswith("GPU0-GPU1 is NV1, expected NV2")


def test_a_missing_gpu_fails() -> None:
    judged = ask(GPU_TOPOLOGY, matrix(7, "NV18"), {"expected_gpus": 8})

    assert judged.verdict.worst.code == "gpu.topology.count"


def test_a_matrix_without_its_legend_is_unknown() -> None:
    judged = ask(GPU_TOPOLOGY, matrix(2, "NV18").partition("Legend")[0])

    assert judged.verdict.level is Level.UNKNOWN
    assert judged.facts["readable"] is False


def test_a_matrix_cut_in_a_row_is_unknown_and_counts_its_whole_rows() -> None:
    text = matrix(8, "NV18")

    judged = ask(GPU_TOPOLOGY, text[: text.index("\nGPU5\t") + 20])

    assert judged.facts["header_gpus"] == 8
    assert judged.facts["complete_rows"] == 5


def test_a_command_ended_by_its_limit_is_unknown_even_with_a_whole_matrix() -> None:
    seen = read_topology(Printed(matrix(2, "NV18"), exit_status=124))

    assert seen.cut == "the command was ended by its time limit"


def test_a_node_unlike_the_others_is_named() -> None:
    assert GPU_TOPOLOGY.compare is not None
    good, bad = (read_topology(Printed(matrix(4, link))) for link in ("NV18", "NV12"))

    found = GPU_TOPOLOGY.compare({"a01": good, "a02": good, "a03": good, "a04": bad})

    assert "GPU0-GPU1 is NV12, NV18 on 3 of 4 nodes" in found["a04"].worst.finding
