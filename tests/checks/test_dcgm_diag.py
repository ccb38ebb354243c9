"""The diagnostic of DCGM."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recovery.checks.dcgm_diag import DCGM_DIAG
from recovery.engine.judging import judge_one
from recovery.model.output import Printed
from recovery.model.verdict import Level
from tests.checks.smi_texts import ask


def run(*results: Any, root: str = "DCGM GPU Diagnostic") -> str:
    tests = [{"name": "PCIe", "results": list(results)}]
    return json.dumps({root: {"test_categories": [{"category": "Integration", "tests": tests}]}})


def gpu(number: int, status: str, severity: int | None = None) -> dict[str, Any]:
    one: dict[str, Any] = {"gpu_id": str(number), "status": status}
    if severity is not None:
        words = f"something about GPU {number}"
        one["warnings"] = [{"warning": words, "error_id": 30, "error_severity": severity}]
    return one


@pytest.mark.parametrize(
    ("severity", "level"),
    [(1, Level.WARN), (2, Level.FAIL), (4, Level.FAIL), (6, Level.FAIL), (None, Level.FAIL)],
)
def test_the_severity_decides_what_fail_means(severity: int | None, level: Level) -> None:
    assert ask(DCGM_DIAG, run(gpu(0, "Pass"), gpu(1, "Fail", severity))).verdict.level is level


def test_isolation_and_reset_are_the_remedies_of_their_severities() -> None:
    assert "RMA of GPU1" in ask(DCGM_DIAG, run(gpu(1, "Fail", 2))).verdict.worst.remedy
    assert "reset GPU1" in ask(DCGM_DIAG, run(gpu(1, "Fail", 6))).verdict.worst.remedy


def test_a_gpu_that_was_left_out_is_unknown() -> None:
    judged = ask(DCGM_DIAG, run(gpu(0, "Pass"), None))

    assert judged.verdict.level is Level.UNKNOWN
    assert judged.facts["not_run"] == [{"test": "PCIe", "gpu": 1}]


def test_a_gpu_that_was_skipped_beside_others_warns() -> None:
    assert ask(DCGM_DIAG, run(gpu(0, "Pass"), gpu(1, "Skip"))).verdict.level is Level.WARN


def test_a_run_that_skipped_everything_is_unknown() -> None:
    judged = ask(DCGM_DIAG, run(gpu(0, "Skip"), gpu(1, "Skip")))

    assert judged.verdict.level is Level.UNKNOWN
    assert judged.verdict.worst.code == "dcgm.diag.no-test"


def test_a_run_without_tests_is_unknown() -> None:
    assert ask(DCGM_DIAG, json.dumps({"DCGM Diagnostic": {}})).verdict.level is Level.UNKNOWN


def test_passes_with_a_failing_exit_status_are_unknown() -> None:
    printed = Printed(run(gpu(0, "Pass")), exit_status=226, command=DCGM_DIAG.command)

    judged = judge_one(DCGM_DIAG, printed, {})

    assert judged.verdict.level is Level.UNKNOWN
    assert judged.facts["dcgm_return"] == -30


def test_json_after_a_line_of_noise_is_read() -> None:
    assert ask(DCGM_DIAG, "Warning: x\n" + run(gpu(0, "Pass"))).verdict.level is Level.PASS


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (
            "Error: unable to establish a connection to the specified host: localhost",
            "dcgm.diag.no-engine",
        ),
        (
            "Error: Unable to complete diagnostic for group 2147483647. Return: (-39) : busy.",
            "dcgm.diag.busy",
        ),
        ("Error: something else", "dcgm.diag.error"),
    ],
)
def test_an_error_instead_of_a_run_is_unknown_with_its_remedy(line: str, code: str) -> None:
    judged = ask(DCGM_DIAG, line + "\n")

    assert judged.verdict.level is Level.UNKNOWN
    assert judged.verdict.worst.code == code


def table(*rows: str) -> str:
    border = f"+{'-' * 27}+{'-' * 48}+"
    lines = [
        border,
        "| Diagnostic                | Result                                         |",
        border.replace("-", "="),
        "|-----  Deployment  --------+" + "-" * 48 + "|",
    ]
    for row in rows:
        label, _, result = row.partition("=")
        lines.append(f"| {label:<25} | {result:<46} |")
    return "\n".join([*lines, border]) + "\n"


@pytest.mark.parametrize(
    ("rows", "level"),
    [
        (("Denylist=Pass", "Inforom=Pass"), Level.PASS),
        (("Denylist=Pass", "Inforom=Fail"), Level.FAIL),
        (("Denylist=Pass", "Inforom=Warn"), Level.WARN),
        (("Denylist=Pass", "PCIe=Pass - All"), Level.PASS),
        (("Denylist=Pass", "PCIe=Fail - All"), Level.FAIL),
        (("Denylist=Pass", "PCIe=Warn - GPU: 3"), Level.WARN),
        (("Denylist=Pass", "PCIe=Pass - GPUs: 0, 1", "=Not Run - GPU: 2"), Level.UNKNOWN),
        (("Denylist=Pass", "memory=Pass", "=GPU0: Pass", "=GPU1: Fail"), Level.FAIL),
        (("Denylist=Pass", "memory=Zebra"), Level.UNKNOWN),
        (("Memtest=Skip - All",), Level.UNKNOWN),
    ],
)
def test_a_table_is_judged_by_its_rows(rows: tuple[str, ...], level: Level) -> None:
    assert ask(DCGM_DIAG, table(*rows)).verdict.level is level


def test_a_wrapped_message_is_joined_as_it_was_cut() -> None:
    message = "Max stress level did not reach the desired level of 46000.0 on the device, GPU 2"
    parts = [message[i : i + 45] for i in range(0, len(message), 45)]
    rows = ("Diagnostic=Fail - GPU: 2", f"Warning={parts[0]}", *(f"={p}" for p in parts[1:]))

    judged = ask(DCGM_DIAG, table(*rows))

    assert judged.facts["messages"] == {"Diagnostic": [message]}
    assert judged.verdict.worst.component == "GPU2"
