"""`recover schema`: JSON Schema of both kinds of file."""

from __future__ import annotations

import json

import jsonschema
import pytest
import yaml

from tests.cli.places import BOOK, INVENTORY, recover


@pytest.mark.parametrize(("what", "text"), [("runbook", BOOK), ("inventory", INVENTORY)])
def test_it_prints_a_schema_that_a_sound_file_fits(what: str, text: str) -> None:
    schema = json.loads(recover("schema", what).output)

    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.Draft7Validator(schema).validate(yaml.safe_load(text))


def test_other_words_are_refused() -> None:
    assert recover("schema", "profile").exit_code == 2
