"""The outage: the last word of the boot before, and the first memory error in it."""

import pytest

from recovery.reading.outage import Outage, read_outage

LOG = """\
2026-11-30T03:10:00+0000 node-017 kernel: Linux version 5.15.0-122-generic
2026-11-30T03:11:00+0000 node-017 kernel: NVRM: Xid (PCI:0000:44:00): 95, pid=1, name=x, Uncontained
2026-11-30T03:11:30+0000 node-017 kernel: NVRM: Xid (PCI:0000:44:00): 95, pid=1, name=x, Uncontained
2026-11-30T03:12:40+0000 node-017 systemd[1]: Started Session 812 of User root.
"""


def test_the_last_stamp_is_the_outage_and_the_first_memory_error_is_found():
    found = read_outage(LOG)

    assert found.at_s == 1796008360.0
    assert found.first_error_s == 1796008260.0


def test_a_torn_last_line_is_passed_over():
    assert read_outage(LOG + "2026-11-30T03:1").at_s == 1796008360.0


def test_another_xid_is_no_reason_to_distrust():
    assert read_outage(LOG.replace(": 95,", ": 31,")).first_error_s is None


@pytest.mark.parametrize(("second", "trusted"), [(": 94,", True), (": 63,", False)])
def test_a_double_bit_error_counts_unless_it_was_contained(second, trusted):
    log = LOG.replace(": 95,", ": 48,", 1).replace(": 95,", second, 1)

    assert (read_outage(log).first_error_s is None) is trusted


def test_a_log_that_says_nothing_gives_nothing():
    assert read_outage("") == Outage()
    assert read_outage("no stamps here\n") == Outage()
