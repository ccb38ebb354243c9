"""From a runbook to a plan: variables, nodes, gates, late values, and every refusal."""

import pytest

from recovery.errors import RunbookError
from recovery.model.runbook import Effect, Gate, GateKind, OnFail, Rerun
from tests.plan.verbs import book, cluster, plan_of


def refusal(text, inventory=None, **given):
    with pytest.raises(RunbookError) as caught:
        plan_of(text, inventory, **given)
    assert caught.value.remedy
    return caught.value


def said(text, inventory=None, **given):
    return refusal(text, inventory, **given).message


# --- variables


def test_inventory_variables_come_over_the_runbook_and_overrides_over_both():
    text = book("  - run: echo {{ a }} {{ b }} {{ c }}\n", "vars: {a: 1, b: 1, c: 1}\n")

    plan = plan_of(text, cluster(b=2, c=2), overrides={"c": "3"})

    assert plan.steps[0].commands == ("echo 1 2 3",)
    assert dict(plan.variables) == {"a": 1, "b": 2, "c": 3}


def test_a_variable_may_stand_on_others_in_any_order():
    top = "vars: {log: '{{ home }}/train.log', home: '/data/{{ job }}', job: run42}\n"

    plan = plan_of(book("  - run: cat {{ log }}\n", top))

    assert plan.steps[0].commands == ("cat /data/run42/train.log",)


def test_variables_that_stand_on_themselves_are_refused():
    message = said(book("  - run: echo {{ a }}\n", "vars: {a: '{{ b }}', b: '{{ a }}'}\n"))

    assert "book.yaml:3:8: vars.a: this variable is defined by itself" in message


def test_an_override_of_an_unknown_variable_is_refused():
    error = refusal(book("  - run: w\n", "vars: {min_nodes: 1}\n"), overrides={"min_node": "2"})

    assert "'min_node' is not a variable" in error.message
    assert '(did you mean "min_nodes"?)' in error.message
    assert error.remedy == "variables of the runbook: min_nodes"


@pytest.mark.parametrize(
    ("given", "value"),
    [("3", 3), ("true", True), ("0.5", 0.5), ("'3'", "3"), ("@gpu", "@gpu"), ("a: b", "a: b"),
     ("[a]", "[a]"), ("{{ x }}", "{{ x }}"), ("a # b", "a # b"), ("~", None)],
)  # fmt: skip
def test_an_override_is_read_as_one_scalar_and_never_as_a_template(given, value):
    plan = plan_of(book("  - run: w\n", "vars: {v: 1}\n"), overrides={"v": given})

    assert plan.variables["v"] == value


def test_an_override_that_is_ambiguous_in_yaml_is_refused():
    message = refusal_of_document(overrides={"v": "no"})

    assert message.startswith("-e v:1:1: 'no' is ambiguous")


def refusal_of_document(**given):
    from recovery.errors import DocumentError

    with pytest.raises(DocumentError) as caught:
        plan_of(book("  - run: w\n", "vars: {v: 1}\n"), **given)
    return caught.value.message


def test_a_misspelt_variable_is_named_with_its_place():
    text = book("  - run: ls {{ chekpoints }}\n", "vars: {checkpoints: /x}\n")

    error = refusal(text)

    assert error.message == (
        "book.yaml:5:5: steps.0.run: 'chekpoints' is not a variable (did you mean \"checkpoints\"?)"
    )
    assert error.remedy == "define it under vars:, or with -e NAME=VALUE"


def test_a_variable_without_a_value_must_be_given():
    text = book("  - run: ls {{ target }}\n", "vars: {target: null}\n")

    error = refusal(text)

    assert error.message.endswith("variable 'target' has no value")
    assert error.remedy == "give it: -e target=VALUE"
    assert plan_of(text, overrides={"target": "/x"}).steps[0].commands == ("ls /x",)


def test_a_template_in_the_inventory_is_not_taken_for_a_value():
    text = book("  - run: ls {{ bmc }}\n")

    assert "is itself a template" in said(text, cluster(bmc="{{ inventory_hostname }}-bmc"))
    assert plan_of(book("  - run: ls\n"), cluster(bmc="{{ x }}")).variables == {}


