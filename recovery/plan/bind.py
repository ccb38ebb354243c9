"""A step as written, and a scope -> the step of a plan: rendered, checked, bound to its nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, ValidationError

from recovery.errors import SelectionError, TemplateError
from recovery.model.kind import Verb
from recovery.model.node import Node
from recovery.model.runbook import Effect, GateKind, OnFail, Rerun, Step
from recovery.plan.expand import Placed
from recovery.plan.fields import ARGUMENT, params_of, render_fields, render_inside, told_of
from recovery.plan.grammar import show_gate
from recovery.plan.keys import CommonKeys, faults_of
from recovery.plan.problems import Problem
from recovery.plan.reader import HEAD, StepSource, Verbs, texts_in
from recovery.plan.scope import Scope
from recovery.plan.template import names_in, names_in_expression
from recovery.registry import did_you_mean

Select = Callable[[str], tuple[str, ...]]
_AT_START = ("env", "keep")  # rendered again when the step starts; the other keys are not
_EXPRESSIONS = ("when", "expect", "agree", "save", "on_fail", "id", "parse")
_SAYS_ITS_EFFECT = frozenset({"run", "script", "playbook", "wait"})
_ORDER = tuple(Effect)


@dataclass(frozen=True, slots=True)
class Ground:
    """What all steps of one plan are bound to.

    ``select`` is None where there is no inventory; ``stand_ins`` are then the variables whose
    values only an inventory or the operator knows.
    """

    verbs: Verbs
    check_names: Collection[str]
    select: Select | None
    only: frozenset[str] | None = None
    stand_ins: frozenset[str] = frozenset()
    nodes: Mapping[str, Node] = field(default_factory=dict)


@dataclass(slots=True)
class Binding:
    """One step on its way; what is wrong with it gathers in ``problems``."""

    ground: Ground
    placed: Placed
    scope: Scope
    id: str
    problems: list[Problem] = field(default_factory=list)

    @property
    def step(self) -> StepSource:
        """The step as written."""
        return self.placed.step

    @property
    def verb(self) -> Verb[Any]:
        """Its verb."""
        return self.ground.verbs[self.step.verb]

    def tell(self, message: str, remedy: str, *keys: str | int) -> None:
        """Notes a problem of the value under ``keys``."""
        self.problems.append(self.step.told(message, remedy, *keys))

    def bind(self) -> Step | None:
        """The step of the plan; None when something is wrong with it."""
        local = self._local()
        expression, nodes = self._nodes()
        self.scope = self.scope.with_values({"nodes": list(nodes)})
        when = self._when()
        keys = self._keys()
        params, shown = self._params()
        if keys is None or self.problems:
            return None
        self._check_gate(keys, nodes, expression)
        told = told_of(self.verb, params, len(nodes)) if params is not None else shown
        commands = tuple(self.verb.commands(params)) if params is not None else ()
        return replace(
            self._made(keys, self._own_effect(params)),
            nodes=nodes,
            nodes_expression=expression,
            head_only=expression == HEAD,
            when=when,
            late=self._late(when),
            variables=local,
            describe=told,
            n_waves=self._n_waves(params, nodes),
            commands=commands,
        )

    def _n_waves(self, params: BaseModel | None, names: tuple[str, ...]) -> int:
        known = self.ground.nodes
        if params is None or not self.verb.on_nodes or not known:
            return 1
        return max(1, len(self.verb.waves(params, tuple(known[name] for name in names))))

    def _own_effect(self, params: Any) -> Effect:
        less = self.verb.effect_of
        return self.verb.effect if less is None or params is None else less(params)

    def _made(self, keys: CommonKeys, own: Effect) -> Step:
        """The step by its keys alone."""
        effect = self._effect(keys.effect, own)
        return Step(
            id=self.id,
            verb=self.verb.name,
            fields={ARGUMENT: self.step.argument, **self.step.own},
            place=self.step.place(),
            at_once=int(keys.at_once),
            batch=tuple(keys.batch),
            timeout_s=float(keys.timeout or self.verb.timeout_s),
            retry=keys.retry,  # type: ignore[arg-type]  # rendered: no template is left in it
            parse=keys.parse,
            expect=keys.expect,
            agree=keys.agree,
            gate=keys.gate,  # type: ignore[arg-type]  # as retry
            on_fail=keys.on_fail if isinstance(keys.on_fail, OnFail) else OnFail.ABORT,
            save=keys.save,
            keep=keys.keep,
            env=keys.env,
            sudo=keys.sudo,
            good_for_s=None if keys.good_for is None else float(keys.good_for),
            effect=effect,
            disrupts=effect is Effect.DISRUPTIVE and self.verb.disrupts,
            rerun=keys.rerun or (Rerun.SAFE if effect is Effect.READ else self.verb.rerun),
            detach=keys.detach,
            empty_ok=keys.empty,
        )

    def _local(self) -> dict[str, Any]:
        """What `with:` gives; each rendered where it is written, outermost first."""
        local: dict[str, Any] = {}
        for use in self.placed.used_by:
            scope = self.scope.with_values(local)
            for name, value in use.own["with"].items():
                try:
                    local[name] = render_inside(value, scope.render_now)
                except TemplateError as error:
                    self.problems.append(use.told(error.message, error.remedy, "with", name))
        self.scope = self.scope.with_values(local)
        return local

    def _nodes(self) -> tuple[str, tuple[str, ...]]:
        default = self._text(self.placed.nodes)
        written = self._text(str(self.step.common.get("nodes", self.placed.nodes)))
        if self.ground.select is None or self.problems:
            return written, ()
        try:
            found = self.ground.select(default if written == HEAD else written)
        except SelectionError as error:
            self.tell(error.message, error.remedy, "nodes")
            return written, ()
        only = self.ground.only
        nodes = found if only is None else tuple(name for name in found if name in only)
        if not nodes and "empty" not in self.step.common:
            after = " after --nodes" if found else ""
            self.tell(
                f"{written!r} selects no node{after}",
                "choose others, or write empty: ok where that is fine",
                "nodes",
            )
        return written, nodes

    def _text(self, text: str) -> str:
        try:
            return self.scope.render_now(text)
        except TemplateError as error:
            self.tell(error.message, error.remedy, "nodes")
            return ""

    def _when(self) -> str:
        conditions = self.placed.when
        for step, expression in conditions:
            try:
                self.scope.evaluate(expression)
            except TemplateError as error:
                self.problems.append(step.told(error.message, error.remedy, "when"))
        if len(conditions) < 2:
            return "".join(expression for _, expression in conditions)
        return " and ".join(f"({expression})" for _, expression in conditions)

    def _keys(self) -> CommonKeys | None:
        rendered: dict[str, Any] = {}
        for key, value in self.step.common.items():
            try:
                rendered |= {key: value} if key in _EXPRESSIONS else self._key(key, value)
            except TemplateError as error:
                self.tell(error.message, error.remedy, key)
        try:
            return CommonKeys.model_validate(rendered, context={"rendered": True})
        except ValidationError as error:
            for fault in faults_of(error, CommonKeys):
                self.tell(fault.message, fault.remedy, *fault.path)
            return None

    def _key(self, key: str, value: Any) -> dict[str, Any]:
        """A common key for the plan: rendered, but for those that are when the step starts."""
        if key == "env":  # the one place where secrets may stand
            self.scope.check(self._names(value))
            return {key: value}
        render = self.scope.render if key in _AT_START else self.scope.render_now
        shown = render_inside(value, render)
        if self._names(value) & self.ground.stand_ins:
            return {}
        return {key: value if key in _AT_START else shown}

    def _params(self) -> tuple[BaseModel | None, str]:
        both = {k: v for k, v in self.step.common.items() if k in self.verb.params.model_fields}
        fields = {ARGUMENT: self.step.argument, **both, **self.step.own}
        rendered: dict[str, Any] = {}
        for name, value in fields.items():
            try:
                rendered |= render_fields(self.verb.name, {name: value}, self.scope.render)
            except TemplateError as error:
                self.tell(error.message, error.remedy, self._key_of(name))
        if len(rendered) < len(fields):
            return None, ""
        params, faults = params_of(self.verb, rendered)
        late = {name for name, value in fields.items() if self._is_late(value)}
        for fault in faults:
            if fault.path[0] not in late:
                keys = (self._key_of(str(fault.path[0])), *fault.path[1:])
                self.tell(fault.message, fault.remedy, *keys)
        self._known_checks(rendered[ARGUMENT])
        return params, f"{self.verb.name} {rendered[ARGUMENT]}"

    def _key_of(self, name: str) -> str:
        return self.verb.name if name == ARGUMENT else name

    def _is_late(self, value: Any) -> bool:
        return bool(self._names(value) & (set(self.scope.later) | self.ground.stand_ins))

    @staticmethod
    def _names(value: Any) -> frozenset[str]:
        return frozenset(name for _, text in texts_in(value, ()) for name in names_in(text))

    def _known_checks(self, argument: Any) -> None:
        if self.verb.name != "check":
            return
        for name in argument if isinstance(argument, list) else [argument]:
            if isinstance(name, str) and name not in self.ground.check_names:
                known = tuple(sorted(self.ground.check_names))
                self.tell(
                    f"{name!r} is not a check{did_you_mean(name, known)}",
                    f"one of: {', '.join(known)}",
                    "check",
                )

    def _check_gate(self, keys: CommonKeys, nodes: tuple[str, ...], expression: str) -> None:
        gate: Any = keys.gate
        total = 1 if expression == HEAD or not self.verb.on_nodes else len(nodes)
        if self.ground.select is None or not nodes:
            return
        too_many = gate.kind is GateKind.COUNT and gate.number > total
        too_few = gate.kind is GateKind.ALL_BUT and gate.number >= total
        if too_many or too_few:
            words = "can never open" if too_many else "would open when none passed"
            self.tell(
                f"a gate of {show_gate(gate)} on {total} node{'s' * (total != 1)} {words}",
                f"choose a gate that fits {total}, or other nodes",
                "gate",
            )

    def _effect(self, said: Effect | None, own: Effect) -> Effect:
        if said is None or self.verb.name in _SAYS_ITS_EFFECT:
            return said or own
        if _ORDER.index(said) < _ORDER.index(own):
            self.tell(f"{self.verb.name} is {own}, not {said}", "take effect out", "effect")
        return said

    def _late(self, when: str) -> tuple[str, ...]:
        names = set(names_in_expression(when)) if when else set()
        for value in self._rendered_later():
            names |= self._names(value)
        return tuple(sorted(names & set(self.scope.later) - {"run"}))

    def _rendered_later(self) -> Iterator[Any]:
        yield self.step.argument
        yield from self.step.own.values()
        yield from (self.step.common[key] for key in _AT_START if key in self.step.common)
