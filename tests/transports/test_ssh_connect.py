"""What keeps us from logging in has its own class, and never a prompt."""

from __future__ import annotations

import concurrent.futures as futures
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest

from recovery.model.output import Command, Ending, Output
from recovery.model.ports import Transport
from recovery.transports.ssh import SSH
from tests.transports.conftest import LEASH
from tests.transports.servers import (
    FarmServer,
    Place,
    free_port,
    keygen,
    know,
    make_key,
    node_at,
    sshd_place,
    start_sshd,
    until,
    why_no_sshd,
)

TRUE = Command("true", timeout_s=60, grace_s=2)
HASTY = replace(TRUE, timeout_s=4)
needs_sshd = pytest.mark.skipif(bool(why_no_sshd()), reason=why_no_sshd() or "-")


@contextlib.contextmanager
def ssh() -> Iterator[Transport]:
    opened = SSH.open({"leash": LEASH})
    try:
        yield opened
    finally:
        opened.close()


@contextlib.contextmanager
def farm_server(folder: Path, **options: object) -> Iterator[FarmServer]:
    key = make_key(folder / "id")
    server = FarmServer(key.asbytes(), **options)  # type: ignore[arg-type]  # passed through
    know(folder / "known_hosts", server.port, server.host_key)
    try:
        yield server
    finally:
        server.close()


def ask(folder: Path, port: int, command: Command = TRUE, **variables: object) -> Output:
    with ssh() as transport:
        return transport.run(
            node_at(port, folder / "id", folder / "known_hosts", **variables), command
        )


def test_a_closed_port_is_a_connect_finding(tmp_path: Path) -> None:
    make_key(tmp_path / "id")

    output = ask(tmp_path, free_port())

    assert (output.ending, output.trouble) == (Ending.NEVER_STARTED, "connect")
    assert "refused" in output.reason


def test_a_name_that_is_no_host_is_a_connect_finding(tmp_path: Path) -> None:
    node = replace(node_at(22, tmp_path / "id", tmp_path / "kh"), address="no.such.host.invalid")

    with ssh() as transport:
        output = transport.run(node, TRUE)

    assert (output.ending, output.trouble) == (Ending.NEVER_STARTED, "connect")


def test_a_server_that_says_nothing_ends_at_the_deadline(tmp_path: Path) -> None:
    with farm_server(tmp_path, banner_hang=True) as server:
        output = ask(tmp_path, server.port, HASTY)

    assert (output.ending, output.trouble) == (Ending.NEVER_STARTED, "connect")
    assert "no login in time" in output.reason
    assert output.duration_s < 30


def test_connections_refused_by_load_are_tried_again(tmp_path: Path) -> None:
    with farm_server(tmp_path, close_first=2) as server:
        output = ask(tmp_path, server.port)

    assert output.ok
    assert server.connections == 3


def test_a_server_that_is_always_busy_is_called_busy(tmp_path: Path) -> None:
    with farm_server(tmp_path, close_first=100) as server:
        output = ask(tmp_path, server.port, HASTY)

    assert (output.ending, output.trouble) == (Ending.NEVER_STARTED, "busy")


def test_a_refused_key_is_an_auth_finding_that_names_it(tmp_path: Path) -> None:
    with farm_server(tmp_path) as server:
        server.accepted = b"another"
        output = ask(tmp_path, server.port)

    assert (output.ending, output.trouble) == (Ending.NEVER_STARTED, "auth")
    assert str(tmp_path / "id") in output.reason


def test_a_key_with_a_passphrase_is_named_with_the_way_out(tmp_path: Path) -> None:
    with farm_server(tmp_path) as server:
        key = paramiko.ECDSAKey.generate()
        key.write_private_key_file(str(tmp_path / "locked"), password="secret")
        locked = str(tmp_path / "locked")
        output = ask(tmp_path, server.port, ansible_ssh_private_key_file=locked)

    assert output.trouble == "auth"
    assert f"ssh-add {locked}" in output.reason


def test_one_login_serves_all_commands(tmp_path: Path) -> None:
    with farm_server(tmp_path) as server, ssh() as transport:
        node = node_at(server.port, tmp_path / "id", tmp_path / "known_hosts")
        assert all(transport.run(node, TRUE).ok for _ in range(5))

        assert server.connections == 1


def test_a_session_that_died_between_steps_is_opened_anew(tmp_path: Path) -> None:
    with farm_server(tmp_path) as server, ssh() as transport:
        node = node_at(server.port, tmp_path / "id", tmp_path / "known_hosts")
        assert transport.run(node, TRUE).ok

        server.cut()
        # Before we notice, all of a command may be under way to a node that is gone: lost.
        sessions = [line.session for line in transport._lines.values()]
        assert until(lambda: not any(session and session.is_active() for session in sessions))

        assert transport.run(node, TRUE).ok
        assert server.connections == 2


