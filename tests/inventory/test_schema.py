"""The schema takes what we take, and refuses the usual slips."""

from pathlib import Path

import jsonschema
import pytest

from recovery.document import read_yaml
from recovery.inventory import inventory_schema

FOLDER = Path(__file__).parents[2] / "inventories"


def verdict(text):
    value = read_yaml(text, "t").value
    return list(jsonschema.Draft7Validator(inventory_schema()).iter_errors(value))


def test_it_is_a_draft_7_schema():
    jsonschema.Draft7Validator.check_schema(inventory_schema())


def test_it_takes_the_shipped_example():
    assert verdict((FOLDER / "cluster-a.yaml").read_text()) == []


def test_it_takes_the_examples_of_the_readme():
    texts = (FOLDER / "README.md").read_text().split("```yaml\n")[1:]
    inventories = [t.split("```")[0] for t in texts if t.startswith("all:")]

    assert inventories
    assert [verdict(text) for text in inventories] == [[] for _ in inventories]


@pytest.mark.parametrize(
    "text",
    [
        "gpu: {host: {n1: }}",
        "gpu: {hosts: [n1]}",
        "gpu: {hosts: {n1: 5}}",
        "gpu: {vars: [a]}",
        "gpu: {children: {a: {b: {}}}}",
        "gpu: {vars: {ansible_port: 70000}}",
        "gpu: {vars: {shared_addresses: 1}}",
        "[a]",
        "{}",
    ],
)
def test_it_refuses(text):
    assert verdict(text)
