"""Secrets: found when a run starts, and struck out."""

from dataclasses import replace

import pytest

from recovery.app.secrecy import resolved, secret_values
from recovery.errors import InputError
from recovery.model.inventory import Inventory
from recovery.model.node import Node
from tests.engine.runs import Bench

NODE = Node("n1", variables={"bmc": {"user": "ops", "password": "hunter22"}, "leaf": "leaf1"})
INVENTORY = Inventory(
    name="c",
    source="c.yaml",
    nodes={"n1": NODE},
    groups={},
    variables={"api_token": "tok-12345", "password_env": "BMC_PW", "min_nodes": 3},
)


def plan(**variables):
    return replace(Bench().plan(variables=variables), secrets=tuple(variables))


def test_a_secret_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_abc")

    made = resolved(plan(token={"secret": "env:HF_TOKEN"}), INVENTORY)

    assert made.variables["token"] == "hf_abc"
    assert "hf_abc" in secret_values(made, INVENTORY)


def test_a_secret_comes_from_the_inventory():
    made = resolved(plan(api_token={"secret": "inventory:api_token"}), INVENTORY)

    assert made.variables["api_token"] == "tok-12345"


@pytest.mark.parametrize("reference", [{"secret": "env:NOWHERE"}, {"secret": "nonsense"}, {}])
def test_a_secret_that_is_nowhere_is_our_mistake(reference):
    with pytest.raises(InputError, match="is not there") as caught:
        resolved(plan(token=reference), INVENTORY)

    assert caught.value.remedy


def test_values_with_secret_names_are_struck_out_at_any_depth_and_others_are_not():
    found = secret_values(plan(), INVENTORY)

    assert found == ("tok-12345", "hunter22")
