"""PCIe links, NVLinks, the fabric; persistence and MIG."""

from __future__ import annotations

from typing import Any

import pytest

from recovery.checks.gpu_fabric import GPU_FABRIC
from recovery.checks.gpu_mig import GPU_MIG
from recovery.checks.gpu_nvlink import GPU_NVLINK
from recovery.checks.gpu_pcie import GPU_PCIE
from recovery.checks.gpu_persistence import GPU_PERSISTENCE
from recovery.model.verdict import Level
from tests.checks.smi_texts import ask, csv, query

UUID = "GPU-84833014-b5e3-39d2-afe4-9f4701be913"
PCIE = (
    "index, pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current,"
    " pcie.link.width.max, utilization.gpu [%]"
)


def test_a_generation_that_rests_at_idle_is_no_fault() -> None:
    judged = ask(GPU_PCIE, csv(PCIE, "0, 1, 5, 16, 16, 0 %"), {"expected_pcie_gen": 5})

    assert judged.verdict.level is Level.PASS


def test_a_generation_that_can_never_be_reached_fails() -> None:
    judged = ask(GPU_PCIE, csv(PCIE, "0, 3, 3, 16, 16, 0 %"), {"expected_pcie_gen": 5})

    assert judged.verdict.worst.code == "gpu.pcie.generation"


def test_a_low_generation_under_load_fails() -> None:
    judged = ask(GPU_PCIE, csv(PCIE, "0, 3, 5, 16, 16, 90 %"), {"expected_pcie_gen": 5})

    assert judged.verdict.level is Level.FAIL


def test_half_the_width_fails_with_and_without_a_profile() -> None:
    text = csv(PCIE, "0, 5, 5, 8, 16, 0 %", "1, 5, 5, 16, 16, 0 %")

    assert ask(GPU_PCIE, text).verdict.level is Level.FAIL
    assert ask(GPU_PCIE, text, {"expected_pcie_width": 16}).verdict.level is Level.FAIL
    assert ask(GPU_PCIE, text, {"expected_pcie_width": 8}).verdict.level is Level.PASS


def nvlink(*gpus: tuple[int, int], rate: str = "26.562") -> str:
    """For each GPU how many links are up and how many are inactive."""
    lines = []
    for i, (up, down) in enumerate(gpus):
        lines.append(f"GPU {i}: NVIDIA H100 80GB HBM3 (UUID: {UUID}{i})")
        lines += [f"\t Link {n}: {rate} GB/s" for n in range(up)]
        lines += [f"\t Link {n}: <inactive>" for n in range(up, up + down)]
    return "\n".join(lines) + "\n"


def test_all_links_up_pass() -> None:
    judged = ask(GPU_NVLINK, nvlink((18, 0), (18, 0)), {"expected_links": 18})

    assert judged.verdict.level is Level.PASS
    assert judged.facts["speed_gbs"] == 26.562


def test_links_that_are_inactive_by_design_pass_with_the_profile() -> None:
    judged = ask(GPU_NVLINK, nvlink((12, 6), (12, 6)), {"expected_links": 12})

    assert judged.verdict.level is Level.PASS


def test_a_gpu_with_fewer_links_than_its_peers_fails_without_a_profile() -> None:
    judged = ask(GPU_NVLINK, nvlink((18, 0), (17, 1)))

    assert judged.verdict.level is Level.FAIL
    assert judged.verdict.worst.component == "GPU1"


def test_a_gpu_whose_links_are_all_inactive_fails() -> None:
    text = nvlink((18, 0), (0, 0)) + (
        "\t NVML: Unable to retrieve NVLink information as all links are inActive\n"
    )

    judged = ask(GPU_NVLINK, text)

    assert judged.verdict.level is Level.FAIL
    assert "0 of 18" in judged.verdict.worst.finding


def test_cards_without_nvlink_pass_with_these_words() -> None:
    text = nvlink((0, 0)) + "\t NVML: Unable to retrieve NVLink information: Not Supported\n"

    judged = ask(GPU_NVLINK, text)

    assert judged.verdict.level is Level.PASS
    assert "no NVLink in use" in judged.verdict.worst.finding