@pytest.mark.parametrize("own_channel", [False, True])
def test_a_session_that_died_before_all_of_a_command_was_sent_is_opened_anew(
    tmp_path: Path, own_channel: bool
) -> None:
    asked = replace(TRUE, stdin=b"to read" if own_channel else b"")
    with farm_server(tmp_path, cut_first=1) as server, ssh() as transport:
        node = node_at(server.port, tmp_path / "id", tmp_path / "known_hosts")

        assert transport.run(node, asked).ok
        assert server.connections == 2


def test_a_node_that_always_hangs_up_on_a_command_never_started_it(tmp_path: Path) -> None:
    with farm_server(tmp_path, cut_first=100) as server:
        output = ask(tmp_path, server.port)

        assert server.connections == 2
    assert (output.ending, output.trouble) == (Ending.NEVER_STARTED, "connect")
    assert "before it began" in output.reason


@pytest.mark.parametrize("own_channel", [False, True])
def test_a_command_that_was_stopped_before_the_node_had_it_never_started(
    tmp_path: Path, own_channel: bool
) -> None:
    asked = replace(TRUE, stdin=b"to read" if own_channel else b"")
    with farm_server(tmp_path) as server, ssh() as transport:
        server.on_command = lambda: transport.stop(5)  # while the client waits for its shell

        output = transport.run(
            node_at(server.port, tmp_path / "id", tmp_path / "known_hosts"), asked
        )

    assert (output.ending, output.trouble) == (Ending.NEVER_STARTED, "")
    assert output.reason == "stopped on request"


def test_a_channel_that_does_not_open_in_time_ends_nobody_elses_command(tmp_path: Path) -> None:
    go_on, ready = threading.Event(), tmp_path / "ready"
    endless = Command(f"until test -e {ready}; do sleep 0.05; done; echo done", timeout_s=60)
    with (
        farm_server(tmp_path) as server,
        ssh() as transport,
        futures.ThreadPoolExecutor(1) as pool,
    ):
        node = node_at(server.port, tmp_path / "id", tmp_path / "known_hosts")
        first = pool.submit(transport.run, node, endless)
        assert until(lambda: server.asked)
        server.on_channel = lambda: bool(go_on.wait(60)) and None  # the server stands still

        second = transport.run(node, replace(TRUE, stdin=b"x", timeout_s=1))
        go_on.set()
        ready.touch()

        assert (second.ending, second.trouble) == (Ending.NEVER_STARTED, "busy")
        assert first.result().stdout == b"done\n"


def test_an_unknown_host_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with farm_server(tmp_path) as server:
        (tmp_path / "known_hosts").write_text("")
        output = ask(tmp_path, server.port)

    assert (output.ending, output.trouble) == (Ending.NEVER_STARTED, "hostkey")
    assert "SHA256:" in output.reason
    assert (tmp_path / "known_hosts").read_text() == ""


def test_a_new_host_is_written_down_where_the_policy_says_so(tmp_path: Path) -> None:
    with farm_server(tmp_path) as server:
        (tmp_path / "known_hosts").write_text("# by hand, no line end")
        assert ask(tmp_path, server.port, host_keys="accept-new").ok

        lines = (tmp_path / "known_hosts").read_text().splitlines()
        assert lines[0] == "# by hand, no line end"
        assert lines[1].startswith(f"[127.0.0.1]:{server.port} ecdsa-sha2-nistp256 ")
        assert ask(tmp_path, server.port).ok


def test_a_changed_key_is_refused_with_both_fingerprints_whatever_the_policy(
    tmp_path: Path,
) -> None:
    with farm_server(tmp_path) as server:
        (tmp_path / "known_hosts").write_text("")
        know(tmp_path / "known_hosts", server.port, paramiko.ECDSAKey.generate())
        before = (tmp_path / "known_hosts").read_text()
        outputs = [ask(tmp_path, server.port, host_keys=p) for p in ("accept-new", "file")]

    for output in outputs:
        assert (output.ending, output.trouble) == (Ending.NEVER_STARTED, "hostkey")
        assert output.reason.count("SHA256:") == 2
        assert "changed" in output.reason
    assert (tmp_path / "known_hosts").read_text() == before
    assert server.logins == 0


def test_a_policy_that_does_not_exist_is_said(tmp_path: Path) -> None:
    make_key(tmp_path / "id")

    output = ask(tmp_path, free_port(), host_keys="relaxed")

    assert "host_keys is 'relaxed'" in output.reason


