"""The JSON Schema agrees with the reader about what a runbook is."""

import json

import jsonschema
import pytest
import yaml

from recovery.errors import InputError
from recovery.plan import read_runbook, runbook_schema
from recovery.plan.keys import COMMON_KEYS
from tests.plan.verbs import VERBS, book

SCHEMA = runbook_schema(VERBS)
FITS = jsonschema.Draft7Validator(SCHEMA)


def test_it_is_a_schema_of_draft_7_and_nothing_newer():
    jsonschema.Draft7Validator.check_schema(SCHEMA)

    text = json.dumps(SCHEMA)
    assert not [word for word in ("prefixItems", "$defs", "discriminator") if word in text]


def test_every_step_knows_its_verbs_keys_and_those_of_every_step():
    mesh = SCHEMA["definitions"]["mesh"]

    assert set(mesh["properties"]) == {"mesh", "size", "only", "levels", *COMMON_KEYS}
    assert mesh["required"] == ["mesh"]
    assert mesh["properties"]["mesh"]["description"] == "the verb mesh"


def test_every_key_says_what_it_means():
    lacking = [key for key in COMMON_KEYS if not SCHEMA["definitions"][f"key-{key}"]["description"]]

    assert lacking == []


GOOD = [
    "  - check: gpu.count\n    gate: 4\n",
    '  - check: [gpu.count]\n    gate: "{{ ready }}"\n    retry: {times: 3, on: [lost]}\n',
    '  - mesh: all_reduce\n    levels: "{{ deep }}"\n    timeout: "{{ limit }}"\n',
    "  - run: w\n    on_fail:\n      - reboot: null\n    batch: [1, 10%]\n    expect: [a, b]\n",
    "  - use: x.yaml\n    with: {a: 1}\n",
]
BAD = [
    "  - chek: gpu.count\n",
    "  - run: w\n    check: gpu.count\n",
    "  - run: w\n    timeout: 60\n",
    "  - run: w\n    timeout: 60 s\n",
    "  - run: w\n    retires: 3\n",
    "  - run: w\n    size: 8G\n",
    "  - run: w\n    on_fail: ignore\n",
    "  - run: w\n    on_fail:\n      - rnu: w\n",
    "  - run: w\n    empty: true\n",
    "  - use: x.yaml\n    gate: any\n",
]


@pytest.mark.parametrize("steps", GOOD)
def test_what_the_reader_takes_fits_the_schema(steps):
    read_runbook(book(steps), "book.yaml", VERBS)

    FITS.validate(yaml.safe_load(book(steps)))  # YAML 1.1, as editors read it


@pytest.mark.parametrize("steps", BAD)
def test_what_the_schema_refuses_the_reader_refuses_too(steps):
    with pytest.raises(InputError):
        read_runbook(book(steps), "book.yaml", VERBS)

    assert not FITS.is_valid(yaml.safe_load(book(steps)))


def test_a_file_has_one_name():
    steps = {"steps": [{"run": "w"}]}

    assert FITS.is_valid({"runbook": "a", **steps})
    assert FITS.is_valid({"fragment": "a", **steps})
    assert not FITS.is_valid({"runbook": "a", "fragment": "a", **steps})
    assert not FITS.is_valid(steps)
