"""The verdicts of a mesh that ran, by today's rules, from what the run kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from recovery.checks.nccl_result import NCCL_RESULT
from recovery.engine.judging import judge_one
from recovery.mesh.replay import Facts, as_noted, replayed
from recovery.mesh.verdicts import verdicts
from recovery.mesh.words import Group, Result
from recovery.model.output import Printed
from recovery.model.verdict import Finding
from recovery.steps.mesh.testing import result_of
from recovery.steps.mesh.verb import finding_of

Expect = Callable[[str], Mapping[str, Any]]
Kept = Callable[[str], str | None]


def rejudged(plan: Facts, tests: Sequence[Facts], expect: Expect, kept: Kept) -> dict[str, Finding]:
    """The finding of each node of a mesh, from its notes (`mesh.plan`, `mesh.test`).

    ``expect`` gives a node's profile, ``kept`` the text behind a digest (None: it is gone, and what
    the run concluded from it stands). Tests that hung or never ran are not judged again.

    Raises:
        ParseError: the notes are of a version that did not keep enough.
    """

    def judge(group: Group, facts: Facts) -> Result | None:
        text = kept(str(facts.get("evidence") or ""))
        if facts.get("status") is None or text is None:
            return None
        raw = {**expect(group.nodes[0]), **facts.get("expect", {})}
        judged = judge_one(NCCL_RESULT, Printed(text, "", facts["status"]), raw)
        found = result_of(group, judged, {})
        then = as_noted(group, facts)
        return replace(found, duration_s=then.duration_s, evidence=then.evidence)

    found = verdicts(replayed(plan, tests, judge))
    return {one.node: finding_of(one) for one in found.nodes}
