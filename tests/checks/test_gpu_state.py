"""Does every GPU answer?"""

from __future__ import annotations

import pytest

from recovery.checks.gpu_state import GPU_STATE
from recovery.engine.judging import judge_one
from recovery.model.output import Printed
from recovery.model.verdict import Level
from tests.checks.smi_texts import ask, csv, query

GOOD = {"GPU Recovery Action": "None", "Temperature": {"GPU Current Temp": "31 C"}}


@pytest.mark.parametrize(
    ("action", "remedy"),
    [
        ("GPU Reset Required", "gpu-reset"),
        ("Reset", "gpu-reset"),
        ("Node Reboot Required", "reboot it"),
        ("Reboot", "reboot it"),
        ("Drain P2P", "peers"),
        ("Drain and Reset", "drain the node, then"),
        ("Something New", "do what it asks"),
    ],
)
def test_what_the_driver_asks_for_fails_with_its_own_remedy(action: str, remedy: str) -> None:
    judged = ask(GPU_STATE, query([GOOD, {**GOOD, "GPU Recovery Action": action}]))

    assert judged.verdict.level is Level.FAIL
    assert remedy in judged.verdict.worst.remedy
    assert judged.facts["recovery_action"] == {"GPU1": action}


def test_no_recovery_action_passes() -> None:
    judged = ask(GPU_STATE, query([GOOD, GOOD]))

    assert judged.verdict.level is Level.PASS
    assert "asks for nothing" in judged.verdict.worst.finding


@pytest.mark.parametrize(
    "word",
    [
        "[N/A]",
        "N/A",
        "[Not Supported]",
        "Not Supported",
        "[Insufficient Permissions]",
        "[Requested functionality has been deprecated]",
        "",
    ],
)
def test_a_value_that_is_not_there_is_no_fault(word: str) -> None:
    text = csv("index, temperature.gpu, pstate", f"0, {word}, P0", "1, 31, P0")

    judged = ask(GPU_STATE, text)

    assert judged.verdict.level is Level.PASS
    assert judged.facts["absent"] == {"GPU0": ["temperature.gpu"]}


@pytest.mark.parametrize("word", ["[Unknown Error]", "Unknown Error", "ERR!"])
def test_one_failed_reading_warns_and_several_fail(word: str) -> None:
    one = csv("index, temperature.gpu, pstate", f"0, {word}, P0", "1, 31, P0")
    two = csv("index, temperature.gpu, pstate", f"0, {word}, {word}", "1, 31, P0")

    assert ask(GPU_STATE, one).verdict.level is Level.WARN
    assert ask(GPU_STATE, two).verdict.level is Level.FAIL
    assert ask(GPU_STATE, two).facts["error"] == {"GPU0": ["temperature.gpu", "pstate"]}


@pytest.mark.parametrize("word", ["[GPU is lost]", "GPU is lost", "[GPU requires reset]"])
def test_a_lost_gpu_fails_by_one_value(word: str) -> None:
    text = csv("index, temperature.gpu, pstate", f"0, {word}, P0", "1, 31, P0")

    judged = ask(GPU_STATE, text)

    assert judged.verdict.level is Level.FAIL
    assert judged.verdict.worst.code == "gpu.state.lost"


def test_a_lost_gpu_in_the_long_listing_fails() -> None:
    lost = {
        "GPU Recovery Action": "GPU is lost",
        "Temperature": {"GPU Current Temp": "GPU is lost"},
    }

    judged = ask(GPU_STATE, query([GOOD, lost]))

    assert judged.verdict.level is Level.FAIL
    assert judged.verdict.worst.component == "GPU1"


@pytest.mark.parametrize(
    ("line", "status", "level", "code"),
    [
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
            " Make sure that the latest NVIDIA driver is installed and running.",
            9,
            Level.FAIL,
            "gpu.state.driver-not-loaded",
        ),
        ("Failed to initialize NVML: Unknown Error", 255, Level.UNKNOWN, "gpu.state.nvml"),
        (
            "Failed to initialize NVML: Insufficient Permissions",
            4,
            Level.UNKNOWN,
            "gpu.state.no-permission",
        ),
        ("WARNING: infoROM is corrupted at gpu 0000:86:00.0", 14, Level.FAIL, "gpu.state.inforom"),
        ("bash: nvidia-smi: command not found", 127, Level.UNKNOWN, "gpu.state.no-tool"),
        ("sh: 1: nvidia-smi: not found", 127, Level.UNKNOWN, "gpu.state.no-tool"),
        (
            "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.",
            12,
            Level.UNKNOWN,
            "gpu.state.library-missing",
        ),
        (
            "Unable to determine the device handle for gpu 0000:1A:00.0: GPU requires reset",
            255,
            Level.FAIL,
            "gpu.state.unreachable",
        ),
    ],
)
def test_an_error_line_says_what_it_means(line: str, status: int, level: Level, code: str) -> None:
    printed = Printed(line + "\n", exit_status=status, command="nvidia-smi -q")

    judged = judge_one(GPU_STATE, printed, {})

    assert judged.verdict.level is level
    assert judged.verdict.worst.code == code


def test_an_error_on_the_error_stream_counts_too() -> None:
    printed = Printed("", "No devices were found\n", 6, "nvidia-smi -q")

    assert judge_one(GPU_STATE, printed, {}).verdict.worst.code == "gpu.count.none"


@pytest.mark.parametrize(
    ("status", "level"),
    [
        (0, Level.PASS),
        (None, Level.PASS),
        (15, Level.FAIL),
        (124, Level.UNKNOWN),
        (1, Level.UNKNOWN),
    ],
)
def test_a_whole_answer_with_a_bad_status_does_not_pass(status: int | None, level: Level) -> None:
    printed = Printed(query([GOOD]), exit_status=status, command="nvidia-smi -q")

    assert judge_one(GPU_STATE, printed, {}).verdict.level is level


def test_the_status_of_a_pipeline_is_not_nvidia_smis() -> None:
    printed = Printed(query([GOOD]), exit_status=1, command="nvidia-smi -q | grep -v Foo")

    assert judge_one(GPU_STATE, printed, {}).verdict.level is Level.PASS
