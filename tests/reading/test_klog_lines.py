"""Kernel messages in every coat."""

from __future__ import annotations

import pytest

from recovery.reading.klog_lines import undress, undress_all, wall_seconds, without_collector

MESSAGE = "NVRM: Xid (PCI:0000:32:00): 31, pid=21880, name=x, Ch 00000010"


@pytest.mark.parametrize(
    "coat",
    [
        "",
        "[315905.140252] ",
        "[    5.140252] [  T123] ",
        "[315905.140252 <    0.000012>] ",
        "[Sun Nov 29 02:14:07 2026] ",
        "[Nov29 02:14] ",
        "kern  :err   : [315905.140252] ",
        "kern  :err   : 2026-11-29T08:40:12,100287+00:00 ",
        "2026-11-29T08:40:12,100287+00:00 ",
        "3,4711,9021145031877,-;",
        "3,4711,9021145031877,-,caller=T12;",
        "<3>[  12.300000] ",
        "Nov 29 04:11:15 node-044 kernel: [315905.140252] ",
        "Nov  9 04:11:15.123456 node-044 kernel: ",
        "2026-11-29T04:11:15+0000 node-044 kernel: ",
        "2026-11-29T04:11:15.123456+00:00 node-044 kernel: [ 31.140252] ",
        "Sun 2026-11-29 04:11:15 UTC node-044 kernel: ",
        "1764384847.123456 node-044 kernel: ",
        "<4>1 2026-11-29T04:11:15Z node-044 kernel - - - ",
        "[315905.140252] node-044 kernel: ",
        "kernel: ",
        "/var/log/syslog:Nov 29 04:11:15 node-044 kernel: [315905.140252] ",
        "/var/log/kern.log:12:Nov 29 04:11:15 node-044 kernel: ",
        "node-044: [315905.140252] ",
        "node-044: Nov 29 04:11:15 node-044 kernel: ",
        "[1,0]<stdout>:[315905.140252] ",
        "2026-11-29T01:10:12.118204123Z [315905.140252] ",
        "2026-11-29T01:10:12.118204123Z kernel: ",
        "0: [315905.140252] ",
        "\x1b[32m[315905.140252] \x1b[0m",
    ],
)
def test_the_message_is_what_is_left_of_the_line(coat: str):
    line = undress(f"{coat}{MESSAGE}\r\n")

    assert (line.text, line.is_kernel) == (MESSAGE, True)


@pytest.mark.parametrize(
    "coat",
    [
        "Nov 29 04:11:15 node-044 dcgm-exporter[33]: ",
        "2026-11-29T04:11:15+0000 node-044 sshd[2]: ",
        "daemon:info  : [315905.140252] ",
        "30,4711,9021145031877,-;",
    ],
)
def test_other_programs_are_told_from_the_kernel(coat: str):
    assert not undress(coat + MESSAGE).is_kernel


def test_one_program_that_passed_every_line_on_is_only_a_collector():
    lines = [f"Nov 29 04:11:15 n1 shipper[2]: [ 1.000000] {word}" for word in ("a", "b")]

    assert without_collector(lines) == ["[ 1.000000] a", "[ 1.000000] b"]
    mixed = [*lines, "Nov 29 04:11:15 n1 sshd[3]: hello"]
    assert without_collector(mixed) == mixed


def test_a_record_of_the_journal_is_read_from_json():
    record = f'{{"MESSAGE": "{MESSAGE}", "_TRANSPORT": "kernel", "_HOSTNAME": "n1"}}'

    line = undress(record)

    assert (line.text, line.host, line.is_kernel) == (MESSAGE, "n1", True)
    assert not undress(record.replace("kernel", "syslog")).is_kernel


def test_dictionary_lines_of_kmsg_are_no_messages():
    lines = ["3,4,9000000,-;first", " SUBSYSTEM=pci", " DEVICE=+pci:0000:04:00.0", "3,5,9,-;second"]

    assert [line.text for line in undress_all(lines)] == ["first", "second"]


def test_stamps_of_all_forms_are_the_same_time():
    same = {
        wall_seconds("2024-11-29T04:11:15+00:00"),
        wall_seconds("2024-11-29T05:11:15+0100"),
        wall_seconds("2024-11-29 04:11:15 UTC"),
        wall_seconds("Fri Nov 29 04:11:15 2024"),
        wall_seconds("Nov 29 04:11:15"),
    }

    assert len(same) == 1
    assert wall_seconds("2024-13-77T99:00:00") is None
