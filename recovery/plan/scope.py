"""What names mean: runbook variables < inventory variables < overrides, and values known later."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from recovery.document import Document, read_scalar
from recovery.errors import TemplateError
from recovery.plan.fields import render_inside
from recovery.plan.problems import Problem, problem
from recovery.plan.reader import texts_in
from recovery.plan.template import (
    FOLD,
    evaluate,
    is_template,
    names_in,
    names_in_expression,
    render_with_unknowns,
)
from recovery.registry import did_you_mean

RUN_ID = "run"
RESERVED = ("nodes", "cluster", RUN_ID, FOLD)
"""Names that every template knows: this step's nodes, the cluster, the run's id, the folding."""

_LOOKS_SECRET = re.compile(
    r"(?i)(passw|secret|token|passphrase|private_key|credential)(?!.*_(file|env|command)$)|_pass$"
    r"|^(notify|metrics_pushgateway)$"  # addresses that hold tokens
)


@dataclass(frozen=True, slots=True)
class Scope:
    """Names and values at one point of a runbook.

    ``later`` are names known only while the run goes on, with what a dry run shows for them.
    ``ahead`` are names that a step further down saves, with that step's name.
    """

    values: Mapping[str, Any]
    later: Mapping[str, str] = field(default_factory=dict)
    ahead: Mapping[str, str] = field(default_factory=dict)
    secrets: frozenset[str] = frozenset()
    templates_elsewhere: frozenset[str] = frozenset()

    def with_values(self, values: Mapping[str, Any]) -> Scope:
        """The scope with more values; they hide others of the same name."""
        return replace(self, values={**self.values, **values}) if values else self

    def render(self, text: str, *, shell: bool = False) -> str:
        """The text as a dry run shows it.

        Raises:
            TemplateError: a name that is not there, or not allowed here.
        """
        self.check(names_in(text))
        self.refuse_secrets(names_in(text))
        return render_with_unknowns(text, self.values, self.later, shell=shell)

    def render_now(self, text: str) -> str:
        """The text, where nothing of it may be known later only.

        Raises:
            TemplateError: as `render`, and a name that a step saves.
        """
        for name in sorted(names_in(text) & set(self.later)):
            raise TemplateError(
                f"{name!r} is {self.later[name].strip('<>')}, and is needed before the run",
                remedy="use a variable here",
            )
        return self.render(text)

    def evaluate(self, expression: str) -> None:
        """Tries a bare expression, as far as its names are known.

        Raises:
            TemplateError: a name that is not there, or an expression that cannot be evaluated.
        """
        names = names_in_expression(expression)
        self.check(names, may_be_none=True)
        self.refuse_secrets(names)
        if not names & set(self.later):
            evaluate(expression, self.values)

    def check(self, names: Iterable[str], *, may_be_none: bool = False) -> None:
        """Refuses names that have no value here.

        Raises:
            TemplateError: such a name.
        """
        for name in sorted(names):
            if name in self.values or name in self.later:
                if name in self.values and self.values[name] is None and not may_be_none:
                    raise TemplateError(
                        f"variable {name!r} has no value", remedy=f"give it: -e {name}=VALUE"
                    )
                continue
            raise self._missing(name)

    def _missing(self, name: str) -> TemplateError:
        if name in self.ahead:
            return TemplateError(
                f"{name!r} is saved only later, by {self.ahead[name]}",
                remedy="move this step behind it",
            )
        if name in self.templates_elsewhere:
            return TemplateError(
                f"variable {name!r} of the inventory is itself a template, which is not rendered",
                remedy="write its value out, or set it under vars: of the runbook",
            )
        known = sorted({*self.values, *self.later})
        return TemplateError(
            f"{name!r} is not a variable{did_you_mean(name, known)}",
            remedy="define it under vars:, or with -e NAME=VALUE",
        )

    def refuse_secrets(self, names: Iterable[str]) -> None:
        """Keeps secrets out of everything that is shown, logged or put into a command line.

        Raises:
            TemplateError: one of the names is a secret.
        """
        for name in sorted(self.secrets & set(names)):
            raise TemplateError(
                f"{name!r} is a secret and may stand in env: only",
                remedy=f'write env: {{NAME: "{{{{ {name} }}}}"}} and use $NAME in the command',
            )


@dataclass(frozen=True, slots=True)
class Declared:
    """A variable under ``vars:`` of a runbook or fragment, and where that is."""

    value: Any
    document: Document

    def told(self, name: str, message: str, remedy: str) -> Problem:
        """A problem of this variable."""
        return problem(self.document.place("vars", name), f"vars.{name}: {message}", remedy)


def global_scope(
    declared: Mapping[str, Declared], inventory: Mapping[str, Any], overrides: Mapping[str, str]
) -> tuple[Scope, list[Problem]]:
    """The variables of a whole runbook, rendered, with what is wrong with them."""
    problems = [
        one.told(
            name,
            "this name has a meaning of its own",
            f"choose another; reserved are {', '.join(RESERVED)}",
        )
        for name, one in declared.items()
        if name in RESERVED
    ]
    given = _given(overrides, declared, inventory, problems)
    secrets = frozenset(
        {n for n, one in declared.items() if is_secret(one.value) and n not in inventory}
        | {n for n, value in inventory.items() if _holds_secret(n, value)}
    )
    elsewhere = frozenset(n for n, v in inventory.items() if n not in given and _templated(v))
    values = {n: v for n, v in inventory.items() if n not in elsewhere | secrets}
    values |= {name: _reference(name, declared, inventory) for name in secrets} | given
    scope = Scope(
        {n: v for n, v in values.items() if n not in RESERVED},
        secrets=secrets,
        templates_elsewhere=elsewhere,
    )
    written = {n: d for n, d in declared.items() if n not in values and n not in elsewhere}
    return _resolved(scope, written, problems), problems


def _given(
    overrides: Mapping[str, str],
    declared: Mapping[str, Declared],
    inventory: Mapping[str, Any],
    problems: list[Problem],
) -> dict[str, Any]:
    known = (*declared, *inventory)
    for name in overrides:
        if name not in known:
            near = did_you_mean(name, known)
            message = f"{name!r} is not a variable of the runbook or the inventory{near}"
            names = ", ".join(sorted(declared)) or "none"
            problems.append(Problem("-e", 1, 1, message, f"variables of the runbook: {names}"))
        elif _looks_secret(name) or (name in declared and is_secret(declared[name].value)):
            message = f"{name!r} is a secret, and a command line is seen by everybody"
            remedy = "put it into the environment variable that its vars: entry names"
            problems.append(Problem("-e", 1, 1, message, remedy))
    return {name: read_scalar(text, f"-e {name}") for name, text in overrides.items()}


def is_secret(value: object) -> bool:
    """Claims that a variable's value is a reference to a secret: ``{secret: env:NAME}``."""
    return isinstance(value, dict) and set(value) == {"secret"}


