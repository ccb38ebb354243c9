"""A farm for measurements: real sshd on many loopback addresses, and one address that is mute."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

SSHD = "/usr/sbin/sshd"
PR_SET_CHILD_SUBREAPER = 36
ADDRESSES_EACH = 16  # sshd takes no more ListenAddress lines (MAX_LISTEN_SOCKS)
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def address(index: int) -> str:
    """The address of a node: 127.11.0.2 to 127.11.0.251, then 127.11.1.2 and on."""
    return f"127.11.{index // 250}.{2 + index % 250}"


@dataclass
class Farm:
    """Nodes of a farm. ``home`` is where their commands start: an empty home folder."""

    folder: Path
    n_nodes: int
    port: int = 0
    servers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    mute: list[socket.socket] = field(default_factory=list)
    orphans_cpu_s: float = 0.0

    @property
    def key(self) -> Path:
        """The client's private key."""
        return self.folder / "id"

    @property
    def known_hosts(self) -> Path:
        """The file of host keys."""
        return self.folder / "known_hosts"

    @property
    def home(self) -> Path:
        """Where commands start."""
        return self.folder / "home"

    def start(self) -> None:
        """Starts the servers and waits until they listen."""
        # What outlives its session becomes our child, so that its CPU time is counted too.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.home.mkdir(parents=True)
        Path("/run/sshd").mkdir(exist_ok=True)
        self.port = _free_port()
        for name in ("id", "host"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name],
                check=True,
            )
        shutil.copy(self.folder / "id.pub", self.folder / "authorized")
        words = (self.folder / "host.pub").read_text().split()[:2]
        nodes = [address(n) for n in range(self.n_nodes)]
        self.known_hosts.write_text(
            "".join(f"[{a}]:{self.port} {' '.join(words)}\n" for a in (*nodes, self.mute_address))
        )
        for start in range(0, self.n_nodes, ADDRESSES_EACH):
            self._serve(start // ADDRESSES_EACH, nodes[start : start + ADDRESSES_EACH])
        for node in nodes:
            _wait_for(node, self.port)

    def _serve(self, number: int, nodes: list[str]) -> None:
        config = self.folder / f"sshd{number}.conf"
        config.write_text(
            "".join(f"ListenAddress {a}:{self.port}\n" for a in nodes)
            + f"HostKey {self.folder}/host\nAuthorizedKeysFile {self.folder}/authorized\n"
            "StrictModes no\nUsePAM no\nUseDNS no\nPidFile none\nPasswordAuthentication no\n"
            "KbdInteractiveAuthentication no\nPrintMotd no\nPrintLastLog no\nLogLevel ERROR\n"
            "MaxStartups 1000:30:2000\nMaxSessions 100\nSubsystem sftp internal-sftp\n"
            # Not the home of whoever measures: a heavy .bashrc there would be measured as well.
            f"SetEnv HOME={self.home}\n"
        )
        argv = [SSHD, "-D", "-f", str(config), "-E", str(self.folder / "sshd.log")]
        self.servers.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL))

    @property
    def mute_address(self) -> str:
        """The address that answers nothing, once `hush` was called."""
        return "127.12.0.2"

    def hush(self) -> None:
        """Makes the mute address drop connections: its queue is full and nobody accepts."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((self.mute_address, self.port))
        listener.listen(0)
        self.mute.append(listener)
        for _ in range(3):
            filler = socket.socket()
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                filler.connect((self.mute_address, self.port))
            self.mute.append(filler)

    def cpu_s(self) -> float:
        """CPU seconds of all servers and of what they ran and reaped."""
        ticks = 0
        for server in self.servers:
            words = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, words[11:15]))
        return ticks / TICKS_PER_S + self.orphans_cpu_s

    def settle(self) -> None:
        """Waits until the last session is gone, so that its CPU time is counted."""
        servers = {server.pid for server in self.servers}
        for _ in range(200):
            orphans = [pid for pid in _children(os.getpid()) if pid not in servers]
            for pid in orphans:
                with contextlib.suppress(ChildProcessError):
                    used = os.wait4(pid, os.WNOHANG)[2]
                    self.orphans_cpu_s += used.ru_utime + used.ru_stime
            if not orphans and not any(_children(pid) for pid in servers):
                return
            time.sleep(0.05)  # poll

    def close(self) -> None:
        """Ends the servers, their sessions and the mute address."""
        for server in self.servers:
            sessions = _children(server.pid)
            for pid in (*sessions, server.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            server.wait()
        for sock in self.mute:
            sock.close()


def _children(pid: int) -> list[int]:
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _wait_for(node: str, port: int) -> None:
    for _ in range(100):
        with contextlib.suppress(OSError), socket.create_connection((node, port), 2) as sock:
            sock.recv(16)
            return
        time.sleep(0.05)  # poll
    raise SystemExit(f"sshd at {node}:{port} does not answer")
