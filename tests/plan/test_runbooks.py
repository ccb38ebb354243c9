"""The shipped runbooks and their README, held against the code."""

import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from recovery.model.check import Check
from recovery.plan import build, read_runbook, runbook_schema
from recovery.plan.keys import COMMON_KEYS, CommonKeys, FileKeys, UseKeys, keys_of
from recovery.plan.lint import lint
from recovery.registry import collect
from tests.plan.verbs import VERBS, book, cluster, fold, plan_of, select

FOLDER = Path(__file__).parents[2] / "runbooks"
FILES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.yaml"))
README = (FOLDER / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
CHECKS = tuple(collect("recovery.checks", Check))


def load(name):
    return (FOLDER / name).read_text(encoding="utf-8"), name


def shipped(name, **overrides):
    held = cluster(4, min_nodes=3)
    return build(
        read_runbook(*load(name), VERBS),
        held,
        VERBS,
        overrides=overrides,
        nodes=None,
        load=load,
        select=lambda expression: select(held, expression),
        fold=fold,
        check_names=CHECKS,
        seed=1,
    )


def table(heading):
    """First cells of the table under a heading of the README, without the backticks."""
    section = README.split(f"## {heading}\n")[1].split("\n## ")[0]
    return [m[1] for m in re.finditer(r"^\| `(\w+)` \|", section, re.MULTILINE)]


def test_power_loss_goes_from_evidence_to_proof():
    plan = shipped("power-loss.yaml")

    assert [step.id for step in plan.steps] == [
        "freeze-1", "reach", "gpu-health", "gpu-heat-and-power", "kernel-and-links", "topology",
        "wear", "host", "mesh-1", "checkpoint-1", "relaunch", "launch-1", "verify-1",
    ]  # fmt: skip
    assert [step.verb for step in plan.finally_] == ["report"]
    assert [step.id for step in plan.steps if step.effect != "read"] == ["launch-1"]
    assert plan.steps[1].gate.number == 3


def test_preflight_changes_nothing():
    plan = shipped("preflight.yaml")

    assert {step.effect for step in plan.steps} == {"read"}


def test_preflight_tests_the_network_only_deeper_than_quick():
    plan = shipped("preflight.yaml")

    conditions = {step.id: step.when for step in plan.steps if step.when}
    assert conditions["mesh"] == 'depth not in ("quick", "full")'
    assert conditions["burn"] == 'burn and depth == "full"'
    assert conditions["mesh-full"] == 'depth == "full"'


def test_node_return_asks_for_the_node_and_its_partners():
    plan = shipped("node-return.yaml", returned="n2", partners="n3,n4")

    mesh = next(step for step in plan.steps if step.verb == "mesh")
    assert (plan.nodes, mesh.nodes) == (("n2",), ("n2", "n3", "n4"))


def test_nothing_is_wrong_with_the_shipped_files():
    problems = lint(
        [load(name) for name in FILES],
        VERBS,
        load=load,
        check_names=CHECKS,
        known=("min_nodes",),
    )

    assert problems == []


@pytest.mark.parametrize("text", [load(name)[0] for name in FILES] + EXAMPLES)
def test_every_file_and_every_example_fits_the_schema(text):
    jsonschema.Draft7Validator(runbook_schema(VERBS)).validate(yaml.safe_load(text))


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_of_the_readme_is_a_runbook(text):
    problems = lint([(text, "README.md")], VERBS, load=load, check_names=CHECKS, known=())

    assert problems == []


def test_the_tables_of_the_readme_name_every_key():
    assert table("The top of a file") == list(keys_of(FileKeys))
    assert table("Keys of every step") == list(COMMON_KEYS)
    assert sorted(table("Verbs")) == sorted([*VERBS, "use"])
    assert "Keys of `use`: `use`, `with`, `id`, `nodes`, `when`" in README
    assert keys_of(UseKeys) == ("use", "with", "id", "nodes", "when")


def test_the_readme_says_the_defaults():
    usual = CommonKeys()

    assert (usual.gate.kind, usual.on_fail, usual.retry.times) == ("all", "abort", 1)
    assert plan_of(book("  - run: w\n")).steps[0].effect == "write"


def test_every_file_begins_with_what_it_is_for():
    assert all(load(name)[0].startswith("# ") for name in FILES)


def test_what_the_readme_says_of_preflight_is_asked_there():
    section = README.split("## What preflight covers\n")[1]
    named = set(re.findall(r"`([a-z]+\.[a-z0-9-]+)`", section))

    plan = shipped("preflight.yaml")
    asked = {name for step in plan.steps if step.verb == "check" for name in names_of(step)}
    assert named <= asked
    assert len(named) > 20


def names_of(step):
    argument = step.fields["argument"]
    return (argument,) if isinstance(argument, str) else argument
