"""Every kept output of nccl-tests and its launchers is read and judged as its case says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from recovery.checks.nccl_result import NCCL_RESULT
from recovery.engine.judging import judge_one, judge_text
from recovery.model.output import Printed
from recovery.model.verdict import Level

CASES = Path(__file__).parents[1] / "cases" / "nccl"
INDEX: list[dict[str, Any]] = yaml.safe_load((CASES / "index.yaml").read_text())
LEVELS = {
    "pass": Level.PASS,
    "warn": Level.WARN,
    "fail": Level.FAIL,
    "unreadable": Level.UNKNOWN,
}


def printed(case: dict[str, Any], *, command: str | None = None) -> Printed:
    text = (CASES / case["file"]).read_bytes().decode("utf-8", "backslashreplace")
    asked = case["command"] if command is None else command
    return Printed(text, exit_status=case["exit_code"], command=asked)


def covers(facts: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return all(key in facts and covers(facts[key], value) for key, value in wanted.items())
    if isinstance(wanted, float):
        # counts of wrong elements are printed with %5g: six digits, the rest is lost
        return facts == pytest.approx(wanted, rel=1e-5)
    return facts == wanted


@pytest.mark.parametrize("case", INDEX, ids=lambda case: case["id"])
def test_a_case_is_judged_as_it_says(case: dict[str, Any]) -> None:
    judged = judge_one(NCCL_RESULT, printed(case), case["context"])

    assert judged.verdict.level is LEVELS[case["verdict"]["status"]], judged.verdict
    assert covers(judged.facts, case["reading"]), judged.facts


@pytest.mark.parametrize("case", INDEX, ids=lambda case: case["id"])
def test_a_case_is_recognised_by_content_alone(case: dict[str, Any]) -> None:
    found, _ = judge_text([NCCL_RESULT], printed(case, command=""), case["context"])

    assert found.level is LEVELS[case["verdict"]["status"]]


@pytest.mark.parametrize("case", INDEX, ids=lambda case: case["id"])
def test_a_case_cut_short_anywhere_never_passes(case: dict[str, Any]) -> None:
    whole = printed(case).text
    for part in range(1, 10):
        cut = Printed(whole[: len(whole) * part // 10], command="all_reduce_perf")

        judged = judge_one(NCCL_RESULT, cut, case["context"])

        assert judged.verdict.level >= Level.UNKNOWN, (part, judged.verdict)


@pytest.mark.parametrize("status", [1, 124, 137])
def test_a_whole_result_of_a_launch_that_ended_badly_is_no_pass(status: int):
    case = next(c for c in INDEX if c["file"] == "nccl-allreduce-2.16-8gpu-ok.txt")
    text = printed(case)
    raw = dict(case.get("context") or {})

    well = judge_one(NCCL_RESULT, Printed(text.text, "", 0, text.command), raw)
    badly = judge_one(NCCL_RESULT, Printed(text.text, "", status, text.command), raw)

    assert not well.verdict.level.blocks
    assert badly.verdict.level is Level.UNKNOWN
    assert badly.verdict.worst.code == "nccl.exit-status"
