"""A step as it starts: late values, secrets and the verb's own type."""

import pytest

from recovery.errors import TemplateError
from recovery.plan import render_step
from tests.plan.verbs import VERBS, book, plan_of


def started(text, number=0, **values):
    plan = plan_of(text)
    step = plan.steps[number]
    return render_step(step, VERBS[step.verb], {**plan.variables, **values})


LATE = book(
    "  - checkpoint: /c\n    save: {step: last_complete}\n"
    "  - launch: go --resume {{ step | q }}\n    log: /log/{{ step }}\n"
    '    env: {STEP: "{{ step }}"}\n    keep: /log/{{ step }}\n'
)


def test_a_late_value_is_put_in_when_the_step_starts():
    step, params = started(LATE, 1, step="1200 b")

    assert params.argument == "go --resume '1200 b'"
    assert params.log == "/log/1200 b"
    assert (step.env, step.keep) == ({"STEP": "1200 b"}, ("/log/1200 b",))
    assert step.commands == ("go --resume '1200 b'",)


def test_fields_stay_as_written_so_that_a_value_is_never_a_template():
    step, params = started(LATE, 1, step="{{ 7 * 7 }}")

    assert params.log == "/log/{{ 7 * 7 }}"
    assert step.fields["log"] == "/log/{{ step }}"


def test_a_late_value_that_was_never_saved_is_an_error_with_the_step():
    with pytest.raises(TemplateError, match="'step' is undefined"):
        started(LATE, 1)


def test_a_late_value_that_does_not_fit_is_an_error_with_place_and_step():
    text = book(
        "  - checkpoint: /c\n    save: {found: x}\n"
        '  - mesh: all_reduce\n    levels: "{{ found }}"\n'
    )

    with pytest.raises(TemplateError) as caught:
        started(text, 1, found="none")

    assert caught.value.message.startswith("book.yaml:6:5: mesh-1: levels: input should be")


def test_a_late_value_cannot_turn_one_command_into_two():
    text = book("  - checkpoint: /c\n    save: {step: x}\n  - run: go {{ step }}\n")

    with pytest.raises(TemplateError, match="not one plain word"):
        started(text, 1, step="1; reboot")


def test_a_secret_is_put_into_the_environment_only():
    text = book(
        '  - run: login $PW\n    env: {PW: "{{ password }}"}\n',
        "vars: {password: {secret: env:X}}\n",
    )

    step, params = started(text, password="hunter2")

    assert step.env == {"PW": "hunter2"}
    assert "hunter2" not in repr((params, step.commands, step.describe))


def test_nodes_are_those_still_in_and_folded_by_the_function_given():
    text = book('  - approve: "on {{ nodes | fold }}?"\n')

    _, params = started(text, nodes=["n2", "n4"], fold="&".join)

    assert params.argument == "on n2&n4?"


def test_variables_of_a_fragment_come_before_all_others():
    text = book("  - use: f\n    with: {word: inner}\n", "vars: {word: outer}\n")
    files = {"f": "fragment: f\nvars: {word: default}\nsteps:\n  - run: echo {{ word }}\n"}
    plan = plan_of(text, files=files)

    _, params = render_step(plan.steps[0], VERBS["run"], plan.variables)

    assert params.argument == "echo inner"
