"""All that can be said about a runbook before it meets an inventory."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from recovery.errors import InputError
from recovery.plan.bind import Ground
from recovery.plan.builder import Binder
from recovery.plan.expand import Load, expand
from recovery.plan.problems import Problem, problem
from recovery.plan.reader import Runbook, Verbs, find_problems
from recovery.plan.scope import global_scope
from recovery.plan.template import FOLD


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
    missing = {n for n, one in expansion.declared.items() if one.value is None}
    stand_ins = frozenset(missing | (set(known) - set(expansion.declared)))
    scope, problems = global_scope(expansion.declared, dict.fromkeys(stand_ins, "given"), {})
    binder = Binder(
        replace(ground, stand_ins=stand_ins), scope.with_values({"cluster": "any", FOLD: None})
    )
    binder.bind_all(expansion)
    problems += expansion.problems + binder.problems
    if not runbook.fragment and not runbook.nodes:
        message, remedy = "this says no nodes", 'add nodes: "@GROUP", or a node expression'
        problems.append(problem(runbook.document.place(), message, remedy))
    return problems