def test_a_node_behind_a_bastion_is_reached_through_it(tmp_path: Path) -> None:
    with farm_server(tmp_path) as inner:
        outer = FarmServer(inner.accepted)
        know(tmp_path / "known_hosts", outer.port, outer.host_key)
        try:
            output = ask(tmp_path, inner.port, bastion=f"root@127.0.0.1:{outer.port}")
        finally:
            outer.close()

    assert output.ok
    assert outer.forward_to == ("127.0.0.1", inner.port)


def test_a_bastion_that_is_down_is_named(tmp_path: Path) -> None:
    with farm_server(tmp_path) as inner:
        output = ask(tmp_path, inner.port, bastion=f"root@127.0.0.1:{free_port()}")

    assert output.trouble == "connect"
    assert output.reason.startswith("bastion: ")


@pytest.mark.root
@needs_sshd
def test_a_host_key_signed_by_a_known_authority_is_accepted(tmp_path: Path) -> None:
    keygen("-t", "ed25519", "-f", str(tmp_path / "ca"))
    keygen("-t", "ed25519", "-f", str(tmp_path / "hk"))
    sign(tmp_path, "-h", "-n", "127.0.0.1", str(tmp_path / "hk.pub"))
    with sshd_place(tmp_path, extra=f"HostCertificate {tmp_path}/hk-cert.pub") as place:
        authority = (tmp_path / "ca.pub").read_text()
        place.known_hosts.write_text(f"@cert-authority [127.0.0.*]:* {authority}")
        accepted = run_at(place)
        place.known_hosts.write_text(
            f"@cert-authority [127.0.0.*]:* {authority}@revoked * {authority}"
        )
        revoked = run_at(place)

    assert accepted.ok, accepted
    assert (revoked.trouble, "@revoked" in revoked.reason) == ("hostkey", True)


@pytest.mark.root
@needs_sshd
def test_a_certificate_for_another_host_or_of_another_time_is_refused(tmp_path: Path) -> None:
    keygen("-t", "ed25519", "-f", str(tmp_path / "ca"))
    keygen("-t", "ed25519", "-f", str(tmp_path / "hk"))
    for options, word in (
        (("-n", "elsewhere"), "names elsewhere"),
        (("-n", "127.0.0.1", "-V", "20200101:20200102"), "not valid at this time"),
    ):
        sign(tmp_path, "-h", *options, str(tmp_path / "hk.pub"))
        with sshd_place(tmp_path, extra=f"HostCertificate {tmp_path}/hk-cert.pub") as place:
            authority = (tmp_path / "ca.pub").read_text()
            place.known_hosts.write_text(f"@cert-authority * {authority}")
            output = run_at(place)
        for name in ("id", "id.pub"):
            (tmp_path / name).unlink()

        assert output.trouble == "hostkey"
        assert word in output.reason


@pytest.mark.root
@needs_sshd
def test_a_node_known_by_its_rsa_key_only_is_known(tmp_path: Path) -> None:
    keygen("-t", "rsa", "-b", "2048", "-f", str(tmp_path / "rsa"))
    with sshd_place(tmp_path, host_keys=("hk", "rsa")) as place:
        port = place.node.port
        words = (tmp_path / "rsa.pub").read_text().split()
        place.known_hosts.write_text(f"[127.0.0.1]:{port} {words[0]} {words[1]}\n")

        assert run_at(place).ok


@pytest.mark.root
@needs_sshd
def test_a_user_certificate_logs_in(tmp_path: Path) -> None:
    keygen("-t", "ed25519", "-f", str(tmp_path / "ca"))
    with sshd_place(tmp_path, extra=f"TrustedUserCAKeys {tmp_path}/ca.pub") as place:
        (tmp_path / "authorized").write_text("")
        assert run_at(place).trouble == "auth"
        sign(tmp_path, "-n", "root", str(tmp_path / "id.pub"))

        assert run_at(place).ok


@pytest.mark.root
@needs_sshd
def test_the_agent_signs_for_a_key_with_a_passphrase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sshd_place(tmp_path) as place, agent(tmp_path) as path:
        monkeypatch.setenv("SSH_AUTH_SOCK", path)
        subprocess.run(["ssh-add", "-q", str(place.key)], check=True)
        lock = ["ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", str(place.key)]
        subprocess.run(lock, check=True, stdout=subprocess.DEVNULL)

        assert run_at(place).ok
        monkeypatch.delenv("SSH_AUTH_SOCK")
        assert run_at(place).trouble == "auth"