def test_a_reserved_name_cannot_be_a_variable():
    assert "vars.nodes: this name has a meaning" in said(book("  - run: w\n", "vars: {nodes: 1}\n"))


def test_templates_know_the_cluster_their_nodes_and_how_to_fold_them():
    plan = plan_of(book('  - approve: "{{ cluster }}: {{ nodes | fold }}, {{ run }}?"\n'))

    assert plan.steps[0].describe == "approve test: n1+n2+n3+n4, <this run's id>?"


# --- secrets


SECRET = "vars: {password: {secret: env:BMC_PASSWORD}}\n"


def test_a_secret_stays_a_reference_and_reaches_a_command_by_its_environment():
    text = book('  - run: login $PW\n    env: {PW: "{{ password }}"}\n', SECRET)

    plan = plan_of(text)

    assert plan.secrets == ("password",)
    assert plan.variables["password"] == {"secret": "env:BMC_PASSWORD"}
    assert plan.steps[0].env == {"PW": "{{ password }}"}


@pytest.mark.parametrize(
    "step",
    [
        "run: login {{ password }}",
        "run: login {{ password | q }}",
        'approve: "{{ password }}?"',
        "run: w\n    when: password == 'x'",
        "run: w\n    expect: stdout == password",
        "run: w\n    keep: '{{ password }}'",
    ],
)
def test_a_secret_may_stand_nowhere_else(step):
    error = refusal(book(f"  - {step}\n", SECRET))

    assert "'password' is a secret and may stand in env: only" in error.message
    assert "{{ password }}" in error.remedy


def test_a_secret_inside_another_variable_is_refused():
    top = 'vars: {password: {secret: env:X}, url: "http://u:{{ password }}@x"}\n'

    assert "vars.url: 'password' is a secret" in said(book("  - run: w\n", top))


@pytest.mark.parametrize(
    "held",
    [{"ansible_password": "hunter2"}, {"bmc_token": "hunter2"}, {"bmc": {"password": "hunter2"}}],
)
def test_what_looks_like_a_secret_in_the_inventory_never_enters_the_plan(held):
    plan = plan_of(book("  - run: w\n"), cluster(**held))

    name = next(iter(held))
    assert "hunter2" not in repr(plan)
    assert plan.variables[name] == {"secret": f"inventory:{name}"}
    assert plan.secrets == (name,)


def test_a_secret_on_the_command_line_is_refused():
    message = said(book("  - run: w\n", SECRET), overrides={"password": "hunter2"})

    assert "'password' is a secret, and a command line is seen by everybody" in message


# --- nodes and gates


def test_a_step_runs_on_the_runbooks_nodes_unless_it_says_its_own():
    plan = plan_of(book('  - run: w\n  - run: w\n    nodes: "@bad"\n'))

    assert plan.nodes == ("n1", "n2", "n3", "n4")
    assert [step.nodes for step in plan.steps] == [("n1", "n2", "n3", "n4"), ("n1",)]
    assert plan.steps[1].nodes_expression == "@bad"


def test_head_means_the_first_node_still_in():
    step = plan_of(book("  - run: w\n    nodes: head\n")).steps[0]

    assert step.head_only
    assert step.nodes == ("n1", "n2", "n3", "n4")


def test_nodes_limits_every_step():
    text = book('  - run: w\n  - run: w\n    nodes: "n1, n3"\n')

    plan = plan_of(text, nodes="n3, n4")

    assert plan.nodes == ("n3", "n4")
    assert [step.nodes for step in plan.steps] == [("n3", "n4"), ("n3",)]


def test_nodes_that_the_runbook_does_not_name_are_refused():
    text = 'runbook: t\nnodes: "@bad"\nsteps:\n  - run: w\n'

    assert said(text, nodes="n3") == "--nodes:1:1: 'n3' names none of the nodes of this runbook"
    assert "no node called 'n9'" in said(text, nodes="n9")


