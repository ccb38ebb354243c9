"""`playbook`: Ansible on real nodes; its events decide, and its limit leaves nothing running."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.testbed.controller import Controller
from tests.transports.servers import until

pytestmark = pytest.mark.root
pytest.importorskip("ansible", reason="ansible-core is not installed (the extra `ansible`)")


def play(operator: Controller, *tasks: str) -> str:
    """A playbook of raw lines."""
    path = operator.folder / "book.yaml"
    head = "- hosts: all\n  gather_facts: false\n  tasks:\n"
    path.write_text(
        head + "".join(f"    - name: task {t!r}\n      ansible.builtin.raw: {t}\n" for t in tasks)
    )
    return str(path)


def test_each_node_gets_what_the_statistics_say_of_it(operator: Controller) -> None:
    operator.bed["n3"].refuse()
    operator.bed["n4"].blackhole()
    book = play(operator, "test $(hostname) != n2", "echo >>/root/played")

    done = operator.run({"playbook": book, "timeout": "240s", "gate": "any", "on_fail": "continue"})

    levels = {n: r["verdict"]["findings"][0]["level"] for n, r in operator.results().items()}
    assert done.code == 0, done.said
    assert levels == {"n1": "pass", "n2": "fail", "n3": "unknown", "n4": "unknown"}
    assert "nreachable" in operator.findings()["n3"]


def test_after_the_limit_of_a_play_nothing_runs_on_either_side(operator: Controller) -> None:
    book = play(operator, "sleep 876")

    done = operator.run({"playbook": book, "timeout": "5s"})

    assert done.code == 3, done.said
    assert set(operator.findings().values()) == {"no end within the step's time"}
    assert ours(operator.folder) == []
    assert until(lambda: not any(h.left() for h in operator.bed.hosts.values())), [
        h.left() for h in operator.bed.hosts.values()
    ]


def ours(folder: Path) -> list[str]:
    """Processes on the controller that were started for a run."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if str(folder) in line]
