"""GPU errors of the kernel log: what counts, what is an echo, what proves nothing."""

from __future__ import annotations

import pytest

from recovery.checks.gpu_xid import XID
from recovery.engine.judging import judge_one
from recovery.model.output import Printed

BOOT = (
    "[    0.000000] Linux version 5.15.0-122-generic (buildd@builder)\n"
    "[   17.900000] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.172.08  Release\n"
)


def xid(at: float, gpu: str, code: int, rest: str = "pid=1, name=python3, Ch 1") -> str:
    return f"[{at:12.6f}] NVRM: Xid (PCI:0000:{gpu}:00): {code}, {rest}\n"


def ask(text: str, command: str = "dmesg", status: int | None = 0):
    return judge_one(XID, Printed(text, exit_status=status, command=command), {})


def level(text: str, **more: str) -> str:
    return ask(text, **more).verdict.level.word


def test_a_log_from_boot_in_which_the_driver_spoke_and_no_error_stands_passes():
    assert level(BOOT) == "pass"


def test_a_log_in_which_the_driver_never_spoke_proves_nothing():
    assert level("[    0.000000] Linux version 5.15\n[    1.000000] usb 1-1: new device\n") == (
        "unknown"
    )


def test_a_log_that_begins_after_boot_is_a_warning_at_best():
    found = ask("[ 9000.000000] usb 1-1: new device\n[ 9001.000000] NVRM: hello\n").verdict

    assert (found.level.word, found.worst.code) == ("warn", "kernel-log.partial")


def test_a_filtered_log_without_errors_is_unknown():
    assert level(BOOT, command="dmesg | grep NVRM") == "unknown"


def test_a_log_that_ends_in_a_line_is_unknown():
    assert level(BOOT + "[  100.000000] NVRM: Xi") == "unknown"


def test_a_code_that_may_be_cut_is_not_counted():
    judged = ask(BOOT + "[  100.000000] NVRM: Xid (PCI:0000:a8:00): 7")

    assert (judged.verdict.level.word, judged.facts["xid_counts"]) == ("unknown", {})


def test_errors_before_the_last_boot_are_told_and_not_counted():
    judged = ask(BOOT + xid(500, "1b", 79) + BOOT)

    assert judged.facts["before_boot"] == {79: 1}
    assert judged.verdict.level.word == "pass"
    assert "before it: Xid 79" in judged.verdict.worst.finding


LOAD = (
    "[  900.100000] nvidia-nvlink: Nvlink Core is being initialized, major device number 234\n"
    "[  900.200000] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.172.08  Release\n"
)


def test_errors_before_the_driver_was_loaded_again_are_told_and_not_counted():
    switch = "[   99.000000] nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 x\n"
    judged = ask(BOOT + xid(500, "1b", 119) + switch + LOAD)

    assert (judged.verdict.level.word, judged.facts["before_boot"]) == ("pass", {119: 1})
    assert "driver load" in judged.verdict.worst.finding
    assert level(BOOT + xid(500, "1b", 119) + LOAD.splitlines(keepends=True)[1]) == "pass"


def test_errors_after_the_driver_was_loaded_again_or_while_it_loaded_stand():
    begins, loaded = LOAD.splitlines(keepends=True)
    init = "[  900.150000] NVRM: GPU 0000:b3:00.0: RmInitAdapter failed! (0x62:0x40:1978)\n"

    assert level(BOOT + LOAD + xid(901, "1b", 119)) == "fail"
    assert level(BOOT + begins + init + loaded) == "fail"


def test_a_disk_error_before_the_driver_was_loaded_again_still_stands():
    full = "[  500.000000] EXT4-fs error (device nvme0n1p2): ext4_find_entry: reading\n"

    assert ask(BOOT + full + LOAD).facts["fs"]


