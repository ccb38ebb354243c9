"""Runbook text -> `Runbook`: every key known, every value of its form, all problems at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from recovery.document import Document, read_yaml
from recovery.errors import TemplateError
from recovery.model.kind import Verb
from recovery.model.runbook import Place
from recovery.plan.keys import COMMON_KEYS, CommonKeys, FileKeys, LimitKeys, UseKeys, faults_of
from recovery.plan.problems import Problem, dotted, problem, refuse
from recovery.plan.template import names_in, names_in_expression
from recovery.registry import did_you_mean

Verbs = Mapping[str, Verb[Any]]
USE = "use"
HEAD = "head"
_EXPRESSIONS = ("when", "expect", "agree", "save")


@dataclass(frozen=True, slots=True)
class StepSource:
    """A step as it is written: ``own`` are its verb's keys, ``common`` those of every step."""

    verb: str
    argument: Any
    own: Mapping[str, Any]
    common: Mapping[str, Any]
    document: Document
    path: tuple[str | int, ...]
    on_fail_steps: tuple[StepSource, ...] = ()

    def place(self, *keys: str | int) -> Place:
        """Where the step, or a key of it, is written."""
        return self.document.place(*self.path, *keys)

    def told(self, message: str, remedy: str, *keys: str | int) -> Problem:
        """A problem of this step, or of the value under ``keys``."""
        path = dotted((*self.path, *keys))
        return problem(self.place(*keys), f"{path}: {message}", remedy)


@dataclass(frozen=True, slots=True)
class Runbook:
    """A runbook or fragment as it is written, all of it known to be well formed."""

    name: str
    about: str
    fragment: bool
    nodes: str
    variables: Mapping[str, Any]
    limits: LimitKeys
    document: Document
    steps: tuple[StepSource, ...] = ()
    finally_: tuple[StepSource, ...] = ()


@dataclass(slots=True)
class _Reading:
    """One reading: the document, the verbs, and the problems found so far."""

    document: Document
    verbs: Verbs
    problems: list[Problem] = field(default_factory=list)

    def tell(self, path: tuple[str | int, ...], message: str, remedy: str) -> None:
        place = self.document.place(*path)
        self.problems.append(problem(place, f"{dotted(path)}{message}", remedy))


def read_runbook(text: str, source: str, verbs: Verbs) -> Runbook:
    """Reads a runbook or a fragment.

    Raises:
        RunbookError: everything that is wrong with it, each with its place and remedy.
        DocumentError: not YAML as we read it.
    """
    runbook, problems = find_problems(text, source, verbs)
    refuse(problems)
    assert runbook is not None  # noqa: S101 - no problem means that it was read
    return runbook


def find_problems(text: str, source: str, verbs: Verbs) -> tuple[Runbook | None, list[Problem]]:
    """The runbook, unless it cannot be read at all, and what is wrong with it.

    Raises:
        DocumentError: not YAML as we read it.
    """
    document = read_yaml(text, source)
    reading = _Reading(document, verbs)
    if not isinstance(document.value, dict):
        remedy = "begin with runbook: NAME, then steps:"
        return None, [problem(document.place(), "this is not a runbook", remedy)]
    if not _only_text_keys(reading, document.value, ()):
        return None, reading.problems
    keys = _validated(reading, FileKeys, document.value, ())
    written = {key: document.value.get(key) for key in ("steps", "finally")}
    steps = {
        key: _steps(reading, value if isinstance(value, list) else [], (key,))
        for key, value in written.items()
    }
    if keys is None:
        return None, reading.problems
    _name_rules(reading, keys)
    runbook = Runbook(
        name=keys.runbook or keys.fragment or "",
        about=keys.about,
        fragment=keys.runbook is None,
        nodes=keys.nodes,
        variables=keys.vars,
        limits=keys.limits,
        document=document,
        steps=steps["steps"],
        finally_=steps["finally"],
    )
    return runbook, reading.problems


def _name_rules(reading: _Reading, keys: FileKeys) -> None:
    if (keys.runbook is None) == (keys.fragment is None):
        said = "two names" if keys.runbook else "no name"
        reading.tell((), f"this has {said}", "begin with runbook: NAME, or fragment: NAME")
    if keys.fragment and keys.finally_:
        reading.tell(
            ("finally",), ": a fragment ends nothing", "put it into the runbook that uses it"
        )


def _only_text_keys(reading: _Reading, value: Any, path: tuple[str | int, ...]) -> bool:
    """Claims that all keys are text; a number or a word like true as a key is a slip."""
    before = len(reading.problems)
    inside = enumerate(value) if isinstance(value, list) else ()
    for key, one in value.items() if isinstance(value, dict) else inside:
        if isinstance(value, dict) and not isinstance(key, str):
            reading.tell((*path, key), ": this key is not text", f'write "{key}" in quotes')
        _only_text_keys(reading, one, (*path, key))
    return len(reading.problems) == before


_Model = Any  # one of the models of `keys`


def _validated(
    reading: _Reading, model: type[BaseModel], raw: Any, path: tuple[str | int, ...]
) -> _Model | None:
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        for fault in faults_of(error, model):
            where = (*path, *fault.path)
            glue = " " if fault.message.startswith("is ") else ": "
            reading.tell(where, f"{glue}{fault.message}", fault.remedy)
        return None


def _steps(reading: _Reading, raw: list[Any], path: tuple[str | int, ...]) -> tuple[Any, ...]:
    found = [_step(reading, one, (*path, i)) for i, one in enumerate(raw)]
    return tuple(step for step in found if step is not None)


