"""Lines freed from what stands around them."""

from __future__ import annotations

import pytest

from recovery.errors import ParseError
from recovery.reading.plain import MAX_CHARACTERS, ends_with_newline, plain_lines


@pytest.mark.parametrize(
    "prefix",
    [
        "[1,0]<stdout>:",
        "[1,0]<stderr>: ",
        "[prterun-n1-7@1,12]<stdout>: ",
        "[1,3][n17]<stdout>:",
        "Nov 30 03:12:44 n17 smi[4711]: ",
        "2026-11-30T03:12:44.5+00:00 n17 smi[1]: ",
        "2026-11-30T03:12:44.123456789Z ",
        " 3: ",
        "node-017: ",
    ],
)
def test_a_prefix_that_all_lines_bear_is_taken_off(prefix: str) -> None:
    assert plain_lines(f"{prefix}\tGPU0\n{prefix}  a : b\n") == ("\tGPU0", "  a : b", "")


def test_a_prefix_that_only_some_lines_bear_stays() -> None:
    assert plain_lines("node-017: a\nb\n") == ("node-017: a", "b", "")


@pytest.mark.parametrize("word", ["Error", "Warning", "NVML"])
def test_words_of_the_tools_are_no_host_names(word: str) -> None:
    assert plain_lines(f"{word}: a\n{word}: b\n")[0] == f"{word}: a"


def test_two_ranks_in_one_text_are_refused() -> None:
    with pytest.raises(ParseError, match="2 ranks or nodes"):
        plain_lines("[1,0]<stdout>:a\n[1,1]<stdout>:b\n")


def test_escapes_and_control_characters_go_and_tabs_stay() -> None:
    assert plain_lines("\ufeff\t\x1b[4mGPU0\x1b[0m\x00\x1b]0;title\x07\tX\r\n") == ("\tGPU0\tX", "")


def test_of_an_overwritten_line_the_last_version_counts() -> None:
    assert plain_lines("10 %\r20 %\rdone\n") == ("done", "")


def test_an_absurd_text_is_refused() -> None:
    with pytest.raises(ParseError, match="not the output of one command"):
        plain_lines("a" * (MAX_CHARACTERS + 1))


@pytest.mark.parametrize(
    ("text", "whole"), [("a\n", True), ("a\r\n", True), ("a\n\x1b[0m", True), ("a", False)]
)
def test_a_whole_text_ends_its_last_line(text: str, whole: bool) -> None:
    assert ends_with_newline(text) is whole
