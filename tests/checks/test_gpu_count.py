"""Are all GPUs there?"""

from __future__ import annotations

from recovery.checks.gpu_count import GPU_COUNT
from recovery.model.output import Printed
from recovery.model.verdict import Level
from recovery.reading.smi import read_smi
from tests.checks.smi_texts import ask, query

UUID = "GPU-84833014-b5e3-39d2-afe4-9f4701be913"


def listing(*names: str) -> str:
    return "".join(f"GPU {i}: {name} (UUID: {UUID}{i})\n" for i, name in enumerate(names))


def test_as_many_gpus_as_expected_pass() -> None:
    judged = ask(GPU_COUNT, listing(*["NVIDIA H200"] * 8), {"expected_gpus": 8})

    assert judged.verdict.level is Level.PASS


def test_a_missing_gpu_fails() -> None:
    judged = ask(GPU_COUNT, listing(*["NVIDIA H200"] * 7), {"expected_gpus": 8})

    assert judged.verdict.level is Level.FAIL
    assert judged.verdict.worst.finding == "7 of 8 GPUs: 1 missing"
    assert judged.verdict.worst.code == "gpu.count.missing"


def test_more_gpus_than_the_profile_knows_fail() -> None:
    judged = ask(GPU_COUNT, listing(*["NVIDIA H200"] * 4), {"expected_gpus": 2})

    assert judged.verdict.worst.code == "gpu.count.more"


def test_without_an_expectation_the_pass_says_that_nothing_was_compared() -> None:
    judged = ask(GPU_COUNT, listing("NVIDIA H200"))

    assert judged.verdict.level is Level.PASS
    assert "no expected number" in judged.verdict.worst.finding


def test_a_list_that_lost_a_gpu_to_an_error_line_counts_what_is_left() -> None:
    text = listing("NVIDIA H200") + (
        "Unable to determine the device handle for gpu 0000:9B:00.0: Unknown Error\n"
    )

    judged = ask(GPU_COUNT, text, {"expected_gpus": 2})

    assert judged.verdict.level is Level.FAIL
    assert judged.facts["gpus"] == 1


def test_descriptions_that_stop_before_the_promised_number_are_unknown() -> None:
    judged = ask(GPU_COUNT, query([{"Product Name": "NVIDIA H200"}] * 5, attached=8))

    assert judged.verdict.level is Level.UNKNOWN
    assert "promises 8 GPUs and describes 5" in judged.verdict.worst.finding


def test_boards_of_two_kinds_warn() -> None:
    judged = ask(GPU_COUNT, listing("NVIDIA H200", "NVIDIA H100 80GB HBM3"))

    assert judged.verdict.level is Level.WARN
    assert judged.facts["models"] == {"NVIDIA H200": 1, "NVIDIA H100 80GB HBM3": 1}


def test_boards_that_the_profile_is_not_for_fail() -> None:
    judged = ask(GPU_COUNT, listing("NVIDIA L40S"), {"expected_gpu_name": "H200"})

    assert judged.verdict.worst.code == "gpu.count.kind"


def test_a_node_unlike_most_others_is_named() -> None:
    assert GPU_COUNT.compare is not None
    eight = read_smi(Printed(listing(*["NVIDIA H200"] * 8)))
    seven = read_smi(Printed(listing(*["NVIDIA H200"] * 7)))

    found = GPU_COUNT.compare({"a01": eight, "a02": eight, "a03": eight, "a04": seven})

    assert list(found) == ["a04"]
    assert "3 of 4 nodes have 8 x NVIDIA H200" in found["a04"].worst.finding


def test_two_nodes_that_differ_condemn_neither() -> None:
    assert GPU_COUNT.compare is not None
    one, two = (read_smi(Printed(listing(*["NVIDIA H200"] * n))) for n in (7, 8))

    assert GPU_COUNT.compare({"a01": one, "a02": two}) == {}