def test_no_word_about_links_is_unknown() -> None:
    assert ask(GPU_NVLINK, nvlink((0, 0))).verdict.level is Level.UNKNOWN


def test_a_slow_link_fails_by_the_profile() -> None:
    text = nvlink((18, 0), rate="19,5")

    assert ask(GPU_NVLINK, text, {"nvlink_gb_per_s": 25}).verdict.worst.code == "gpu.nvlink.slow"


def fabric(state: str, status: str = "Success", **more: str) -> dict[str, Any]:
    return {"Fabric": {"State": state, "Status": status, **more}}


@pytest.mark.parametrize(
    ("state", "status", "uptime_s", "level"),
    [
        ("Completed", "Success", None, Level.PASS),
        ("Completed", "Unknown Fault", None, Level.FAIL),
        ("N/A", "N/A", None, Level.PASS),
        ("In Progress", "N/A", None, Level.UNKNOWN),
        ("In Progress", "N/A", 40, Level.UNKNOWN),
        ("In Progress", "N/A", 5400, Level.FAIL),
        ("Not Started", "N/A", 5400, Level.FAIL),
        ("Not Started", "N/A", None, Level.UNKNOWN),
    ],
)
def test_the_fabric_state_is_judged_by_the_time_since_boot(
    state: str, status: str, uptime_s: int | None, level: Level
) -> None:
    judged = ask(GPU_FABRIC, query([fabric(state, status)] * 2), {"uptime_s": uptime_s})

    assert judged.verdict.level is level


def test_a_zero_domain_fails_only_where_nvlink_leaves_the_node() -> None:
    zero = fabric("Completed", ClusterUUID="00000000-0000-0000-0000-000000000000")

    assert ask(GPU_FABRIC, query([zero])).verdict.level is Level.PASS
    judged = ask(GPU_FABRIC, query([zero]), {"multi_node_nvlink": True})
    assert judged.verdict.worst.code == "gpu.fabric.no-domain"


@pytest.mark.parametrize(
    ("name", "value", "level"),
    [
        ("Bandwidth", "Full", Level.PASS),
        ("Bandwidth", "Degraded", Level.FAIL),
        ("Route Unhealthy", "True", Level.FAIL),
        ("Route Recovery in progress", "True", Level.WARN),
        ("Summary", "Healthy", Level.PASS),
        ("Summary", "Unhealthy", Level.FAIL),
    ],
)
def test_the_fabrics_own_health_counts(name: str, value: str, level: Level) -> None:
    gpu = {"Fabric": {"State": "Completed", "Status": "Success", "Health": {name: value}}}

    assert ask(GPU_FABRIC, query([gpu])).verdict.level is level


def test_persistence_that_is_off_warns() -> None:
    text = query([{"Persistence Mode": "Enabled"}, {"Persistence Mode": "Disabled"}])

    judged = ask(GPU_PERSISTENCE, text)

    assert judged.verdict.level is Level.WARN
    assert judged.verdict.worst.component == "GPU1"


def mig(now: str, later: str | None = None) -> dict[str, Any]:
    return {"MIG Mode": {"Current": now, "Pending": later or now}}


@pytest.mark.parametrize(
    ("gpus", "expected", "level"),
    [
        ([mig("Disabled"), mig("Disabled")], None, Level.PASS),
        ([mig("Enabled"), mig("Enabled")], None, Level.PASS),
        ([mig("Enabled"), mig("Disabled")], None, Level.WARN),
        ([mig("Disabled"), mig("Disabled", "Enabled")], None, Level.WARN),
        ([mig("Disabled"), mig("Disabled")], True, Level.FAIL),
        ([mig("Disabled"), mig("Enabled")], False, Level.FAIL),
        ([mig("N/A"), mig("N/A")], False, Level.PASS),
    ],
)
def test_mig_is_judged_by_the_profile_and_by_agreement(
    gpus: list[dict[str, Any]], expected: bool | None, level: Level
) -> None:
    judged = ask(GPU_MIG, query(gpus), {"expected_mig": expected})

    assert judged.verdict.level is level
