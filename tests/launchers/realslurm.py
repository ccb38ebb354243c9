"""A real Slurm on loopback: munge, slurmctld, and each slurmd in a pid namespace of its own, so
that a node can lose its power with all that runs on it. Root on Linux only."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.transports.servers import until

TOOLS = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client"}
CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=1
SlurmdTimeout=30
SlurmctldTimeout=5
MessageTimeout=2
KillWait=1
InactiveLimit=0
SchedulerParameters=bf_interval=1,sched_interval=1
JobRequeue=1
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
"""


def why_no_slurm() -> str:
    """Why Slurm cannot be started here; empty when it can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "needs root on Linux: slurmd in a pid namespace"
    missing = sorted({package for tool, package in TOOLS.items() if not shutil.which(tool)})
    if missing:
        return f"needs apt-get install {' '.join(missing)}"
    tried = ["unshare", "--pid", "--fork", "--mount-proc", "true"]
    if subprocess.run(tried, capture_output=True, check=False).returncode:
        return "needs CAP_SYS_ADMIN: no pid namespace can be made here"
    return ""


@dataclass
class RealSlurm:
    """Nodes ``n1`` .. ``nN`` and their controller. Use `real_slurm` as a context manager."""

    folder: Path
    more: str = ""  # lines of its slurm.conf
    inside: tuple[str, ...] = ()  # what each process is started by
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def conf(self) -> str:
        """What SLURM_CONF must be for the commands."""
        return str(self.folder / "slurm.conf")

    def up(self, count: int) -> None:
        """Starts everything; returns when all nodes are idle."""
        self._configure(count)
        folder = self.folder
        self._start(
            "munged", "--force", "--foreground", f"--socket={folder}/munge.sock",
            f"--key-file={folder}/key", f"--pid-file={folder}/munged.pid",
            f"--log-file={folder}/munged.log", f"--seed-file={folder}/seed",
        )  # fmt: skip
        until((folder / "munge.sock").exists)
        self._start("slurmctld", "-D")
        for number in range(1, count + 1):
            self.power_on(f"n{number}")
        names = {f"n{number}" for number in range(1, count + 1)}
        if not until(lambda: names == self.idle()):
            logs = "".join(p.read_text()[-2000:] for p in sorted(folder.glob("*.log")))
            if "cgroup" in logs and "error" in logs:
                pytest.skip("slurmd cannot use this machine's cgroups")
            raise AssertionError(f"not all nodes are idle: {logs}")

    def down(self) -> None:
        """Ends everything that was started."""
        for process in reversed(self.running.values()):
            process.kill()
            process.wait()

    def power_on(self, node: str) -> None:
        """Starts a node's slurmd."""
        inside = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
        self._start(*inside, "slurmd", "-D", "-N", node, name=node)

    def power_off(self, node: str) -> None:
        """Ends a node and all that runs on it, without a word to anybody."""
        self.running[node].kill()
        self.running.pop(node).wait()

    def idle(self) -> set[str]:
        """Nodes that are free."""
        listed = self.ask("sinfo", "--Node", "--noheader", "--format=%N %t", check=False)
        return {line.split()[0] for line in listed.splitlines() if line.endswith(" idle")}

    def ask(self, *argv: str, check: bool = True) -> str:
        """What a command of Slurm printed."""
        done = subprocess.run(
            argv, env=self._environment(), cwd=self.folder, capture_output=True, text=True,
            timeout=30, check=False,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{argv}: {done.stderr}"
        return done.stdout

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "SLURM_CONF": self.conf}

    def _start(self, *argv: str, name: str = "") -> None:
        with (self.folder / f"{name or argv[0]}.out").open("ab") as log:
            self.running[name or argv[0]] = subprocess.Popen(
                (*self.inside, *argv),
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _configure(self, count: int) -> None:
        self.folder.chmod(0o755)
        key = self.folder / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        host = socket.gethostname().split(".")[0]
        ports = _free_ports(count + 1)
        lines = [
            f"NodeName=n{n} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[n]} CPUs=2 "
            "RealMemory=100 State=UNKNOWN"
            for n in range(1, count + 1)
        ]
        conf = CONF.format(host=host, port=ports[0], folder=self.folder) + "\n".join(lines)
        Path(self.conf).write_text(f"{conf}\n{self.more}PartitionName=all Nodes=ALL Default=YES\n")
        v1 = not Path("/sys/fs/cgroup/cgroup.controllers").exists()
        plugin = "cgroup/v1" if v1 else "cgroup/v2"
        (self.folder / "cgroup.conf").write_text(f"CgroupPlugin={plugin}\nCgroupAutomount=no\n")


@contextlib.contextmanager
def real_slurm(
    folder: Path, count: int, *, more: str = "", inside: tuple[str, ...] = ()
) -> Iterator[RealSlurm]:
    """A Slurm of ``count`` idle nodes; ``more`` are lines of its slurm.conf."""
    slurm = RealSlurm(folder, more, inside)
    try:
        slurm.up(count)
        yield slurm
    finally:
        slurm.down()


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
