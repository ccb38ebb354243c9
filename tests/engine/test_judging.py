"""The one place where a text becomes a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.engine.judging import judge_one, judge_text
from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Level, Verdict, failed, single, verdict


@dataclass(frozen=True, slots=True)
class Lines:
    n_lines: int
    first: str | None = None


def parse(printed: Printed) -> Lines:
    if not printed.text:
        raise ParseError("no lines", remedy="ask again")
    return Lines(len(printed.text.splitlines()))


def wanted(raw: Mapping[str, Any]) -> int | None:
    return raw.get("expected_lines")


def judge(facts: Lines, expected: int | None) -> Verdict:
    if expected is not None and facts.n_lines != expected:
        return single(failed(f"{facts.n_lines} lines, expected {expected}", remedy="count"))
    return verdict((), otherwise="as many as expected")


def counting(name: str = "lines.count") -> Check[Lines, int | None]:
    return Check(
        name=name,
        question="how many lines?",
        command="wc",
        parse=parse,
        expect=wanted,
        judge=judge,
        recognises=lambda printed: printed.command == "wc",
    )


def test_what_cannot_be_parsed_is_unknown_with_the_parsers_remedy() -> None:
    judged = judge_one(counting(), Printed(""), {})

    assert judged.verdict.level is Level.UNKNOWN
    assert judged.verdict.worst.remedy == "ask again"


def test_a_finding_without_a_code_bears_the_checks_name() -> None:
    judged = judge_one(counting(), Printed("a\nb"), {"expected_lines": 3})

    assert judged.verdict.worst.code == "lines.count"


def test_a_text_nobody_claims_is_unknown() -> None:
    found, facts = judge_text([counting()], Printed("a", command="cat"), {})

    assert found.level is Level.UNKNOWN
    assert facts == {}
    assert "'cat'" in found.worst.finding


def test_an_empty_text_nobody_claims_says_that_silence_is_not_health() -> None:
    found, _ = judge_text([], Printed(" \n"), {})

    assert found.level is Level.UNKNOWN
    assert "empty" in found.worst.finding


def test_the_fold_is_as_bad_as_its_worst_check() -> None:
    ok = counting("a")
    found, facts = judge_text(
        [ok, counting("b")], Printed("a", command="wc"), {"expected_lines": 2}
    )

    assert found.level is Level.FAIL
    assert facts["n_lines"] == 1


def test_the_same_unreadable_text_is_said_once() -> None:
    found, _ = judge_text([counting("a"), counting("b")], Printed("", command="wc"), {})

    assert len(found.findings) == 1
