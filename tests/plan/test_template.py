"""Templates and expressions: strict, sandboxed, and never guessing a type."""

import pytest

from recovery.errors import TemplateError
from recovery.plan.template import (
    evaluate,
    names_in,
    names_in_expression,
    render,
    render_with_unknowns,
)


def refusal(call, *args, **more):
    with pytest.raises(TemplateError) as caught:
        call(*args, **more)
    assert caught.value.remedy
    return caught.value.message


def test_an_unknown_name_is_an_error_and_not_an_empty_text():
    message = refusal(render, "rm -rf /data/{{ ckptdir }}/*", {"ckpt_dir": "x"})

    assert message == "'ckptdir' is undefined (did you mean \"ckpt_dir\"?)"


@pytest.mark.parametrize("text", ["1e3", "1_000", "[1,2]", "007", "true", "None", " 5 "])
def test_what_looks_like_a_number_or_a_list_stays_text(text):
    assert render("{{ x }}", {"x": text}) == text


def test_text_without_marks_is_left_alone():
    assert render("100% {x} $HOME #{", {}) == "100% {x} $HOME #{"


def test_a_null_in_a_text_is_an_error():
    assert refusal(render, "x {{ y }}", {"y": None}) == "the value is nothing (null)"


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ x.__init__.__globals__ }}",
        "{{ cycler.__init__ }}",
        "{{ lipsum() }}",
        "{{ [1, 2] | random }}",
        "{{ xs.append(3) }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}{{ os }}",
        "{{ range(10**9) | list }}",
    ],
)
def test_the_sandbox_lets_nothing_out(template):
    refusal(render, template, {"x": "a", "xs": [1]})


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ x", "not a template: unexpected end of template"),
        ("{% if x %}", "not a template: unexpected end of template"),
        ("{{ x | uniqe }}", "no filter named 'uniqe' (did you mean \"unique\"?)"),
        ("{{ x is defind }}", "no test named 'defind' (did you mean \"defined\"?)"),
        ("{{ x.y }}", "has no attribute 'y'"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ x + 1 }}", "the template cannot be rendered"),
        ("{{ x | int(base=99) | round('x') }}", "cannot be rendered"),
    ],
)
def test_a_broken_template_says_how(template, said):
    message = refusal(render, template, {"x": "a"})

    assert said in message.replace("'end of template'", "end of template").replace(
        "Unexpected", "unexpected"
    )


def test_folding_uses_the_function_given_with_the_values():
    assert render("{{ nodes | fold }}", {"nodes": ["n1", "n2"], "fold": "+".join}) == "n1+n2"
    assert render("{{ nodes | fold }}", {"nodes": ["n1", "n2"]}) == "n1, n2"
    assert render("{{ 'n1' | fold }}", {}) == "n1"


def test_an_expression_keeps_its_type():
    assert evaluate("lines | length == 8", {"lines": list("abcdefgh")}) is True
    assert evaluate("lines[0]", {"lines": [7]}) == 7
    assert evaluate("x.y", {"x": {"y": None}}) is None


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("linse | length", "'linse' is undefined (did you mean \"lines\"?)"),
        ("x.y.z", "no attribute 'y'"),
        ("x.y", "no attribute 'y'"),
        ("missing", "'missing' is undefined"),
        ("{{ x }}", "a bare expression is wanted here"),
        ("x ==", "not a template"),
        ("", "not a template"),
        ("x y", "not a template"),
        ("lines[5]", "has no element 5"),
        ("x < 1", "cannot be rendered"),
    ],
)
def test_an_expression_that_cannot_be_evaluated_is_an_error_never_false(expression, said):
    assert said in refusal(evaluate, expression, {"x": {}, "lines": []})


def test_values_called_like_python_arguments_do_no_harm():
    assert evaluate("x + 1", {"self": 1, "args": 2, "x": 1}) == 2


def test_names_are_those_taken_from_outside():
    assert names_in("{% set a = b %}{{ a }}{% for c in d %}{{ c }}{% endfor %}") == {"b", "d"}
    assert names_in_expression("{'a': {'b': z}}.a | length > n") == {"z", "n"}
    assert names_in("plain {x}") == set()


KNOWN_LATER = {"step": "<known after checkpoint-1>"}


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("go {{ step }} {{ x }}", "go <known after checkpoint-1> 5"),
        ("{{ step.path }}/{{ step + 1 }}", "<known after checkpoint-1>/<known after checkpoint-1>"),
        ("{% if step > 3 %}a{% endif %}", "<known after checkpoint-1>"),
        ("{% if x == 5 %}{{ step | int }}{% endif %}", "<known after checkpoint-1>"),
        ("{% for s in step %}{{ s }}{% endfor %}", "<known after checkpoint-1>"),
        ("{{ x }}", "5"),
    ],
)
def test_what_is_known_later_is_shown_so(template, shown):
    assert render_with_unknowns(template, {"x": 5}, KNOWN_LATER) == shown


def test_quoting_is_checked_before_the_value_is_known():
    line = render_with_unknowns("x {{ step | q }} {{ step }}", {}, KNOWN_LATER, shell=True)

    assert line == "x <known after checkpoint-1> <known after checkpoint-1>"
    said = refusal(render_with_unknowns, "x '{{ step | q }}'", {}, KNOWN_LATER, shell=True)
    assert "inside single quotes" in said


def test_what_is_known_now_is_still_refused_beside_a_late_value():
    said = refusal(
        render_with_unknowns, "{{ step }} {{ x }}", {"x": "a b"}, KNOWN_LATER, shell=True
    )

    assert "not one plain word" in said


@pytest.mark.parametrize(
    "text",
    [
        "lines | unique | length == 1",
        "lines | map('int') | list | length == 2",
        "lines | map('int') | length == 2",
        "lines | select('equalto', '7') | length == 2",
        "(lines | unique)[0] == '7'",
    ],
)
def test_what_a_filter_leaves_has_a_length_and_a_first(text):
    assert evaluate(text, {"lines": ["7", "7"]}) is True