def test_a_boot_mark_of_the_journal_is_a_boot():
    before = (
        "Nov 29 04:11:15 n1 kernel: NVRM: Xid (PCI:0000:32:00): 79, pid=1, name=x, GPU is gone\n"
    )
    after = (
        "-- Boot 3f2ab --\n"
        "Nov 29 05:00:00 n1 kernel: Linux version 5\n"
        "Nov 29 05:00:02 n1 kernel: NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.1  x\n"
    )

    assert level(before + after, command="journalctl -k") == "pass"


def test_torn_down_channels_of_other_gpus_follow_from_the_first_fault():
    text = BOOT + xid(100, "1b", 79) + "".join(xid(101, f"{n}a", 45) for n in range(7))

    found = ask(text).verdict

    assert [f.level.word for f in found.findings] == ["fail", "warn"]
    assert "0a" in found.findings[1].finding
    assert "Xid 79" in found.findings[1].finding


def test_a_storm_of_45_alone_is_a_warning():
    assert level(BOOT + "".join(xid(100 + n, "1b", 45) for n in range(50))) == "warn"


def test_the_drivers_own_words_win_over_the_table():
    need = "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
    none = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"

    reboot = ask(BOOT + xid(99, "1b", 31) + xid(100, "1b", 154, need))

    assert (reboot.verdict.level.word, reboot.facts["per_gpu"]) == (
        "fail",
        {"0000:1b:00": "reboot"},
    )
    assert level(BOOT + xid(99, "1b", 48) + xid(100, "1b", 154, none)) == "warn"


def test_162_takes_163_back():
    assert level(BOOT + xid(1, "1b", 163) + xid(2, "1b", 162)) == "pass"
    assert level(BOOT + xid(1, "1b", 162) + xid(2, "1b", 163)) == "warn"


def test_a_driver_loaded_anew_ends_what_a_reset_ends():
    again = "[  200.000000] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.1.2  Tue\n"

    assert level(BOOT + xid(99, "1b", 119)) == "fail"
    assert level(BOOT + xid(99, "1b", 119) + again) == "pass"
    assert level(BOOT + xid(99, "1b", 119) + again + xid(201, "1b", 119)) == "fail"
    # What asks for a reboot or for hands (79, 54) is not mended by a driver that loads again.
    assert level(BOOT + xid(99, "1b", 79) + again) == "fail"


def test_nvlink_5_lines_are_judged_by_their_own_word():
    fatal = "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 0x0 0x0 0x0 0x0)"

    assert level(BOOT + xid(1, "1b", 149, fatal)) == "fail"
    assert level(BOOT + xid(1, "1b", 149, fatal.replace("Fatal", "Nonfatal"))) == "warn"


@pytest.mark.parametrize(
    "line",
    [
        "NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 0x00000000 0x0 0x0 0x0 0x0)",
        "NETIR_LINK_EVT Fatal XC 1 i 2 Link 01 [0x0000000a]",
    ],
)
def test_nvlink_5_lines_of_other_drivers_are_read_too(line: str):
    judged = ask(BOOT + xid(1, "1b", 149, line))

    assert (judged.verdict.level.word, judged.facts["events"][0]["unit"]) == (
        "fail",
        "NETIR_LINK_EVT",
    )


def test_nvlink_5_registers_are_taken_apart_by_the_driver_that_wrote_them():
    line = "RLW_SRC_TRACK Nonfatal XC0 i0 Link -1 (0x00000{} 0x00000001 0x0 0x0 0x0 0x0)"
    new = BOOT.replace("570.172.08", "580.82.07")

    old = ask(BOOT + xid(1, "1b", 145, line.format("0e2"))).verdict.worst
    recent = ask(new + xid(1, "1b", 145, line.format("007"))).verdict.worst
    mixed = ask(new + xid(1, "1b", 145, line.format("0e2"))).verdict.worst

    assert "needs a reset" in old.finding
    assert "needs a reset" in recent.finding
    assert (old.level.word, recent.level.word) == ("warn", "warn")
    assert "needs a reset" not in mixed.finding


