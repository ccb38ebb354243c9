"""A mesh from its notes: the plan and the tests that a run kept, judged again, without a node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from recovery.errors import ParseError
from recovery.mesh.ladder import record, start
from recovery.mesh.relative import LEAST_SHARE, held_against
from recovery.mesh.words import Group, Level, Member, Options, Outcome, Result, Round, State

Facts = Mapping[str, Any]
Judge = Callable[[Group, Facts], Result | None]  # None: keep what was concluded then


def replayed(plan: Facts, tests: Iterable[Facts], judge: Judge) -> State:
    """The state that these notes lead to, each kept output judged by ``judge``.

    Raises:
        ParseError: the notes are of a version that did not keep enough.
    """
    try:
        state = start((Member(*one) for one in plan["members"]), _options(plan))
        share = float(plan.get("slow_below", LEAST_SHARE))
        for number, those in groupby(tests, lambda facts: int(facts["round"])):
            state = _round(state, number, list(those), judge, share)
    except (KeyError, TypeError, ValueError) as error:
        raise ParseError(
            f"the notes of this mesh cannot be replayed: {error}",
            remedy="it ran under an older version; read its report instead",
        ) from error
    return state


def _options(plan: Facts) -> Options:
    levels = frozenset(_level(word) for word in plan["levels"])
    return Options(levels=levels, seed=int(plan["seed"]), n_rails=int(plan["n_rails"]))


def _level(word: str) -> Level:
    return Level[word.upper()]


def _round(state: State, number: int, tests: Sequence[Facts], judge: Judge, share: float) -> State:
    groups = tuple(group_of(facts) for facts in tests)
    results = [
        judge(group, facts) or as_noted(group, facts)
        for group, facts in zip(groups, tests, strict=True)
    ]
    played = Round(number, str(tests[0]["stage"]), groups)
    return record(state, played, held_against(results, state.history, share))


def group_of(facts: Facts) -> Group:
    """The group of a test."""
    level = _level(facts["level"])
    return Group(
        level,
        tuple(facts["group"]),
        str(facts.get("subject") or ""),
        facts.get("rail"),
        str(facts["collective"]) if level is Level.ALL else "",
        bool(facts.get("witness")),
    )


def as_noted(group: Group, facts: Facts) -> Result:
    """The result that the run itself concluded."""
    return Result(
        group=group,
        outcome=Outcome(facts["outcome"]),
        busbw_gb_per_s=facts.get("busbw_gb_per_s"),
        finding=str(facts.get("finding") or ""),
        code=str(facts.get("code") or ""),
        blamed=tuple(facts.get("blamed") or ()),
        duration_s=float(facts.get("duration_s") or 0.0),
        evidence=str(facts.get("evidence") or ""),
    )
