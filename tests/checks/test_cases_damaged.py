"""Kept outputs of logs, ports, trainings and BMCs: wrapped, cut and damaged."""

from __future__ import annotations

import random

import pytest

from recovery.model.verdict import Level
from tests.checks.outputs import Kept, judged, kept

CASES = [case for kind in ("klog", "ib", "train", "bmc") for case in kept(kind)]
WRAPPERS = {
    "mpirun": b"[1,0]<stdout>:",
    "kubectl": b"2026-11-29T01:10:12.118204123Z ",
    "syslog": b"Nov 29 01:10:12 node-001 collector[12]: ",
    "pdsh": b"node-001: ",
    "srun": b"0: ",
    "colour": b"\x1b[0;31m",
}
# Complete by themselves at these ends: what was cut off is another event or another sensor.
ENDS_WELL = {"bmc-sel-elist-1.8.18-four-digit-year"}


def _wrapped(raw: bytes, before: bytes) -> bytes:
    lines = raw.removesuffix(b"\n").split(b"\n")
    return b"".join(before + line + b"\n" for line in lines)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_launchers_prefix_changes_no_level(case: Kept, wrapper: str):
    found, _ = judged(case.printed(_wrapped(case.raw, WRAPPERS[wrapper])), case.context)

    assert found.level.word == case.level, found.worst


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_windows_line_ends_change_no_level(case: Kept):
    found, _ = judged(case.printed(case.raw.replace(b"\n", b"\r\n")), case.context)

    assert found.level.word == case.level, found.worst


@pytest.mark.parametrize("case", [c for c in CASES if c.level != "pass"], ids=lambda case: case.id)
def test_a_cut_text_never_passes(case: Kept):
    rng = random.Random(case.id)
    ends = rng.sample(range(len(case.raw)), min(40, len(case.raw)))
    passed = [
        end
        for end in ends
        if judged(case.printed(case.raw[:end]), case.context)[0].level is Level.PASS
    ]

    assert not passed or case.id in ENDS_WELL


@pytest.mark.parametrize("case", [c for c in CASES if c.level == "pass"], ids=lambda case: case.id)
def test_a_healthy_text_cut_in_a_line_never_passes(case: Kept):
    ends = [end for end in range(1, len(case.raw), 37) if case.raw[end - 1 : end] != b"\n"]
    passed = [
        case.raw[:end][-40:]
        for end in ends
        if judged(case.printed(case.raw[:end]), case.context)[0].level is Level.PASS
    ]

    assert not [tail for tail in passed if not tail.endswith(b"Power is on")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_damaged_bytes_are_judged_and_nothing_is_thrown(case: Kept):
    rng = random.Random(case.id)
    for _ in range(8):
        raw = bytearray(case.raw)
        for _ in range(rng.randint(1, 12)):
            at = rng.randrange(len(raw) + 1)
            piece = bytes(rng.choices(b"0123456789|,:;[]{}()\r\n\t\x1b\x00\xff\"'=-", k=6))
            raw[at : at + rng.randint(0, 9)] = piece
        command = rng.choice((case.command, ""))

        judged(case.printed(bytes(raw), command=command, exit_status=None), case.context)


def test_random_text_is_never_a_pass():
    rng = random.Random(11)
    for command in ("dmesg", "ibstat", "torchrun train.py", "ipmitool sel list", "ethtool -S x"):
        text = "".join(chr(rng.randrange(1, 0x3000)) for _ in range(2000)) + "\n"
        case = CASES[0]

        found, _ = judged(case.printed(text.encode(), command=command), {})

        assert found.level.blocks, command
