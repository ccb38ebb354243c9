"""One host: its disk, its power, its console, and what can go wrong with it and its cable."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.needs import ip, sh

_INIT = Path(__file__).with_name("host_init.sh")
PATH = "/opt/testbed/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_EXT4_SHUTDOWN, _NO_FLUSH = 0x8004587D, 2  # EXT4_IOC_SHUTDOWN, EXT4_GOING_FLAGS_NOLOGFLUSH

# A `reboot` inside ends pid 1 with HUP (reboot(2) in a pid namespace); then it boots again.
# Whoever made the host dies: so does it.
_POWER = """
while :; do
  up=$(cut -d. -f1 /proc/uptime)
  nsenter --net=/run/netns/"$1" setpriv --pdeathsig KILL unshare --mount --uts --ipc --pid \
    --time --boottime=-"$up" --fork --kill-child=KILL --propagation private /bin/sh "$4" "$2" "$3"
  [ $? -eq 129 ] || exit
done
"""


@dataclass
class Host:
    """One host of a bed.

    `on` must be called by a thread that lives as long as the host (the kernel ends the host with
    it): a fixture or a test, never a helper thread.
    """

    name: str
    address: str
    hub: str  # the network namespace of the hub
    netns: str
    folder: Path
    power: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> str:
        """Its port of the hub's bridge."""
        return f"p-{self.name}"

    @property
    def disk(self) -> Path:
        """What the host has written, by path. Change it only while the power is off."""
        return self.folder / "disk" / "upper"

    # -- power --------------------------------------------------------------------------------
    def plug(self) -> None:
        """Gives it a fresh network namespace and cable: no TCP state survives a power cut."""
        number = int(self.address.rpartition(".")[2])
        ip([f"netns add {self.netns}"])
        ip(
            [
                f"link add {self.port} type veth peer name eth0"
                f" address 02:52:00:00:00:{number:02x} netns {self.netns}",
                f"link set {self.port} master br0 up",
            ],
            netns=self.hub,
        )
        ip(
            ["link set lo up", f"addr add {self.address}/24 dev eth0", "link set eth0 up"],
            netns=self.netns,
        )

    def on(self) -> None:
        """Power on; returns at once (`Bed.await_ssh` waits)."""
        if not Path(f"/run/netns/{self.netns}").exists():
            self.plug()
        with (self.folder / "console").open("ab") as log:
            self.power = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "/bin/sh", "-c", _POWER, "power",
                 self.netns, self.name, str(self.folder), str(_INIT)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def off(self) -> None:
        """Power loss: no word to anybody, and what the data disk had not synced is gone."""
        sh("ip", "-n", self.hub, "link", "set", self.port, "down", check=False)
        self._end()
        sh("ip", "-n", self.hub, "link", "del", self.port, check=False)
        sh("ip", "netns", "del", self.netns, check=False)

    def _end(self) -> None:
        first = self.pid1()
        if first and self.has_data():
            sh("fsfreeze", "-u", f"/proc/{first}/root/data", check=False)
            _lose_unsynced(f"/proc/{first}/root/data")
        if first:
            with contextlib.suppress(ProcessLookupError):
                os.kill(first, signal.SIGKILL)  # its power sees that, and ends
        if self.power is not None:
            if not first:
                self.power.kill()
            self.power.wait(30)
            self.power = None

    def pid1(self) -> int | None:
        """Its pid 1, as the machine counts; None without power."""
        children = [self.power.pid] if self.power else []
        for _ in range(2):  # the power's shell, then unshare, then pid 1
            children = [c for pid in children for c in _children(pid)]
        return children[0] if children else None

    # -- console ------------------------------------------------------------------------------
    def do(self, line: str, *, check: bool = True) -> str:
        """Runs a shell line on its console (no network), and returns what it printed."""
        first = self.pid1()
        assert first, f"{self.name} is off"
        inside = ("nsenter", "-t", first, "-a", "--root", "--wd", "env", "-i", f"PATH={PATH}")
        return sh(*inside, "/bin/sh", "-c", line, check=check)

    def processes(self) -> dict[int, str]:
        """Machine-wide pid -> command line of all that runs on it, but for pid 1 and its sleep."""
        first = self.pid1()
        return {} if first is None else dict(_inside(first))

    def left(self) -> dict[int, str]:
        """Processes that are neither the host's own nor sshd's."""
        return {
            pid: line for pid, line in self.processes().items() if not line.startswith("sshd: ")
        }

    def boot_id(self) -> str:
        """The id of this boot."""
        return self.do("cat /proc/sys/kernel/random/boot_id").strip()

    # -- its sshd -----------------------------------------------------------------------------
    def sshd(self, number: signal.Signals, *, listener_only: bool = False) -> None:
        """Sends its sshd a signal: STOP freezes it; the listener alone: no banner comes."""
        for pid, line in self.processes().items():
            if line.startswith("sshd: ") and (not listener_only or "[listener]" in line):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    # -- its disks ----------------------------------------------------------------------------
    def has_data(self) -> bool:
        """Claims that it has a data disk of its own."""
        return (self.folder / "data.img").exists()

    def freeze_data(self) -> None:
        """Whoever writes to /data is stuck in D state from now on."""
        self.do("fsfreeze -f /data")

    def thaw_data(self) -> None:
        """Writing goes on."""
        self.do("fsfreeze -u /data")

    # -- its cable ----------------------------------------------------------------------------
    def cable(self, state: str) -> None:
        """``up`` or ``down``."""
        sh("ip", "-n", self.hub, "link", "set", self.port, state)

    def blackhole(self) -> None:
        """The link stays up and packets vanish: no RST, no ICMP."""
        self._nft("netdev", "type filter hook ingress device eth0 priority 0; policy drop;")

    def refuse(self) -> None:
        """New connections to sshd are refused."""
        rule = "tcp flags & (syn | ack) == syn tcp dport 22 reject with tcp reset"
        self._nft("inet", f"type filter hook input priority 0; policy accept; {rule};")

    def refuse_from(self, *addresses: str) -> None:
        """Whatever comes from these addresses vanishes."""
        rule = f"ip saddr {{ {', '.join(addresses)} }} drop"
        self._nft("inet", f"type filter hook input priority 0; policy accept; {rule};")

    def lose(self, percent: int) -> None:
        """So many of the packets that come in are lost."""
        rule = f"numgen random mod 100 < {percent} drop"
        self._nft("netdev", f"type filter hook ingress device eth0 priority 0; {rule};")

    def slow(self, rate: str) -> None:
        """Both directions carry so much (``1mbit``) and no more."""
        for netns, device in ((self.hub, self.port), (self.netns, "eth0")):
            sh("tc", "-n", netns, "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate,
               "burst", "32kb", "latency", "100ms")  # fmt: skip

    def heal(self) -> None:
        """Takes back what was done to its cable and to its sshd."""
        if self.pid1() is None:
            return
        self.sshd(signal.SIGCONT)
        self._in_net("nft", "flush", "ruleset")
        for netns, device in ((self.hub, self.port), (self.netns, "eth0")):
            sh("tc", "-n", netns, "qdisc", "del", "dev", device, "root", check=False)
        self.cable("up")

    def _nft(self, family: str, chain: str) -> None:
        rules = f"table {family} fault {{\nchain c {{\n{chain}\n}}\n}}\n"
        self._in_net("nft", "-f", "-", said=rules)

    def _in_net(self, *words: str, said: str = "") -> None:
        sh("nsenter", f"--net=/run/netns/{self.netns}", *words, said=said)


def _children(pid: int) -> list[int]:
    try:
        words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [int(word) for word in words]


def _inside(first: int) -> Iterator[tuple[int, str]]:
    """Processes of the pid namespace of ``first``, the dead ones left out."""
    home = Path(f"/proc/{first}/ns/pid").readlink()
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        with contextlib.suppress(OSError):
            if pid == first or (folder / "ns" / "pid").readlink() != home:
                continue
            state, parent = (
                (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[:2]
            )
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            idle = int(parent) == first and line == "sleep 3600 "
            if state not in "ZX" and not idle:
                yield pid, line.strip()


def _lose_unsynced(folder: str) -> None:
    with contextlib.suppress(OSError):
        disk = os.open(folder, os.O_RDONLY)
        try:
            fcntl.ioctl(disk, _EXT4_SHUTDOWN, struct.pack("I", _NO_FLUSH))
        finally:
            os.close(disk)