def test_a_step_without_nodes_is_refused_unless_empty_is_ok():
    text = book('  - run: w\n    nodes: "@empty"\n')

    assert "steps.0.nodes: '@empty' selects no node" in said(text)
    assert plan_of(text + "    empty: ok\n").steps[0].nodes == ()


def test_a_step_left_without_nodes_by_the_limit_says_so():
    assert "selects no node after --nodes" in said(
        book('  - run: w\n    nodes: "@bad"\n'), nodes="n2"
    )


def test_an_unknown_node_is_named_with_its_place():
    assert said(book("  - run: w\n    nodes: n9\n")) == (
        "book.yaml:5:5: steps.0.nodes: no node called 'n9'"
    )
    assert said("runbook: t\nnodes: n9\nsteps:\n  - run: w\n") == (
        "book.yaml:2:1: nodes: no node called 'n9'"
    )


def test_a_runbook_must_say_its_nodes():
    error = refusal("runbook: t\nsteps:\n  - run: w\n")

    assert error.message == "book.yaml:1:1: this says no nodes"


def test_a_gate_template_is_read_with_its_variables():
    text = book('  - run: w\n    gate: "{{ ready }}"\n', "vars: {ready: 75%}\n")

    assert plan_of(text).steps[0].gate == Gate(GateKind.PERCENT, 75)
    assert plan_of(text, overrides={"ready": "3"}).steps[0].gate == Gate(GateKind.COUNT, 3)
    assert "gate: 'most' is not a gate" in said(text, overrides={"ready": "most"})


@pytest.mark.parametrize(
    ("gate", "words"),
    [("5", "a gate of 5 on 4 nodes can never open"),
     ("all but 4", "a gate of all but 4 on 4 nodes would open when none passed")],
)  # fmt: skip
def test_a_gate_that_does_not_fit_its_nodes_is_refused(gate, words):
    assert words in said(book(f"  - run: w\n    gate: {gate}\n"))


def test_a_gate_on_the_head_counts_one_node():
    assert "a gate of 2 on 1 node can never" in said(
        book("  - run: w\n    nodes: head\n    gate: 2\n")
    )


# --- what a verb knows


def test_effect_and_rerun_come_from_the_verb_unless_a_line_says_its_own():
    plan = plan_of(book("  - run: w\n  - run: w\n    effect: read\n  - check: gpu.count\n"))

    assert [step.effect for step in plan.steps] == [Effect.WRITE, Effect.READ, Effect.READ]
    assert [step.rerun for step in plan.steps] == [Rerun.ASK, Rerun.SAFE, Rerun.SAFE]


def test_a_disruptive_verb_cannot_be_called_harmless():
    assert "power is disruptive, not read" in said(book('  - power: "off"\n    effect: read\n'))
    assert plan_of(book("  - check: gpu.count\n    effect: write\n")).steps[0].effect == "write"


def test_an_unknown_check_is_named_with_the_nearest():
    error = refusal(book("  - check: [gpu.count, gpu.eccc]\n"))

    assert error.message == (
        "book.yaml:4:5: steps.0.check: 'gpu.eccc' is not a check (did you mean \"gpu.ecc\"?)"
    )


def test_values_of_a_verb_are_held_to_its_type_with_their_place():
    assert "book.yaml:4:5: steps.0.mesh: input should be 'all_reduce' or 'all_gather'" in said(
        book("  - mesh: allreduce\n")
    )
    assert "book.yaml:6:5: steps.0.size: '8' is not a size" in said(
        book('  - mesh: all_reduce\n    size: "{{ s }}"\n', "vars: {s: 8}\n")
    )


def test_a_rendered_number_fits_a_number():
    text = book('  - mesh: all_reduce\n    levels: "{{ deep }}"\n', "vars: {deep: 3}\n")

    assert plan_of(text).steps[0].fields["levels"] == "{{ deep }}"
    assert "levels: input should be" in said(text, overrides={"deep": "three"})


