"""`use`: other files' steps, where they are used."""

# ruff: noqa: E501 - a table of mistakes reads best with one row a line

import pytest

from recovery.errors import RunbookError
from tests.plan.verbs import book, plan_of

HEALTH = "fragment: health\nvars: {ready: all, label: x}\nsteps:\n  - check: gpu.count\n    gate: '{{ ready }}'\n  - run: echo {{ label }}\n    id: say\n"


def refusal(text, **given):
    with pytest.raises(RunbookError) as caught:
        plan_of(text, **given)
    return caught.value


def test_a_fragments_steps_stand_where_it_is_used():
    text = book("  - run: a\n  - use: health.yaml\n  - run: b\n")

    plan = plan_of(text, files={"health.yaml": HEALTH})

    assert [step.id for step in plan.steps] == ["run-1", "check-1", "say", "run-2"]
    assert str(plan.steps[1].place) == "health.yaml:4:5"


def test_a_whole_runbook_can_be_used_and_its_end_is_left_out():
    other = 'runbook: o\nnodes: "@bad"\nsteps:\n  - run: w\nfinally:\n  - report: html\n'

    plan = plan_of(book("  - use: o.yaml\n"), files={"o.yaml": other})

    assert [step.nodes for step in plan.steps] == [("n1",)]
    assert plan.finally_ == ()


def test_with_gives_values_to_the_variables_of_the_file():
    text = book("  - use: h\n    with: {ready: 2, label: '{{ cluster }}'}\n")

    plan = plan_of(text, files={"h": HEALTH})

    assert plan.steps[0].gate.number == 2
    assert plan.steps[1].commands == ("echo test",)
    assert plan.steps[1].variables == {"ready": 2, "label": "test"}


def test_the_runbook_the_inventory_and_overrides_come_over_a_files_defaults():
    text = book("  - use: h\n", "vars: {label: book}\n")

    assert plan_of(text, files={"h": HEALTH}).steps[1].commands == ("echo book",)
    assert plan_of(text, files={"h": HEALTH}, overrides={"ready": "1"}).steps[0].gate.number == 1


def test_nodes_and_when_of_use_reach_every_step():
    text = book("  - use: h\n    nodes: n3\n    when: a\n", "vars: {a: true}\n")
    inner = "fragment: f\nsteps:\n  - run: w\n    when: b or a\n  - run: w\n    nodes: n1\nvars: {b: 1}\n"

    plan = plan_of(text, files={"h": inner})

    assert [step.nodes for step in plan.steps] == [("n3",), ("n1",)]
    assert [step.when for step in plan.steps] == ["(a) and (b or a)", "a"]


def test_files_use_files():
    files = {
        "one": "fragment: a\nsteps:\n  - use: two\n    with: {label: '{{ deep }}'}\nvars: {deep: d}\n",
        "two": HEALTH,
    }

    plan = plan_of(book("  - use: one\n    with: {deep: e}\n"), files=files)

    assert plan.steps[1].commands == ("echo e",)


def test_a_file_that_uses_itself_is_refused():
    files = {"a": "fragment: a\nsteps: [{use: b}]\n", "b": "fragment: b\nsteps: [{use: a}]\n"}

    error = refusal(book("  - use: a\n"), files=files)

    assert error.message == "b:2:10: steps.0.use: a -> b -> a uses itself"


@pytest.mark.parametrize(
    ("steps", "files", "said"),
    [
        ("  - use: nope\n", {}, "book.yaml:4:5: steps.0.use: no runbook called 'nope'"),
        ("  - use: h\n", {"h": "a: [\n"}, "book.yaml:4:5: steps.0.use: h:2:1: not YAML"),
        ("  - use: h\n", {"h": "fragment: h\nsteps: [{rnu: w}]\n"}, "h:2:10: steps.0.rnu: 'rnu' is not a verb"),
        ("  - use: h\n    with: {labl: 1}\n", {"h": HEALTH}, "book.yaml:5:12: steps.0.with.labl: h has no such variable"),
        ("  - use: h\n    with: {label: '{{ nope }}'}\n", {"h": HEALTH}, "book.yaml:5:12: steps.0.with.label: 'nope' is not a variable"),
        ("  - use: h\n  - use: g\n", {"h": HEALTH, "g": HEALTH.replace("all", "any").replace("say", "tell")}, "book.yaml:5:5: steps.1.use: 'ready' has another default in h"),
        ("  - use: h\n  - use: h\n", {"h": HEALTH}, "h:7:5: steps.1.id: another step is called 'say'"),
    ],
)  # fmt: skip
def test_a_mistake_about_a_used_file_has_its_place(steps, files, said):
    error = refusal(book(steps), files=files)

    assert error.message.startswith(said)
    assert error.remedy


def test_a_file_used_twice_needs_an_id_for_each():
    text = book("  - use: h\n    id: first\n  - use: h\n    id: second\n")

    plan = plan_of(text, files={"h": HEALTH})

    assert [step.id for step in plan.steps] == ["check-1", "first-say", "check-2", "second-say"]


def test_a_value_that_is_known_later_cannot_be_handed_over_but_is_seen():
    steps = "  - checkpoint: /c\n    save: {step: x}\n  - use: h\n"
    uses = "fragment: f\nsteps:\n  - run: go {{ step | q }}\n"

    assert plan_of(book(steps), files={"h": uses}).steps[1].late == ("step",)
    error = refusal(book(steps + "    with: {label: '{{ step }}'}\n"), files={"h": HEALTH})
    assert "'step' is known after checkpoint-1, and is needed before the run" in error.message


def test_a_fragment_is_no_runbook():
    error = refusal(HEALTH)

    assert "'health' is a fragment, not a runbook" in error.message
