"""The gate fails closed."""

import pytest

from recovery.engine.gate import Decision, decide, needed
from recovery.model.kind import NodeResult
from recovery.model.runbook import Gate, GateKind, OnFail
from recovery.model.verdict import failed, passed, single, unknown, warned

GOOD = passed("fine")
BAD = failed("broken", remedy="mend it")
SILENT = unknown("no answer", remedy="look at it")
ODD = warned("odd", remedy="look at it")


def results(*findings):
    return {
        f"n{i}": f and NodeResult(node=f"n{i}", verdict=single(f)) for i, f in enumerate(findings)
    }


@pytest.mark.parametrize(
    ("gate", "total", "expected"),
    [
        (Gate(), 8, 8),
        (Gate(GateKind.ANY), 8, 1),
        (Gate(GateKind.COUNT, 5), 8, 5),
        (Gate(GateKind.PERCENT, 90), 8, 8),
        (Gate(GateKind.PERCENT, 50), 7, 4),
        (Gate(GateKind.ALL_BUT, 2), 8, 6),
        (Gate(GateKind.ALL_BUT, 9), 8, 1),
    ],
)
def test_needed_counts_nodes_and_rounds_percent_up(gate, total, expected):
    assert needed(gate, total) == expected


def test_no_nodes_at_all_shut_the_gate():
    assert decide(Gate(GateKind.ANY), {}).decision is Decision.SHUT


def test_no_nodes_open_the_gate_only_when_the_step_says_so():
    assert decide(Gate(), {}, empty_ok=True).opens


def test_a_node_that_never_answered_does_not_count_as_passed():
    assert decide(Gate(), results(GOOD, None)).decision is Decision.UNDECIDED


def test_an_unknown_verdict_blocks_like_a_failure():
    ruling = decide(Gate(), results(GOOD, SILENT))

    assert not ruling.opens
    assert ruling.silent == ("n1",)


def test_a_warning_passes():
    assert decide(Gate(), results(GOOD, ODD)).decision is Decision.OPEN


def test_a_failure_shuts_the_gate_even_if_others_are_silent():
    assert decide(Gate(), results(BAD, SILENT)).decision is Decision.SHUT


def test_silence_that_could_decide_is_undecided():
    gate = Gate(GateKind.COUNT, 2)

    assert decide(gate, results(GOOD, SILENT, BAD)).decision is Decision.UNDECIDED
    assert decide(gate, results(SILENT, BAD, BAD)).decision is Decision.SHUT


def test_enough_passing_nodes_open_the_gate_without_the_failed_ones():
    ruling = decide(Gate(GateKind.COUNT, 2), results(GOOD, GOOD, BAD))

    assert ruling.decision is Decision.OPEN_WITHOUT
    assert ruling.failed == ("n2",)


def test_failed_nodes_stay_in_when_the_runbook_says_continue():
    ruling = decide(Gate(GateKind.ANY), results(GOOD, BAD), on_fail=OnFail.CONTINUE)

    assert ruling.decision is Decision.OPEN


def test_what_the_step_says_as_a_whole_shuts_the_gate_over_passing_nodes():
    assert decide(Gate(), results(GOOD), step=single(BAD)).decision is Decision.SHUT
    assert decide(Gate(), results(GOOD), step=single(SILENT)).decision is Decision.UNDECIDED


def test_a_gate_of_more_nodes_than_there_are_never_opens():
    assert not decide(Gate(GateKind.COUNT, 3), results(GOOD, GOOD)).opens
