"""Templates and expressions: Jinja2, sandboxed, strict, and never guessing a type.

What is not allowed is an error, because the quiet answers of the defaults are dangerous: an
unknown name renders as nothing (``rm -rf /data//*``), a native environment turns ``1e3`` into
a number. Values that a later step saves are `Unknown` to a dry run and shown as such.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from functools import lru_cache, wraps
from typing import Any

import jinja2
from jinja2 import meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from recovery.errors import TemplateError
from recovery.plan.shell import MARK, Quoted, Shown, as_line, in_line, quote, settle
from recovery.registry import did_you_mean

FOLD = "fold"
"""The name under which values carry the function that folds node names for people."""

# All that a template of others can raise while it is rendered; our own errors pass through.
_BROKEN = (
    jinja2.TemplateError,
    TypeError,
    ValueError,
    ArithmeticError,
    LookupError,
    AttributeError,
    RecursionError,
)


@jinja2.pass_context
def _fold(context: jinja2.runtime.Context, names: Any) -> str:
    fold = context.get(FOLD)
    listed = (names,) if isinstance(names, str) else tuple(names)
    return str(fold(listed)) if callable(fold) else ", ".join(listed)


# Jinja2 gives generators here, which have no length: `lines | unique | length == 1` must do.
_LAZY = ("batch", "map", "reject", "rejectattr", "select", "selectattr", "slice", "unique")


def _listing(lazy: Callable[..., Any]) -> Callable[..., list[Any]]:
    @wraps(lazy)  # keeps what Jinja2 noted on the function: what it wants as first argument
    def listed(*args: Any, **options: Any) -> list[Any]:
        return list(lazy(*args, **options))

    return listed


def _plain(value: Any) -> str:
    if value is None:
        raise TemplateError("the value is nothing (null)", remedy="give it with -e NAME=VALUE")
    return str(value)


def _environment(finalize: Callable[[Any], str]) -> jinja2.Environment:
    env = ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined,
        finalize=finalize,
        keep_trailing_newline=True,
        autoescape=False,  # nothing here becomes HTML; shells have their own rule
    )
    # A plan must come out the same each time it is made: nothing random, nothing with a memory.
    env.globals = {"range": env.globals["range"]}
    del env.filters["random"]
    env.filters |= {name: _listing(env.filters[name]) for name in _LAZY}
    env.filters["q"] = quote
    env.filters["line"] = as_line
    env.filters["fold"] = _fold
    return env


_TEXT = _environment(_plain)
_LINE = _environment(in_line)


def is_template(value: object) -> bool:
    """Claims that a value is text with template marks in it."""
    return isinstance(value, str) and ("{{" in value or "{%" in value or "{#" in value)


def render(template: str, values: Mapping[str, object], *, shell: bool = False) -> str:
    """The text of a template; with ``shell``, as a part of a shell line.

    Raises:
        TemplateError: a name that is not there, a value that is None, a broken template; in a
            shell line also a value that would not stay one word.
    """
    if not is_template(template):
        return template
    return _rendered(_LINE if shell else _TEXT, template, values, shell=shell)


def _rendered(
    env: jinja2.Environment,
    template: str | nodes.Template,
    values: Mapping[str, object],
    *,
    shell: bool,
) -> str:
    if isinstance(template, str) and MARK in template:
        raise TemplateError("a NUL cannot stand in a template", remedy="take it out")
    try:
        compiled = _compiled(env, template) if isinstance(template, str) else _built(env, template)
        text = compiled.render(values)
    except _BROKEN as error:
        raise _explained(error, values) from error
    return settle(text) if shell else text


@lru_cache(maxsize=4096)
def _compiled(env: jinja2.Environment, template: str) -> jinja2.Template:
    return env.from_string(template)


def _built(env: jinja2.Environment, tree: nodes.Template) -> jinja2.Template:
    return env.from_string(tree)


def _explained(error: Exception, values: Mapping[str, object]) -> TemplateError:
    if isinstance(error, jinja2.exceptions.SecurityError):
        return TemplateError(
            f"not allowed in a template: {error}", remedy="use values and filters only"
        )
    if isinstance(error, jinja2.TemplateSyntaxError):
        return _not_a_template(str(error.message).rstrip("."))
    if isinstance(error, jinja2.UndefinedError):
        return _undefined(str(error.message), values)
    return TemplateError(f"the template cannot be rendered: {error}", remedy="mend the expression")


def _not_a_template(message: str) -> TemplateError:
    kind, _, name = message.partition(" named ")
    known = {"No filter": list(_TEXT.filters), "No test": list(_TEXT.tests)}.get(kind)
    near = did_you_mean(name.strip("'"), known) if known else ""
    said = message[:1].lower() + message[1:]
    return TemplateError(
        f"not a template: {said}{near}", remedy="mend it; the syntax is that of Jinja2"
    )


def _undefined(message: str, values: Mapping[str, object]) -> TemplateError:
    name = message.split("'")[1] if message.endswith("is undefined") and "'" in message else ""
    near = did_you_mean(name, sorted(values)) if name else ""
    return TemplateError(f"{message}{near}", remedy="define it under vars:, or with -e NAME=VALUE")


def evaluate(expression: str, values: Mapping[str, object]) -> object:
    """The value of a bare expression (``when``, ``expect``, ``agree``, ``save``).

    Raises:
        TemplateError: not an expression, or a name in it that is not there.
    """
    try:
        value = _expression(expression)(values)
        if isinstance(value, jinja2.Undefined):
            str(value)  # raises, with the name that is missing
    except _BROKEN as error:
        raise _explained(error, values) from error
    return value


@lru_cache(maxsize=4096)
def _expression(expression: str) -> Callable[..., Any]:
    if is_template(expression):
        raise TemplateError(
            f"{expression!r} is a template, and a bare expression is wanted here",
            remedy="leave the braces out",
        )
    return _TEXT.compile_expression(expression, undefined_to_none=False)


def names_in(template: str) -> frozenset[str]:
    """Names that a template takes from its values.

    Raises:
        TemplateError: a broken template, an unknown filter or test.
    """
    if not is_template(template):
        return frozenset()
    try:
        _compiled(_TEXT, template)
        return frozenset(meta.find_undeclared_variables(_TEXT.parse(template)))
    except _BROKEN as error:
        raise _explained(error, {}) from error


def names_in_expression(expression: str) -> frozenset[str]:
    """Names that a bare expression takes from its values.

    Raises:
        TemplateError: not an expression, an unknown filter or test.
    """
    try:
        _expression(expression)
        return frozenset(meta.find_undeclared_variables(_TEXT.parse("{{ " + expression + " }}")))
    except _BROKEN as error:
        raise _explained(error, {}) from error


def render_with_unknowns(
    template: str,
    values: Mapping[str, object],
    unknown: Mapping[str, str],
    *,
    shell: bool = False,
) -> str:
    """Like `render`, with names whose values are not known yet shown as ``unknown`` says.

    Raises:
        TemplateError: as `render`, for all that can be known now.
    """
    if not names_in(template) & set(unknown):
        return render(template, values, shell=shell)
    env = _LINE if shell else _TEXT
    tree = env.parse(template)
    for output in tree.find_all(nodes.Output):
        output.nodes = [_stand_in(part, unknown) for part in output.nodes]
    if left := meta.find_undeclared_variables(tree) & set(unknown):
        return unknown[min(left)]  # a loop or an if over it: nothing can be shown yet
    return _rendered(env, tree, values, shell=shell)


def _stand_in(part: nodes.Expr, unknown: Mapping[str, str]) -> nodes.Expr:
    late = _names(part) & set(unknown)
    if not late:
        return part
    quoted = isinstance(part, nodes.Filter) and part.name == "q"
    return nodes.Const((Quoted if quoted else Shown)(unknown[min(late)]))


def _names(part: nodes.Node) -> Set[str]:
    found = {name.name for name in part.find_all(nodes.Name)}
    return found | ({part.name} if isinstance(part, nodes.Name) else set())
