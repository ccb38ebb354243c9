"""The keys of a runbook file and of a step, as pydantic models: strict, nothing extra.

The same models read a file twice: as it is written, where a value may still be a template, and
after rendering, where it may not (the validation context ``rendered`` says so).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from recovery.model.runbook import Effect, Gate, OnFail, Rerun, Retry
from recovery.plan.grammar import (
    GrammarError,
    parse_batch,
    parse_duration,
    parse_gate,
    parse_most,
    parse_retry,
    parse_word,
)
from recovery.plan.template import is_template
from recovery.registry import did_you_mean

TEMPLATE_SCHEMA = {"type": "string", "pattern": r"\{[{%]"}
_DURATION_SCHEMA = {"type": "string", "pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+$|\{[{%]"}
PARSE_WORDS = ("lines", "json", "csv", "kv")


def _grammar(parse: Callable[[Any], Any], *, templates: bool = True) -> BeforeValidator:
    """A validator that takes a template as it stands, unless all is rendered already."""

    def read(raw: Any, info: ValidationInfo) -> Any:
        rendered = bool(info.context and info.context.get("rendered"))
        if templates and not rendered and is_template(raw):
            return raw
        try:
            return parse(raw)
        except GrammarError as error:
            raise PydanticCustomError(
                "grammar", "{said}", {"said": error.message, "remedy": error.remedy}
            ) from error

    return BeforeValidator(read)


def _positive_duration(raw: Any) -> float:
    seconds = parse_duration(raw)
    if seconds <= 0:
        raise GrammarError(f"{raw} leaves no time", "write 1s or more")
    return seconds


def _whole(raw: Any) -> int:
    if isinstance(raw, bool) or not re.fullmatch(r"[1-9][0-9]*", str(raw)):
        raise GrammarError(f"{raw!r} is not a number from 1 up", "write a whole number, as 16")
    return int(raw)


def _flag(raw: Any) -> bool:
    if not isinstance(raw, bool):
        raise GrammarError(f"{raw!r} is not true or false", "write true or false")
    return raw


def _text(raw: Any) -> str:
    if not isinstance(raw, str) or not raw.strip():
        raise GrammarError(f"{raw!r} is not text", "write a text, in quotes where YAML needs them")
    return raw


def _texts(raw: Any) -> tuple[str, ...]:
    return tuple(_text(one) for one in (raw if isinstance(raw, list) else [raw]))


def _identifier(raw: Any) -> str:
    if not isinstance(raw, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", raw):
        raise GrammarError(
            f"{raw!r} is not a name", "begin with a letter, then letters, digits, . _ -"
        )
    return raw


def _parse_kind(raw: Any) -> str:
    if isinstance(raw, str) and raw.startswith("regex:"):
        try:
            re.compile(raw.removeprefix("regex:"))
        except re.error as error:
            raise GrammarError(f"not a regular expression: {error}", "mend the pattern") from error
        return raw
    if raw in PARSE_WORDS:
        return str(raw)
    words = (*PARSE_WORDS, "regex:PATTERN")
    raise GrammarError(
        f"{raw!r} is not a way to parse{did_you_mean(str(raw), words)}",
        f"one of: {', '.join(words)}",
    )


def _variables(raw: Any) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise GrammarError(f"{raw!r} is not a mapping", "write name: value, one a line")
    for name in raw:
        if not isinstance(name, str) or not name.isidentifier():
            raise GrammarError(
                f"{name!r} is not a name for a variable", "use letters, digits and _"
            )
    return dict(raw)


def _environment(raw: Any) -> dict[str, str]:
    named = _variables(raw)
    wrong = [n for n, v in named.items() if isinstance(v, (dict, list, bool)) or v is None]
    if wrong:
        raise GrammarError(
            f"the value of {wrong[0]} is not text", f'write {wrong[0]}: "..." in quotes'
        )
    return {name: str(value) for name, value in named.items()}


def _saves(raw: Any) -> dict[str, str]:
    named = _variables(raw)
    wrong = [name for name, value in named.items() if not isinstance(value, str)]
    if wrong:
        raise GrammarError(
            f"{wrong[0]} takes an expression, not {named[wrong[0]]!r}",
            "write NAME: what to take of the result, as step: last_complete",
        )
    return named


def _on_fail(raw: Any) -> Any:
    return raw if isinstance(raw, list) else parse_word(OnFail, raw, "what a failing node does")


def _empty(raw: Any) -> bool:
    if raw != "ok":
        raise GrammarError(f"{raw!r} is not a word for empty", "write empty: ok, or leave it out")
    return True


def _effect(raw: Any) -> Effect:
    return parse_word(Effect, raw, "an effect")


def _rerun(raw: Any) -> Rerun:
    return parse_word(Rerun, raw, "a way to rerun")


def _words(*words: str) -> WithJsonSchema:
    return WithJsonSchema({"enum": list(words)})


_TEXTS = WithJsonSchema(
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
)
_COUNT = {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "minLength": 1}]}

Name = Annotated[str, _grammar(_identifier, templates=False), WithJsonSchema({"type": "string"})]
Text = Annotated[str, _grammar(_text), WithJsonSchema({"type": "string", "minLength": 1})]
Expression = Annotated[str, _grammar(_text, templates=False), WithJsonSchema({"type": "string"})]
Expressions = Annotated[tuple[str, ...], _grammar(_texts, templates=False), _TEXTS]
Texts = Annotated[tuple[str, ...], _grammar(_texts, templates=False), _TEXTS]
Duration = Annotated[float | str, _grammar(_positive_duration), WithJsonSchema(_DURATION_SCHEMA)]
Whole = Annotated[int | str, _grammar(_whole), WithJsonSchema(_COUNT)]
Flag = Annotated[bool, _grammar(_flag, templates=False), WithJsonSchema({"type": "boolean"})]
Variables = Annotated[
    dict[str, Any], _grammar(_variables, templates=False), WithJsonSchema({"type": "object"})
]


class _Keys(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True
    )


Most = Annotated[str, _grammar(parse_most), WithJsonSchema(_COUNT)]


class LimitKeys(_Keys):
    """Limits of the whole run."""

    nodes_at_once: Whole = Field(default=256, description="most nodes worked on at once")
    run: Duration = Field(default=4 * 3600.0, description="most time for the whole run, as 4h")
    disrupt: Most = Field(
        default="", description="most nodes switched, rebooted or reset by the run, as 4 or 10%"
    )
    disrupt_per_rack: Most = Field(default="", description="the same, of one rack")
    disrupt_per_hour: Most = Field(
        default="", description="the same, by all runs of the cluster in the last hour"
    )
    drain: Most = Field(default="", description="most nodes drained or cordoned by the run")
    attempts: Most = Field(
        default="", description="how often one node is switched, rebooted or reset in a week"
    )


class FileKeys(_Keys):
    """The keys at the top of a runbook, or of a fragment that others `use`."""

    runbook: Name | None = Field(default=None, description="the runbook's name")
    fragment: Name | None = Field(
        default=None, description="instead of runbook: a part that others `use`"
    )
    about: Text = Field(default="", description="one sentence: what it is for")
    nodes: Text = Field(default="", description="the default nodes of every step")
    vars: Variables = Field(default_factory=dict, description="variables and their defaults")
    limits: LimitKeys = Field(default_factory=LimitKeys, description="limits of the whole run")
    steps: list[Any] = Field(description="the steps, in order", min_length=1)
    finally_: list[Any] = Field(
        default_factory=list, alias="finally", description="steps that run in any case, at the end"
    )


class CommonKeys(_Keys):
    """The keys that every step may have beside its verb's own."""

    id: Name | None = Field(default=None, description="the step's name (default: verb and number)")
    nodes: Text | None = Field(default=None, description="which nodes; head: the first still in")
    when: Expression = Field(default="", description="skip the step unless this expression is true")
    at_once: Whole = Field(default=0, description="most nodes of this step at once")
    batch: Annotated[
        tuple[str, ...] | str,
        _grammar(parse_batch),
        WithJsonSchema({"type": "array", "items": _COUNT, "minItems": 1}),
    ] = Field(default=(), description="nodes in batches; how many are done after each")
    timeout: Duration | None = Field(default=None, description="time limit, as 60s or 10m")
    retry: Annotated[
        Retry | str,
        _grammar(parse_retry),
        WithJsonSchema({"anyOf": [{"type": ["string", "integer"]}, {"type": "object"}]}),
    ] = Field(default=Retry(), description="attempts, back-off and endings: 3, 5s..60s on lost")
    parse: Annotated[
        str,
        _grammar(_parse_kind, templates=False),
        WithJsonSchema({"type": "string", "pattern": "^(lines|json|csv|kv|regex:.*)$"}),
    ] = Field(default="", description="how to read standard output: lines, json, csv, kv, regex:X")
    expect: Expressions = Field(
        default=(), description="expressions that must be true of the result on each node"
    )
    agree: Expression = Field(default="", description="an expression that must be equal on all")
    gate: Annotated[
        Gate | str,
        _grammar(parse_gate),
        WithJsonSchema({"type": ["string", "integer"]}),
    ] = Field(default=Gate(), description="how many must pass: all, any, N, N%, all but N")
    on_fail: Annotated[
        OnFail | list[Any],
        _grammar(_on_fail, templates=False),
        WithJsonSchema(
            {
                "anyOf": [
                    {"enum": [word.value for word in OnFail]},
                    {"type": "array", "items": {"type": "object"}, "minItems": 1},
                ]
            }
        ),
    ] = Field(default=OnFail.ABORT, description="what a failing node does, or steps to run then")
    save: Annotated[
        dict[str, str],
        _grammar(_saves, templates=False),
        WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}}),
    ] = Field(default_factory=dict, description="values for later steps, NAME: EXPRESSION")
    keep: Texts = Field(default=(), description="files on the node to keep as evidence")
    env: Annotated[
        dict[str, str],
        _grammar(_environment, templates=False),
        WithJsonSchema({"type": "object", "additionalProperties": {"type": ["string", "number"]}}),
    ] = Field(default_factory=dict, description="environment of the commands; secrets go here")
    sudo: Flag = Field(default=False, description="run as root, by sudo -n")
    good_for: Duration | None = Field(
        default=None, description="how long a pass counts when a run is resumed, as 1h"
    )
    effect: Annotated[
        Effect | None,
        _grammar(_effect, templates=False),
        _words(*(word.value for word in Effect)),
    ] = Field(default=None, description="what it does to a node: read, write, disruptive")
    rerun: Annotated[
        Rerun | None, _grammar(_rerun, templates=False), _words(*(word.value for word in Rerun))
    ] = Field(default=None, description="whether it may run again when its end is not known")
    detach: Flag = Field(default=False, description="leave it running on the node")
    empty: Annotated[bool, _grammar(_empty, templates=False), _words("ok")] = Field(
        default=False, description="ok: no nodes at all is fine"
    )


