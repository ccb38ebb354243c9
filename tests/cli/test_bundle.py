"""`recover bundle`: one file for its owner's eyes; the list before it; nothing overwritten."""

import json
import tarfile

from recovery.errors import InputError
from tests.cli.places import recover
from tests.reports.stories import events_of
from tests.stored_runs import store

RUN = "20261201-000000-c-ab12"


def run_of(tmp_path):
    store(tmp_path, RUN, lambda evidence: events_of(4, evidence, "GPU 3 is gone, says node001"))
    return ("--state", str(tmp_path))


def test_the_list_says_what_would_go_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    done = recover("bundle", "last", "node002", "--list", *run_of(tmp_path))

    assert done.exit_code == 0, done.output
    assert "evidence/check-1/nvidia-smi_topo_-m" in done.output
    assert list(tmp_path.glob("*.tar.gz")) == []


def test_the_archive_is_for_its_owner_alone_and_says_what_to_do_next(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    done = recover("bundle", "last", "node002", *run_of(tmp_path))

    path = tmp_path / f"ticket-node002-{RUN}.tar.gz"
    assert done.exit_code == 0, done.output
    assert path.stat().st_mode & 0o777 == 0o600
    assert f"tar xzf {path.name}" in done.output
    with tarfile.open(path) as archive:
        verdicts = json.load(archive.extractfile("ticket-node002/verdicts.json"))
    assert verdicts[0]["findings"][0]["finding"] == "GPU 3 is gone, says host-1"


def test_without_the_inventory_it_warns_that_its_secrets_are_not_known(tmp_path):
    done = recover("bundle", "last", "node002", "--list", *run_of(tmp_path))

    assert "warning: its secrets and hosts are not known" in done.stderr


def test_a_file_that_is_there_is_not_overwritten(tmp_path):
    (tmp_path / "t.tar.gz").write_text("mine")

    done = recover("bundle", "last", "node002", "-o", str(tmp_path / "t.tar.gz"), *run_of(tmp_path))

    assert isinstance(done.exception, InputError)
    assert (tmp_path / "t.tar.gz").read_text() == "mine"


def test_a_node_that_is_not_there_is_said_with_a_near_one(tmp_path):
    done = recover("bundle", "last", "node02", *run_of(tmp_path))

    assert 'did you mean "node002"?' in done.exception.message
