"""What is compared: how each client is asked to run the same commands on the same nodes."""

from __future__ import annotations

import getpass
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.bench._farm import Farm

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PEERS = os.environ.get("RECOVER_BENCH_PEERS", "")
PATH = os.pathsep.join([PEERS, os.environ["PATH"]] if PEERS else [os.environ["PATH"]])


@dataclass(frozen=True)
class Job:
    """One workload on one farm. ``folder`` is empty and the client's own."""

    farm: Farm
    folder: Path
    nodes: tuple[str, ...]
    commands: tuple[str, ...]
    limit_s: float = 60.0
    may_fail: int = 0


@dataclass(frozen=True)
class Client:
    """One candidate: ``prepare`` writes its files and says what to start."""

    name: str
    prepare: Callable[[Job], list[str]]
    missing: Callable[[], str] = lambda: ""
    fails_say_so: bool = True  # exit status 0 means that all went well


def ours(job: Job) -> list[str]:
    """The whole `recover run`: leash, journal, evidence, reports."""
    hosts = {f"n{n:04d}": {"ansible_host": a} for n, a in enumerate(job.nodes)}
    variables = {
        "ansible_port": job.farm.port, "ansible_user": getpass.getuser(),
        "ansible_ssh_private_key_file": str(job.farm.key), "identities_only": True,
        "host_keys": "file", "known_hosts": str(job.farm.known_hosts),
    }  # fmt: skip
    gate = f"all but {job.may_fail}" if job.may_fail else "all"
    steps = [
        {"run": c, "effect": "read", "timeout": f"{job.limit_s:g}s", "gate": gate,
         "on_fail": "quarantine"}
        for c in job.commands
    ]  # fmt: skip
    runbook = {"runbook": "bench", "about": "a measurement", "nodes": "all", "steps": steps,
               "finally": [{"report": ["html", "json"]}]}  # fmt: skip
    (job.folder / "farm.yaml").write_text(json.dumps({"all": {"vars": variables, "hosts": hosts}}))
    (job.folder / "bench.yaml").write_text(json.dumps(runbook))
    return [
        sys.executable, "-m", "recovery", "run", str(job.folder / "farm.yaml"), "--quiet",
        "--runbook", str(job.folder / "bench.yaml"), "--state", str(job.folder / "state"),
    ]  # fmt: skip


def _options(job: Job, *more: str) -> str:
    """Options of OpenSSH's client. The post-quantum key exchange alone would cost 5x: off."""
    options = (
        "IdentitiesOnly=yes", f"UserKnownHostsFile={job.farm.known_hosts}",
        "GlobalKnownHostsFile=/dev/null", "StrictHostKeyChecking=yes", "BatchMode=yes",
        f"ConnectTimeout={job.limit_s:.0f}", "UpdateHostKeys=no", "GSSAPIAuthentication=no",
        "KexAlgorithms=curve25519-sha256", *more,
    )  # fmt: skip
    words = ["-F", "none", "-p", str(job.farm.port), "-i", str(job.farm.key)]
    return shlex.join([*words, *(w for o in options for w in ("-o", o))])


def clush(job: Job) -> list[str]:
    """ClusterShell's clush, one run a command."""
    (job.folder / "nodes").write_text("\n".join(job.nodes) + "\n")
    limit = f"-u {job.limit_s:g}" if job.may_fail else ""
    lines = [
        f"clush --hostfile={job.folder}/nodes -q -n -f 64 {limit} -o {shlex.quote(_options(job))}"
        f" {shlex.quote(command)} >{job.folder}/out"
        for command in job.commands
    ]
    return ["sh", "-c", "\n".join(lines) + ("\ntrue" if job.may_fail else "")]


def ansible(job: Job) -> list[str]:
    """ansible-playbook with what makes it fast: forks, pipelining, ControlPersist, raw tasks."""
    (job.folder / "hosts").write_text("[all]\n" + "\n".join(job.nodes) + "\n")
    masters = "-o ControlMaster=auto -o ControlPersist=60s"
    (job.folder / "ansible.cfg").write_text(
        f"[defaults]\ninventory = {job.folder}/hosts\nforks = 50\ngathering = explicit\n"
        f"remote_user = {getpass.getuser()}\ntimeout = {job.limit_s:.0f}\n"
        f"[ssh_connection]\npipelining = True\ncontrol_path_dir = {job.folder}/cp\n"
        f"ssh_args = {_options(job)} {masters}\n"
    )
    tasks = [{"raw": command} for command in job.commands]
    play = [{"hosts": "all", "gather_facts": False, "tasks": tasks}]
    (job.folder / "play.yml").write_text(json.dumps(play))
    settings = [f"ANSIBLE_CONFIG={job.folder}/ansible.cfg", f"ANSIBLE_HOME={job.folder}/home"]
    line = ["ansible-playbook", str(job.folder / "play.yml")]
    if job.may_fail:
        return ["env", *settings, "sh", "-c", shlex.join(line) + "; true"]
    return ["env", *settings, *line]


def pyinfra(job: Job) -> list[str]:
    """pyinfra with one operation a command."""
    data = {"ssh_user": getpass.getuser(), "ssh_port": job.farm.port, "ssh_key": str(job.farm.key),
            "ssh_known_hosts_file": str(job.farm.known_hosts), "ssh_allow_agent": False,
            "ssh_look_for_keys": False}  # fmt: skip
    (job.folder / "inventory.py").write_text(f"nodes = ({list(job.nodes)!r}, {data!r})\n")
    lines = [
        f"server.shell(name={f's{n}'!r}, commands=[{c!r}])" for n, c in enumerate(job.commands)
    ]
    (job.folder / "deploy.py").write_text(
        "from pyinfra.operations import server\n" + "\n".join(lines) + "\n"
    )
    return ["pyinfra", "-y", "--parallel", "64", f"{job.folder}/inventory.py",
            f"{job.folder}/deploy.py"]  # fmt: skip


def _library(name: str, python: Callable[[], str]) -> Callable[[Job], list[str]]:
    def prepare(job: Job) -> list[str]:
        values = {
            "nodes": job.nodes, "commands": job.commands, "port": job.farm.port,
            "user": getpass.getuser(), "key": str(job.farm.key), "may_fail": job.may_fail,
            "known_hosts": str(job.farm.known_hosts), "limit_s": job.limit_s,
        }  # fmt: skip
        (job.folder / "job.json").write_text(json.dumps(values))
        return [python(), str(HERE / "_one_peer.py"), name, str(job.folder / "job.json")]

    return prepare


def _python() -> str:
    return shutil.which("python3", path=PATH) or sys.executable


def _has(module: str, python: Callable[[], str]) -> Callable[[], str]:
    def missing() -> str:
        asked = subprocess.run([python(), "-c", f"import {module}"], capture_output=True)
        return f"no {module}" if asked.returncode else ""

    return missing


def _program(name: str) -> Callable[[], str]:
    return lambda: "" if shutil.which(name, path=PATH) else f"no {name}"


def _ourselves() -> str:
    return sys.executable


CLIENTS = (
    Client("recover run", ours),
    Client("asyncssh", _library("asyncssh", _python), _has("asyncssh", _python)),
    Client("fabric ThreadingGroup", _library("fabric", _ourselves)),
    Client("parallel-ssh", _library("pssh", _python), _has("pssh", _python)),
    Client("pyinfra", pyinfra, _program("pyinfra")),
    Client("clush", clush, _program("clush")),
    Client("ansible-playbook", ansible, _program("ansible-playbook")),
)
