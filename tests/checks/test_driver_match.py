"""Driver, library, CUDA and toolkit."""

from __future__ import annotations

from recovery.checks.driver_match import DRIVER_MATCH
from recovery.model.output import Printed
from recovery.model.verdict import Level
from recovery.reading.driver import Versions, read_versions
from tests.checks.smi_texts import ask, query

KERNEL = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024\n"
    "GCC version:  gcc version 12.3.0\n"
)
OPEN = KERNEL.replace("Kernel Module  550", "Open Kernel Module for x86_64  550")
TABLE = "| NVIDIA-SMI 550.90.07     Driver Version: 550.90.07    CUDA Version: 12.4     |\n"
NVCC = "Cuda compilation tools, release 12.4, V12.4.131\n"


def test_parts_that_fit_pass() -> None:
    judged = ask(DRIVER_MATCH, KERNEL + TABLE + NVCC, {"driver_expected": "550.90.07"})

    assert judged.verdict.level is Level.PASS
    assert judged.facts["nvcc"] == "12.4"


def test_the_open_kernel_module_is_read_too() -> None:
    assert ask(DRIVER_MATCH, OPEN + TABLE).facts["kernel_module"] == "550.90.07"


def test_a_module_of_another_version_fails() -> None:
    judged = ask(DRIVER_MATCH, KERNEL.replace("550.90.07", "550.54.15") + TABLE)

    assert judged.verdict.level is Level.FAIL
    assert judged.verdict.worst.code == "driver.match.module"


def test_a_library_of_another_version_fails() -> None:
    text = KERNEL + (
        "Failed to initialize NVML: Driver/library version mismatch\n"
        "NVML library version: 580.178\n"
    )

    judged = ask(DRIVER_MATCH, text)

    assert judged.verdict.level is Level.FAIL
    assert judged.facts["nvml_version"] == "580.178"


def test_another_version_than_the_profile_names_fails() -> None:
    judged = ask(DRIVER_MATCH, KERNEL + TABLE, {"driver_expected": "580.95.05"})

    assert judged.verdict.worst.finding == "driver 550.90.07, 580.95.05 expected"


def test_a_branch_is_enough_as_expectation() -> None:
    judged = ask(DRIVER_MATCH, KERNEL + TABLE, {"driver_expected": 550})

    assert judged.verdict.level is Level.PASS


def test_a_toolkit_newer_than_the_driver_warns() -> None:
    judged = ask(DRIVER_MATCH, KERNEL + TABLE + NVCC.replace("12.4", "13.0"))

    assert judged.verdict.level is Level.WARN


def test_a_missing_nvcc_fails_only_where_one_is_expected() -> None:
    text = KERNEL + TABLE + "nvcc: not found\n"

    assert ask(DRIVER_MATCH, text).verdict.level is Level.PASS
    assert ask(DRIVER_MATCH, text, {"nvcc_expected": "12.4"}).verdict.level is Level.FAIL


def test_no_version_at_all_is_unknown() -> None:
    assert ask(DRIVER_MATCH, "hello\n").verdict.level is Level.UNKNOWN
    assert ask(DRIVER_MATCH, NVCC).verdict.level is Level.UNKNOWN


def test_the_words_of_driver_610_are_read() -> None:
    text = "| NVIDIA-SMI 610.43.02     KMD Version: 610.43.02     CUDA UMD Version: 13.3     |\n"
    long_text = query([{"Product Name": "NVIDIA H200"}], driver="610.43.02 [Deprecated; use KMD]")

    assert read_versions(Printed(text)) == Versions(driver="610.43.02", cuda="13.3")
    assert read_versions(Printed(long_text)).driver == "610.43.02"


def test_a_node_with_another_driver_is_named() -> None:
    assert DRIVER_MATCH.compare is not None
    nodes = {f"a{i}": Versions(driver="550.90.07", cuda="12.4") for i in range(5)}
    nodes["a9"] = Versions(driver="550.54.15", cuda="12.4")

    found = DRIVER_MATCH.compare(nodes)

    assert list(found) == ["a9"]
    assert "5 of 6 nodes have 550.90.07" in found["a9"].worst.finding
