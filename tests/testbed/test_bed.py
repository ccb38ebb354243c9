"""The testbed itself: hosts are real enough that tests on them say something."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testbed.bed import Bed, bed, sweep
from tests.testbed.host import Host
from tests.testbed.needs import sh, why_no_testbed, within
from tests.transports.servers import until

pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(why_no_testbed()), reason=why_no_testbed())]


@pytest.fixture(scope="module")
def two() -> Iterator[Bed]:
    with bed(2, data_mib=16) as made:
        yield made


@pytest.fixture
def hosts(two: Bed) -> Bed:
    two.heal()
    return two


def banner(at: Bed, name: str) -> bytes | str:
    """What sshd says first, or why nothing comes."""

    def ask() -> bytes | str:
        try:
            with socket.create_connection((at[name].address, 22), 0.5) as probe:
                return probe.recv(4)
        except OSError as error:
            return type(error).__name__

    return at.within(ask)


def test_each_host_has_its_own_name_disk_boot_and_processes(hosts: Bed) -> None:
    said = {
        n: hosts[n].do("hostname; cat /etc/hostname; ls /data; cat /proc/1/comm")
        for n in ("n1", "n2")
    }

    assert said["n1"].split()[:2] == ["n1", "n1"]
    assert said["n2"].split()[:2] == ["n2", "n2"]
    assert hosts["n1"].boot_id() != hosts["n2"].boot_id()
    assert hosts["n1"].left() == {}
    assert not (Path("/data") / "lost+found").exists()


def test_power_loss_loses_what_was_not_synced_and_all_that_ran(hosts: Bed) -> None:
    host = hosts["n1"]
    before = host.boot_id()
    host.do("cd /data; echo kept >kept; sync kept; sync .; echo lost >lost; echo 1 >/tmp/gone")

    host.off()
    silent = banner(hosts, "n1")
    host.on()
    hosts.await_ssh("n1")

    assert silent == "TimeoutError"
    assert host.do("cat /data/kept") == "kept\n"
    assert host.do("cat /data/lost 2>/dev/null", check=False) == ""
    assert host.do("ls /tmp") == ""
    assert host.boot_id() != before
    assert float(host.do("cat /proc/uptime").split()[0]) < 60


def test_a_reboot_from_inside_boots_again(hosts: Bed) -> None:
    host = hosts["n1"]
    before = host.boot_id()
    host.do("echo kept >/root/file")

    host.do("reboot", check=False)

    assert until(
        lambda: host.pid1() and banner(hosts, "n1") == b"SSH-" and host.boot_id() != before
    )
    assert host.do("cat /root/file") == "kept\n"


def test_each_fault_of_a_cable_looks_as_it_does_in_life(hosts: Bed) -> None:
    host, seen = hosts["n1"], {}
    faults = {
        "down": lambda: host.cable("down"),
        "blackhole": host.blackhole,
        "refuse": host.refuse,
        "frozen": lambda: host.sshd(signal.SIGSTOP),
        "no banner": lambda: host.sshd(signal.SIGSTOP, listener_only=True),
    }

    for name, fault in faults.items():
        fault()
        seen[name] = banner(hosts, "n1")
        host.heal()

    silent = "TimeoutError"
    assert seen == {
        "down": silent, "blackhole": silent, "refuse": "ConnectionRefusedError",
        "frozen": silent, "no banner": silent,
    }  # fmt: skip
    assert banner(hosts, "n1") == b"SSH-"
    assert banner(hosts, "n2") == b"SSH-"


def listener(host: Host) -> socket.socket:
    """A socket on a host that datagrams can be sent to."""

    def bind() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((host.address, 999))
        made.settimeout(0.3)
        return made

    return within(host.netns, bind)


def arrived(at: Bed, host: Host) -> int:
    """How many of 200 datagrams arrive."""

    def send() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            for _ in range(200):
                probe.sendto(b"x" * 1000, (host.address, 999))

    with listener(host) as door:
        at.within(send)
        count = 0
        with contextlib.suppress(TimeoutError):
            while door.recv(2000):
                count += 1
        return count


def test_a_lossy_cable_loses_and_a_slow_one_is_slow(hosts: Bed) -> None:
    hosts["n1"].lose(50)
    hosts["n2"].slow("1mbit")

    counts = {name: arrived(hosts, hosts[name]) for name in ("n1", "n2")}

    assert 60 < counts["n1"] < 140  # half
    assert counts["n2"] < 100  # the burst, then 12 KB in 100 ms, then the rest is dropped


def test_a_writer_on_a_frozen_disk_is_in_d_state_and_survives_kill(hosts: Bed) -> None:
    host = hosts["n2"]
    host.freeze_data()
    writer = subprocess.Popen(
        ["nsenter", "-t", str(host.pid1()), "-a", "--root", "/bin/sh", "-c", "exec touch /data/x"]
    )
    stuck = f"/proc/{writer.pid}/stat"

    def state() -> str:
        found = [p for p, line in host.left().items() if line.startswith("touch")]
        return (
            Path(f"/proc/{found[0]}/stat").read_text().rpartition(")")[2].split()[0]
            if found
            else ""
        )

    seen = until(lambda: state() == "D")
    pid = next(iter(host.left()))
    sh("kill", "-KILL", pid)
    after = state()
    host.thaw_data()
    writer.wait(30)

    assert seen, stuck
    assert after == "D"
    assert host.left() == {}


CRASH = """
import os, signal
from tests.testbed.bed import bed
with bed(2, data_mib=8) as made:
    print(made.name, made.folder, flush=True)
    made["n1"].freeze_data()
    made["n1"].do("touch /data/x >/dev/null 2>&1 & exit 0")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_bed_whose_tests_crashed_is_swept_by_the_next() -> None:
    crashed = subprocess.run(
        [sys.executable, "-c", CRASH], capture_output=True, text=True, timeout=60, check=False,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    name, folder = crashed.stdout.split()

    def left() -> list[str]:
        sweep()
        processes = sh("pgrep", "-f", f"power {name}|host_init.sh n. {folder}", check=False).split()
        return [
            *processes,
            *map(str, Path("/run/netns").glob(f"{name}*")),
            *Path(folder).parent.glob(Path(folder).name),
        ]

    assert crashed.returncode == -signal.SIGKILL, crashed.stderr
    assert until(lambda: not left()), left()
