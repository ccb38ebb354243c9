"""A bed of hosts: made in a second, taken away at the end, and after a crash by the next one."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.testbed.host import PATH, Host
from tests.testbed.needs import Found, ip, sh, within
from tests.transports.servers import keygen, until

_NUMBERS = itertools.count(1)
_PREFIX = "rtb"  # of everything that we make: rtb-PID-NUMBER-...
_NET = "10.82.0"  # inside our namespaces only, so each bed may use it

SSHD_CONFIG = """\
HostKey /etc/ssh/ssh_host_ed25519_key
AuthorizedKeysFile /etc/ssh/authorized
StrictModes no
UsePAM no
UseDNS no
PidFile none
PasswordAuthentication no
MaxStartups {max_startups}
Subsystem sftp internal-sftp
SetEnv PATH={path}
"""
_REBOOT = """#!/usr/bin/python3 -S
import ctypes
ctypes.CDLL(None).reboot(0x01234567)  # in a pid namespace: ends its pid 1, and so all of it
"""
# name, number: `ops` may use sudo, `guest` may not
_USERS = (("ops", 6001), ("guest", 6002))


@dataclass
class Bed:
    """Some hosts, plugged into one hub. Use `bed` as a context manager."""

    name: str
    folder: Path
    hosts: dict[str, Host] = field(default_factory=dict)

    @property
    def hub(self) -> str:
        """The network namespace that all hosts are plugged into; the controller's place."""
        return f"{self.name}-hub"

    @property
    def key(self) -> Path:
        """The private key that opens root, ops and guest on all hosts."""
        return self.folder / "id"

    @property
    def known_hosts(self) -> Path:
        """Host keys by name and address."""
        return self.folder / "known_hosts"

    def __getitem__(self, name: str) -> Host:
        return self.hosts[name]

    def up(self, count: int, *, data_mib: int, max_startups: str) -> None:
        """Makes and boots ``n1`` .. ``nCOUNT``."""
        ip([f"netns add {self.hub}"])
        ip(
            [
                "link set lo up",
                # A fixed address: else the bridge takes another one when a port goes, and stalls.
                "link add br0 address 02:52:ff:00:00:01 type bridge forward_delay 0",
                "link set br0 up",
                f"addr add {_NET}.254/24 dev br0",
            ],
            netns=self.hub,
        )
        keygen("-t", "ed25519", "-f", str(self.key))
        for number in range(1, count + 1):
            name = f"n{number}"
            host = Host(
                name, f"{_NET}.{number}", self.hub, f"{self.name}-{name}", self.folder / name
            )
            self.hosts[name] = host
            self._write_disk(host, max_startups)
        if data_mib:
            self._write_data(data_mib)
        for host in self.hosts.values():
            host.on()
        self.await_ssh()

    def down(self) -> None:
        """Takes everything away."""
        for host in self.hosts.values():
            host.off()
        sh("ip", "netns", "del", self.hub, check=False)
        _remove(self.folder)

    def await_ssh(self, *names: str, within_s: float = 30.0) -> None:
        """Returns when each host (all, if none is named) says an SSH banner."""
        hosts = [self.hosts[n] for n in names or self.hosts]

        def wait() -> list[str]:
            says = {h.name: partial(_says_banner, h) for h in hosts}
            return [name for name, claim in says.items() if not until(claim, within_s=within_s)]

        silent = self.within(wait)
        consoles = "".join((self[n].folder / "console").read_text() for n in silent)
        assert not silent, f"no SSH banner of {silent}: {consoles}"

    def within(self, work: Callable[[], Found]) -> Found:
        """Does ``work`` where its sockets belong to the hub."""
        return within(self.hub, work)

    def heal(self) -> None:
        """All hosts on and sound again; nothing of an earlier test runs on them."""
        off = [h for h in self.hosts.values() if h.pid1() is None]
        for host in off:
            host.off()
            host.on()
        for host in self.hosts.values():
            host.heal()
        self.await_ssh()
        for host in self.hosts.values():
            for pid in host.left():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            host.do("rm -f /run/recover.lease.* /dev/shm/recover.lease.*")  # a killed controller's

    def _write_disk(self, host: Host, max_startups: str) -> None:
        for part in ("root", "disk/work"):
            (host.folder / part).mkdir(parents=True)
        for part in ("etc/ssh", "etc/sudoers.d", "opt/testbed/bin", "root", "var/log"):
            (host.disk / part).mkdir(parents=True)
        (host.disk / "root").chmod(0o700)
        # Not the files of the machine's user: theirs may take a lock that a killed login leaves.
        for file in (".bashrc", ".profile", ".bash_profile"):
            (host.disk / "root" / file).touch()
        etc = host.disk / "etc"
        (etc / "hostname").write_text(f"{host.name}\n")
        (etc / "hosts").write_text("127.0.0.1 localhost\n")
        (etc / "ssh" / "testbed_config").write_text(
            SSHD_CONFIG.format(path=PATH, max_startups=max_startups)
        )
        shutil.copy(f"{self.key}.pub", etc / "ssh" / "authorized")
        self.new_host_key(host)
        _write_users(host.disk)
        reboot = host.disk / "opt/testbed/bin/reboot"
        reboot.write_text(_REBOOT)
        reboot.chmod(0o755)
        (reboot.parent / "systemctl").write_text("#!/bin/sh\nexit 1\n")
        (reboot.parent / "systemctl").chmod(0o755)

    def new_host_key(self, host: Host) -> None:
        """Gives a host (without power) a key of its own, and writes it down as known."""
        key = host.disk / "etc/ssh/ssh_host_ed25519_key"
        key.unlink(missing_ok=True)
        keygen("-t", "ed25519", "-C", host.name, "-f", str(key))
        words = key.with_suffix(".pub").read_text().split()
        with self.known_hosts.open("a") as known:
            known.write(f"{host.name},{host.address} {words[0]} {words[1]}\n")

    def _write_data(self, data_mib: int) -> None:
        image = self.folder / "data.img"
        with image.open("wb") as file:
            file.truncate(data_mib << 20)
        sh("mkfs.ext4", "-q", "-O", "^resize_inode", "-E", "lazy_itable_init=1,nodiscard", image)
        for host in self.hosts.values():
            sh("cp", "--sparse=always", image, host.folder / "data.img")


