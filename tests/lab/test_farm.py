"""Power, faults and reboots of a running lab."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import paramiko
import pytest
import yaml

from recovery.lab import client, processes
from recovery.lab.errors import LabError
from recovery.lab.farm import Plan
from recovery.lab.layout import Layout
from tests.lab.conftest import Cluster, eventually, start

pytestmark = pytest.mark.lab


def test_a_lab_that_is_up_is_not_started_twice(cluster: Cluster):
    assert client.start(cluster.layout, Plan(n_nodes=3, port=0), fresh=False) is False


def test_asking_a_lab_that_is_not_up_says_how_to_start_it(tmp_path: Path):
    with pytest.raises(LabError, match="the lab is not up") as refused:
        client.ask(Layout(tmp_path), "status")

    assert refused.value.remedy == "recover lab up"


def test_fresh_does_not_delete_a_folder_that_is_not_a_lab(tmp_path: Path):
    (tmp_path / "thesis.txt").write_text("years of work")

    with pytest.raises(LabError, match="not a lab's folder"):
        client.start(Layout(tmp_path), Plan(n_nodes=1, port=0), fresh=True)

    assert (tmp_path / "thesis.txt").exists()


def test_a_port_that_is_taken_is_named_with_the_way_out(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(LabError, match=f"port {port} of 127.0.0.1 is taken") as refused:
            client.start(Layout(tmp_path / "lab"), Plan(n_nodes=1, port=port), fresh=False)

    assert "--port 0" in refused.value.remedy


def test_a_misspelt_fault_and_node_get_a_suggestion(cluster: Cluster):
    with pytest.raises(LabError, match='did you mean "gpu-lost"'):
        cluster.ask("break", fault="gpu-lots", nodes=["node01"], value=None)
    with pytest.raises(LabError, match='did you mean "node01"'):
        cluster.ask("break", fault="gpu-lost", nodes=["nod01"], value=None)


def test_a_value_that_a_fault_cannot_take_is_refused(cluster: Cluster):
    with pytest.raises(LabError, match="cannot take 'nine'"):
        cluster.ask("break", fault="gpu-lost", nodes=["node01"], value="nine")

    assert cluster.node("node01")["faults"] == {}


def test_power_loss_ends_every_process_even_one_in_its_own_session(well: Cluster):
    well.run("node02", "setsid sleep 313 >/dev/null 2>&1 < /dev/null &")
    eventually(lambda: well.node("node02")["processes"])

    well.ask("power-loss", nodes=["node02"])

    assert well.node("node02") | {"processes": []} == well.node("node02")
    with pytest.raises(OSError, match=r"Unable to connect|refused"):
        well.connect("node02")


def test_power_on_is_a_new_boot_and_the_disk_stays(well: Cluster):
    before = well.run("node01", "cat /proc/sys/kernel/random/boot_id").out
    well.run("node01", "echo kept > data/file")

    well.ask("power-loss", nodes=["node01"])
    well.ask("power-on", nodes=["node01"])

    assert well.run("node01", "cat /proc/sys/kernel/random/boot_id").out != before
    assert well.run("node01", "cat data/file").out == "kept\n"
    assert float(well.run("node01", "cat /proc/uptime").out.split()[0]) < 60


def test_a_reboot_from_inside_brings_the_node_back(well: Cluster):
    before = well.run("node03", "cat /proc/sys/kernel/random/boot_id").out

    well.run("node03", "reboot")

    eventually(lambda: well.node("node03")["power"])
    assert well.run("node03", "cat /proc/sys/kernel/random/boot_id").out != before


def test_a_node_that_never_comes_back_stays_off(well: Cluster):
    well.ask("break", fault="never-back", nodes=["node03"], value=None)
    well.ask("power-loss", nodes=["node03"])

    back = well.ask("power-on", nodes=["node03"])

    assert back == []
    assert well.node("node03")["power"] is False


def test_a_refused_login_is_refused_after_the_handshake(well: Cluster):
    well.ask("break", fault="refuse-login", nodes=["node02"], value=None)

    with pytest.raises(paramiko.AuthenticationException):
        well.connect("node02")


def test_a_changed_host_key_is_seen_and_can_be_mended(well: Cluster):
    well.ask("break", fault="hostkey-changed", nodes=["node02"], value=None)
    with pytest.raises(paramiko.BadHostKeyException):
        well.connect("node02")

    well.ask("mend", nodes=["node02"])

    assert well.run("node02", "true").status == 0


def test_a_silent_node_takes_the_connection_and_says_nothing(well: Cluster):
    well.ask("break", fault="silent", nodes=["node02"], value=None)

    with socket.create_connection(("127.0.0.1", well.node("node02")["port"])) as link:
        link.settimeout(0.2)
        with pytest.raises(TimeoutError):
            link.recv(1)


def test_a_hanging_command_hangs_and_others_do_not(well: Cluster):
    well.ask("break", fault="hang", nodes=["node02"], value="ibstat")

    assert well.run("node02", "timeout 0.3 ibstat").status == 124
    assert well.run("node02", "nvidia-smi -L | wc -l").out.strip() == "8"


def test_a_reset_clock_shows_in_date(well: Cluster):
    well.ask("break", fault="clock-reset", nodes=["node01"], value="1000000")

    behind = time.time() - int(well.run("node01", "date +%s").out)

    assert 999_990 < behind < 1_000_060


def test_the_inventory_names_every_node_with_its_port(cluster: Cluster):
    inventory = yaml.safe_load(cluster.layout.inventory.read_text())

    leaves = inventory["all"]["children"]["gpu"]["children"]
    ports = {n: h["ansible_port"] for leaf in leaves.values() for n, h in leaf["hosts"].items()}
    assert ports == {n["name"]: n["port"] for n in cluster.ask("status")["nodes"]}


def test_what_the_nodes_had_is_there_after_down_and_up(tmp_path: Path):
    first = start(tmp_path, n_nodes=1)
    first.run("node01", "echo 1 > data/kept")
    first.ask("break", fault="ecc", nodes=["node01"], value=None)
    client.stop(first.layout)

    again = start(tmp_path, n_nodes=1)

    assert again.run("node01", "cat data/kept").out == "1\n"
    assert again.node("node01")["faults"] == {"ecc": "2"}
    client.stop(again.layout)


def test_down_leaves_no_process_behind(tmp_path: Path):
    running = start(tmp_path, n_nodes=1)
    running.run("node01", "setsid sleep 317 >/dev/null 2>&1 < /dev/null &")

    client.stop(running.layout)

    assert processes.of_lab(running.layout.root) == ()
    assert not client.is_up(running.layout)
    assert not running.layout.control.exists()
