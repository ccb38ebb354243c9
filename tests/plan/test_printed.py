"""`parse`: what was printed becomes names, or the node's answer is not known."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery.errors import ParseError
from recovery.plan.printed import parse_output

KINDS = ("lines", "json", "csv", "kv", "regex:.*")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["", "\n", "  \r\n\n", "\x1b[0m\n"])
def test_silence_is_never_an_answer(kind, text):
    with pytest.raises(ParseError, match="it printed nothing"):
        parse_output(kind, text)


def test_lines_lose_their_ends_and_colours():
    assert parse_output("lines", "\x1b[32m570.86\x1b[0m \r\n\n570.86\n") == {
        "lines": ["570.86", "570.86"]
    }


def test_json_is_read_whole():
    assert parse_output("json", '{"a": [1, null]}\n') == {"json": {"a": [1, None]}}


@pytest.mark.parametrize("text", ['{"a": 1', "{} trailing", "warning: x\n{}", "{'a': 1}"])
def test_json_that_is_cut_or_mixed_with_words_is_not_read(text):
    with pytest.raises(ParseError, match="not JSON"):
        parse_output("json", text)


def test_csv_rows_are_named_by_the_header():
    text = "index, temperature.gpu\n0, 41\n1, 43\n"

    assert parse_output("csv", text) == {
        "rows": [
            {"index": "0", "temperature.gpu": "41"},
            {"index": "1", "temperature.gpu": "43"},
        ]
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n", "a header and no row"),
        ("a,b\n1\n", "2 columns, and a row of 1"),
        ("a,a\n1,2\n", "two columns of one name"),
        ('a,b\n1,"2\n', "not CSV"),
    ],
)
def test_csv_that_is_cut_short_is_not_read(text, said):
    with pytest.raises(ParseError, match=said):
        parse_output("csv", text)


def test_pairs_are_read_with_either_sign_and_without_quotes():
    text = 'NAME="Debian"\nMemTotal:   123 kB\nurl=http://x:1/\n'

    assert parse_output("kv", text) == {
        "kv": {"NAME": "Debian", "MemTotal": "123 kB", "url": "http://x:1/"}
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [("a=1\nwhat\n", "not KEY=VALUE"), ("a=1\na=2\n", "a key with two values"), ("=1", "not KEY")],
)
def test_pairs_that_contradict_or_are_none_are_not_read(text, said):
    with pytest.raises(ParseError, match=said):
        parse_output("kv", text)


def test_a_match_gives_its_groups_by_name_and_number():
    found = parse_output(r"regex:^up (?P<days>\d+) days, (\d+)", "x\nup 12 days, 3 h\n")

    assert found == {"match": {"text": "up 12 days, 3", "g1": "12", "g2": "3", "days": "12"}}


def test_no_match_is_not_an_empty_match():
    with pytest.raises(ParseError, match="nothing matches"):
        parse_output(r"regex:up (\d+)", "down\n")


@given(st.sampled_from(KINDS[:4]), st.text())
def test_any_text_is_read_or_refused_and_never_breaks(kind, text):
    with contextlib.suppress(ParseError):
        assert parse_output(kind, text)
