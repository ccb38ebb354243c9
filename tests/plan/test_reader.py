"""Reading a runbook: each kind of mistake has its place, its words and its remedy."""

# ruff: noqa: E501 - a table of mistakes reads best with one row a line

import textwrap

import pytest

from recovery.errors import DocumentError, RunbookError
from recovery.plan.reader import read_runbook
from tests.plan.verbs import VERBS, book


def read(text):
    return read_runbook(textwrap.dedent(text), "book.yaml", VERBS)


def refusal(text):
    with pytest.raises(RunbookError) as caught:
        read(text)
    assert caught.value.exit_code == 2
    assert caught.value.remedy
    return caught.value


def step(keys):
    """A runbook whose one step begins on line 4 with these lines."""
    lines = textwrap.dedent(keys).strip().split("\n")
    return book("\n".join(f"  {'- ' if i == 0 else '  '}{one}" for i, one in enumerate(lines)))


def test_a_whole_runbook_is_read():
    found = read(
        """
        runbook: night
        about: All keys at once
        nodes: "@gpu"
        vars: {ready: 2}
        limits: {nodes_at_once: 64, run: 1h}
        steps:
          - check: [gpu.count]
            id: count
            when: ready > 1
            gate: "{{ ready }}"
            on_fail:
              - reboot: 5m
        finally:
          - report: [html]
        """
    )

    assert (found.name, found.nodes, found.variables) == ("night", "@gpu", {"ready": 2})
    assert (found.limits.nodes_at_once, found.limits.run) == (64, 3600.0)
    assert [one.verb for one in (*found.steps, *found.finally_)] == ["check", "report"]
    assert found.steps[0].on_fail_steps[0].argument == "5m"
    assert str(found.steps[0].place("gate")) == "book.yaml:11:5"


