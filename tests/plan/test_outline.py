"""The plan in words, and how long it can take."""

import pytest

from recovery.model.runbook import Retry
from recovery.plan import outline, worst_case_s
from tests.fakes import a_step
from tests.plan.verbs import book, cluster, fold, plan_of

FOUR = ("n1", "n2", "n3", "n4")


@pytest.mark.parametrize(
    ("changes", "worst"),
    [
        ({}, 65),
        ({"retry": Retry(3, 5, 60)}, 3 * 65 + 5 + 10),
        ({"retry": Retry(4, 5, 8)}, 4 * 65 + 5 + 8 + 8),
        ({"at_once": 2}, 125),
        ({"at_once": 3}, 125),
        ({"n_waves": 2}, 130),
        ({"n_waves": 2, "at_once": 1}, 250),
        ({"batch": ("1", "100%")}, 130),
        ({"batch": ("1", "100%"), "retry": Retry(2, 5, 60)}, 270),
        ({"on_fail_steps": (a_step(timeout_s=10.0, nodes=FOUR),)}, 65 + 15 + 65),
    ],
)
def test_the_worst_case_counts_attempts_pauses_waves_batches_and_repairs(changes, worst):
    assert worst_case_s(a_step(nodes=FOUR, timeout_s=60.0, **changes)) == worst


def test_the_width_of_the_run_makes_waves():
    assert worst_case_s(a_step(nodes=FOUR, timeout_s=60.0), nodes_at_once=1) == 245


def test_waves_of_a_verb_count_in_the_worst_case():
    text = "  - power: cycle\n    inrush: {most}\n    timeout: 60s\n"
    at_once, in_waves = (
        plan_of(book(text.format(most=most)), cluster(4)).steps[0] for most in (8, 1)
    )

    assert (worst_case_s(at_once), worst_case_s(in_waves)) == (65, 4 * 65)


def test_the_outline_says_what_would_be_done():
    text = outline(
        plan_of(
            book(
                """\
  - check: [gpu.count, gpu.ecc]
    timeout: 60s
    retry: 3, 5s..60s on lost
    gate: 3
    on_fail: quarantine
    good_for: 1h
  - checkpoint: /ckpt
    save: {step: last_complete}
  - run: |
      cd /data
      ls {{ step | q }}
    nodes: head
    when: step > 3
    sudo: true
    batch: [1, 100%]
    env: {A: "{{ step }}"}
    parse: lines
    expect: lines
    agree: lines[0]
    on_fail:
      - reboot: 5m
finally:
  - report: [html]
""",
                "about: What it is for\nlimits: {run: 10m}\n",
            )
        ),
        fold,
    )

    assert text.split("\n")[:2] == ["test on test: 4 nodes n1+n2+n3+n4", "  What it is for"]
    assert text.split("\n")[4:] == [
        " 1. check-1  [read]  4 nodes n1+n2+n3+n4",
        "    check ('gpu.count', 'gpu.ecc')",
        "    limit 1 min; 3 attempts on lost; gate 3 of 4; a node that fails: quarantine; "
        "good for 1 h; at worst 3 min 30 s",
        " 2. checkpoint-1  [read]  4 nodes n1+n2+n3+n4",
        "    checkpoint /ckpt",
        "    limit 1 min; gate all; at worst 1 min 05 s",
        "    saves step",
        " 3. run-1  [write]  the first still in of n1+n2+n3+n4",
        "    run cd /data ls <known after checkpoint-1>",
        "    only when step > 3",
        "    $ cd /data",
        "      ls <known after checkpoint-1>",
        "    limit 1 min; batches 1, 100%; gate all; as root; at worst 3 min 15 s",
        "    expects lines; the same lines[0]",
        "    environment: A",
        "    known later: step",
        "    where it fails, these, then once more:",
        "    1. reboot-1  [disruptive]  4 nodes n1+n2+n3+n4",
        "       reboot 5m",
        "       limit 1 min; gate all; at worst 1 min 05 s",
        "finally, however the run ends:",
        " 1. report-1  [read]  4 nodes n1+n2+n3+n4",
        "    report ('html',)",
        "    limit 1 min; gate all; at worst 1 min 05 s",
        "",
        "at worst 8 min 55 s; the run stops after 10 min",
        "disruptive: reboot-1",
        "",
    ]
