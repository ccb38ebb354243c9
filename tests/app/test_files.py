"""Files are found beside the operator first, then shipped; what is missing is said with a hint."""

import pytest

from recovery.app import files
from recovery.errors import InputError, InventoryError, RunbookError


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_inventory_beside_the_operator_wins_over_the_shipped_one(here):
    (here / "inventories").mkdir()
    (here / "inventories" / "cluster-a.yaml").write_text("all: {hosts: {mine: }}")

    text, source = files.find_inventory("cluster-a")

    assert "mine" in text
    assert source == "inventories/cluster-a.yaml"


def test_the_shipped_inventories_and_runbooks_are_found_from_anywhere(here):
    assert "all:" in files.find_inventory("cluster-a")[0]
    assert "runbook: power-loss" in files.find_runbook("power-loss")[0]
    assert "h100-sxm8" in files.profile_names()


def test_a_misspelt_inventory_gets_a_hint_and_the_names(here):
    with pytest.raises(InventoryError, match='did you mean "cluster-a"') as caught:
        files.find_inventory("cluster-b")

    assert "inventories/cluster-b.yaml" in caught.value.remedy


def test_a_misspelt_runbook_gets_a_hint(here):
    with pytest.raises(RunbookError, match='did you mean "power-loss"'):
        files.find_runbook("power-los")


def test_a_misspelt_profile_gets_a_hint(here):
    with pytest.raises(InventoryError, match='did you mean "h100-sxm8"'):
        files.find_profile("h100-sxm")


def test_a_path_that_is_not_there_is_said(here):
    with pytest.raises(InventoryError, match=r"no inventory at './x.yaml'"):
        files.find_inventory("./x.yaml")


def test_a_file_that_is_not_text_is_said_with_its_byte(here):
    (here / "x.yaml").write_bytes(b"all: \xff\n")

    with pytest.raises(InventoryError, match="not UTF-8 at byte 5"):
        files.find_inventory("./x.yaml")


def test_a_local_file_that_cannot_be_read_is_our_mistake(here):
    with pytest.raises(InputError, match="cannot be read"):
        files.local_file("nothing.sh")


def test_runs_lie_where_the_operator_says_or_in_the_state_home(here, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/var/x")

    assert str(files.state_folder(None)) == "/var/x/recover"
    assert str(files.state_folder("there")) == "there"


@pytest.mark.parametrize("name", ["leash.sh", "detach.sh", "checkpoint_inspector.py"])
def test_payloads_are_found(name):
    assert files.payload(name)
