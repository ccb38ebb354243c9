"""JSON Schema of the runbook language, for editors (draft 7: ``definitions``, plain ``$ref``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from recovery.plan.fields import ARGUMENT
from recovery.plan.keys import TEMPLATE_SCHEMA, CommonKeys, FileKeys, UseKeys
from recovery.plan.reader import USE, Verbs

_STEP = {"$ref": "#/definitions/step"}
_STEPS = {"type": "array", "items": _STEP, "minItems": 1}
_DROPPED = ("title", "default")


def runbook_schema(verbs: Verbs) -> dict[str, Any]:
    """The schema of a runbook or fragment file, for these verbs."""
    definitions: dict[str, Any] = {"step": {"oneOf": []}, **_common_definitions()}
    for name, verb in verbs.items():
        definitions["step"]["oneOf"].append({"$ref": f"#/definitions/{name}"})
        definitions[name] = _step_schema(name, verb.about, verb.params)
    definitions["step"]["oneOf"].append({"$ref": f"#/definitions/{USE}"})
    definitions[USE] = {**_object(_properties(UseKeys)), "required": [USE]}
    top = _properties(FileKeys)
    top["steps"] = {**_STEPS, "description": "the steps, in order"}
    top["finally"] = {
        **_STEPS,
        "minItems": 0,
        "description": "steps that run in any case, at the end",
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "a runbook of recover",
        **_object(top),
        "required": ["steps"],
        "oneOf": [{"required": ["runbook"]}, {"required": ["fragment"]}],
        "definitions": definitions,
    }


def _common_definitions() -> dict[str, Any]:
    common = _properties(CommonKeys)
    word, _ = common["on_fail"]["anyOf"][0]["anyOf"]
    common["on_fail"]["anyOf"] = [word, _STEPS]
    return {f"key-{key}": one for key, one in common.items()}


def _step_schema(name: str, about: str, params: type[BaseModel]) -> dict[str, Any]:
    own = _properties(params)
    argument = own.pop(ARGUMENT, {})
    common = {key: {"$ref": f"#/definitions/key-{key}"} for key in CommonKeys.model_fields}
    return {
        **_object({name: {**argument, "description": about}, **common, **own}),
        "required": [name],
    }


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": dict(properties)}


def _properties(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(by_alias=True)
    nested = schema.get("$defs", {})
    return {name: _or_template(_draft7(one, nested)) for name, one in schema["properties"].items()}


def _or_template(schema: dict[str, Any]) -> dict[str, Any]:
    """Whatever a value is, a template may stand for it."""
    plain_text = schema.get("type") == "string" and "enum" not in schema and "const" not in schema
    if plain_text or schema.get("type") == "object" or not schema:
        return {k: v for k, v in schema.items() if k != "format"}
    about = {"description": schema["description"]} if "description" in schema else {}
    inner = {k: v for k, v in schema.items() if k != "description"}
    # A list of one word may be written as the word.
    text = {"type": "string"} if schema.get("type") == "array" else TEMPLATE_SCHEMA
    return {"anyOf": [inner, text], **about}


def _draft7(schema: Any, nested: Mapping[str, Any]) -> Any:
    """The schema without what draft 7 does not know; models inside it are written out."""
    if isinstance(schema, list):
        return [_draft7(one, nested) for one in schema]
    if not isinstance(schema, dict):
        return schema
    reference = str(schema.get("$ref", ""))
    if reference.startswith("#/$defs/"):
        rest = {k: v for k, v in schema.items() if k != "$ref"}
        return _draft7({**nested[reference.rpartition("/")[2]], **rest}, nested)
    if "prefixItems" in schema:
        schema = {**schema, "items": schema["prefixItems"]}
    return {
        key: _draft7(one, nested)
        for key, one in schema.items()
        if key not in ("prefixItems", "discriminator")
        and not (key in _DROPPED and not isinstance(one, dict))
    }
