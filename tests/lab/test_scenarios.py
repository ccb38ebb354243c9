"""The power loss as a newcomer meets it: eight nodes, a save under way, two broken nodes."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from recovery.lab import client
from recovery.lab.errors import LabError
from tests.lab.conftest import Cluster, start

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def struck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = start(tmp_path_factory.mktemp("struck"), n_nodes=8)
    running.ask("scenario", name="power-loss")
    yield running
    client.stop(running.layout)


def newest(cluster: Cluster, node: str) -> Path:
    found = (cluster.layout.home(node) / "ckpt").iterdir()
    return max(found, key=lambda folder: int(folder.name.rpartition("-")[2]))


def test_the_newest_checkpoint_is_whole_on_some_nodes(struck: Cluster):
    folder = newest(struck, "node01")

    assert folder.name == "checkpoint-60"
    assert (folder / "trainer_state.json").exists()


def test_it_is_torn_on_others(struck: Cluster):
    folder = newest(struck, "node02")

    assert folder.name == "checkpoint-60"
    assert not zipfile.is_zipfile(folder / "optimizer.pt")
    assert not (folder / "trainer_state.json").exists()


def test_others_are_behind(struck: Cluster):
    assert newest(struck, "node04").name == "checkpoint-40"


def test_a_file_that_was_never_flushed_is_empty(struck: Cluster):
    assert (newest(struck, "node07") / "model.safetensors").stat().st_size == 0


def test_checkpoint_40_is_whole_everywhere(struck: Cluster):
    for node in struck.ask("status")["nodes"]:
        folder = struck.layout.home(node["name"]) / "ckpt" / "checkpoint-40"
        assert zipfile.is_zipfile(folder / "optimizer.pt")
        assert (folder / "trainer_state.json").exists()


def test_two_nodes_came_back_broken_and_nothing_runs(struck: Cluster):
    nodes = struck.ask("status")["nodes"]

    faults = {n["name"]: list(n["faults"]) for n in nodes if n["faults"]}
    assert faults == {"node03": ["gpu-lost"], "node06": ["ecc"]}
    assert [n["processes"] for n in nodes] == [[]] * 8
    assert all(n["power"] for n in nodes)


def test_the_log_of_the_boot_before_can_be_read_afterwards(struck: Cluster):
    last = struck.run("node01", "journalctl -b -1 -n 1 -o short-unix --no-pager -q").out
    window = int(float(last.split()[0])) - 1800
    ask = f'journalctl -k -b -1 --since "@{window}" -o short-iso --no-pager -q'
    lines = struck.run("node01", ask).out

    assert "interrupt took too long" in lines
    assert "Linux version" not in lines
    assert "CRON" not in lines
    assert "AC lost" in struck.run("node01", "ipmitool sel elist").out


def test_a_misspelt_scenario_gets_a_suggestion(struck: Cluster):
    with pytest.raises(LabError, match='did you mean "power-loss"'):
        struck.ask("scenario", name="power-los")
