"""`playbook`: events decide, never the return code alone; by the real ansible-runner."""

import sys

import pytest

from recovery.app.playbooks import host_variables, run_playbook
from recovery.model.node import Node
from recovery.model.verdict import Level

pytest.importorskip("ansible", reason="ansible-core is not installed (the extra `ansible`)")

LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
A, B = Node("a", variables=LOCAL), Node("b", variables=LOCAL)
GONE = Node("gone", address="127.0.0.1", port=9, variables={"ansible_ssh_common_args": ""})


def played(tmp_path, text, *nodes, **options):
    file = tmp_path / "book.yaml"
    file.write_text(text)
    return run_playbook(str(file), nodes, {"timeout_s": 120, **options})


BOOK = """
- hosts: all
  gather_facts: false
  tasks:
    - name: fail on b
      ansible.builtin.raw: "test {{ inventory_hostname }} != b"
"""


def test_each_node_has_its_own_verdict(tmp_path):
    results = played(tmp_path, BOOK, A, B, GONE)

    assert results["a"].verdict.level is Level.PASS
    assert results["b"].verdict.level is Level.FAIL
    assert "fail on b" in results["b"].verdict.worst.finding
    assert results["gone"].verdict.level is Level.UNKNOWN
    assert "unreachable" in results["gone"].verdict.worst.finding


def test_a_play_for_other_hosts_did_nothing_here(tmp_path):
    results = played(tmp_path, BOOK.replace("hosts: all", "hosts: nobody"), A)

    assert results["a"].verdict.level is Level.UNKNOWN
    assert "did nothing" in results["a"].verdict.worst.finding


def test_a_playbook_that_cannot_be_read_is_unknown_with_its_words(tmp_path):
    results = played(tmp_path, "- hosts: [", A)

    assert results["a"].verdict.level is Level.UNKNOWN
    assert "did not run" in results["a"].verdict.worst.finding


def test_a_missing_playbook_is_said(tmp_path):
    results = run_playbook(str(tmp_path / "none.yaml"), (A,), {})

    assert "no playbook at" in results["a"].verdict.worst.finding


def test_variables_arrive(tmp_path):
    book = BOOK.replace("test {{ inventory_hostname }} != b", "test '{{ word }}' = 'a b'")

    results = played(tmp_path, book, A, extra_vars={"word": "a b"})

    assert results["a"].verdict.level is Level.PASS


def test_nothing_of_the_run_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    played(tmp_path, BOOK, A)

    assert list(tmp_path.glob("recover-ansible-*")) == []


def test_our_host_keys_are_told_to_ansible():
    node = Node("n", address="10.0.0.1", port=22, variables={"known_hosts": "/a b/known_hosts"})

    told = host_variables(node)

    assert told["ansible_host"] == "10.0.0.1"
    assert "-o UserKnownHostsFile='/a b/known_hosts'" in told["ansible_ssh_common_args"]