@pytest.mark.root
@needs_sshd
def test_the_client_configuration_means_what_openssh_says(tmp_path: Path) -> None:
    with sshd_place(tmp_path) as place:
        (tmp_path / "more").write_text(
            f"Match host alias\n HostName 127.0.0.1\n Port {place.node.port}\n User root\n"
            f" IdentityFile {place.key}\n IdentitiesOnly yes\n"
            f" UserKnownHostsFile {place.known_hosts}\n"
        )
        (tmp_path / "config").write_text(f"Include {tmp_path}/more\n")
        node = replace(place.node, address="alias", port=None, user=None)
        node = replace(node, variables={"ssh_config": str(tmp_path / "config")})

        with ssh() as transport:
            assert transport.run(node, TRUE).ok


@pytest.mark.root
@needs_sshd
def test_two_jumps_are_taken_left_to_right(tmp_path: Path) -> None:
    with sshd_place(tmp_path) as place, contextlib.ExitStack() as stack:
        hops = []
        for name in ("one", "two"):
            folder = tmp_path / name
            folder.mkdir()
            (folder / "authorized").write_text((tmp_path / "authorized").read_text())
            server = start_sshd(folder)
            stack.callback(server.close)
            hops.append(server)
            know_file(place.known_hosts, server.port, folder / "hk.pub")
        chain = ",".join(f"root@127.0.0.1:{hop.port}" for hop in hops)
        node = replace(place.node, variables={**place.node.variables, "bastion": chain})

        with ssh() as transport:
            assert transport.run(node, TRUE).ok
            assert [len(hop.sessions()) for hop in hops] == [1, 1]


@pytest.mark.root
@needs_sshd
def test_many_logins_at_once_to_a_server_that_takes_few_all_succeed(tmp_path: Path) -> None:
    with sshd_place(tmp_path, extra="MaxStartups 2:100:2") as place, ssh() as transport:
        nodes = [replace(place.node, name=f"n{i}") for i in range(12)]
        with futures.ThreadPoolExecutor(12) as pool:
            outputs = list(pool.map(lambda node: transport.run(node, TRUE), nodes))

    assert [o.ok for o in outputs] == [True] * 12, [o.reason for o in outputs]


@pytest.mark.root
@needs_sshd
def test_a_login_that_stands_still_is_not_called_a_process_that_ignores_kill(
    tmp_path: Path,
) -> None:
    with sshd_place(tmp_path) as place, ssh() as transport:
        # As with a home on a file system that stands still; bash reads it for sshd, others do not.
        gate = tmp_path / "gate"
        os.mkfifo(gate)
        (tmp_path / "home" / ".bashrc").write_text(f"read -r line <{gate}\n")
        output = transport.run(place.node, replace(TRUE, timeout_s=2))
        with contextlib.suppress(OSError):  # whoever still stands there may go
            os.close(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))

    if output.ending is Ending.FINISHED:
        pytest.skip("root's login shell here reads no start-up file")
    assert (output.ending, output.trouble) == (Ending.TIMEOUT, "unsure")
    assert "no word from the node" in output.reason


@pytest.mark.root
@needs_sshd
def test_a_frozen_server_ends_at_the_deadline_and_says_what_may_be_left(tmp_path: Path) -> None:
    keygen("-t", "ed25519", "-f", str(tmp_path / "id"))
    (tmp_path / "authorized").write_text((tmp_path / "id.pub").read_text())
    server = start_sshd(tmp_path)
    know_file(tmp_path / "known_hosts", server.port, tmp_path / "hk.pub")
    try:
        with ssh() as transport:
            node = node_at(server.port, tmp_path / "id", tmp_path / "known_hosts")
            assert transport.run(node, TRUE).ok
            frozen = server.sessions()
            for pid in frozen:
                os.kill(pid, signal.SIGSTOP)

            output = transport.run(node, replace(TRUE, timeout_s=2))
    finally:
        server.close()

    assert output.ending in (Ending.NEVER_STARTED, Ending.TIMEOUT)
    assert output.duration_s < 30
    assert output.reason


def run_at(place: Place) -> Output:
    with ssh() as transport:
        return transport.run(place.node, TRUE)


def sign(folder: Path, *arguments: str) -> None:
    command = ["ssh-keygen", "-q", "-s", str(folder / "ca"), "-I", "test", *arguments]
    subprocess.run(command, check=True)


def know_file(known_hosts: Path, port: int, public: Path) -> None:
    words = public.read_text().split()
    with known_hosts.open("a") as file:
        file.write(f"[127.0.0.1]:{port} {words[0]} {words[1]}\n")


@contextlib.contextmanager
def agent(folder: Path) -> Iterator[str]:
    path = str(folder / "agent")
    process = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL)
    assert until(lambda: Path(path).exists())
    try:
        yield path
    finally:
        process.kill()
        process.wait()