def test_45_that_blames_another_code_with_no_other_line_is_a_warning_that_names_it():
    line = "pid=1, name=python3, Ch 00000001 caused by previous Xid 149"

    found = ask(BOOT + xid(1, "1b", 45, line)).verdict

    assert (found.level.word, "149" in found.worst.finding) == ("warn", True)


def test_the_same_sm_in_two_programs_makes_the_gpu_suspect():
    line = "pid={}, name=python3, Graphics SM Warp Exception on (GPC 1, TPC 2, SM 0): Out Of Range"
    two = xid(1, "1b", 13, line.format(11)) + xid(900, "1b", 13, line.format(12))
    one = xid(1, "1b", 13, line.format(11)) + xid(2, "1b", 13, line.format(11))

    assert "suspect the GPU" in ask(BOOT + two).verdict.worst.finding
    assert "suspect the GPU" not in ask(BOOT + one).verdict.worst.finding


@pytest.mark.parametrize(
    ("codes", "word"),
    [((48, 63), "reset"), ((48, 95), "reset"), ((48, 94, 63), "reset"), ((64,), "reset")],
)
def test_memory_errors_ask_for_what_their_details_say(codes: tuple[int, ...], word: str):
    judged = ask(BOOT + "".join(xid(1, "1b", code) for code in codes))

    assert judged.facts["per_gpu"] == {"0000:1b:00": word}


def test_rate_limited_lines_without_an_xid_are_a_warning():
    text = "[  100.000000] NVRM: 37 callbacks suppressed\n"

    assert level(BOOT + text) == "warn"


def test_link_errors_of_many_gpus_beside_a_switch_fault_blame_the_switch():
    switch = "[   99.000000] nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 x\n"
    gpus = "".join(xid(100, f"{n}b", 74, "NVLink: fatal error detected on link 7") for n in "01234")

    found = ask(BOOT + switch + gpus).verdict

    assert [f.component for f in found.findings if f.level.word == "fail"] == ["nvswitch1"]


def test_memory_errors_are_one_conclusion():
    contained = xid(1, "1b", 48) + xid(1, "1b", 63) + xid(1, "1b", 94)

    judged = ask(BOOT + contained)

    assert judged.facts["root"] == "uncorrectable ECC (48) contained (94), remap pending (63)"
    assert len([f for f in judged.verdict.findings if f.component == "0000:1b:00"]) == 1


def test_a_failed_row_replacement_after_an_uncorrectable_error_isolates():
    assert ask(BOOT + xid(1, "1b", 48) + xid(1, "1b", 64)).facts["per_gpu"] == {
        "0000:1b:00": "isolate"
    }


def test_userland_lines_that_quote_an_xid_are_no_events():
    quotes = (
        "Nov 29 05:00:02 n1 dcgm-exporter[33]: NVRM: Xid (PCI:0000:32:00): 79, pid=1, name=x, x\n"
        '[  200.000000] audit: msg="NVRM: Xid (PCI:0000:32:00): 79, x"\n'
    )

    judged = ask(BOOT + quotes)

    assert (judged.verdict.level.word, judged.facts["xid_counts"]) == ("pass", {})


def test_an_unknown_code_is_unknown():
    assert level(BOOT + xid(1, "1b", 999)) == "unknown"


def test_a_gpu_off_the_bus_without_an_xid_fails():
    gone = "[  100.000000] NVRM: GPU 0000:b3:00.0: GPU has fallen off the bus.\n"
    init = "[  100.000000] NVRM: GPU 0000:b3:00.0: RmInitAdapter failed! (0x62:0x40:1978)\n"

    assert level(BOOT + gone) == level(BOOT + init) == "fail"


def test_a_refused_log_is_unknown_with_what_the_tool_said():
    denied = Printed("", "dmesg: read kernel buffer failed: Operation not permitted\n", 1, "dmesg")

    found = judge_one(XID, denied, {}).verdict

    assert found.level.word == "unknown"
    assert "Operation not permitted" in found.worst.finding
