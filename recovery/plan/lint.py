"""All that can be said about a runbook before it meets an inventory."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from recovery.errors import InputError
from recovery.plan.bind import Ground
from recovery.plan.builder import Binder
from recovery.plan.expand import Load, expand
from recovery.plan.problems import Problem, problem
from recovery.plan.reader import Runbook, Verbs, find_problems
from recovery.plan.scope import Scope, global_scope


def lint(
    texts: Iterable[tuple[str, str]],
    verbs: Verbs,
    *,
    load: Load,
    check_names: Collection[str],
    known: Collection[str],
) -> list[Problem]:
    """What is wrong with runbooks and fragments, given as (text, source), in order of place.

    ``known`` are names of variables that some inventory sets.
    """
    problems: list[Problem] = []
    for text, source in texts:
        try:
            runbook, found = find_problems(text, source, verbs)
        except InputError as error:
            found, runbook = [_unread(error, source)], None
        problems += found
        if runbook is not None and not found:
            problems += _in_use(runbook, Ground(verbs, check_names, None), load, known)
    return sorted(set(problems))


def _unread(error: InputError, source: str) -> Problem:
    """A document's error names its place first; it is taken apart again for sorting."""
    place, _, message = error.message.partition(": ")
    parts = place.rsplit(":", 2)
    if message and len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit():
        return Problem(parts[0], int(parts[1]), int(parts[2]), message, error.remedy)
    return Problem(source, 1, 1, error.message, error.remedy)


def _in_use(runbook: Runbook, ground: Ground, load: Load, known: Collection[str]) -> list[Problem]:
    expansion = expand(runbook, ground.verbs, load)
    scope, problems = global_scope(expansion.declared, {}, {})
    binder = Binder(ground, _of_any_cluster(scope, known))
    binder.bind_all(expansion)
    problems += expansion.problems + binder.problems
    if not runbook.fragment and not runbook.nodes:
        message, remedy = "this says no nodes", 'add nodes: "@GROUP", or a node expression'
        problems.append(problem(runbook.document.place(), message, remedy))
    return problems


def _of_any_cluster(scope: Scope, known: Collection[str]) -> Scope:
    """The scope with a stand-in for what an inventory or the operator gives."""
    given = {name: "inventory" for name in known if name not in scope.values}
    asked = {name: "given" for name, value in scope.values.items() if value is None}
    return scope.with_values({"cluster": "any", **given, **asked})
