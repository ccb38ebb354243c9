"""`playbook`: Ansible through ansible-runner, its events turned into our results.

The return code is not trusted: a host counts as passed only when the play's own statistics name it
as processed with neither failures nor unreachable (reports of rc 0 without any host exist).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recovery.model.node import Node
from recovery.model.output import Ending
from recovery.model.result import NodeResult
from recovery.model.verdict import Finding, failed, passed, single, unknown

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LONGEST_FOLDER = 60  # a socket's path has room for 104 to 108 bytes; ssh and Ansible add to it
_BAD = ("runner_on_failed", "runner_on_unreachable")


@dataclass(slots=True)
class _Seen:
    """What the events said: the last bad words of each host, and the closing statistics."""

    words: dict[str, tuple[str, str]] = field(default_factory=dict)
    stats: dict[str, dict[str, int]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)  # outside of any task: why it did not start

    def take(self, event: dict[str, Any]) -> bool:
        kind, details = event.get("event", ""), event.get("event_data") or {}
        if kind in _BAD and not details.get("ignore_errors"):
            result = details.get("res") or {}
            said = str(result.get("msg") or result.get("stderr") or "no reason given")
            self.words[str(details.get("host"))] = (str(details.get("task", "?")), said)
        if kind in ("verbose", "error") and event.get("stdout"):
            self.said.append(str(event["stdout"])[:2000])
        if kind == "playbook_on_stats":
            self.stats = {k: v for k, v in details.items() if isinstance(v, dict)}
        return False  # nothing is kept on disk: results may hold secrets


def run_playbook(
    path: str, nodes: tuple[Node, ...], options: Mapping[str, Any]
) -> dict[str, NodeResult]:
    """Runs a playbook on the nodes.

    ``options``: ``timeout_s``, ``extra_vars``. Nothing of the run is left on the controller.
    """
    tool = _tool()
    if tool is None:
        return _all(nodes, "ansible-playbook is not installed", "pip install 'recover[ansible]'")
    if not Path(path).is_file():
        return _all(nodes, f"no playbook at {path!r}", "check the path in the runbook")
    seen = _Seen()
    with tempfile.TemporaryDirectory(prefix="recover-ansible-") as folder:
        try:
            status = _play(path, nodes, {**options, "tool": tool}, folder, seen)
        finally:
            _end_sessions(Path(folder) / "cp")
    return {node.name: _result(node.name, seen, status) for node in nodes}


def _tool() -> str | None:
    beside = Path(sys.executable).parent / "ansible-playbook"
    return str(beside) if beside.is_file() else shutil.which("ansible-playbook")


def _play(
    path: str, nodes: tuple[Node, ...], options: Mapping[str, Any], folder: str, seen: _Seen
) -> str:
    import ansible_runner

    limit = int(float(options.get("timeout_s", 600)))
    runner = ansible_runner.run(
        private_data_dir=folder,
        playbook=str(Path(path).resolve()),
        inventory={"all": {"hosts": {n.name: host_variables(n) for n in nodes}}},
        extravars=json.loads(json.dumps(options.get("extra_vars") or {}, default=str)),
        event_handler=seen.take,
        quiet=True,
        timeout=limit,
        envvars={
            "ANSIBLE_RETRY_FILES_ENABLED": "False",
            "ANSIBLE_TIMEOUT": "10",
            **_sessions(folder),
            "PATH": f"{Path(str(options['tool'])).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        },
        settings={"idle_timeout": limit, "suppress_ansible_output": True},
    )
    return str(runner.status)


def _sessions(folder: str) -> dict[str, str]:
    """Where ssh keeps its connections open: in our own folder, if a socket's path fits there."""
    if len(folder) > _LONGEST_FOLDER:
        return {"ANSIBLE_SSH_ARGS": "-o ControlMaster=no"}
    return {"ANSIBLE_SSH_CONTROL_PATH_DIR": f"{folder}/cp"}


def _end_sessions(sockets: Path) -> None:
    """Ends the connections that ssh keeps open after a play (ControlPersist)."""
    for socket in sockets.glob("*"):
        subprocess.run(
            ["ssh", "-O", "exit", "-o", f"ControlPath={socket}", "x"],
            capture_output=True,
            timeout=10,
            check=False,
        )


def host_variables(node: Node) -> dict[str, Any]:
    """What Ansible is told of a node: its address, port and user, and all inventory variables."""
    own = {"ansible_host": node.address, "ansible_port": node.port, "ansible_user": node.user}
    known = {k: v for k, v in own.items() if v is not None}
    return {**_trust(node.variables), **node.variables, **known}


def _trust(variables: Mapping[str, Any]) -> dict[str, str]:
    """Our own host-key settings in Ansible's words, for nodes that have any."""
    if "ansible_ssh_common_args" in variables or "known_hosts" not in variables:
        return {}
    file = shlex.quote(str(Path(str(variables["known_hosts"])).expanduser()))
    words = f"-o UserKnownHostsFile={file} -o StrictHostKeyChecking=yes -o ServerAliveInterval=5"
    return {"ansible_ssh_common_args": f"{words} -o ServerAliveCountMax=3 -o ControlPersist=no"}


def _result(name: str, seen: _Seen, status: str) -> NodeResult:
    ending = Ending.TIMEOUT if status == "timeout" else Ending.FINISHED
    return NodeResult(node=name, verdict=single(_finding(name, seen, status)), ending=ending)


def _finding(name: str, seen: _Seen, status: str) -> Finding:
    stats = seen.stats
    task, words = seen.words.get(name, ("", ""))
    if status == "timeout":
        return unknown("no end within the step's time", remedy="raise `timeout`, or mend the task")
    if name in stats.get("dark", {}):
        return unknown(f"unreachable for Ansible: {words[:160]}", remedy="try `ssh` to it by hand")
    if stats.get("failures", {}).get(name):
        return failed(f"task {task!r}: {words[:160]}", remedy="run this task by hand on the node")
    if not stats and seen.said:
        words = " ".join(_COLOUR.sub("", " ".join(seen.said)).split())
        return unknown(f"the playbook did not run: {words[:200]}", remedy="mend the playbook")
    if name not in stats.get("processed", {}):
        return unknown(
            "the playbook did nothing on this node", remedy="check `hosts:` in the playbook"
        )
    return passed("playbook done")


def _all(nodes: tuple[Node, ...], finding: str, remedy: str) -> dict[str, NodeResult]:
    verdict = single(unknown(finding, remedy=remedy))
    return {n.name: NodeResult(node=n.name, verdict=verdict) for n in nodes}
