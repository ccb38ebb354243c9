"""Every kept output of nvidia-smi, topo and dcgmi diag is read and judged as its case says."""

from __future__ import annotations

import pytest

from recovery.model.verdict import Level
from tests.checks.gpu_cases import Case, cases, judged, misses

KINDS = {kind: cases(kind) for kind in ("smi", "topo", "dcgm")}
ALL = [case for kind in KINDS.values() for case in kind]


def named(case: Case) -> str:
    return case.id


@pytest.mark.parametrize("case", ALL, ids=named)
def test_a_kept_output_is_read_and_judged_as_its_case_says(case: Case) -> None:
    assert misses(case) == []


@pytest.mark.parametrize("case", ALL, ids=named)
def test_the_content_alone_leads_to_the_same_verdict(case: Case) -> None:
    found, _ = judged(case, command="", exit_status=None)

    assert found.level is case.status


@pytest.mark.parametrize("case", ALL, ids=named)
def test_every_finding_that_is_no_pass_has_a_remedy_and_a_code(case: Case) -> None:
    found, _ = judged(case)

    assert all(f.level is Level.PASS or (f.remedy and f.code) for f in found.findings)


@pytest.mark.parametrize("kind", KINDS)
def test_the_score_of_a_kind(kind: str) -> None:
    good = sum(not misses(case) for case in KINDS[kind])
    print(f"{kind} {good}/{len(KINDS[kind])}")  # noqa: T201 - the score is what people ask for

    assert good == len(KINDS[kind])
