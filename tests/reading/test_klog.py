"""Reading a kernel log line by line, of any size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.klog import KEPT_OF_A_KIND, parse_kernel_log, read_kernel_log


def test_a_long_log_is_counted_whole_and_kept_in_part():
    def lines() -> Iterator[str]:
        for n in range(30_000):
            yield f"[{n:12.6f}] NVRM: Xid (PCI:0000:{n % 8:02x}:00): 45, pid={n}, name=x, Ch 8\n"
            yield f"[{n:12.6f}] usb 1-1: new device {n}\n"

    log = read_kernel_log(lines())

    assert log.xid_counts == {45: 30_000}
    assert len(log.events) == KEPT_OF_A_KIND


def test_uptime_that_starts_again_is_a_boot():
    text = (
        "[ 9000.000000] NVRM: Xid (PCI:0000:01:00): 79, pid=1, name=x, x\n[    2.000000] usb: x\n"
    )

    log = read_kernel_log(text.split("\n"))

    assert (log.n_boots, log.earlier, log.from_boot) == (1, {79: 1}, True)


def test_lines_of_a_merged_log_that_are_slightly_out_of_order_are_no_boot():
    text = "[   90.000000] usb: a\n[   89.900000] usb: b\n"

    assert read_kernel_log(text.split("\n")).n_boots == 0


def test_a_boot_of_one_node_does_not_forget_the_others():
    text = (
        "n1: [ 9000.000000] NVRM: Xid (PCI:0000:01:00): 79, pid=1, name=x, x\n"
        "n2: [ 9000.000000] NVRM: Xid (PCI:0000:02:00): 48, pid=1, name=x, x\n"
        "n1: [    2.000000] usb: x\n"
    )

    assert read_kernel_log(text.split("\n")).xid_counts == {48: 1}


@given(st.text(max_size=2000))
def test_any_text_is_read_or_refused(text: str):
    with suppress(ParseError):  # the only error that may come out
        parse_kernel_log(Printed(text, command="dmesg"))
