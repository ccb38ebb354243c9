"""`use`: the steps of other files taken in where they are used, until no `use` is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from recovery.errors import DocumentError, InputError
from recovery.plan.problems import Problem
from recovery.plan.reader import USE, Runbook, StepSource, Verbs, find_problems
from recovery.plan.scope import Declared

Load = Callable[[str], tuple[str, str]]
"""The text and the source of a file under ``runbooks/``."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A step at its place in the expanded runbook.

    ``nodes`` is the node expression it falls back on, ``used_by`` the `use` steps that brought it
    in, outermost first.
    """

    step: StepSource
    nodes: str
    used_by: tuple[StepSource, ...] = ()
    on_fail_steps: tuple[Placed, ...] = ()

    @property
    def when(self) -> tuple[tuple[StepSource, str], ...]:
        """Conditions, outermost first, each with the step that it is written in."""
        every = (*self.used_by, self.step)
        return tuple((one, one.common["when"]) for one in every if one.common.get("when"))

    @property
    def prefix(self) -> str:
        """What stands before the ids that are written in used files."""
        return "".join(f"{one.common['id']}-" for one in self.used_by if one.common.get("id"))


@dataclass(frozen=True, slots=True)
class _Around:
    """Where steps are taken in: their default nodes, the files open, the outermost variables."""

    nodes: str
    stack: tuple[str, ...]
    own: frozenset[str]
    used_by: tuple[StepSource, ...] = ()


@dataclass(slots=True)
class Expansion:
    """A runbook with all that it uses: its steps in order, and the variables it declares."""

    verbs: Verbs
    load: Load
    problems: list[Problem] = field(default_factory=list)
    declared: dict[str, Declared] = field(default_factory=dict)
    steps: tuple[Placed, ...] = ()
    finally_: tuple[Placed, ...] = ()
    _read: dict[str, Runbook | None] = field(default_factory=dict)

    def take(self, runbook: Runbook) -> None:
        """Fills `steps`, `finally_` and `declared` from a runbook."""
        self.declared |= {n: Declared(v, runbook.document) for n, v in runbook.variables.items()}
        own = frozenset(self.declared)
        around = _Around(runbook.nodes, (runbook.document.source,), own)
        self.steps = self._all(runbook.steps, around)
        self.finally_ = self._all(runbook.finally_, around)

    def _all(self, steps: tuple[StepSource, ...], around: _Around) -> tuple[Placed, ...]:
        found: list[Placed] = []
        for step in steps:
            if step.verb == USE:
                found += self._used(step, around)
            else:
                repairs = self._all(step.on_fail_steps, around)
                found.append(Placed(step, around.nodes, around.used_by, repairs))
        return tuple(found)

    def _used(self, step: StepSource, around: _Around) -> tuple[Placed, ...]:
        runbook = self._runbook(step)
        if runbook is None:
            return ()
        source = runbook.document.source
        if source in around.stack:
            circle = " -> ".join((*around.stack[around.stack.index(source) :], source))
            self.problems.append(step.told(f"{circle} uses itself", "take one `use` out", USE))
            return ()
        self._declare(step, runbook, around.own)
        nodes = step.common.get("nodes") or runbook.nodes or around.nodes
        inner = replace(
            around,
            nodes=nodes,
            used_by=(*around.used_by, step),
            stack=(*around.stack, source),
        )
        return self._all(runbook.steps, inner)

    def _runbook(self, step: StepSource) -> Runbook | None:
        name = str(step.argument)
        if name not in self._read:
            self._read[name] = None
            try:
                text, source = self.load(name)
            except InputError as error:
                self.problems.append(step.told(error.message, error.remedy, USE))
                return None
            try:
                self._read[name], found = find_problems(text, source, self.verbs)
                self.problems += found
            except DocumentError as error:
                self.problems.append(step.told(error.message, error.remedy, USE))
        return self._read[name]

    def _declare(self, step: StepSource, runbook: Runbook, own: frozenset[str]) -> None:
        for name in step.own["with"]:
            if name not in runbook.variables:
                known = ", ".join(runbook.variables) or "none"
                self.problems.append(
                    step.told(
                        f"{runbook.document.source} has no such variable",
                        f"its variables: {known}",
                        "with",
                        name,
                    )
                )
        for name, value in runbook.variables.items():
            other = self.declared.setdefault(name, Declared(value, runbook.document))
            if other.value != value and name not in own and name not in step.own["with"]:
                self.problems.append(
                    step.told(
                        f"{name!r} has another default in {other.document.source}",
                        f"say which: add {name} under vars: of the runbook",
                        USE,
                    )
                )


def expand(runbook: Runbook, verbs: Verbs, load: Load) -> Expansion:
    """The runbook with all that it uses, and what is wrong with the used files."""
    expansion = Expansion(verbs, load)
    expansion.take(runbook)
    return expansion
