"""The checks of a node's own health: judged as their cases say, and never fooled into a PASS."""

from __future__ import annotations

import json
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recovery.engine.judging import judge_one, readers_of
from recovery.model.output import Printed
from recovery.model.verdict import Level
from tests.checks.node_cases import Case, cases, checks
from tests.checks.outputs import differences, judged

ALL = cases()
HEALTHY = [case for case in ALL if case.name == "healthy"]
FOLDERS = sorted({case.folder for case in ALL})
WRAPPERS = {
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
    "byte order mark": lambda text: "\ufeff" + text,
    "colours": lambda text: "".join(f"\x1b[0m{line}\x1b[K\n" for line in text.splitlines()),
    "mpirun": lambda text: "".join(f"[1,0]<stdout>:{line}\n" for line in text.splitlines()),
    "srun": lambda text: "".join(f"0: {line}\n" for line in text.splitlines()),
}


def named(case: Case) -> str:
    return f"{case.folder}/{case.name}"


@pytest.mark.parametrize("case", ALL, ids=named)
def test_an_answer_is_judged_as_its_case_says(case: Case) -> None:
    judged = case.judged()

    assert judged.verdict.level.word == case.level, judged.verdict.worst
    assert case.finding in judged.verdict.worst.finding
    assert differences(case.facts, judged.facts) == []


# Their words alone do not tell whose they are: other checks read the same tool, or none does.
NAMELESS = {
    ("disk_smart", "no-disk"),
    ("gpu_burn", "cuda-error"),
    ("gpu_nvlink_errors", "no-links"),
    ("gpu_nvlink_errors", "no-links-expected"),
    ("gpu_affinity", "no-hca"),
    ("gpu_affinity", "no-hca-but-expected"),
}
TELLING = [
    case
    for case in ALL
    if case.text.strip()
    and case.name not in ("unreadable", "no-stack")
    and (case.folder, case.name) not in NAMELESS
]


@pytest.mark.parametrize("case", TELLING, ids=named)
def test_an_answer_is_recognised_without_its_command(case: Case) -> None:
    printed = Printed(case.text, case.error_text, case.exit_status, "")

    assert case.check in readers_of(checks().values(), printed)
    if case.command is None and case.name != "cut-short":
        found = judge_one(case.check, printed, case.context).verdict
        assert found.level.word == case.level, found.worst


@pytest.mark.parametrize("text", ["Segmentation fault\n", "Bus error (core dumped)\n", "Killed\n"])
def test_a_crash_of_nobody_knows_what_is_unknown(text: str) -> None:
    assert judged(Printed(text))[0].level is Level.UNKNOWN


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_check_has_a_case_of_every_kind(folder: str) -> None:
    names = {case.name for case in ALL if case.folder == folder}
    levels = {case.level for case in ALL if case.folder == folder}

    assert {"healthy", "unreadable", "cut-short", "silent"} <= names
    assert levels >= {"pass", "fail", "unknown"}


@pytest.mark.parametrize("case", ALL, ids=named)
def test_every_finding_has_a_code_and_what_is_no_pass_a_remedy(case: Case) -> None:
    found = case.judged().verdict.findings

    assert all(f.code or f.level is Level.PASS for f in found)
    assert all(f.remedy for f in found if f.level is not Level.PASS)


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("case", HEALTHY, ids=named)
def test_a_wrapped_answer_is_judged_like_the_bare_one(case: Case, wrapper: str) -> None:
    assert case.judged(WRAPPERS[wrapper](case.text)).verdict.level.word == case.level


@pytest.mark.parametrize("case", ALL, ids=named)
def test_a_cut_answer_never_passes(case: Case) -> None:
    """Blank lines and notes at the very end say nothing that could be missing."""
    whole = len(_essential(case))
    step = max(1, whole // 60)

    passing = [
        end
        for end in range(0, whole - 1, step)
        if case.judged(case.text[:end]).verdict.level is Level.PASS
    ]

    assert passing == []


def _essential(case: Case) -> str:
    """The text up to what ends it: a last row, a last sum, the end mark."""
    text = case.text.rstrip()
    if case.folder == "gpu_bandwidth":
        return text[: text.rfind("SUM ") + 4]
    if case.folder == "gpu_burn":
        return "\n".join(text.splitlines()[:8])
    if case.folder == "gpu_retired":
        return text[: text.rfind("Processes")]
    if case.folder == "gpu_nvlink_errors" and case.text.count("GPU ") == 1:
        return text[:40]
    return text


@pytest.mark.parametrize("case", ALL, ids=named)
def test_damage_is_judged_and_nothing_is_thrown(case: Case) -> None:
    rng = random.Random(named(case))
    pieces = [
        "\x1b[",
        "|",
        "\t",
        "ERR!",
        "N/A",
        " : ",
        "\r",
        "{",
        "[",
        '"',
        ",",
        "\n",
        "## end",
        "9" * 400,
    ]
    for _ in range(25):
        text = case.text
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(text) + 1)
            text = (
                text[:at]
                + rng.choice([*pieces, chr(rng.randrange(1, 600))])
                + text[at + rng.randint(0, 30) :]
            )

        json.dumps(dict(case.judged(text).facts))


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=300), st.sampled_from(FOLDERS))
def test_no_text_raises_and_none_passes(text: str, folder: str) -> None:
    check = checks()[folder]

    judged = judge_one(check, Printed(text, exit_status=0, command=check.command), {})

    assert judged.verdict.level is not Level.PASS


@pytest.mark.parametrize("folder", FOLDERS)
def test_absurd_texts_end_soon(folder: str) -> None:
    check = checks()[folder]
    for text in (
        "a " * 200_000,
        "## x\n" * 30_000,
        "1: " * 100_000,
        "[" * 100_000,
        "/a:1\n" * 60_000,
    ):
        started = time.monotonic()
        judged = judge_one(check, Printed(text, exit_status=0, command=check.command), {})

        assert judged.verdict.level is not Level.PASS
        assert time.monotonic() - started < 5


@pytest.mark.parametrize("case", HEALTHY, ids=named)
def test_the_command_of_an_answer_leads_to_its_check(case: Case) -> None:
    check = case.check
    if check.recognises is None:
        pytest.skip("read by name only: another check owns this command's answers")

    assert check.recognises(Printed(case.text, exit_status=0, command=check.command))


@pytest.mark.parametrize(
    "case", [c for c in HEALTHY if c.check.command.startswith(("echo '## ", "command -v lscpu"))],
    ids=named,
)  # fmt: skip
def test_a_marked_answer_without_its_command_leads_to_its_check(case: Case) -> None:
    printed = Printed(case.text, exit_status=0)

    claiming = [c.name for c in checks().values() if c.recognises and c.recognises(printed)]

    assert case.check.name in claiming
