"""Shelves: what is on them, and that only what is asked for is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

from recovery.model.check import Check
from recovery.model.kind import Verb
from recovery.registry import Shelf, collect

PROGRAM = """
import sys
from recovery.model.kind import Verb
from recovery.registry import Shelf
verbs = Shelf("recovery.steps", Verb, one_each=True)
assert "mesh" in list(verbs) and verbs["run"].name == "run"
print(*sorted(name for name in sys.modules if name.startswith("recovery.steps.")))
"""


def test_the_names_of_the_verbs_are_those_of_their_modules() -> None:
    verbs = Shelf("recovery.steps", Verb, one_each=True)

    assert list(verbs) == list(collect("recovery.steps", Verb))
    assert all(verbs[name].name == name for name in verbs)
    assert len(verbs) == len(list(verbs))


def test_a_check_is_on_its_shelf_and_a_stranger_is_not() -> None:
    checks = Shelf("recovery.checks", Check)

    assert "gpu.count" in checks
    assert "gpu.cuont" not in checks
    assert "gpu.count" in list(checks)
    with pytest.raises(KeyError):
        checks["gpu.cuont"]


def test_naming_the_verbs_and_taking_one_imports_that_one_alone() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)

    assert done.stdout.split() == ["recovery.steps.run"], done.stderr