def test_a_value_with_a_meaning_to_a_shell_is_refused_before_any_node_is_touched():
    text = book("  - run: ls {{ folder }}\n", "vars: {folder: a b}\n")

    assert "steps.0.run: the value 'a b' in a command is not one plain word" in said(text)
    assert plan_of(text.replace("{{ folder }}", "{{ folder | q }}")).steps[0].commands == (
        "ls 'a b'",
    )


def test_only_lines_for_a_shell_are_held_to_its_rules():
    text = book('  - approve: "{{ words }}?"\n', "vars: {words: go on & on}\n")

    assert plan_of(text).steps[0].describe == "approve go on & on?"


# --- values known later


LATE = (
    "  - checkpoint: /ckpt\n    save: {step: last_complete}\n"
    "  - launch: go --resume {{ step | q }}\n    log: /log/{{ step }}\n"
)


def test_a_value_of_an_earlier_step_is_shown_as_known_later():
    launch = plan_of(book(LATE)).steps[1]

    assert launch.late == ("step",)
    assert launch.commands == ("go --resume <known after checkpoint-1>",)
    assert launch.fields["argument"] == "go --resume {{ step | q }}"


def test_a_late_value_that_does_not_fit_yet_is_no_error():
    text = book(LATE + '  - mesh: all_reduce\n    levels: "{{ step }}"\n')

    mesh = plan_of(text).steps[2]

    assert (mesh.late, mesh.describe) == (("step",), "mesh all_reduce")


def test_using_a_value_before_it_is_saved_is_refused():
    text = book("  - run: go {{ step | q }}\n  - checkpoint: /c\n    save: {step: x}\n")

    error = refusal(text)

    assert error.message == (
        "book.yaml:4:5: steps.0.run: 'step' is saved only later, by the step at book.yaml:5:5"
    )
    assert error.remedy == "move this step behind it"


@pytest.mark.parametrize("key", ["gate", "timeout", "nodes", "retry", "at_once", "batch"])
def test_what_a_plan_must_know_cannot_be_late(key):
    text = book(LATE + f'  - run: w\n    {key}: "{{{{ step }}}}"\n')

    assert f"steps.2.{key}: 'step' is known after checkpoint-1, and is needed before" in said(text)


def test_a_condition_may_be_late_and_its_names_are_checked_now():
    assert plan_of(book(LATE + "  - run: w\n    when: step > 3\n")).steps[2].late == ("step",)
    assert "'stp' is not a variable" in said(book(LATE + "  - run: w\n    when: stp > 3\n"))
    assert "division by zero" in said(book("  - run: w\n    when: 1 / 0\n"))


def test_a_saved_name_must_not_hide_a_variable():
    assert "save.step: 'step' is a variable already" in said(book(LATE, "vars: {step: 1}\n"))


# --- ids and repairs


def test_steps_are_numbered_by_their_verb():
    plan = plan_of(
        book("  - run: w\n  - check: gpu.count\n  - run: w\n    id: run-2\n  - run: w\n")
    )

    assert [step.id for step in plan.steps] == ["run-1", "check-1", "run-2", "run-3"]


def test_two_steps_of_one_name_are_refused():
    message = said(book("  - run: w\n    id: a\n  - run: w\n    id: a\n"))

    assert "steps.1.id: another step is called 'a', at book.yaml:5:5" in message


def test_a_list_of_steps_repairs_what_failed():
    text = book("  - check: gpu.count\n    nodes: n2\n    on_fail:\n      - reboot: 5m\n")

    step = plan_of(text).steps[0]

    assert step.on_fail is OnFail.ABORT
    assert [(one.id, one.nodes) for one in step.on_fail_steps] == [("reboot-1", ("n2",))]


def test_all_that_is_wrong_is_told_at_once():
    message = said(book("  - check: gpu.cuont\n  - run: ls {{ a }}\n  - run: w\n    gate: 9\n"))

    assert [line.split(": ")[0] for line in message.split("\n")[::2]] == [
        "book.yaml:4:5", "book.yaml:5:5", "book.yaml:7:5",
    ]  # fmt: skip
