"""`recover` as a subprocess in the hub of a bed: its inventory, runbooks, state and journal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.testbed.bed import Bed
from tests.transports.servers import until

RECOVER = str(Path(sys.executable).parent / "recover")
LIMIT_S = 300


@dataclass
class Controller:
    """One operator's machine: a home, a state folder, an inventory."""

    bed: Bed
    folder: Path
    inventory: Path = Path()

    def __post_init__(self) -> None:
        self.write_inventory({name: {} for name in self.bed.hosts})

    @property
    def state(self) -> Path:
        """Where its runs are."""
        return self.folder / "state"

    def write_inventory(self, nodes: Mapping[str, Mapping[str, Any]], **more: Any) -> None:
        """Node name -> variables; ``host`` among them names the host where that is not the name."""
        hosts = {}
        for name, variables in nodes.items():
            own = dict(variables)
            host = self.bed[own.pop("host", name)]
            hosts[name] = {"ansible_host": host.address, **own}
        general = {
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self.bed.key),
            "identities_only": True,
            "host_keys": "file",
            "known_hosts": str(self.bed.known_hosts),
            **more,
        }
        self.inventory = self.folder / "testbed.yaml"
        # JSON is YAML
        self.inventory.write_text(json.dumps({"all": {"vars": general, "hosts": hosts}}, indent=1))

    def runbook(self, *steps: Mapping[str, Any], **more: Any) -> str:
        """Writes a runbook of these steps on all nodes; returns its path."""
        path = self.folder / "runbook.yaml"
        head = {"runbook": "testbed", "about": "A test", "nodes": "all"}
        path.write_text(json.dumps({**head, **more, "steps": steps}, indent=1))
        return str(path)

    def argv(self, *words: str) -> list[str]:
        """What runs `recover` in the hub."""
        return ["nsenter", f"--net=/run/netns/{self.bed.hub}", RECOVER, *words]

    def environment(self) -> dict[str, str]:
        """Nothing of the machine's user but the path."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "RECOVER_STATE": str(self.state),
            "LANG": "C.UTF-8",
            # `recover` as the tests see it, in a copy of the tree too
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }

    def run(
        self, *steps: Mapping[str, Any], words: tuple[str, ...] = ("--yes",), **more: Any
    ) -> Done:
        """Runs a runbook of these steps to its end."""
        return self.recover(
            "run", str(self.inventory), "--runbook", self.runbook(*steps, **more), *words
        )

    def recover(self, *words: str, **environment: str) -> Done:
        """Runs `recover` to its end."""
        process = self.start(*words, **environment)
        return self.ended(process)

    def start(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        """Starts `recover` and returns the process."""
        return subprocess.Popen(
            self.argv(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, cwd=self.folder,
            env={**self.environment(), **environment},
        )  # fmt: skip

    def start_run(self, *steps: Mapping[str, Any], **more: Any) -> subprocess.Popen[str]:
        """Starts a run of these steps."""
        path = self.runbook(*steps, **more)
        return self.start("run", str(self.inventory), "--runbook", path, "--yes")

    def ended(self, process: subprocess.Popen[str]) -> Done:
        """How a process of ours ended, once it has."""
        try:
            said, _ = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            said, _ = process.communicate()
            raise AssertionError(f"no end within {LIMIT_S} s: {said}") from None
        return Done(process.returncode, said)

    def journal(self) -> Path:
        """The newest run's journal."""
        return max(self.state.glob("runs/*/journal.jsonl"), default=self.state / "none")

    def events(self, kind: str = "") -> list[dict[str, Any]]:
        """Whole lines of the newest run's journal, of one kind if named."""
        path = self.journal()
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        found = [json.loads(line) for line in lines]
        return [e for e in found if kind in ("", e["event"])]

    def results(self, step: str = "") -> dict[str, dict[str, Any]]:
        """The newest result of each node (of one step, if named)."""
        finished = [e for e in self.events("NodeFinished") if step in ("", e["step"])]
        return {e["result"]["node"]: e["result"] for e in finished}

    def findings(self, step: str = "") -> dict[str, str]:
        """The worst finding of each node."""
        return {
            node: result["verdict"]["findings"][0]["finding"]
            for node, result in self.results(step).items()
        }

    def wait_for_step(self, step: str, process: subprocess.Popen[str]) -> None:
        """Returns when the journal says that the step began."""

        def began() -> bool:
            started = [e["step"] for e in self.events("StepStarted")]
            return step in started or process.poll() is not None

        assert until(began, within_s=LIMIT_S)
        assert process.poll() is None, process.communicate()[0]


@dataclass(frozen=True)
class Done:
    """How `recover` ended, and all that it printed."""

    code: int
    said: str


def end(process: subprocess.Popen[str], number: signal.Signals = signal.SIGKILL) -> Done:
    """Sends a signal to a process that we started, and waits for its end."""
    process.send_signal(number)
    said, _ = process.communicate(timeout=LIMIT_S)
    return Done(process.returncode, said)
