"""Answers of other versions, models, locales and launchers: judged right, never thrown out."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from recovery.model.verdict import Level
from tests.checks.odd_cases import ODD, Odd, odd_cases
from tests.checks.outputs import judged

ALL = odd_cases()
# The rest of the text says another thing, or what was cut off was further of the same.
COMPLETE_BEFORE_THEIR_END = {
    "klog": "an event that was cut off is not in the text",
    "bmc": "an event or sensor that was cut off is not in the text",
}


def named(case: Odd) -> str:
    return case.id


@pytest.mark.parametrize("case", ALL, ids=named)
def test_an_odd_answer_is_judged_right(case: Odd) -> None:
    found, facts = judged(case.printed(), case.context)

    assert (found.level.word, found.worst.code) == (case.level, case.code), found.worst
    assert found.worst.finding.startswith(case.says)
    assert all(f.remedy for f in found.findings if f.level is not Level.PASS)
    json.dumps(dict(facts), allow_nan=False, default=str)


@pytest.mark.parametrize("case", ALL, ids=named)
def test_an_odd_answer_is_judged_by_its_content_alone(case: Odd) -> None:
    found, _ = judged(case.printed(command=""), case.context)

    assert found.level.word == case.alone, found.worst


@pytest.mark.parametrize("case", ALL, ids=named)
def test_carriage_returns_and_colours_change_no_level(case: Odd) -> None:
    text = case.raw.decode()
    for changed in (
        text.replace("\n", "\r\n"),
        "".join(f"\x1b[0m{line}\x1b[K\n" for line in text.splitlines()) if "\n" in text else text,
    ):
        found, _ = judged(case.printed(text=changed), case.context)

        # An end that colours close is a whole line: only a cut text may become whole by it.
        assert found.level.word == case.level or "cut" in case.id, found.worst


@pytest.mark.parametrize(
    "case",
    [c for c in ALL if c.level != "pass" and c.kind not in COMPLETE_BEFORE_THEIR_END],
    ids=named,
)
def test_what_is_cut_of_a_bad_answer_never_passes(case: Odd) -> None:
    rng, text = random.Random(case.id), case.raw.decode()
    ends = rng.sample(range(len(text)), min(25, len(text)))

    passed = [
        text[:end][-50:]
        for end in ends
        if judged(case.printed(text=text[:end]), case.context)[0].level is Level.PASS
    ]

    assert passed == []


@pytest.mark.parametrize("case", ALL, ids=named)
def test_damage_is_judged_and_nothing_is_thrown(case: Odd) -> None:
    rng = random.Random(case.id)
    for _ in range(8):
        raw = bytearray(case.raw)
        for _ in range(rng.randint(1, 8)):
            at = rng.randrange(len(raw) + 1)
            raw[at : at + rng.randint(0, 9)] = bytes(
                rng.choices(b"019|,:;[]{}()\r\n\t\x1b\xff\"'=", k=5)
            )
        text = bytes(raw).decode("utf-8", "backslashreplace")

        judged(case.printed(text=text, command=rng.choice((case.command, ""))), case.context)


def test_there_are_at_least_six_of_each_kind_and_no_file_is_left_over() -> None:
    kinds = Counter(case.kind for case in ALL)
    files = [p for p in ODD.glob("*/*") if p.is_file()]

    assert set(kinds) == {"topo", "smi", "klog", "ib", "nccl", "dcgm", "train", "bmc"}
    assert min(kinds.values()) >= 6
    assert len(files) == len(ALL) == len({case.id for case in ALL})