@contextlib.contextmanager
def bed(count: int = 4, *, data_mib: int = 0, max_startups: str = "100:30:200") -> Iterator[Bed]:
    """Hosts ``n1`` .. ``nCOUNT``, booted; each with an ext4 disk on /data where asked for."""
    sweep()
    name = f"{_PREFIX}-{os.getpid()}-{next(_NUMBERS)}"
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=_place()))
    made = Bed(name, folder)
    try:
        made.up(count, data_mib=data_mib, max_startups=max_startups)
        yield made
    finally:
        made.down()


def sweep() -> None:
    """Takes away the beds of processes that are gone."""
    for netns in sorted(Path("/run/netns").glob(f"{_PREFIX}-*")):
        if _is_stale(netns.name):
            _end_all(sh("ip", "netns", "pids", netns.name, check=False).split())
            sh("ip", "netns", "del", netns.name, check=False)
    for folder in _place().glob(f"{_PREFIX}-*"):
        if _is_stale(folder.name):
            _remove(folder)


def _place() -> Path:
    """Where disks lie: not on the root file system, which cannot be below and above an overlay
    where it is one itself (in a container)."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() else Path(tempfile.gettempdir())


def _is_stale(name: str) -> bool:
    owner = name.split("-")[1]
    return owner.isdigit() and not Path(f"/proc/{owner}").exists()


def _end_all(pids: Iterable[str]) -> None:
    """Kills what runs in a namespace of ours; a frozen disk would keep it from dying."""
    for pid in pids:
        sh("fsfreeze", "-u", f"/proc/{pid}/root/data", check=False)
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def _remove(folder: Path) -> None:
    for line in Path("/proc/self/mounts").read_text().splitlines():
        place = line.split()[1]
        if place.startswith(f"{folder}/"):
            sh("umount", "-l", place, check=False)
    shutil.rmtree(folder, ignore_errors=True)


def _says_banner(host: Host) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((host.address, 22), 1) as probe:
        return probe.recv(7) == b"SSH-2.0"
    return False


def _write_users(disk: Path) -> None:
    for file in ("passwd", "group", "shadow"):
        (disk / "etc" / file).write_text(Path("/etc", file).read_text())
    (disk / "etc" / "shadow").chmod(0o640)
    for user, number in _USERS:
        lines = {
            "passwd": f"{user}:x:{number}:{number}::/home/{user}:/bin/sh\n",
            "group": f"{user}:x:{number}:\n",
            "shadow": f"{user}:*:19000:0:99999:7:::\n",
        }
        for file, line in lines.items():
            with (disk / "etc" / file).open("a") as table:
                table.write(line)
        home = disk / "home" / user
        home.mkdir(parents=True)
        os.chown(home, number, number)
    sudoers = disk / "etc/sudoers.d/ops"
    sudoers.write_text("ops ALL=(ALL) NOPASSWD: ALL\n")
    sudoers.chmod(0o440)
