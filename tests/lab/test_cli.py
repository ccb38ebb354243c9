"""The command `recover lab`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from recovery.cli.lab import COMMAND
from recovery.lab import client
from recovery.lab.errors import LabError
from recovery.lab.farm import Plan
from recovery.lab.layout import Layout
from tests.lab.conftest import Cluster

pytestmark = pytest.mark.lab


def lab(*words: str) -> Result:
    return CliRunner().invoke(COMMAND, list(words), catch_exceptions=False)


def test_up_break_status_mend_down_is_a_whole_life(tmp_path: Path):
    here = ("--dir", str(tmp_path / "lab"))

    assert (
        "the lab is up, 2 nodes; every node is well"
        in lab("up", *here, "--nodes", "2", "--port", "0").output
    )
    assert "the lab is up already" in lab("up", *here).output
    assert lab("break", "ecc", "node02", *here, "--value", "7").output == "node02: ecc (7)\n"
    assert "on   ecc (7)" in lab("status", *here).output
    assert lab("mend", "node02", *here).output == "node02: ecc mended\n"
    assert "every node: off, 0 processes ended" in lab("power-loss", *here).output
    assert lab("power-on", "node01", *here).output == "node01: on\n"
    nodes = json.loads(lab("status", *here, "--format", "json").output)["nodes"]
    assert [n["power"] for n in nodes] == [True, False]
    assert lab("down", *here).output == "the lab is down\n"
    assert lab("down", *here).output == "the lab was not up\n"


def test_a_lab_that_is_not_up_is_an_error_with_a_remedy(tmp_path: Path):
    with pytest.raises(LabError, match="the lab is not up"):
        lab("status", "--dir", str(tmp_path))


def test_faults_lists_every_fault_with_its_value():
    listing = lab("faults").output

    for name in ("gpu-lost", "ecc", "nvlink-down", "slow-nic", "slow-pair", "torn-checkpoint",
                 "checkpoint-behind", "clock-reset", "hang", "refuse-login", "hostkey-changed",
                 "never-back", "disk-full"):  # fmt: skip
        assert f"\n{name} " in f"\n{listing}"


def test_isolated_nodes_have_their_own_logs_in_the_usual_place(tmp_path: Path):
    if not client.can_isolate():
        pytest.skip("no unprivileged user and mount namespaces here")
    layout = Layout(tmp_path / "lab")
    client.start(layout, Plan(n_nodes=1, port=0, isolate=True), fresh=False)

    try:
        assert Cluster(layout).run("node01", "ls /var/log").out.split() == ["kern.log", "syslog"]
    finally:
        client.stop(layout)