def _step(reading: _Reading, raw: Any, path: tuple[str | int, ...]) -> StepSource | None:
    if not isinstance(raw, dict):
        reading.tell(path, ": a step is a mapping", "begin with its verb, as - check: [gpu.count]")
        return None
    verb = _verb_of(reading, raw, path)
    if verb is None:
        return None
    if verb == USE:
        return _use(reading, raw, path)
    own_keys = tuple(n for n in reading.verbs[verb].params.model_fields if n != "argument")
    common = {key: value for key, value in raw.items() if key in COMMON_KEYS}
    own = {key: value for key, value in raw.items() if key in own_keys}
    for key in raw:
        if key != verb and key not in common and key not in own:
            _unknown_key(reading, verb, key, own_keys, path)
    keys = _validated(reading, CommonKeys, common, path)
    nested = common.get("on_fail") if keys is not None and keys.on_fail is not None else None
    repairs = _steps(reading, nested, (*path, "on_fail")) if isinstance(nested, list) else ()
    step = StepSource(verb, raw[verb], own, common, reading.document, path, repairs)
    if keys is not None:
        reading.problems += _step_rules(step, keys)
    reading.problems += list(_broken_templates(step))
    return step


def _verb_of(reading: _Reading, raw: dict[str, Any], path: tuple[str | int, ...]) -> str | None:
    known = (*reading.verbs, USE)
    found = [key for key in raw if key in known]
    if len(found) == 1:
        return found[0]
    if found:
        message = f": two verbs in one step: {' and '.join(found)}"
        reading.tell((*path, found[1]), message, "make each a step of its own, with its own dash")
        return None
    strange = [key for key in raw if key not in COMMON_KEYS]
    near = next((n for key in strange if (n := did_you_mean(key, known))), "")
    shown = f": {strange[0]!r} is not a verb{near}" if strange else " has no verb"
    reading.tell(
        (*path, strange[0]) if strange else path, shown, f"one of: {', '.join(sorted(known))}"
    )
    return None


def _unknown_key(
    reading: _Reading, verb: str, key: str, own_keys: tuple[str, ...], path: tuple[str | int, ...]
) -> None:
    known = (*COMMON_KEYS, *own_keys)
    near = did_you_mean(key, known)
    owners = [name for name, one in reading.verbs.items() if key in one.params.model_fields]
    if owners and not near:
        reading.tell(
            (*path, key), f" is a key of {owners[0]}, not of {verb}", "take it out of this step"
        )
        return
    mine = f"keys of {verb}: {', '.join(own_keys)}; " if own_keys else ""
    reading.tell(
        (*path, key),
        f" is not a key here{near}",
        f"{mine}keys of every step: {', '.join(COMMON_KEYS)}",
    )


def _use(reading: _Reading, raw: dict[str, Any], path: tuple[str | int, ...]) -> StepSource | None:
    keys = _validated(reading, UseKeys, raw, path)
    if keys is None:
        return None
    step = StepSource(
        USE,
        keys.use,
        {"with": keys.with_},
        {key: raw[key] for key in ("id", "nodes", "when") if key in raw},
        reading.document,
        path,
    )
    reading.problems += list(_broken_templates(step))
    return step


def _step_rules(step: StepSource, keys: CommonKeys) -> Iterator[Problem]:
    """What `parse` gives, and what the expressions of the step take, must be the same."""
    reads = {"lines": "lines", "json": "json", "csv": "rows", "kv": "kv"}
    gives = reads.get(keys.parse, "match") if keys.parse else ""
    others = {*reads.values(), "match"} - {gives}
    for key in ("expect", "agree", "save"):
        wrong = sorted(_names(step, key) & others) if gives else []
        if wrong:
            yield step.told(
                f"{wrong[0]} is not read by parse: {keys.parse}; it gives {gives}",
                f"write {gives}, or change parse",
                key,
            )


def expressions_of(step: StepSource, key: str) -> tuple[tuple[tuple[str | int, ...], str], ...]:
    """The bare expressions under a key, each with its path inside the step."""
    raw = step.common.get(key)
    if isinstance(raw, dict):
        return tuple(((key, name), one) for name, one in raw.items() if isinstance(one, str))
    if isinstance(raw, list):
        return tuple(((key, i), one) for i, one in enumerate(raw) if isinstance(one, str))
    return (((key,), raw),) if isinstance(raw, str) else ()


def _names(step: StepSource, key: str) -> set[str]:
    found: set[str] = set()
    for _, expression in expressions_of(step, key):
        try:
            found |= names_in_expression(expression)
        except TemplateError:
            continue  # told by `_broken_templates`
    return found


def _broken_templates(step: StepSource) -> Iterator[Problem]:
    for key in _EXPRESSIONS:
        for path, expression in expressions_of(step, key):
            try:
                names_in_expression(expression)
            except TemplateError as error:
                yield step.told(error.message, error.remedy, *path)
    for path, text in templates_of(step):
        try:
            names_in(text)
        except TemplateError as error:
            yield step.told(error.message, error.remedy, *path)


def templates_of(step: StepSource) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every text of a step that may be a template, with its path inside the step."""
    yield from texts_in(step.argument, (step.verb,))
    for key, value in (*step.own.items(), *step.common.items()):
        if key not in (*_EXPRESSIONS, "on_fail"):
            yield from texts_in(value, (key,))


def texts_in(
    value: Any, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every text inside a value, with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for i, one in enumerate(value):
            yield from texts_in(one, (*path, i))
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from texts_in(one, (*path, key))