class UseKeys(_Keys):
    """The keys of a `use` step: another file's steps, taken in here."""

    use: Expression = Field(description="the file whose steps are taken in, as shared/x.yaml")
    with_: Variables = Field(
        default_factory=dict, alias="with", description="values for the variables of that file"
    )
    id: Name | None = Field(default=None, description="put before the ids of the steps taken in")
    nodes: Text | None = Field(default=None, description="default nodes of the steps taken in")
    when: Expression = Field(default="", description="put before the when of each step taken in")


COMMON_KEYS = tuple(CommonKeys.model_fields)


@dataclass(frozen=True, slots=True)
class Fault:
    """What pydantic refused: the path inside the value, the message, the remedy."""

    path: tuple[str | int, ...]
    message: str
    remedy: str


def keys_of(model: type[BaseModel], path: tuple[str | int, ...] = ()) -> tuple[str, ...]:
    """The keys that may stand in a model, or in the one that is nested at ``path``."""
    for part in path:
        nested = next((f for n, f in model.model_fields.items() if part in (n, f.alias)), None)
        if nested is None or not isinstance(nested.annotation, type):
            break
        if issubclass(nested.annotation, BaseModel):
            model = nested.annotation
    return tuple(f.alias or n for n, f in model.model_fields.items())


def faults_of(error: ValidationError, model: type[BaseModel]) -> list[Fault]:
    """The faults of a validation in our words, one for each place."""
    by_path: dict[tuple[str | int, ...], Fault] = {}
    for one in error.errors(include_url=False):
        fault = _fault(one, keys_of(model, one["loc"][:-1]))
        by_path.setdefault(fault.path, fault)
    return list(by_path.values())


def _fault(one: Mapping[str, Any], known: tuple[str, ...]) -> Fault:
    path = tuple(one["loc"])
    key = str(path[-1]) if path else ""
    if one["type"] == "extra_forbidden":
        return Fault(
            path, f"is not a key here{did_you_mean(key, known)}", f"one of: {', '.join(known)}"
        )
    if one["type"] == "missing":
        return Fault(path, "is missing", f"add {key}:")
    if one["type"] == "grammar":
        return Fault(path, f"{one['ctx']['said']}", one["ctx"]["remedy"])
    inner = one.get("ctx", {}).get("error")
    if isinstance(inner, GrammarError):
        return Fault(path, inner.message, inner.remedy)
    said = str(one["msg"]).removeprefix("Value error, ")
    shown = f" ({one['input']!r:.60})" if one["input"] is not None else ""
    return Fault(path, said[:1].lower() + said[1:] + shown, "see runbooks/README.md for its form")
