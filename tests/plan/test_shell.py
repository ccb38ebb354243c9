"""No value from outside becomes more than one word of a command: tried against real shells."""

import subprocess

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from recovery.errors import TemplateError
from recovery.plan.template import render

NO_NUL = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=40)
SHELL_BITS = st.sampled_from(
    [
        "'",
        '"',
        "\\",
        "$",
        "(",
        ")",
        "`",
        "#",
        " ",
        "\n",
        "a",
        "$(",
        "${",
        "}",
        "; ",
        "x=",
        "$'",
        "<<",
    ]
)
INJECTIONS = st.sampled_from(
    [
        "$(echo INJECTED >&2)",
        "`echo INJECTED >&2`",
        "';echo INJECTED >&2;'",
        '";echo INJECTED >&2;"',
        "\\';echo INJECTED >&2;#",
        "\necho INJECTED >&2\n",
        ")\necho INJECTED >&2\n(",
        "a[$(echo INJECTED >&2)]",
    ]
)


def sh(line, shell="sh"):
    return subprocess.run(
        [shell, "-c", line], capture_output=True, check=False, stdin=subprocess.DEVNULL
    )


def refusal(template, **values):
    with pytest.raises(TemplateError) as caught:
        render(template, values, shell=True)
    return caught.value


@settings(max_examples=60, deadline=None)
@given(NO_NUL)
@example("")
@example("-n")
@example("'")
@example("a\nb")
@example("\u2028 \x1b[31m")
def test_a_quoted_value_arrives_as_it_is(value):
    line = render("printf %s {{ value | q }}", {"value": value}, shell=True)

    assert sh(line).stdout == value.encode()


@settings(max_examples=30, deadline=None)
@given(st.lists(NO_NUL, min_size=1, max_size=5))
def test_a_quoted_list_becomes_one_word_for_each_item(items):
    line = render("printf '%s\\n.\\n' {{ items | q }}", {"items": items}, shell=True)

    assert sh(line).stdout == "".join(f"{item}\n.\n" for item in items).encode()


@settings(max_examples=60, deadline=None)
@given(NO_NUL)
def test_a_bare_value_arrives_as_it_is_or_is_refused(value):
    try:
        line = render("printf %s {{ value }}", {"value": value}, shell=True)
    except TemplateError:
        return

    assert sh(line).stdout == value.encode()


@settings(max_examples=150, deadline=None)
@given(st.lists(SHELL_BITS, max_size=9), st.lists(SHELL_BITS, max_size=4), INJECTIONS)
def test_whatever_stands_around_a_quoted_value_it_never_runs(before, after, value):
    template = "".join((*before, "{{ value | q }}", *after))
    assume(not any(mark in "".join((*before, *after)) for mark in ("{{", "{%", "{#")))
    try:
        line = render(template, {"value": value}, shell=True)
    except TemplateError:
        return

    for shell in ("sh", "bash"):
        assert b"INJECTED" not in sh(line, shell).stderr.splitlines()


@pytest.mark.parametrize(
    "value",
    ["a b", "$(id)", "`id`", "a;b", "a|b", "*", "~", "a>b", "'", "é", "{a,b}", "!x", "a\nb"],
)
def test_a_bare_value_with_a_meaning_to_a_shell_is_refused_in_words(value):
    error = refusal("echo {{ x }}", x=value)

    assert error.message == f"the value {value!r} in a command is not one plain word for a shell"
    assert error.remedy == "write {{ name | q }} to quote the value"


def test_plain_words_numbers_and_paths_may_stand_bare():
    values = {"path": "/data/run-42/ckpt_7", "n": 12, "f": 0.5, "pair": "a=b:c,d@e%f+g"}

    line = render("x {{ path }} {{ n }} {{ f }} {{ pair }}", values, shell=True)

    assert line == "x /data/run-42/ckpt_7 12 0.5 a=b:c,d@e%f+g"


def test_an_empty_bare_value_is_refused_before_it_shortens_a_path():
    error = refusal("rm -rf /data/{{ folder }}/*", folder="")

    assert error.message == "the value '' in a command is empty"


def test_none_in_a_command_is_refused_quoted_or_not():
    assert "no value" in refusal("x {{ y }}", y=None).message
    assert "no value" in refusal("x {{ y | q }}", y=None).message


def test_lists_and_mappings_need_quoting_by_item():
    assert "a list, not a word" in refusal("x {{ y }}", y=["a", "b"]).message
    assert "a mapping" in refusal("x {{ y | q }}", y={"a": 1}).message


@pytest.mark.parametrize(
    ("template", "where"),
    [
        ("x '{{ v | q }}'", "inside single quotes"),
        ('x "{{ v | q }}"', "inside double quotes"),
        ('x "$(y {{ v | q }})"', "inside double quotes"),
        ("x `y {{ v | q }}`", "inside or after backticks"),
        ("x # {{ v | q }}", "inside a comment"),
        ("x $(( {{ v | q }} ))", "inside an arithmetic expression"),
        ("x ${y:-{{ v | q }}}", "inside a parameter expansion"),
        ("x \\{{ v | q }}", "after '\\\\'"),
        ("x ${{ v | q }}", "after '$'"),
        ("cat <<EOF\n{{ v | q }}\nEOF", "in or after a here-document"),
        ("x $'a\\'' {{ v | q }}", "which shells read differently"),
    ],
)
def test_a_quoted_value_stands_only_where_its_quotes_count(template, where):
    error = refusal(template, v="plain")

    assert where in error.message
    assert error.remedy


@pytest.mark.parametrize(
    "template",
    [
        "x {{ v | q }} 'a' \"b\" {{ v | q }}",
        "a=$(x {{ v | q }}); y $a",
        "# don't\nx {{ v | q }}",
        "x --flag={{ v | q }}",
        'x "it\'s" {{ v | q }}',
        "(cd /; x {{ v | q }})",
        "x <<< {{ v | q }}",
        "x \\' {{ v | q }}",
        "x a#b {{ v | q }}",
    ],
)
def test_ordinary_lines_are_not_refused(template):
    assert "'a b'" in render(template, {"v": "a b"}, shell=True)


def test_joining_a_quoted_value_to_text_loses_the_quoting_and_is_refused():
    assert "not one plain word" in refusal("x {{ (v | q) ~ v }}", v="a b").message


def test_a_whole_command_in_a_variable_is_taken_only_when_it_is_called_a_line():
    command = './train.sh --resume "$STEP"'

    assert render("{{ c | line }}", {"c": command}, shell=True) == command
    assert "not one plain word" in refusal("{{ c }}", c=command).message
    assert "not a shell line" in refusal("{{ c | line }}", c="").message
    assert "not a shell line" in refusal("{{ c | line }}", c=None).message


def test_a_line_that_opens_quotes_does_not_swallow_what_follows():
    assert "inside single quotes" in refusal("{{ c | line }} {{ v | q }}", c="x '", v="a").message


def test_a_nul_is_refused():
    assert "NUL" in refusal("x {{ v | q }}", v="a\0b").message
    assert "NUL" in refusal("x \0 {{ v | q }}", v="a").message
