"""Runbook + inventory + overrides -> `Plan`, or everything that is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from recovery.errors import InputError, RunbookError, SelectionError, TemplateError
from recovery.model.inventory import Inventory
from recovery.model.runbook import Limits, Plan, Step
from recovery.plan.bind import Binding, Ground, Select
from recovery.plan.blast import limits_of, problems_of
from recovery.plan.expand import Expansion, Load, Placed, expand
from recovery.plan.problems import Problem, problem, refuse
from recovery.plan.reader import HEAD, Runbook, Verbs, expressions_of
from recovery.plan.scope import RUN_ID, Scope, global_scope
from recovery.plan.template import FOLD, names_in_expression
from recovery.plan.values import digest_of

Fold = Callable[[Iterable[str]], str]


def build(  # noqa: PLR0913 - all that a plan is made from, by name
    runbook: Runbook,
    inventory: Inventory,
    verbs: Verbs,
    *,
    overrides: Mapping[str, str],
    nodes: str | None,
    load: Load,
    select: Select,
    fold: Fold,
    check_names: Collection[str],
    seed: int,
) -> Plan:
    """The plan: every step rendered, checked and bound to its nodes.

    ``nodes`` limits all steps to those it selects. ``load`` gives text and source of a file that
    is used, ``select`` the names of a node expression in inventory order (none is fine).

    Raises:
        RunbookError: everything that is wrong, each with its place and remedy.
    """
    refuse(_usable(runbook))
    expansion = expand(runbook, verbs, load)
    refuse(expansion.problems)
    select = cache(select)  # many steps have the same nodes, and there may be 10,000 of them
    scope, problems = global_scope(expansion.declared, inventory.variables, overrides)
    variables = scope.values
    scope = scope.with_values({"cluster": inventory.name, FOLD: fold})
    default = _default_nodes(runbook, scope, select, problems)
    only = _only(nodes, default, select, problems)
    refuse(problems)
    ground = Ground(verbs, check_names, select, only, nodes=inventory.nodes)
    binder = Binder(ground, scope)
    steps, finally_ = binder.bind_all(expansion)
    refuse(binder.problems)
    limits = _limits(runbook, inventory, scope)
    racks = {name: node.rack for name, node in inventory.nodes.items()}
    refuse(tuple(problems_of((*steps, *finally_), limits, racks)))
    plan = Plan(
        runbook=runbook.name,
        about=runbook.about,
        cluster=inventory.name,
        nodes=tuple(name for name in default if only is None or name in only),
        steps=steps,
        finally_=finally_,
        variables=variables,
        limits=limits,
        seed=seed,
        digest="",
        secrets=tuple(sorted(scope.secrets)),
    )
    return replace(plan, digest=digest_of(plan))


def _usable(runbook: Runbook) -> list[Problem]:
    place = runbook.document.place()
    if runbook.fragment:
        remedy = f"use it from a runbook: - use: {runbook.document.source.rpartition('/')[2]}"
        return [problem(place, f"{runbook.name!r} is a fragment, not a runbook", remedy)]
    if not runbook.nodes:
        return [problem(place, "this says no nodes", 'add nodes: "@GROUP", or a node expression')]
    return []


def _limits(runbook: Runbook, inventory: Inventory, scope: Scope) -> Limits:
    try:
        return limits_of(runbook.limits, inventory, scope)
    except InputError as error:
        place = runbook.document.place("limits")
        raise RunbookError(f"{place}: {error.message}", remedy=error.remedy) from error


def _default_nodes(
    runbook: Runbook, scope: Scope, select: Select, problems: list[Problem]
) -> tuple[str, ...]:
    place = runbook.document.place("nodes")
    try:
        found = select(scope.render_now(runbook.nodes))
    except (TemplateError, SelectionError) as error:
        problems.append(problem(place, f"nodes: {error.message}", error.remedy))
        return ()
    if not found:
        message = f"nodes: {runbook.nodes!r} selects no node"
        problems.append(problem(place, message, "name nodes or groups that the inventory has"))
    return found


def _only(
    nodes: str | None, default: tuple[str, ...], select: Select, problems: list[Problem]
) -> frozenset[str] | None:
    if nodes is None:
        return None
    try:
        only = frozenset(select(nodes))
    except SelectionError as error:
        problems.append(Problem("--nodes", 1, 1, error.message, error.remedy))
        return None
    if default and not only & set(default):
        message = f"{nodes!r} names none of the nodes of this runbook"
        problems.append(Problem("--nodes", 1, 1, message, "see them: recover plan CLUSTER"))
    return only


@dataclass(slots=True)
class Binder:
    """Binds steps in order; each knows what the steps before it save."""

    ground: Ground
    scope: Scope
    problems: list[Problem] = field(default_factory=list)
    _counts: dict[str, int] = field(default_factory=dict)
    _ids: dict[str, str] = field(default_factory=dict)

    def bind_all(self, expansion: Expansion) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        """Steps and final steps of a runbook that is expanded."""
        every = tuple(_flat((*expansion.steps, *expansion.finally_)))
        ahead = {
            name: f"the step at {one.step.place()}"
            for one in every
            for name in one.step.common.get("save", ())
        }
        self.scope = replace(self.scope, later={RUN_ID: "<this run's id>"}, ahead=ahead)
        for one in every:
            self._claim(one)
        return self._each(expansion.steps), self._each(expansion.finally_)

    def _claim(self, placed: Placed) -> None:
        """Takes note of ids that are written, so that none given by us is the same."""
        written = placed.step.common.get("id")
        if written is None:
            return
        name = f"{placed.prefix}{written}"
        place = str(placed.step.place("id"))
        if name in self._ids:
            self.problems.append(
                placed.step.told(
                    f"another step is called {name!r}, at {self._ids[name]}",
                    "choose another id; where a file is used twice, give each `use` an id",
                    "id",
                )
            )
        self._ids[name] = place

    def _name(self, placed: Placed) -> str:
        written = placed.step.common.get("id")
        if written is not None:
            return f"{placed.prefix}{written}"
        verb = placed.step.verb
        while True:
            self._counts[verb] = self._counts.get(verb, 0) + 1
            name = f"{verb}-{self._counts[verb]}"
            if name not in self._ids:
                return name

    def _each(self, placed: tuple[Placed, ...]) -> tuple[Step, ...]:
        found = [self._one(one) for one in placed]
        return tuple(step for step in found if step is not None)

    def _one(self, placed: Placed) -> Step | None:
        name = self._name(placed)
        binding = Binding(self.ground, placed, self.scope, name)
        step = binding.bind()
        self.problems += binding.problems
        self.problems += self._broken_words(placed, binding.scope)
        here = placed.step.common.get("nodes", placed.nodes)
        repairs = tuple(replace(one, nodes=here) for one in placed.on_fail_steps if here != HEAD)
        repaired = self._each(repairs or placed.on_fail_steps)
        self._save(placed, name)
        return replace(step, on_fail_steps=repaired) if step is not None else None

    def _broken_words(self, placed: Placed, scope: Scope) -> Iterator[Problem]:
        """Secrets in `expect`, `agree`, `save`: their other names only a result can give."""
        for key in ("expect", "agree", "save"):
            for path, expression in expressions_of(placed.step, key):
                try:
                    scope.refuse_secrets(names_in_expression(expression))
                except TemplateError as error:
                    yield placed.step.told(error.message, error.remedy, *path)

    def _save(self, placed: Placed, name: str) -> None:
        saved = placed.step.common.get("save", {})
        for one in saved:
            if one in self.scope.values:
                self.problems.append(
                    placed.step.told(
                        f"{one!r} is a variable already", "save it under another name", "save", one
                    )
                )
        later = {**self.scope.later, **dict.fromkeys(saved, f"<known after {name}>")}
        self.scope = replace(self.scope, later=later)


def _flat(placed: tuple[Placed, ...]) -> Iterator[Placed]:
    for one in placed:
        yield one
        yield from _flat(one.on_fail_steps)
