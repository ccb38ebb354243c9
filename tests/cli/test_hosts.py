"""`recover hosts`: new keys are shown beside the old ones and trusted by one explicit command."""

from __future__ import annotations

from pathlib import Path

import paramiko
import pytest
from click.testing import CliRunner, Result

from recovery.cli.hosts import COMMAND
from recovery.transports.ssh.known_hosts import fingerprint
from tests.transports.servers import FarmServer, free_port, know


@pytest.fixture
def server() -> FarmServer:
    started = FarmServer(b"")
    yield started  # type: ignore[misc]  # a fixture's generator
    started.close()


def inventory(folder: Path, port: int, dead_port: int = 0) -> str:
    dead = f"    n2: {{ansible_host: 127.0.0.1, ansible_port: {dead_port}}}\n" if dead_port else ""
    path = folder / "cluster.yaml"
    path.write_text(
        f"all:\n  vars: {{known_hosts: {folder}/known_hosts, host_keys: file}}\n  hosts:\n"
        f"    n1: {{ansible_host: 127.0.0.1, ansible_port: {port}}}\n{dead}"
    )
    return str(path)


def hosts(*words: str) -> Result:
    return CliRunner().invoke(COMMAND, words)


def test_changed_keys_are_shown_and_replaced_when_told_so(
    tmp_path: Path, server: FarmServer
) -> None:
    old = paramiko.ECDSAKey.generate()
    known = tmp_path / "known_hosts"
    known.write_text("# mine\nother ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAA\n")
    know(known, server.port, old)
    cluster = inventory(tmp_path, server.port)

    refused = hosts("trust", cluster, "n1")
    unchanged = known.read_text()
    trusted = hosts("trust", cluster, "n1", "--yes")

    assert refused.exit_code == 1
    assert "CHANGED" in refused.output
    for key in (old, server.host_key):
        assert fingerprint(key.asbytes()) in refused.output
    assert old.get_base64() in unchanged
    assert trusted.exit_code == 0
    assert "trusted: n1" in trusted.output
    assert known.read_text().splitlines()[:2] == unchanged.splitlines()[:2]
    assert old.get_base64() not in known.read_text()
    assert server.host_key.get_base64() in known.read_text()
    assert hosts("show", cluster).output == "known already: n1\n"


def test_a_silent_node_is_said_and_the_others_are_trusted(
    tmp_path: Path, server: FarmServer
) -> None:
    cluster = inventory(tmp_path, server.port, free_port())

    result = hosts("trust", cluster, "@all", "--yes")

    assert result.exit_code == 3
    assert result.output.splitlines()[0].startswith("n2: no key: ")
    assert "trusted: n1" in result.output


def test_show_changes_nothing_and_names_the_next_command(
    tmp_path: Path, server: FarmServer
) -> None:
    cluster = inventory(tmp_path, server.port)

    result = hosts("show", cluster)

    assert result.exit_code == 1
    assert f"next: recover hosts trust {cluster} n1" in result.output
    assert not (tmp_path / "known_hosts").exists()
