"""The score over every kept output: facts and level, with the command and by content alone."""

from __future__ import annotations

import sys

import pytest

from tests.checks.outputs import CASES, Kept, kept, misses

KINDS = sorted(path.name for path in CASES.iterdir() if (path / "index.yaml").is_file())
OURS = [case for kind in ("klog", "ib", "train", "bmc") for case in kept(kind)]


@pytest.mark.parametrize("case", OURS, ids=lambda case: case.id)
def test_a_kept_output_is_read_and_judged_right(case: Kept):
    assert misses(case) == []


@pytest.mark.parametrize("case", OURS, ids=lambda case: case.id)
def test_a_kept_output_is_recognised_without_its_command(case: Kept):
    assert misses(case, command="") == []


def test_the_score_over_all_kinds_is_printed(capsys: pytest.CaptureFixture[str]):
    cases = {kind: kept(kind) for kind in KINDS}
    wrong = {kind: [m for case in found for m in misses(case)[:1]] for kind, found in cases.items()}

    lines = [
        f"  {kind:6}{len(cases[kind]) - len(wrong[kind])}/{len(cases[kind])}" for kind in KINDS
    ]
    n_right = sum(len(cases[kind]) - len(wrong[kind]) for kind in KINDS)
    lines.insert(0, f"kept outputs judged right: {n_right}/{sum(map(len, cases.values()))}")
    lines += [f"  {line}" for found in wrong.values() for line in found]
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(lines) + "\n")

    assert not [line for kind in ("klog", "ib", "train", "bmc") for line in wrong[kind]]
