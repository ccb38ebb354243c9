"""A lab of one's own and `recover` as a subprocess, for tests from end to end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

RECOVER = str(Path(sys.executable).parent / "recover")
LIMIT_S = 240


@dataclass
class LabRun:
    """One lab in a folder of its own, and the runs on it."""

    folder: Path

    @property
    def inventory(self):
        return str(self.folder / "lab" / "inventory.yaml")

    @property
    def state(self):
        return self.folder / "state"

    def environment(self):
        return {**os.environ, "HOME": str(self.folder), "RECOVER_STATE": str(self.state)}

    def recover(self, *words, check=False):
        """Runs `recover` to its end."""
        done = subprocess.run(
            [RECOVER, *words],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env=self.environment(),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def start(self, *words):
        """Starts `recover` and returns the process."""
        return subprocess.Popen(
            [RECOVER, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment(),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
        )

    def lab(self, *words):
        return self.recover("lab", "--dir", str(self.folder / "lab"), *words, check=True).stdout

    def up(self, scenario, *, nodes=8):
        self.lab("up", "--port", "0", "--nodes", str(nodes), "--scenario", scenario)

    def down(self):
        self.recover("lab", "--dir", str(self.folder / "lab"), "down")

    def events(self):
        """All whole lines of the newest run's journal."""
        journals = sorted(self.state.glob("runs/*/journal.jsonl"))
        if not journals:
            return []
        lines = journals[-1].read_bytes().split(b"\n")[:-1]
        return [json.loads(line) for line in lines]

    def started_steps(self):
        return [e["step"] for e in self.events() if e["event"] == "StepStarted"]

    def wait_for_step(self, step, process):
        """Returns when the step has begun, or the process has ended."""
        ends_at = time.monotonic() + LIMIT_S
        while time.monotonic() < ends_at and process.poll() is None:
            if step in self.started_steps():
                return
            time.sleep(0.01)  # poll: the journal grows by another process
        assert step in self.started_steps(), process.communicate()[0]

    def report(self):
        return json.loads(self.recover("report", "last", "--format", "json", check=True).stdout)

    def training_logs(self):
        """The whole training log of each node by name, as lines."""
        homes = sorted((self.folder / "lab").glob("nodes/*/**/train.log"))
        return {str(p.relative_to(self.folder / "lab")): p.read_text().splitlines() for p in homes}

    def leashed(self):
        """Processes of commands of ours that are still on a node (the leash marks them)."""
        found = []
        for environ in Path("/proc").glob("[0-9]*/environ"):
            try:
                text = environ.read_bytes()
            except OSError:
                continue
            if b"RECOVER_LEASH_" in text and str(self.folder).encode() in text:
                found.append(environ.parent.name)
        return found


def end(process, number=signal.SIGKILL):
    """Sends a signal to a process that we started and waits for its end."""
    process.send_signal(number)
    process.communicate(timeout=LIMIT_S)
    return process.returncode
