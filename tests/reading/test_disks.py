"""What smartctl and nvme-cli print, and what it means."""

import pytest

from recovery.model.output import Printed
from recovery.model.verdict import Level
from recovery.reading.disk_findings import of_disks
from recovery.reading.disks import Disk, read_disks


def levels(**told):
    return [f.level for f in of_disks([Disk(name="/dev/x", **told)])]


def test_scsi_disks_say_ok_instead_of_passed():
    text = "## /dev/sda\nSMART Health Status: OK\n## end\n"

    assert read_disks(Printed(text))[0].healthy is True


@pytest.mark.parametrize(("text", "bits"), [("0x04", 4), ("4", 4), ("0", 0), ("0x00", 0)])
def test_the_warning_is_hexadecimal_or_decimal(text, bits):
    printed = Printed(f"## /dev/nvme0n1\ncritical_warning : {text}\n## end\n")

    assert read_disks(printed)[0].warning == bits


def test_a_disk_that_does_not_answer_keeps_the_tools_words():
    printed = Printed("## /dev/sda\nfoo\nUnable to detect device type\n## end\n")

    assert read_disks(printed)[0].trouble == "Unable to detect device type"


def test_no_disk_at_all_is_no_disk():
    assert read_disks(Printed("## end\n")) == ()


@pytest.mark.parametrize("bit", [1, 2, 4, 8, 16])
def test_each_warning_of_a_controller_fails(bit):
    assert levels(healthy=True, warning=bit) == [Level.FAIL]


def test_spare_blocks_at_their_threshold_fail():
    assert levels(healthy=True, spare_pct=10, spare_least_pct=10) == [Level.FAIL]
    assert levels(healthy=True, spare_pct=11, spare_least_pct=10) == []


def test_wear_and_bad_sectors_warn():
    assert levels(healthy=True, worn_pct=95, sectors={"Current_Pending_Sector": 2}) == [
        Level.WARN,
        Level.WARN,
    ]


def test_a_disk_that_could_not_be_asked_is_unknown():
    assert levels(trouble="Permission denied") == [Level.UNKNOWN]
