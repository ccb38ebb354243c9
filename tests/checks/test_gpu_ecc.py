"""Memory errors, and the rows and pages that replace what is broken."""

from __future__ import annotations

from typing import Any

import pytest

from recovery.checks.gpu_ecc import GPU_ECC
from recovery.checks.gpu_remap import GPU_REMAP
from recovery.model.verdict import Level
from tests.checks.smi_texts import ask, csv, query


def ecc(volatile: int = 0, aggregate: int = 0, **more: str) -> dict[str, Any]:
    return {
        "ECC Errors": {
            "Volatile": {"DRAM Correctable": 0, "DRAM Uncorrectable": volatile},
            "Aggregate": {"DRAM Correctable": 0, "DRAM Uncorrectable": aggregate},
            **{name.replace("_", " "): value for name, value in more.items()},
        }
    }


def rows(pending: str = "No", failure: str = "No", uncorrectable: int = 0) -> dict[str, Any]:
    return {
        "Remapped Rows": {
            "Correctable Error": 0,
            "Uncorrectable Error": uncorrectable,
            "Pending": pending,
            "Remapping Failure Occurred": failure,
        }
    }


def test_no_error_passes() -> None:
    assert ask(GPU_ECC, query([ecc(), ecc()])).verdict.level is Level.PASS


def test_an_uncorrectable_error_since_the_last_reset_fails() -> None:
    judged = ask(GPU_ECC, query([ecc(), ecc(volatile=1, aggregate=1)]))

    assert judged.verdict.level is Level.FAIL
    assert judged.verdict.worst.component == "GPU1"
    assert judged.facts["volatile_dram_uncorrectable"] == {"GPU1": 1}


def test_errors_of_the_past_only_warn() -> None:
    judged = ask(GPU_ECC, query([ecc(), ecc(aggregate=7)]))

    assert judged.verdict.level is Level.WARN
    assert judged.verdict.worst.code == "gpu.ecc.past-errors"


@pytest.mark.parametrize(
    ("flag", "code"),
    [
        ("Channel_Repair_Pending", "gpu.ecc.repair-pending"),
        ("TPC_Repair_Pending", "gpu.ecc.repair-pending"),
        ("Unrepairable_Memory", "gpu.ecc.unrepairable"),
    ],
)
def test_a_repair_that_waits_or_is_impossible_fails(flag: str, code: str) -> None:
    judged = ask(GPU_ECC, query([ecc(), ecc(**{flag: "Yes"})]))

    assert judged.verdict.level is Level.FAIL
    assert judged.verdict.worst.code == code


def test_cards_that_do_not_count_errors_pass_with_these_words() -> None:
    judged = ask(GPU_ECC, query([{"ECC Errors": {"Volatile": {"DRAM Uncorrectable": "N/A"}}}]))

    assert judged.verdict.level is Level.PASS
    assert "not available" in judged.verdict.worst.finding


def test_ecc_that_is_off_on_some_gpus_only_warns() -> None:
    on, off = ({"ECC Mode": {"Current": word}} for word in ("Enabled", "Disabled"))

    judged = ask(GPU_ECC, query([on, off]))

    assert judged.verdict.level is Level.WARN
    assert "GPU1" in judged.verdict.worst.finding


def test_the_layout_before_450_is_read() -> None:
    old = {
        "ECC Errors": {
            "Volatile": {"Single Bit": {"Total": 5}, "Double Bit": {"Total": 2}},
            "Aggregate": {"Single Bit": {"Total": 5}, "Double Bit": {"Total": 2}},
        }
    }

    judged = ask(GPU_ECC, query([old]))

    assert judged.verdict.level is Level.FAIL
    assert judged.facts["ecc_uncorrected"] == {"GPU0": 2}


def test_an_answer_without_ecc_is_unknown() -> None:
    judged = ask(GPU_ECC, query([{"Product Name": "NVIDIA H200"}]))

    assert judged.verdict.level is Level.UNKNOWN
    assert "says nothing of ECC" in judged.verdict.worst.finding


def test_a_remap_that_waits_fails_and_asks_for_a_reset() -> None:
    judged = ask(GPU_REMAP, query([rows(), rows(pending="Yes")]))

    assert judged.verdict.level is Level.FAIL
    assert judged.verdict.worst.code == "gpu.ecc.remap-pending"
    assert judged.facts["remap_pending"] == ["GPU1"]


def test_a_remap_that_failed_asks_for_an_rma() -> None:
    judged = ask(GPU_REMAP, query([rows(failure="Yes")]))

    assert judged.verdict.level is Level.FAIL
    assert "RMA" in judged.verdict.worst.remedy


def test_rows_replaced_in_the_past_warn() -> None:
    judged = ask(GPU_REMAP, query([rows(uncorrectable=2)]))

    assert judged.verdict.level is Level.WARN
    assert judged.facts["remapped_uncorrectable"] == {"GPU0": 2}


def test_pending_of_another_section_is_not_a_pending_remap() -> None:
    text = query([{"MIG Mode": {"Current": "Disabled", "Pending": "Enabled"}, **rows()}])

    assert ask(GPU_REMAP, text).verdict.level is Level.PASS


def test_cards_that_retire_pages_are_judged_by_them() -> None:
    pages = {"Retired Pages": {"Double Bit ECC": 1, "Pending Page Blacklist": "Yes"}}

    judged = ask(GPU_REMAP, query([pages]))

    assert judged.verdict.level is Level.FAIL
    assert judged.verdict.worst.code == "gpu.ecc.retirement-pending"


def test_cards_without_remapping_pass_with_these_words() -> None:
    judged = ask(GPU_REMAP, query([{"Remapped Rows": "N/A"}]))

    assert judged.verdict.level is Level.PASS
    assert "neither" in judged.verdict.worst.finding


def test_a_csv_of_remapped_rows_is_read() -> None:
    text = csv(
        "gpu_bus_id, remapped_rows.pending, remapped_rows.failure",
        "00000000:0F:00.0, 0, 0",
        "00000000:2D:00.0, 1, 0",
    )

    assert ask(GPU_REMAP, text).facts["remap_pending"] == ["GPU1"]
