"""A check: one question, one exact command, a pure reading and a pure judgement."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from recovery.model.output import Printed
from recovery.model.verdict import Verdict

Facts = TypeVar("Facts")
Expect = TypeVar("Expect")


def _as_mapping(facts: Any) -> Mapping[str, Any]:
    return dataclasses.asdict(facts)


class CheckEffect(StrEnum):
    """What asking a check does to the node, beside the answer.

    ``ACTIVE`` loads its GPUs for a while, so no job may run there; ``WRITES`` leaves a file.
    """

    READ = "read"
    ACTIVE = "active"
    WRITES = "writes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Generic[Facts, Expect]):
    """One question about a node.

    ``command`` is the exact line that runs on the node; ``effect`` says whether it only reads, as
    nearly all do. ``parse`` raises `ParseError` for what it cannot read (the verdict is then
    UNKNOWN); it gets the exit status too, since some tools say what is wrong only by it.
    ``expect`` turns the merged profile and context (``expected_gpus: 8``) into a type; a missing
    expectation is None in it.
    ``facts`` gives the facts as JSON-able values, for `recover judge`, ``compare`` and reports.
    ``recognises`` claims that a command line, or where that is empty the content, is this
    check's to read. ``conclusions`` gives facts that hold only against the expectations (which GPUs
    are worse than expected); they join ``facts``. ``compare`` gets the facts of all nodes of one
    profile and the share of them that makes a majority, and returns verdicts for outliers.
    ``alike`` names the values that nodes of one profile share (versions, settings): the step
    compares them, and `recover baseline` keeps them. ``beside`` gets what the other checks of the
    step read on this node, by their names, and gives the verdict with what they add to it.
    """

    name: str
    question: str
    command: str
    parse: Callable[[Printed], Facts]
    expect: Callable[[Mapping[str, Any]], Expect]
    judge: Callable[[Facts, Expect], Verdict]
    facts: Callable[[Facts], Mapping[str, Any]] = _as_mapping
    conclusions: Callable[[Facts, Expect], Mapping[str, Any]] | None = None
    recognises: Callable[[Printed], bool] | None = None
    compare: Callable[[Mapping[str, Facts], float], Mapping[str, Verdict]] | None = None
    alike: Callable[[Facts], Mapping[str, str | int | float | None]] | None = None
    beside: Callable[[Facts, Verdict, Mapping[str, Any]], Verdict] | None = None
    effect: CheckEffect = CheckEffect.READ
    needs_root: bool = False
    needs: str = ""  # the tool, and the package that brings it
    expects: tuple[str, ...] = ()  # names of expectations read from profile or context
    timeout_s: float = 30.0
