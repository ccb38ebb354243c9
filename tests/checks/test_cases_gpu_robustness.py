"""What collectors, launchers and accidents do to an answer never turns it into a PASS."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recovery.engine.judging import judge_one
from recovery.model.output import Printed
from recovery.model.verdict import Level
from tests.checks.gpu_cases import CHECKS, Case, cases, judged

ALL = [case for kind in ("smi", "topo", "dcgm") for case in cases(kind)]
SEED = 20261130


def named(case: Case) -> str:
    return case.id


def each_line(prefix: str) -> Callable[[str], str]:
    return lambda text: "".join(prefix + line for line in text.splitlines(keepends=True))


WRAPPERS: dict[str, Callable[[str], str]] = {
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
    "byte order mark": lambda text: "\ufeff" + text,
    "colours": lambda text: "\x1b[0m" + text.replace("GPU", "\x1b[1mGPU\x1b[0m"),
    "blanks at line ends": lambda text: text.replace("\n", "  \n"),
    "blank lines at the end": lambda text: text + "\n\n",
    "mpirun --tag-output": each_line("[1,0]<stdout>:"),
    "mpirun 5 --tag-output": each_line("[prterun-a01-2412@1,0]<stdout>: "),
    "mpirun --timestamp-output": each_line("Mon Nov 30 03:12:44 2026[1,0]<stdout>:"),
    "syslog": each_line("Nov 30 03:12:44 node-017 smi[4711]: "),
    "journalctl -o short-iso": each_line("2026-11-30T03:12:44+0000 node-017 smi[4711]: "),
    "kubectl --timestamps": each_line("2026-11-30T03:12:44.123456789Z "),
    "srun --label": each_line("0: "),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("case", ALL, ids=named)
def test_a_wrapped_answer_is_judged_like_the_bare_one(case: Case, wrapper: str) -> None:
    found, _ = judged(case, text=WRAPPERS[wrapper](case.text))

    assert found.level is case.status


@pytest.mark.parametrize("case", ALL, ids=named)
def test_an_answer_without_its_last_line_end_is_never_judged_better(case: Case) -> None:
    found, _ = judged(case, text=case.text.rstrip("\n"))

    assert found.level >= case.status


@pytest.mark.parametrize("case", ALL, ids=named)
def test_a_cut_answer_never_passes_before_its_last_words(case: Case) -> None:
    """The last 40 characters may be blanks, a border or a banner: what stands before is whole."""
    step = max(1, len(case.text) // 60)
    cuts = [*range(0, max(0, len(case.text) - 40), step)]

    for end in cuts:
        for command in (case.command, ""):
            text = case.text[:end]
            found, _ = judged(case, text=text, command=command, exit_status=None)
            assert found.level is not Level.PASS, f"cut at {end} of {len(case.text)}"


@pytest.mark.parametrize(
    "command",
    [
        "nvidia-smi -q",
        "nvidia-smi",
        "nvidia-smi -L",
        "nvidia-smi -q -x",
        "nvidia-smi topo -m",
        "nvidia-smi nvlink -s",
        "dcgmi diag -r 1",
    ],
)
@pytest.mark.parametrize("text", ["", "\n", " \n\n", "\x00", "garbage", "Killed\n"])
def test_silence_and_garbage_are_unknown(command: str, text: str) -> None:
    case = Case("none", text, command, 0, {}, {}, Level.UNKNOWN)

    found, _ = judged(case)

    assert found.level is Level.UNKNOWN


def test_outputs_of_two_ranks_in_one_text_are_unknown() -> None:
    text = "[1,0]<stdout>:GPU 0: a\n[1,1]<stdout>:GPU 0: b\n"
    case = Case("two", text, "mpirun nvidia-smi -L", 0, {}, {}, Level.UNKNOWN)

    found, _ = judged(case)

    assert found.level is Level.UNKNOWN
    assert "2 ranks" in found.worst.finding


def mutated(text: str, rng: random.Random) -> str:
    bits = [
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
        "GPU ",
        " " * 200,
    ]
    for _ in range(rng.randint(1, 6)):
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.randint(1, 80))
        kind = rng.randrange(4)
        if kind == 0:
            text = text[:start] + text[end:]
        elif kind == 1:
            text = text[:start] + rng.choice(bits) + text[start:]
        elif kind == 2:
            text = text[:end] + text[start:]
        else:
            text = text[:start] + chr(rng.randrange(256)) + text[start + 1 :]
    return text


@pytest.mark.parametrize("case", ALL, ids=named)
def test_no_damage_to_an_answer_raises_anything_but_a_parse_error(case: Case) -> None:
    rng = random.Random(f"{SEED} {case.id}")

    for _ in range(12):
        text = mutated(case.text, rng)
        for check in CHECKS:
            one = judge_one(check, Printed(text, exit_status=0, command=case.command), case.context)
            json.dumps(dict(one.facts))


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300), st.sampled_from(["", "nvidia-smi -q", "dcgmi diag -r 1 -j"]))
def test_no_text_raises_and_none_passes(text: str, command: str) -> None:
    found, _ = judged(Case("any", text, command, 0, {}, {}, Level.UNKNOWN))

    assert found.level is not Level.PASS


@pytest.mark.parametrize(
    "text",
    [
        "a" + " " * 300_000,
        "\x1b]" * 150_000,
        "{" * 300_000,
        '{"DCGM Diagnostic":' + "[" * 300_000,
        "<nvidia_smi_log>" + "<a>" * 100_000 + "</nvidia_smi_log>",
        "    a : b\n" * 30_000,
        "| " * 150_000,
        "\t" * 300_000 + "GPU0",
    ],
    ids=range(8),
)
def test_absurd_texts_are_unknown_in_bounded_time(text: str) -> None:
    for command in ("", "nvidia-smi -q"):
        found, _ = judged(Case("absurd", text, command, 0, {}, {}, Level.UNKNOWN))
        assert found.level is Level.UNKNOWN


def test_an_entity_in_the_xml_is_refused() -> None:
    text = (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaa">'
        '<!ENTITY b "&a;&a;">]>\n<nvidia_smi_log><gpu id="1">&b;</gpu></nvidia_smi_log>'
    )
    case = Case("bomb", text, "nvidia-smi -q -x", 0, {}, {}, Level.UNKNOWN)

    found, _ = judged(case)

    assert found.level is Level.UNKNOWN
    assert "DTD" in found.worst.finding
