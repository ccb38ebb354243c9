"""Memory that is there, and free."""

from __future__ import annotations

from typing import Any

from recovery.checks.gpu_memory import GPU_MEMORY
from recovery.engine.judging import judge_one
from recovery.model.output import Printed
from recovery.model.verdict import Level
from tests.checks.smi_texts import ask, csv, query

IDLE = {"expect_idle": True}


def memory(used: int, total: int = 81559, processes: Any = "None") -> dict[str, Any]:
    return {
        "FB Memory Usage": {"Total": f"{total} MiB", "Used": f"{used} MiB"},
        "Processes": processes,
    }


PROCESS = {"Process ID": "48213", "Type": "C", "Name": "python3", "Used GPU Memory": "60000 MiB"}


def test_free_memory_of_the_expected_size_passes() -> None:
    judged = ask(GPU_MEMORY, query([memory(4)] * 8), {"memory_mib": 81559, **IDLE})

    assert judged.verdict.level is Level.PASS


def test_memory_that_the_driver_no_longer_sees_fails() -> None:
    assert ask(GPU_MEMORY, query([memory(0, total=0)])).verdict.level is Level.FAIL


def test_less_memory_than_the_profile_names_fails() -> None:
    judged = ask(GPU_MEMORY, query([memory(4, total=40000)]), {"memory_mib": 81559})

    assert judged.verdict.worst.code == "gpu.memory.size"


def test_a_left_over_process_fails_where_the_node_must_be_idle_and_warns_elsewhere() -> None:
    text = query([memory(60100, processes=PROCESS)])

    assert ask(GPU_MEMORY, text, IDLE).verdict.level is Level.FAIL
    assert ask(GPU_MEMORY, text).verdict.level is Level.WARN
    assert "pid 48213 python3" in ask(GPU_MEMORY, text).verdict.worst.finding


def test_memory_held_by_nobody_is_an_orphan() -> None:
    judged = ask(GPU_MEMORY, query([memory(70000)]))

    assert judged.verdict.worst.code == "gpu.memory.orphan"


def test_a_small_process_passes_with_its_number() -> None:
    small = {**PROCESS, "Used GPU Memory": "500 MiB"}

    judged = ask(GPU_MEMORY, query([memory(510, processes=small)]))

    assert judged.verdict.level is Level.PASS
    assert "processes: 1" in judged.verdict.worst.finding


def test_a_query_of_processes_alone_is_read() -> None:
    command = "nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv"
    header = "pid, process_name, used_gpu_memory [MiB]"
    empty = Printed(csv(header), exit_status=0, command=command)
    one = Printed(csv(header, "48213, python3, 589 MiB"), exit_status=0, command=command)

    assert judge_one(GPU_MEMORY, empty, IDLE).verdict.level is Level.PASS
    assert judge_one(GPU_MEMORY, one, IDLE).verdict.level is Level.FAIL


def test_memory_that_no_gpu_tells_is_unknown() -> None:
    text = csv("index, memory.used [MiB]", "0, [Insufficient Permissions]")

    assert ask(GPU_MEMORY, text).verdict.level is Level.UNKNOWN
