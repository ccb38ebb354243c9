"""The shipped inventory of the lab."""

from __future__ import annotations

from pathlib import Path

from recovery.inventory import read_inventory
from recovery.lab.inventory import shipped

FILE = Path(__file__).parents[2] / "inventories" / "lab.yaml"


def test_the_shipped_file_is_what_the_lab_would_write():
    assert FILE.read_text() == shipped()


def test_it_is_read_as_any_other_inventory():
    inventory = read_inventory(FILE.read_text(), source="lab.yaml")

    assert list(inventory.nodes) == [f"node0{k}" for k in range(1, 9)]
    assert inventory.variables["prepare"] == "recover lab up --scenario power-loss"
    assert inventory.nodes["node05"].leaf == "leaf2"
