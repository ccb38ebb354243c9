"""No secret reaches anything that a run writes or prints."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.testbed.controller import Controller

pytestmark = pytest.mark.root
SECRETS = {
    "bmc_password": "Sesame-1-open",
    "api_token": "tok/with'quotes $x",
    "ansible_become_password": "b3come'me",
    "shared_secret": "caf\u00e9 s3cret",
    "hf_token": "hf_from_the_environment",
}
FORMS = ("html", "json", "junit", "md", "prometheus")


def told(operator: Controller) -> None:
    """An inventory and a runbook with all of them."""
    inventory = {k: v for k, v in SECRETS.items() if k != "hf_token"}
    nodes = {"n1": {"bmc": {"user": "ops", "password": "nested-pw-77"}}, "n2": {}}
    operator.write_inventory(nodes, **inventory)


STEPS = (
    # prints them on both streams, as careless tools do, and into a name of a file
    {"run": "env | sort; env >&2; echo \"$TOKEN\" >\"/tmp/$HF\"; ls /tmp", "env": {
        "TOKEN": "{{ api_token }}", "HF": "{{ hf_token }}"}},
    {"run": "echo $TOKEN; exit 3", "env": {"TOKEN": "{{ api_token }}"}, "on_fail": "continue",
     "expect": ["'nothing' in stdout"], "retry": "2, 1s..1s on rc", "gate": "any"},
)  # fmt: skip


def spilled(places: list[Path], said: str) -> list[str]:
    """Where a secret is to be seen."""
    found = [f"printed: {s}" for s in (*SECRETS.values(), "nested-pw-77") if s in said]
    for path in (p for place in places for p in place.rglob("*") if p.is_file()):
        content = path.read_bytes()
        for secret in (*SECRETS.values(), "nested-pw-77"):
            spellings = {secret.encode(), secret.encode("unicode_escape"), ascii(secret).encode()}
            if any(s in content or s in str(path).encode() for s in spellings):
                found.append(f"{path}: {secret}")
    return found


def test_secrets_of_inventory_and_environment_are_nowhere_in_what_a_run_leaves(
    operator: Controller,
) -> None:
    told(operator)
    path = operator.runbook(
        *STEPS,
        vars={"hf_token": {"secret": "env:HF_TOKEN"},
              "api_token": {"secret": "inventory:api_token"}},
    )  # fmt: skip

    done = operator.recover(
        "run", str(operator.inventory), "--runbook", path, "--yes",
        HF_TOKEN=SECRETS["hf_token"],
    )  # fmt: skip
    reports = [operator.recover("report", "last", "--format", form) for form in FORMS]
    plan = operator.recover("plan", str(operator.inventory), "--runbook", path)

    said = done.said + plan.said + "".join(r.said for r in reports)
    assert done.code == 1, done.said
    assert spilled([operator.state], said) == []
    kept = b"".join(p.read_bytes() for p in operator.state.glob("runs/*/evidence/*/*"))
    assert b"TOKEN=[secret]" in kept


def test_a_playbook_leaves_no_secret_and_no_folder(operator: Controller) -> None:
    pytest.importorskip("ansible", reason="ansible-core is not installed (the extra `ansible`)")
    told(operator)
    book = operator.folder / "book.yaml"
    book.write_text(
        "- hosts: all\n  gather_facts: false\n  tasks:\n"
        "    - ansible.builtin.raw: echo {{ api_token | quote }}; exit 4\n"
    )
    temporary = operator.folder / "tmp"
    temporary.mkdir()

    done = operator.recover(
        "run", str(operator.inventory), "--yes",
        "--runbook", operator.runbook({"playbook": str(book)}), TMPDIR=str(temporary),
    )  # fmt: skip
    left = list(temporary.rglob("*"))
    shutil.rmtree(temporary)

    assert done.code == 1, done.said
    assert left == []
    assert spilled([operator.state, operator.folder / ".ansible"], done.said) == []
