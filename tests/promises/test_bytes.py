"""Whatever a node prints: bounded memory, evidence up to the cap, the right verdict."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.testbed.controller import Controller

pytestmark = pytest.mark.root
CAP = 16 * 1024 * 1024
PEAK_MIB = 400
FLOODS = {
    "n1": "head -c 100000000 /dev/zero | tr '\\0' x",
    "n2": "head -c 100000000 /dev/zero | tr '\\0' x >&2",
    "n3": "yes 'a line of text' | head -c 100000000; echo the end",
    "n4": "printf 'caf\\351 \\000 \\033[31mred\\033[0m 10%%\\r20%%\\r\\n'; sleep 300 & exit 0",
}


def evidence(operator: Controller, node: str, name: str) -> bytes:
    """A kept stream."""
    (digest,) = [k["digest"] for k in operator.results()[node]["kept"] if k["name"] == name]
    (file,) = operator.state.glob(f"runs/*/evidence/*/{digest}")
    return file.read_bytes()


# The peak that a process reports begins with that of who started it: a small one has to.
PEAK = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
peak_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
open(sys.argv[1], "w").write(str(peak_kib / 1024))
sys.exit(code)
"""


def test_a_hundred_megabytes_from_each_node_fit_in_bounded_memory(operator: Controller) -> None:
    for name, line in FLOODS.items():
        operator.bed[name].do(f"cat >/root/flood <<'END'\n{line}\nEND")
    path = operator.runbook({"run": ". /root/flood", "timeout": "60s", "effect": "read"})
    words = ("run", str(operator.inventory), "--runbook", path, "--yes", "--quiet")
    peak = operator.folder / "peak"

    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(peak), *operator.argv(*words)], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, cwd=operator.folder, env=operator.environment(),
        check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert 30 < float(peak.read_text()) < PEAK_MIB
    cut = {n: f for n, f in operator.findings().items() if n != "n4"}
    assert set(cut.values()) == {"it printed too much: 83 MB were cut from the middle"}
    assert CAP - 100 < len(evidence(operator, "n1", "stdout")) <= CAP  # less our own marks
    assert CAP - 100 < len(evidence(operator, "n2", "stderr")) <= CAP
    assert evidence(operator, "n3", "stdout").endswith(b"the end\n")
    assert evidence(operator, "n4", "stdout") == b"caf\xe9 \0 \x1b[31mred\x1b[0m 10%\r20%\r\n"
    assert "\\xe9" in operator.results()["n4"]["values"]["stdout"]
    assert operator.findings()["n4"] == "command: done"


@pytest.mark.parametrize("form", ["html", "junit", "md", "json"])
def test_reports_hold_no_control_characters_of_a_node(operator: Controller, form: str) -> None:
    line = "printf '\\033]0;title\\007\\033[2Jbad \\000 \\001'; exit 3"

    operator.run({"run": line})
    done = operator.recover("report", "last", "--format", form)

    assert done.code == 0, done.said
    assert not set(done.said) & {chr(c) for c in (*range(9), 11, 12, *range(14, 32), 127)}
