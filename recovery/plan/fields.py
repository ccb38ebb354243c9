"""The fields of a step, rendered and checked by its verb: for a dry run, and when it starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from recovery.errors import TemplateError
from recovery.model.kind import Verb
from recovery.model.runbook import Step
from recovery.plan.keys import Fault, faults_of
from recovery.plan.template import render

ARGUMENT = "argument"
SHELL_LINES = frozenset({"run", "launch", "wait"})
"""Verbs whose argument is a line for a shell."""


class Render(Protocol):
    """How a text is rendered; ``shell`` where it is a line for a shell."""

    def __call__(self, text: str, /, *, shell: bool = False) -> str:
        """The rendered text."""


def render_fields(verb: str, fields: Mapping[str, object], render_text: Render) -> dict[str, Any]:
    """The fields with every text inside them rendered.

    Raises:
        TemplateError: as the rendering.
    """
    shell = verb in SHELL_LINES
    return {
        name: render_text(value, shell=True)  # noqa: S604 - renders, runs nothing
        if shell and name == ARGUMENT and isinstance(value, str)
        else render_inside(value, render_text)
        for name, value in fields.items()
    }


def render_inside(value: object, render_text: Callable[[str], str]) -> Any:
    """A value with every text inside it rendered."""
    if isinstance(value, str):
        return render_text(value)
    if isinstance(value, (list, tuple)):
        return [render_inside(one, render_text) for one in value]
    if isinstance(value, Mapping):
        return {key: render_inside(one, render_text) for key, one in value.items()}
    return value


def params_of(
    verb: Verb[Any], rendered: Mapping[str, object]
) -> tuple[BaseModel | None, list[Fault]]:
    """The verb's own type for its fields, or what is wrong with them."""
    try:
        return verb.params.model_validate(dict(rendered)), []
    except ValidationError as error:
        return None, faults_of(error, verb.params)


def told_of(verb: Verb[Any], params: BaseModel, n_nodes: int) -> str:
    """One line: what the step does, and what that costs on so many nodes."""
    price = verb.price(params, n_nodes)
    return f"{verb.describe(params)} ({price})" if price else verb.describe(params)


def render_step(
    step: Step, verb: Verb[Any], values: Mapping[str, object]
) -> tuple[Step, BaseModel]:
    """The step as it starts: environment, files and words rendered, and the verb's params.

    ``values`` are the plan's variables, what steps saved, ``nodes`` (names still in), ``cluster``,
    ``run`` and ``fold``; secrets have their values in it. Call it on the plan's step, never on
    one that it returned: a value is not a template.

    Raises:
        TemplateError: a name without a value, or a value that does not fit here.
    """
    scope = {"nodes": step.nodes, **values, **step.variables}

    def text(template: str, *, shell: bool = False) -> str:
        return render(template, scope, shell=shell)

    params, faults = params_of(verb, render_fields(step.verb, step.fields, text))
    if params is None:
        key = step.verb if faults[0].path[:1] == (ARGUMENT,) else ".".join(map(str, faults[0].path))
        raise TemplateError(
            f"{step.place}: {step.id}: {key}: {faults[0].message}", remedy=faults[0].remedy
        )
    started = replace(
        step,
        env={name: text(one) for name, one in step.env.items()},
        keep=tuple(text(one) for one in step.keep),
        describe=told_of(verb, params, len(step.nodes)),
        commands=tuple(verb.commands(params)),
    )
    return started, params
