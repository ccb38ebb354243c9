"""The nodes as an SSH client sees them."""

from __future__ import annotations

import paramiko
import pytest

from tests.lab.conftest import Cluster, eventually

pytestmark = pytest.mark.lab


def test_a_command_runs_in_the_nodes_home_under_its_name(cluster: Cluster):
    answer = cluster.run("node02", 'hostname; pwd; echo "$HOME"; echo $RECOVER_LAB_NODE')

    home = str(cluster.layout.home("node02"))
    assert answer.out.split() == ["node02", home, home, "node02"]


def test_both_streams_and_the_exit_status_arrive(cluster: Cluster):
    answer = cluster.run("node01", "echo out; echo err >&2; exit 7")

    assert (answer.status, answer.out, answer.err) == (7, "out\n", "err\n")


def test_standard_input_arrives_whole(cluster: Cluster):
    answer = cluster.run("node01", "wc -c", stdin=b"x" * 3_000_000)

    assert answer.out.strip() == "3000000"


def test_much_output_arrives_whole(cluster: Cluster):
    answer = cluster.run("node01", "head -c 5000000 /dev/zero | tr '\\0' x")

    assert len(answer.out) == 5_000_000


def test_bytes_that_are_no_text_survive_in_the_command(cluster: Cluster):
    connection = cluster.connect("node01")

    _, out, _ = connection.exec_command(b"printf '%s' '\xff\xfe'")

    assert out.read() == b"\xff\xfe"
    connection.close()


def test_many_channels_share_one_connection(cluster: Cluster):
    connection = cluster.connect("node01")

    streams = [connection.exec_command(f"echo {k}")[1] for k in range(20)]

    assert [s.read().decode().strip() for s in streams] == [str(k) for k in range(20)]
    connection.close()


def test_channels_may_be_asked_in_another_order_than_they_were_opened(cluster: Cluster):
    connection = cluster.connect("node01")
    opened = [connection.get_transport().open_session() for _ in range(4)]

    for k, channel in reversed(list(enumerate(opened))):
        channel.exec_command(f"echo {k}")

    assert [c.makefile().read() for c in opened] == [f"{k}\n".encode() for k in range(4)]
    connection.close()


def test_the_exit_status_does_not_wait_for_a_child_that_keeps_the_pipe(cluster: Cluster):
    connection = cluster.connect("node01")

    _, out, _ = connection.exec_command("sleep 311 & exit 4")

    assert out.channel.recv_exit_status() == 4
    assert not out.channel.closed
    eventually(lambda: _sleeps(cluster, "node01", "311"))
    cluster.run("node01", f"kill {_sleeps(cluster, 'node01', '311')[0]}")
    connection.close()


def test_a_command_ended_by_a_signal_has_no_exit_status(cluster: Cluster):
    assert cluster.run("node01", "kill -KILL $$").status == -1


def test_a_lost_connection_leaves_the_command_alone(cluster: Cluster):
    connection = cluster.connect("node03")
    connection.exec_command("exec sleep 307")
    eventually(lambda: _sleeps(cluster, "node03", "307"))

    connection.close()

    assert cluster.run("node03", "true").status == 0
    assert _sleeps(cluster, "node03", "307")
    cluster.run("node03", f"kill {_sleeps(cluster, 'node03', '307')[0]}")
    eventually(lambda: not _sleeps(cluster, "node03", "307"))


def test_a_stranger_is_refused(cluster: Cluster):
    with pytest.raises(paramiko.AuthenticationException):
        paramiko.SSHClient.connect(
            _trusting(),
            "127.0.0.1",
            port=cluster.node("node01")["port"],
            username="root",
            pkey=paramiko.RSAKey.generate(1024),
            allow_agent=False,
            look_for_keys=False,
        )


def test_a_node_serves_as_a_bastion_to_another(cluster: Cluster):
    first = cluster.connect("node01")
    way = first.get_transport().open_channel(
        "direct-tcpip", ("127.0.0.1", cluster.node("node02")["port"]), ("127.0.0.1", 0)
    )

    second = _trusting()
    second.connect("node02", username="root", key_filename=str(cluster.layout.key), sock=way)
    _, out, _ = second.exec_command("hostname")

    assert out.read() == b"node02\n"
    second.close()
    first.close()


def _trusting() -> paramiko.SSHClient:
    connection = paramiko.SSHClient()
    connection.set_missing_host_key_policy(paramiko.AutoAddPolicy())
    return connection


def _sleeps(cluster: Cluster, node: str, length: str) -> list[str]:
    found = cluster.node(node)["processes"]
    return [line.split()[0] for line in found if line.endswith(f"sleep {length}")]
