"""NVLink 5 registers, by the driver branch that wrote them.

Source of the rows: NVIDIA's Xid catalogue, "XID 144-150 Decode".
"""

import pytest

from recovery.reading.klog import read_kernel_log
from recovery.reading.nvlink5 import decode
from recovery.reading.xid import Action, Severity
from recovery.reading.xid_rules import conclude

LOADED = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  {0}.1  Tue\n"


def values(unit: str, intr: int, status: int) -> dict[str, str]:
    return {"unit": unit, "intr_info": f"{intr:#010x}", "error_status": f"{status:#010x}"}


@pytest.mark.parametrize(
    ("unit", "v1", "v2", "status", "action"),
    [
        ("SAW_MVB", 0x21, 0x01, 0x10, Action.RESET_GPU),
        ("SAW_MVB", 0x21, 0x01, 0x20, Action.NONE),
        ("RLW_REMAP", 0x82, 0x04, 0x40, Action.RESET_GPU),
        ("RLW_REMAP", 0x82, 0x04, 0x08, Action.RESTART_APP),
        ("RLW_RXPIPE", 0xC2, 0x06, 0x02, Action.NONE),
        ("RLW_TAGSTATE", 0x102, 0x08, 0x100000, Action.RESET_GPU),
        ("NETIR_BER_EVENT", 0x226, 0x13, 3, Action.NONE),
        ("NETIR_MFDE_EVENT", 0x246, 0x14, 7, Action.RESET_GPU),
    ],
)
def test_a_unit_is_found_in_both_layouts_and_only_in_that_of_its_driver(
    unit: str, v1: int, v2: int, status: int, action: Action
):
    old, new = decode(values(unit, v1, status), "570.148.08"), decode(values(unit, v2, status))

    assert (old and old.action, old and old.layout) == (action, "V1")
    assert (new and new.action, new and new.layout) == (action, "V2")
    assert decode(values(unit, v2, status), "570.148.08") is None
    assert decode(values(unit, v1, status), "580.65") is None


def test_bits_that_the_table_leaves_open_do_not_matter():
    found = decode(values("RLW_REMAP", 0xFC0FFC82 & ~(0x3F << 20), 0x40), "570.1")

    assert found
    assert found.action is Action.RESET_GPU


@pytest.mark.parametrize(("promoted", "driver"), [(0xC2 | 1 << 10, "570.1"), (6 | 1 << 7, "575.1")])
def test_a_promoted_error_asks_for_a_reset(promoted: int, driver: str):
    found = decode(values("RLW_RXPIPE", promoted, 4), driver)

    assert found
    assert found.action is Action.RESET_GPU


@pytest.mark.parametrize(
    ("cause", "action", "word"),
    [(0x04, Action.RESET_GPU, "signal"), (0x21, Action.RESET_GPU, "other end"),
     (0x26, Action.NONE, "switched it off"), (0x28, Action.NONE, "host")],
)  # fmt: skip
def test_the_cause_of_a_link_that_went_down_is_named(cause: int, action: Action, word: str):
    v1 = decode(values("NETIR_LINK_EVT", cause << 20 | 0x1C6, 0), "570.1")
    v2 = decode(values("NETIR_LINK_DOWN", cause << 20 | 0x11, 0), "580.1")

    assert (v1 and v1.action, v2 and v2.action) == (action, action)
    assert v1
    assert word in v1.words


@pytest.mark.parametrize(
    "line",
    [
        values("RLW_REMAP", 0x82, 0x7),
        values("RLW_REMAP", 1 << 20 | 0x82, 0x40),
        values("NETIR_LINK_EVT", 0x3F << 20 | 0x1C6, 0),
        values("NEW_UNIT", 0x82, 0x40),
        {"unit": "RLW_REMAP"},
        {"unit": "RLW_REMAP", "intr_info": "0xzz", "error_status": "0x1"},
    ],
)
def test_what_the_table_does_not_have_is_not_guessed(line: dict[str, str]):
    assert decode(line) is None


@pytest.mark.parametrize(("branch", "action"), [("570", Action.RESET_GPU), ("580", Action.DECODE)])
def test_the_log_of_a_driver_is_read_by_its_branch(branch: str, action: Action):
    line = "NVRM: Xid (PCI:0000:1b:00): 145, RLW_REMAP Fatal XC1 i0 Link 10 (0x82 0x40 0x0 0x0)\n"
    stamped = f"[    1.0] {LOADED.format(branch)}[   99.0] {line}"
    log = read_kernel_log(stamped.splitlines())

    (found,) = conclude(log.events, log.driver_version)

    assert log.driver_version == f"{branch}.1"
    assert (found.action, found.severity) == (action, Severity.FATAL)
