"""One printed text, asked by one check or by all that can read it, becomes a verdict and facts.

The engine, `recover check`, `recover judge` and `recover rejudge` all conclude here, so a live
node and a captured file can never be judged by different rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, single, unknown
from recovery.reading.plain import plain_lines

AnyCheck = Check[Any, Any]


@dataclass(frozen=True, slots=True)
class Judged:
    """What one check made of a text. ``parsed`` is None where the text could not be read."""

    check: str
    verdict: Verdict
    facts: Mapping[str, Any] = field(default_factory=dict)
    parsed: Any = None


def judge_one(check: AnyCheck, printed: Printed, raw: Mapping[str, Any]) -> Judged:
    """Parses and judges by one check; what cannot be read is UNKNOWN with a remedy."""
    try:
        parsed = check.parse(printed)
    except ParseError as error:
        return Judged(check.name, single(_unreadable(check, error)))
    expected = check.expect(raw)
    facts = dict(check.facts(parsed))
    if check.conclusions is not None:
        facts.update(check.conclusions(parsed, expected))
    found = _with_codes(check, check.judge(parsed, expected))
    return Judged(check.name, found, facts, parsed)


def readers_of(checks: Iterable[AnyCheck], printed: Printed) -> tuple[AnyCheck, ...]:
    """The checks that claim the command line or, where none is named, the content."""
    return tuple(c for c in checks if c.recognises is not None and c.recognises(printed))


def judge_text(
    checks: Iterable[AnyCheck], printed: Printed, raw: Mapping[str, Any]
) -> tuple[Verdict, Mapping[str, Any]]:
    """The fold over all checks that can read the text: findings worst first, facts merged.

    A text that no check claims, and one that nobody answered a question from, is UNKNOWN.
    Where two checks read the same fact, a known value wins over None.
    """
    readers = readers_of(checks, printed)
    if not readers:
        return single(_unrecognised(printed)), {}
    return fold(tuple(judge_one(check, printed, raw) for check in readers))


def fold(judged: Iterable[Judged]) -> tuple[Verdict, Mapping[str, Any]]:
    """One verdict and one set of facts from what several checks made of one text."""
    findings: dict[Finding, None] = {}
    facts: dict[str, Any] = {}
    for one in judged:
        findings.update(dict.fromkeys(one.verdict.findings))
        for key, value in one.facts.items():
            if facts.get(key) is None:
                facts[key] = value
    return Verdict(tuple(sorted(findings, key=lambda f: -f.level))), facts


def _unreadable(check: AnyCheck, error: ParseError) -> Finding:
    remedy = error.remedy or f"run `{check.command}` by hand on the node"
    return unknown(error.message, remedy=remedy, code="unreadable")


def _with_codes(check: AnyCheck, found: Verdict) -> Verdict:
    """Every finding gets at least the check's own name as its code."""
    named = (f if f.code else replace(f, code=check.name) for f in found.findings)
    return Verdict(tuple(sorted(named, key=lambda f: -f.level)))


def _unrecognised(printed: Printed) -> Finding:
    if not printed.text.strip() and not printed.error_text.strip():
        return unknown(
            "the text is empty; silence is not health",
            remedy="capture the command's output again, with its error output and exit status",
            code="unreadable.empty",
        )
    try:
        plain_lines(printed.text)
    except ParseError as error:  # several nodes in one text, or an absurd length
        remedy = error.remedy or "capture the command's output alone"
        return unknown(error.message, remedy=remedy, code="unreadable.mixed")
    asked = f"the output of {printed.command!r}" if printed.command else "this text"
    return unknown(
        f"no check recognises {asked}",
        remedy="name the command that printed it with --command, or the check to ask",
        code="unreadable.unrecognised",
    )
