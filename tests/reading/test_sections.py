"""Several answers in one text: whole, or unreadable."""

import subprocess

import pytest

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.sections import (
    asking,
    ended,
    first_line,
    looping,
    pairs,
    read_sections,
    without_end,
)

WHOLE = "## kernel\n6.8.0\n\n## words\nro quiet\n## end\n"


def shell(line):
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False)
    return Printed(done.stdout, done.stderr, done.returncode, line)


def test_what_the_command_prints_is_read_back():
    printed = shell(asking({"one": "echo 1", "two words": "echo 2; echo 3", "none": "true"}))

    assert read_sections(printed) == {"one": ("1",), "two words": ("2", "3"), "none": ()}


def test_a_part_that_fails_does_not_hide_the_next():
    printed = shell(asking({"bad": "cat /nowhere/at/all 2>&1", "good": "echo fine"}))

    assert read_sections(printed)["good"] == ("fine",)


def test_a_loop_has_a_section_for_each_word():
    assert read_sections(shell(looping("a b", 'echo "$d$d"'))) == {"a": ("aa",), "b": ("bb",)}


@pytest.mark.parametrize("line", [asking({"a": "true"}, needs="no-such-tool-here"),
                                  looping("a", "true", needs="no-such-tool-here")])  # fmt: skip
def test_a_missing_tool_is_told_as_the_shell_tells_it(line):
    printed = shell(line)

    assert printed.exit_status == 127
    assert "not found" in printed.error_text


def test_the_end_mark_keeps_the_exit_status():
    printed = shell(ended("echo out; (exit 7)"))

    assert printed.exit_status == 7
    assert without_end(printed).text == "out\n"


def test_a_marked_command_without_its_mark_is_cut():
    with pytest.raises(ParseError, match="end mark"):
        without_end(Printed("out\n", exit_status=0, command=ended("echo out")))


def test_an_answer_to_another_command_needs_no_mark():
    printed = Printed("out\n", command="echo out")

    assert without_end(printed) is printed


@pytest.mark.parametrize("end", range(1, len(WHOLE) - 2))
def test_a_cut_text_is_unreadable(end):
    with pytest.raises(ParseError):
        read_sections(Printed(WHOLE[:end], command=asking({"kernel": "uname -r"})))


def test_a_text_without_marks_is_the_bare_section():
    printed = Printed("6.8.0\n", command="uname -r")

    assert read_sections(printed, bare="kernel") == {"kernel": ("6.8.0",)}


@pytest.mark.parametrize(
    ("text", "why"), [("", "silence"), ("6.8", "not whole"), ("\n\n", "silence")]
)
def test_a_bare_text_that_is_not_whole_is_unreadable(text, why):
    with pytest.raises(ParseError, match=why):
        read_sections(Printed(text, command="uname -r"), bare="kernel")


def test_silence_tells_what_standard_error_said():
    with pytest.raises(ParseError, match="Permission denied"):
        read_sections(Printed("", "sh: Permission denied\n"))


def test_a_section_that_is_there_twice_is_unreadable():
    with pytest.raises(ParseError, match="twice"):
        read_sections(Printed("## a\n1\n## a\n2\n## end\n"))


def test_pairs_have_one_form():
    assert dict(pairs(["CPU(s):   8", "NTPSynchronized=yes", "no pair here", "a b : c: d"])) == {
        "cpu(s)": "8",
        "ntpsynchronized": "yes",
        "a b": "c: d",
    }


def test_the_first_line_of_an_empty_section_is_none():
    assert first_line({"a": (), "b": (" x ",)}, "a") is None
    assert first_line({"b": (" x ",)}, "b") == "x"
    assert first_line({}, "c") is None
