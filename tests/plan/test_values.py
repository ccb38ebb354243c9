"""A plan as values and back, and the digest that names it."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery.model.runbook import (
    Effect,
    Gate,
    GateKind,
    Limits,
    OnFail,
    Place,
    Plan,
    Rerun,
    Retry,
    RetryOn,
    Step,
)
from recovery.plan import plan_as_values, plan_from_values
from recovery.plan.values import digest_of
from tests.plan.verbs import book, cluster, plan_of

TEXT = st.text(max_size=8)
NUMBER = st.floats(0, 1e6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
MAPPING = st.dictionaries(TEXT, JSON, max_size=2)
TEXTS = st.lists(TEXT, max_size=2).map(tuple)


def steps(on_fail_steps):
    return st.builds(
        Step,
        id=TEXT,
        verb=TEXT,
        fields=MAPPING,
        place=st.builds(Place, TEXT, st.integers(1, 9), st.integers(1, 9)),
        nodes=TEXTS,
        head_only=st.booleans(),
        batch=TEXTS,
        timeout_s=NUMBER,
        retry=st.builds(
            Retry, st.integers(1, 9), NUMBER, NUMBER, st.frozensets(st.sampled_from(RetryOn))
        ),
        expect=TEXTS,
        gate=st.builds(Gate, st.sampled_from(GateKind), st.integers(0, 9)),
        on_fail=st.sampled_from(OnFail),
        on_fail_steps=on_fail_steps,
        save=st.dictionaries(TEXT, TEXT, max_size=2),
        env=st.dictionaries(TEXT, TEXT, max_size=2),
        good_for_s=st.none() | NUMBER,
        effect=st.sampled_from(Effect),
        rerun=st.sampled_from(Rerun),
        late=TEXTS,
        variables=MAPPING,
        commands=TEXTS,
    )


STEPS = st.lists(steps(st.lists(steps(st.just(())), max_size=1).map(tuple)), max_size=2).map(tuple)
PLANS = st.builds(
    Plan,
    runbook=TEXT,
    about=TEXT,
    cluster=TEXT,
    nodes=TEXTS,
    steps=STEPS,
    finally_=STEPS,
    variables=MAPPING,
    limits=st.builds(Limits, st.integers(1, 9), NUMBER),
    seed=st.integers(0, 9),
    digest=TEXT,
    secrets=TEXTS,
)


@given(PLANS)
def test_a_plan_comes_back_from_the_journal_as_it_was(plan):
    written = json.loads(json.dumps(plan_as_values(plan)))

    assert plan_from_values(written) == plan


TEXT_OF = book("  - run: echo {{ a }}\n    gate: 2\n  - check: gpu.count\n", "vars: {a: 1}\n")


def test_the_same_input_gives_the_same_digest():
    assert plan_of(TEXT_OF).digest == plan_of(TEXT_OF).digest
    assert len(plan_of(TEXT_OF).digest) == 64


@pytest.mark.parametrize(
    "other",
    [
        TEXT_OF.replace("gate: 2", "gate: 3"),
        TEXT_OF.replace("a: 1", "a: 2"),
        TEXT_OF.replace("echo", "printf"),
        TEXT_OF.replace("runbook: test", "runbook: other"),
        TEXT_OF.replace("gpu.count", "gpu.ecc"),
        TEXT_OF + "    timeout: 9s\n",
        TEXT_OF + "    expect: x\n",
        TEXT_OF + "finally:\n  - report: html\n",
    ],
)
def test_whatever_decides_what_is_done_changes_the_digest(other):
    assert plan_of(other).digest != plan_of(TEXT_OF).digest


def test_other_nodes_are_another_plan():
    assert plan_of(TEXT_OF, cluster(5)).digest != plan_of(TEXT_OF).digest
    assert plan_of(TEXT_OF, nodes="n1, n2").digest != plan_of(TEXT_OF).digest


def test_comments_words_and_the_seed_are_not_another_plan():
    plan = plan_of(TEXT_OF)
    moved = plan_of("# a comment\n" + TEXT_OF.replace("steps:", "about: words\nsteps:"))

    assert moved.digest == plan.digest
    assert digest_of(replace(plan, seed=99)) == plan.digest


def test_a_variable_called_like_a_field_still_counts():
    one, two = (plan_of(book("  - run: w\n", f"vars: {{place: {n}, seed: 0}}\n")) for n in (1, 2))

    assert one.digest != two.digest
