"""Errors of the machine in the kernel log."""

from __future__ import annotations

import pytest

from recovery.checks.kernel_errors import ERRORS
from recovery.engine.judging import judge_one
from recovery.model.output import Printed

BOOT = "[    0.000000] Linux version 5.15.0-122-generic (buildd@builder)\n"


def ask(text: str, **context: object):
    return judge_one(ERRORS, Printed(BOOT + text, exit_status=0, command="dmesg"), context)


@pytest.mark.parametrize(
    ("level", "line"),
    [
        ("pass", "usb 1-1: new high-speed USB device number 2"),
        ("pass", "ACPI Error: No handler for Region [POWR] (000000006a1b2c3d) [IPMI]"),
        ("pass", "EXT4-fs error-free mount: nvme0n1p2 mounted. Opts: errors=remount-ro"),
        ("pass", "mlx5_core 0000:41:00.1: Port module event: module 1, Cable unplugged"),
        ("warn", "pcieport 0000:a6:01.0: AER: Corrected error received: 0000:a6:01.0"),
        ("warn", "pcieport 0000:a6:01.0: AER: Uncorrectable (Non-Fatal) error message received "
                 "from 0000:a8:00.0"),
        ("fail", "pcieport 0000:a6:01.0: AER: Multiple Uncorrected (Fatal) error received: "
                 "0000:a6:01.0"),
        ("fail", "mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 7: be0000000"),
        ("warn", "mce: [Hardware Error]: Machine check events logged"),
        ("fail", "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0"),
        ("warn", "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0"),
        ("fail", "Out of memory: Killed process 99 (python3) total-vm:1kB, anon-rss:1kB"),
        ("warn", "mce: CPU12: Package temperature above threshold, cpu clock throttled"),
        ("fail", "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python3:123]"),
        ("warn", "INFO: task python3:123 blocked for more than 120 seconds."),
        ("fail", "Kernel panic - not syncing: Fatal exception"),
        ("fail", "EXT4-fs error (device nvme0n1p2): ext4_find_entry:1455: inode #2"),
        ("fail", "EXT4-fs (nvme0n1p2): Remounting filesystem read-only"),
        ("fail", "XFS (nvme1n1): Corruption of in-memory data detected.  Shutting down filesystem"),
        ("fail", "nfs: server store01 not responding, timed out"),
        ("fail", "blk_update_request: I/O error, dev nvme0n1, sector 1"),
        ("fail", "mlx5_core 0000:53:00.0: device's health compromised - reached miss count"),
        ("warn", "traps: python3[77] general protection fault ip:7f sp:7f in libcuda.so.1[7f+1]"),
    ],
)  # fmt: skip
def test_a_line_has_its_level(level: str, line: str):
    assert ask(f"[ 1200.000000] {line}\n").verdict.level.word == level


def test_a_server_that_answers_again_is_a_warning():
    text = (
        "[  200.000000] nfs: server store01 not responding, still trying\n"
        "[  260.000000] nfs: server store01 OK\n"
    )

    assert ask(text).verdict.level.word == "warn"


def flap(times: int, at: float = 4000.0) -> str:
    lines = [
        f"[{at + 9 * n:12.6f}] mlx5_core 0000:53:00.0 mlx5_3: Port: 1 Link {state}\n"
        for n, state in enumerate(("DOWN", "ACTIVE") * times)
    ]
    return "".join(lines)


def test_one_flap_warns_and_two_fail():
    assert ask(flap(1)).verdict.level.word == "warn"
    assert ask(flap(2)).verdict.level.word == "fail"


def test_a_link_that_comes_up_while_the_node_boots_is_no_flap():
    assert ask(flap(2, at=20.0)).verdict.level.word == "pass"


def test_a_port_that_nobody_uses_may_flap():
    assert ask(flap(3), ignored_hcas=["mlx5_3"]).verdict.level.word == "pass"


def test_a_link_that_stays_down_fails():
    text = "[ 9000.000000] mlx5_core 0000:53:00.0 mlx5_3: Port: 1 Link DOWN\n"

    assert ask(text).verdict.worst.code == "kernel.errors.link-down"


def test_a_job_over_its_limit_is_told_from_a_node_without_memory():
    text = (
        "[  200.000000] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),"
        "oom_memcg=/slurm/job_48211,task_memcg=/slurm/job_48211/step_0,task=python3,pid=99,uid=0\n"
        "[  200.000001] Memory cgroup out of memory: Killed process 99 (python3) total-vm:1kB\n"
    )

    judged = ask(text)

    assert judged.verdict.worst.code == "kernel.errors.oom-job"
    assert judged.facts["oom_kills"] == [
        {"pid": 99, "process": "python3", "scope": "memcg", "job": "48211"}
    ]


def test_a_flood_of_corrected_errors_is_one_finding():
    line = "[ 1200.000000] pcieport 0000:a6:01.0: AER: Corrected error received: 0000:a6:01.0\n"

    found = ask(line * 2500).verdict

    assert [f.code for f in found.findings] == ["kernel.errors.aer"]
