"""Answers as other drivers, launchers and sick machines give them: no wrong PASS, no wrong FAIL."""

from __future__ import annotations

import re

import pytest

from recovery.model.output import Printed
from recovery.reading.plain import plain_lines
from tests.checks.outputs import Kept, judged, kept, level

SMI = {case.id: case for case in kept("smi")}
IB = {case.id: case for case in kept("ib")}
GPUS = "".join(
    f"GPU {i}: NVIDIA H100 80GB HBM3 (UUID: GPU-{i:08x}-1111-2222-3333-444455556666)\n{{links}}"
    for i in range(8)
)
LINKS = GPUS.replace("{links}", "".join(f"\t Link {k}: 26.562 GB/s\n" for k in range(18)))
LISTED = GPUS.replace("{links}", "")
UNREACHABLE = "Unable to determine the device handle for gpu 0000:5D:00.0: Unknown Error\n"


def cells(case: Kept, column: str, word: str) -> str:
    """The CSV with ``word`` in one column of GPU 2."""
    rows = [row.split(", ") for row in case.raw.decode().splitlines()]
    at = next(i for i, name in enumerate(rows[0]) if name.startswith(column))
    rows[3][at] = word
    return "".join(f"{', '.join(row)}\n" for row in rows)


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("0", "pass"),
        ("[N/A]", "warn"),
        ("[Not Supported]", "warn"),
        ("[Unknown Error]", "unknown"),
        ("ERR!", "unknown"),
        ("[Insufficient Permissions]", "unknown"),
        ("[GPU is lost]", "fail"),
        ("2", "fail"),
    ],
)
def test_an_error_counter_of_one_gpu_that_is_no_number_is_no_pass(word: str, wanted: str):
    case = SMI["smi-csv-h200-healthy"]
    text = cells(case, "ecc.errors.uncorrected", word)

    assert level(text, case.command, **case.context) == wanted


def test_links_that_a_cut_may_have_taken_are_not_counted_as_down():
    expected = {"expected_gpus": 8, "expected_links": 18}
    at_a_line = "\n".join(LINKS.split("\n")[:-2]) + "\n"

    assert level(LINKS, "nvidia-smi nvlink -s", **expected) == "pass"
    assert level(at_a_line, "nvidia-smi nvlink -s", **expected) == "unknown"
    assert level(LINKS[:-30], "nvidia-smi nvlink -s", **expected) == "unknown"
    torn = LINKS.replace("Link 5: 26.562 GB/s", "Link 5: <inactive>", 1)[:-30]
    assert level(torn, "nvidia-smi nvlink -s", **expected) == "fail"


@pytest.mark.parametrize("status", [124, 137, 143, 255])
def test_a_whole_answer_of_a_tool_that_did_not_end_well_is_no_pass(status: int):
    printed = Printed(LISTED, exit_status=status, command="nvidia-smi -L")

    assert judged(printed, {"expected_gpus": 8})[0].level.word != "pass"


def test_what_mpirun_started_is_read_by_the_checks_of_that_tool():
    tagged = "".join(f"[1,0]<stdout>:{line}\n" for line in LISTED.splitlines())

    assert level(tagged, "mpirun -np 1 --tag-output nvidia-smi -L", expected_gpus=8) == "pass"


def test_a_gpu_that_the_list_cannot_reach_fails_with_and_without_an_expected_number():
    text = LISTED.replace(LISTED.splitlines(keepends=True)[3], UNREACHABLE)

    assert level(text, "nvidia-smi -L", expected_gpus=8) == level(text, "nvidia-smi -L") == "fail"


@pytest.mark.parametrize(
    ("pattern", "instead", "wanted"),
    [
        ("Physical state: LinkUp", "Physical state: LinkErrorRecovery", "fail"),
        ("Physical state: LinkUp", "Physical state: Polling", "fail"),
        ("Rate: 400", "Rate: [unknown]", "unknown"),
        ("Rate: 400", "Rate: 200", "fail"),
        ("State: Active", "State: Armed", "fail"),
        ("State: Active", "State: ACTIVE", "pass"),
    ],
)
def test_one_port_that_is_not_like_the_others_is_seen(pattern: str, instead: str, wanted: str):
    case = IB["ib-ibstat-12-devices-lexical-ok"]
    text = re.sub(pattern, instead, case.raw.decode(), count=1)

    assert level(text, case.command, **case.context) == wanted


@pytest.mark.parametrize(
    "line",
    [
        'XFS (dm-0): metadata I/O error in "xfs_trans_read_buf_map" at daddr 0x1 len 8 error 5',
        "XFS (nvme0n1p1): Metadata I/O Error (0x1) detected at xfs_trans_read_buf_map",
        "XFS (sda1): Corruption detected. Unmount and run xfs_repair",
    ],
)
def test_file_system_errors_of_old_and_new_kernels_fail(line: str):
    boot = "[    0.000000] Linux version 6.8\n[    9.0] NVRM: loading NVIDIA UNIX x  570.1.2  x\n"

    assert level(f"{boot}[  100.000000] {line}\n", "dmesg") == "fail"


@pytest.mark.parametrize("command", ["", "pdsh -w node[01-02] nvidia-smi -L"])
def test_lines_of_several_nodes_ask_to_be_split_by_node(command: str):
    names = ("node01", "node02")
    text = "".join(f"{name}: {line}\n" for line in LISTED.splitlines() for name in names)

    found, _ = judged(Printed(text, exit_status=0, command=command), {"expected_gpus": 16})

    assert found.level.word == "unknown"
    assert found.worst.finding == "the output of 2 ranks or nodes is mixed in one text"
    assert "split it by node" in found.worst.remedy


@pytest.mark.parametrize(
    "head",
    [
        "node01: {}",
        "---------------\nnode01\n---------------\n{}",
        "node01 | CHANGED | rc=0 >>\n{}",
    ],
)
def test_what_a_fan_out_tool_puts_around_one_nodes_answer_is_taken_off(head: str):
    each = head.startswith("node01: ")
    text = "".join(f"node01: {x}\n" for x in LISTED.splitlines()) if each else head.format(LISTED)

    assert level(text, "clush -w node01 nvidia-smi -L", expected_gpus=8) == "pass"
    assert level(text, expected_gpus=8) == "pass"


def test_two_heads_of_a_fan_out_tool_are_two_nodes():
    rule = "---------------\n"
    text = "".join(f"{rule}{name}\n{rule}{LISTED}" for name in ("node01", "node02"))

    assert level(text, "clush -b -w node[01-02] nvidia-smi -L", expected_gpus=8) == "unknown"


@pytest.mark.parametrize("names", [("GPU0", "GPU1"), ("mlx5_0", "mlx5_1"), ("alpha", "beta")])
def test_parts_of_one_node_are_no_nodes(names: tuple[str, str]):
    text = "".join(f"{name}: {word}\n" for name in names for word in ("a", "b"))

    assert plain_lines(text)[0] == f"{names[0]}: a"


@pytest.mark.parametrize("command", ["nvidia-smi -q", "ibstat", "dmesg", "dcgmi diag -r 1 -j",
                                     "nvidia-smi topo -m", "ipmitool sel elist", "ipmitool sdr",
                                     "all_reduce_perf -b 8", "nvidia-smi nvlink -e"])  # fmt: skip
@pytest.mark.parametrize("text", ["", "\n\n", "Killed\n", "Terminated\n", "Traceback\n"])
def test_silence_and_last_words_with_status_0_are_never_a_pass(command: str, text: str):
    assert level(text, command) != "pass"