@pytest.mark.parametrize(
    ("keys", "said", "remedy"),
    [
        ("chek: [gpu.count]", "4:5: steps.0.chek: 'chek' is not a verb (did you mean \"check\"?)", "one of: "),
        ("timeout: 5s", "4:5: steps.0 has no verb", "one of: approve"),
        ("run: x\ncheck: z", "5:5: steps.0.check: two verbs in one step: run and check", "each a step"),
        ("run: x\nretires: 3", "5:5: steps.0.retires is not a key here (did you mean \"retry\"?)", "keys of every step"),
        ("mesh: all_reduce\nlevel: 3", "5:5: steps.0.level is not a key here (did you mean \"levels\"?)", "keys of mesh: size, only, levels"),
        ("run: x\nlevels: 8", "5:5: steps.0.levels is a key of mesh, not of run", "take it out"),
        ("run: x\ntimeout: 60", "5:5: steps.0.timeout: 60 has no unit", "write 60s"),
        ("run: x\ntimeout: 0s", "5:5: steps.0.timeout: 0s leaves no time", "write 1s"),
        ("run: x\ngate: most", "5:5: steps.0.gate: 'most' is not a gate", "write all, any"),
        ("run: x\ngate: 0", "5:5: steps.0.gate: a gate of 0 opens when nothing passed", "write 1"),
        ("run: x\nretry: often", "5:5: steps.0.retry: 'often' is not a retry", "3, 5s..60s on lost"),
        ("run: x\non_fail: ignore", "5:5: steps.0.on_fail: 'ignore' is not what a failing node does", "abort, quarantine"),
        ("run: x\nbatch: [0]", "5:5: steps.0.batch: '0' is not a batch size", "[1, 10%, 100%]"),
        ("run: x\nat_once: many", "5:5: steps.0.at_once: 'many' is not a number from 1 up", "whole number"),
        ("run: x\nparse: xml", "5:5: steps.0.parse: 'xml' is not a way to parse", "lines, json"),
        ("run: x\nparse: 'regex:('", "5:5: steps.0.parse: not a regular expression", "mend"),
        ("run: x\neffect: reads", "5:5: steps.0.effect: 'reads' is not an effect (did you mean \"read\"?)", "read, write"),
        ("run: x\nrerun: always", "5:5: steps.0.rerun: 'always' is not a way to rerun", "safe, ask, never"),
        ("run: x\nsudo: 1", "5:5: steps.0.sudo: 1 is not true or false", "write true or false"),
        ("run: x\ndetach: 'true'", "5:5: steps.0.detach: 'true' is not true or false", "write true"),
        ("run: x\nempty: yep", "5:5: steps.0.empty: 'yep' is not a word for empty", "empty: ok"),
        ("run: x\nsave: last", "5:5: steps.0.save: 'last' is not a mapping", "name: value"),
        ("run: x\nsave: {step: 5}", "5:5: steps.0.save: step takes an expression, not 5", "last_complete"),
        ("run: x\nenv: {a: [1]}", "5:5: steps.0.env: the value of a is not text", "quotes"),
        ("run: x\nenv: {a-b: x}", "5:5: steps.0.env: 'a-b' is not a name", "letters"),
        ("run: x\nid: 5", "5:5: steps.0.id: 5 is not a name", "begin with a letter"),
        ("run: x\nnodes: [a, b]", "5:5: steps.0.nodes: ['a', 'b'] is not text", "text"),
        ("run: x\nwhen: true", "5:5: steps.0.when: True is not text", "text"),
        ("run: x\nwhen: '{{ x }}'", "5:5: steps.0.when: '{{ x }}' is a template, and a bare", "braces"),
        ("run: x\nexpect: 'a ='", "5:5: steps.0.expect: not a template", "mend"),
        ("run: x\nexpect: [a, 'b | uniqe']", "5:17: steps.0.expect.1: not a template: no filter named 'uniqe' (did you mean \"unique\"?)", "mend"),
        ("run: 'x {{ y'", "4:5: steps.0.run: not a template", "mend"),
        ("run: x\nparse: csv\nexpect: lines | length == 8", "6:5: steps.0.expect: lines is not read by parse: csv; it gives rows", "write rows, or change parse"),
        ("run: x\nparse: 'regex:(a)'\nagree: json.a", "6:5: steps.0.agree: json is not read by parse: regex:(a); it gives match", "write match"),
        ("use: other.yaml\ngate: any", "5:5: steps.0.gate is not a key here", "one of: use, with, id, nodes, when"),
        ("run: x\n7: z", "5:5: steps.0.7: this key is not text", 'write "7" in quotes'),
        ("run: x\non_fail: [{rnu: z}]", "5:16: steps.0.on_fail.0.rnu: 'rnu' is not a verb (did you mean \"run\"?)", "one of"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_step_is_named_with_place_and_remedy(keys, said, remedy):
    error = refusal(step(keys))

    assert error.message.startswith(f"book.yaml:{said}")
    assert remedy in error.remedy


@pytest.mark.parametrize(
    ("text", "said", "remedy"),
    [
        ("just words", "1:1: this is not a runbook", "begin with runbook"),
        ("", "1:1: this is not a runbook", "begin with runbook"),
        ("- run: x", "1:1: this is not a runbook", "begin with runbook"),
        ("runbook: a\n", "1:1: steps is missing", "add steps:"),
        ("runbook: a\nsteps: []\n", "2:1: steps: list should have at least 1 item", "README"),
        ("runbook: a\nsteps: {run: x}\n", "2:1: steps: input should be a valid list", "README"),
        ("runbook: a\nsteps: [x]\n", "2:9: steps.0: a step is a mapping", "begin with its verb"),
        ("steps: [{run: x}]\n", "1:1: this has no name", "runbook: NAME, or fragment"),
        ("runbook: a\nfragment: b\nsteps: [{run: x}]", "1:1: this has two names", "runbook"),
        ("runbook: a\nstep: []\nsteps: [{run: x}]", "2:1: step is not a key here (did you mean \"steps\"?)", "one of: runbook"),
        ("runbook: a\nlimits: {runn: 1h}\nsteps: [{run: x}]", "2:10: limits.runn is not a key here (did you mean \"run\"?)", "nodes_at_once, run"),
        ("runbook: a\nlimits: {run: 4}\nsteps: [{run: x}]", "2:10: limits.run: 4 has no unit", "4h"),
        ("runbook: a\nvars: [x]\nsteps: [{run: x}]", "2:1: vars: ['x'] is not a mapping", "name: value"),
        ("runbook: a\nvars: {a-b: 1}\nsteps: [{run: x}]", "2:1: vars: 'a-b' is not a name", "letters"),
        ("fragment: a\nsteps: [{run: x}]\nfinally: [{run: z}]", "3:1: finally: a fragment ends", "uses it"),
    ],
)  # fmt: skip
def test_a_mistake_at_the_top_is_named_with_place_and_remedy(text, said, remedy):
    error = refusal(text)

    assert error.message.startswith(f"book.yaml:{said}")
    assert remedy in error.remedy


@pytest.mark.parametrize(
    ("scalar", "why"),
    [
        ("on", "a boolean in YAML 1.1"),
        ("no", "a boolean in YAML 1.1"),
        ("0777", "octal in YAML 1.1"),
        ("12:30", "base 60 in YAML 1.1"),
        ("1_000", "a number in YAML 1.1"),
        ("1e3", "text in YAML 1.1"),
        ("0x1F", "a number in YAML 1.1"),
        ("2024-01-01", "a date in YAML 1.1"),
    ],
)
def test_a_scalar_that_versions_of_yaml_read_differently_is_refused(scalar, why):
    with pytest.raises(DocumentError, match=why) as caught:
        read(f"runbook: a\nvars: {{x: {scalar}}}\nsteps: [{{run: x}}]\n")

    assert caught.value.message.startswith("book.yaml:2:11: ")


def test_the_long_form_of_a_retry_needs_no_quotes_around_on():
    found = read(book("  - run: x\n    retry: {times: 3, from: 5s, on: [lost]}\n"))

    assert found.steps[0].common["retry"] == {"times": 3, "from": "5s", "on": ["lost"]}


def test_a_key_that_stands_twice_is_refused():
    with pytest.raises(DocumentError, match="'run' stands twice"):
        read("runbook: a\nsteps:\n  - run: x\n    run: y\n")


def test_all_mistakes_are_told_at_once_in_the_order_of_their_places():
    error = refusal(book("  - rnu: x\n  - run: z\n    timeout: 5\n    gat: all\n"))

    places = [line.split(": ")[0] for line in error.message.split("\n") if "book.yaml" in line]
    assert places == ["book.yaml:4:5", "book.yaml:6:5", "book.yaml:7:5"]
    assert error.remedy == "mend the 3 places named"
    assert "write 5s for seconds" in error.message


def test_templates_may_stand_where_a_value_is_known_only_with_its_variables():
    found = read(
        step(
            """
            mesh: "{{ collective }}"
            timeout: "{{ limit }}"
            retry: "{{ tries }}"
            gate: "{{ ready }}"
            batch: "{{ first }}"
            """
        )
    )

    assert found.steps[0].common["gate"] == "{{ ready }}"