def _holds_secret(name: str, value: Any) -> bool:
    inside = value.items() if isinstance(value, dict) else ()
    return _looks_secret(name) or is_secret(value) or any(_holds_secret(*one) for one in inside)


def _looks_secret(name: str) -> bool:
    return _LOOKS_SECRET.search(name) is not None


def _reference(
    name: str, declared: Mapping[str, Declared], inventory: Mapping[str, Any]
) -> dict[str, str]:
    value = inventory.get(name, declared[name].value if name in declared else None)
    return dict(value) if is_secret(value) else {"secret": f"inventory:{name}"}


def _templated(value: Any) -> bool:
    return any(is_template(text) for _, text in texts_in(value, ()))


def _resolved(scope: Scope, written: dict[str, Declared], problems: list[Problem]) -> Scope:
    """Renders variables that stand on others, those first on which others stand."""
    waiting = dict(written)
    while waiting:
        ready = {n: d for n, d in waiting.items() if not _needs(d.value) & set(waiting)}
        for name, one in ready.items():
            del waiting[name]
            scope = scope.with_values({name: _value_of(name, one, scope, problems)})
        if not ready:
            problems += [
                one.told(
                    name,
                    "this variable is defined by itself",
                    "write out the value of one in the circle",
                )
                for name, one in sorted(waiting.items())
            ]
            return scope.with_values(dict.fromkeys(waiting, ""))
    return scope


def _value_of(name: str, one: Declared, scope: Scope, problems: list[Problem]) -> Any:
    try:
        return render_inside(one.value, scope.render_now)
    except TemplateError as error:
        problems.append(one.told(name, error.message, error.remedy))
        return ""


def _needs(value: Any) -> set[str]:
    found: set[str] = set()
    for _, text in texts_in(value, ()):
        try:
            found |= names_in(text)
        except TemplateError:
            continue  # told when it is rendered
    return found
