"""The loop: order, gates, quarantine, retries, batches, finally, stop, resume, probe."""

import pytest

from recovery.model.output import Ending, Output
from recovery.model.runbook import Effect, Gate, GateKind, OnFail, Rerun, Retry, RetryOn
from recovery.model.verdict import Level
from recovery.steps.drain import DRAIN
from tests.engine.runs import Asker, Bench, KilledError, line
from tests.fakes import finished

ALL = ["n1", "n2", "n3", "n4"]
LOST = Output(Ending.NEVER_STARTED, reason="no route")


def bad_on(*names, lines=None, output=None):
    def answer(node, command):
        if node.name in names and (lines is None or command.line in lines):
            return output or finished(status=1, stderr="broken")
        return finished(f"{node.name}\n")

    return answer


def test_steps_run_in_order_on_all_nodes_and_the_run_is_done():
    bench = Bench()

    end = bench.carry_out(line("a", "one"), line("b", "two"))

    assert (end.outcome, end.exit_code) == ("done", 0)
    assert [asked for _, asked in bench.transport.asked] == ["one"] * 4 + ["two"] * 4


def test_a_failing_node_shuts_the_default_gate_and_nothing_follows():
    bench = Bench(bad_on("n2"))

    end = bench.carry_out(line("a", "one"), line("b", "two"))

    assert (end.outcome, end.exit_code) == ("shut", 1)
    assert bench.asked("two") == []
    assert "recover resume r" in end.next_command


def test_every_node_unreachable_is_undecided():
    end = Bench(bad_on(*ALL, output=LOST)).carry_out(line("a"))

    assert (end.outcome, end.exit_code) == ("undecided", 3)


def test_quarantined_nodes_leave_the_later_steps_with_reason_and_are_drained():
    bench = Bench(bad_on("n2", lines={"one"}))

    end = bench.carry_out(
        line("a", "one", gate=Gate(GateKind.COUNT, 3), on_fail=OnFail.QUARANTINE),
        line("b", "two"),
    )

    assert end.exit_code == 0
    assert bench.asked("two") == ["n1", "n3", "n4"]
    assert bench.drained == [(("n2",), "a: command: exit status 1: broken")]
    assert "drained in Slurm" in bench.story.quarantined["n2"].reason


def test_failed_nodes_are_left_out_but_not_drained_when_the_gate_is_met_without_quarantine():
    bench = Bench(bad_on("n2", lines={"one"}))

    bench.carry_out(line("a", "one", gate=Gate(GateKind.ANY)), line("b", "two"))

    assert bench.asked("two") == ["n1", "n3", "n4"]
    assert bench.drained == []


def test_failed_nodes_stay_when_the_runbook_says_continue():
    bench = Bench(bad_on("n2", lines={"one"}))

    bench.carry_out(
        line("a", "one", gate=Gate(GateKind.ANY), on_fail=OnFail.CONTINUE), line("b", "two")
    )

    assert bench.asked("two") == ALL


def test_no_node_left_shuts_the_gate():
    bench = Bench()
    end = bench.carry_out(line("a", nodes=()), line("b"))

    assert end.exit_code == 1
    assert "no node is left" in end.reason
    assert bench.asked("true") == []


def test_work_that_waits_for_each_other_is_begun_at_once_however_narrow_the_run():
    bench = Bench()

    end = bench.carry_out(line("m", verb="meet"), nodes_at_once=1)

    assert end.exit_code == 0, end.reason


def test_finally_runs_after_a_shut_gate_and_does_not_change_the_end():
    bench = Bench(bad_on("n1"))

    end = bench.carry_out(line("a", "one"), finally_=[line("f", "tidy")])

    assert bench.asked("tidy") == ALL
    assert end.exit_code == 1
    assert "gate of a" in end.reason


def test_only_the_failing_node_is_tried_again_and_attempts_count_from_1():
    tries = []

    def answer(node, command):
        tries.append(node.name)
        return LOST if node.name == "n3" and tries.count("n3") < 3 else finished()

    bench = Bench(answer)
    end = bench.carry_out(line("a", retry=Retry(times=3, from_s=5, cap_s=60)))

    assert end.exit_code == 0
    assert sorted(tries) == ["n1", "n2", "n3", "n3", "n3", "n4"]
    assert bench.story.steps["a"].attempt == 3
    assert len(bench.clock.slept) == 2


@pytest.mark.parametrize("times", [1, 2])
def test_a_node_that_never_passes_fails_after_its_attempts(times):
    bench = Bench(bad_on("n1"))
    retry = Retry(times=times, on=frozenset({RetryOn.RC}))

    end = bench.carry_out(line("a", retry=retry))

    assert end.exit_code == 1
    assert bench.asked("true").count("n1") == times


def test_expectations_are_held_whatever_the_number_of_attempts():
    bench = Bench(bad_on())

    end = bench.carry_out(line("a", parse="lines", expect=("lines[0] == 'n1'",)))

    assert end.exit_code == 1
    assert bench.story.steps["a"].results["n1"].verdict.level is Level.PASS
    assert bench.story.steps["a"].results["n2"].verdict.level is Level.FAIL


def test_an_expectation_that_cannot_be_evaluated_is_unknown():
    bench = Bench()

    end = bench.carry_out(line("a", expect=("nonsense == 1",)))

    assert end.exit_code == 3


def test_the_value_that_differs_from_the_majority_is_named():
    bench = Bench(lambda node, command: finished("550\n" if node.name != "n4" else "535\n"))

    bench.carry_out(line("a", parse="lines", agree="lines[0]", gate=Gate(GateKind.ANY)))

    results = bench.story.steps["a"].results
    assert results["n1"].verdict.level is Level.PASS
    assert results["n4"].verdict.worst.finding == 'lines[0] is "535", 3 of 4 nodes have "550"'


def test_without_a_majority_nobody_is_right():
    half = {"n1": "a", "n2": "a", "n3": "b", "n4": "b"}
    bench = Bench(lambda node, command: finished(half[node.name]))

    end = bench.carry_out(line("a", parse="lines", agree="lines[0]"))

    assert end.exit_code == 3


def test_a_canary_that_fails_stops_the_other_batches():
    bench = Bench(bad_on("n1"))

    end = bench.carry_out(line("a", batch=("1", "100%"), gate=Gate(GateKind.ANY)))

    assert bench.asked("true") == ["n1"]
    assert end.exit_code != 0
    assert "not asked" in bench.story.steps["a"].results["n2"].verdict.worst.finding


def test_batches_go_on_while_the_gate_can_be_met():
    bench = Bench(bad_on("n3"))

    end = bench.carry_out(line("a", batch=("1", "50%", "100%"), gate=Gate(GateKind.ALL_BUT, 1)))

    assert bench.asked("true") == ALL
    assert end.exit_code == 0


def test_a_step_that_is_not_wanted_is_skipped():
    bench = Bench()

    end = bench.carry_out(
        line("a", "one", when="deep"), line("b", "two"), variables={"deep": False}
    )

    assert end.exit_code == 0
    assert bench.asked("one") == []
    assert bench.story.steps["a"].outcome == "skipped"


def test_saved_values_reach_later_steps():
    bench = Bench()

    bench.carry_out(
        line("c", "x", verb="choose", save={"step": "last"}),
        line("a", "resume {{ step }}", late=("step",)),
    )

    assert bench.asked("resume 120") == ALL


def test_a_step_verdict_that_fails_shuts_the_gate_over_passing_nodes():
    end = Bench().carry_out(line("c", "bad", verb="choose"))

    assert end.exit_code == 1
    assert "nothing is complete" in end.reason


def test_a_defect_in_a_verb_is_unknown_for_its_nodes_and_never_an_exception():
    bench = Bench()

    end = bench.carry_out(line("d", verb="defect"))

    result = bench.story.steps["d"].results["n1"]
    assert end.exit_code == 3
    assert "ZeroDivisionError" in result.verdict.worst.finding
    assert result.kept[0].name == "traceback.txt"


def test_a_question_nobody_answers_is_undecided_and_names_the_command_to_type():
    bench = Bench(asker=Asker(None))

    end = bench.carry_out(line("ok", "sure?", verb="approve"), line("b", "two"))

    assert end.exit_code == 3
    assert end.next_command == "recover resume r --approve ok"
    assert bench.asked("two") == []


def test_a_refusal_shuts_the_gate():
    end = Bench(asker=Asker(False)).carry_out(line("ok", "sure?", verb="approve"))

    assert end.exit_code == 1


def test_an_approval_is_journaled_and_the_run_goes_on():
    bench = Bench(asker=Asker(True))

    end = bench.carry_out(line("ok", "sure?", verb="approve"), line("b", "two"))

    assert end.exit_code == 0
    assert bench.story.answered["ok"].by == "the test"


def test_repairs_run_on_the_failed_nodes_only_and_these_are_asked_once_more():
    asked = []

    def answer(node, command):
        asked.append((node.name, command.line))
        broken = node.name == "n2" and ("n2", "reset") not in asked and command.line == "one"
        return finished(status=1) if broken else finished()

    bench = Bench(answer)
    end = bench.carry_out(line("a", "one", on_fail_steps=(line("fix", "reset"),)))

    assert end.exit_code == 0
    assert bench.asked("reset") == ["n2"]
    assert bench.asked("one") == ["n1", "n2", "n2", "n3", "n4"]


def test_a_stop_signal_ends_the_run_runs_finally_and_names_the_unfinished():
    bench = Bench()
    bench.stop_when = lambda b: "SIGINT" if len(b.transport.asked) >= 5 else ""

    end = bench.carry_out(line("a", "one"), line("b", "two"), finally_=[line("f", "tidy")])

    assert (end.outcome, end.exit_code) == ("interrupted", 130)
    assert bench.story.interrupted.step == "b"
    assert bench.asked("tidy") == ALL
    assert end.next_command == "recover resume r"


def test_the_runs_time_limit_ends_it():
    def slow(node, command):
        bench.clock.at += 40
        return finished()

    bench = Bench(slow)
    end = bench.carry_out(line("a", "one", timeout_s=900), line("b", "two"), run_s=150.0)

    assert end.outcome == "interrupted"
    assert "time limit" in end.reason
    assert bench.asked("two") == []


def test_a_resume_does_not_repeat_finished_steps():
    bench = Bench(bad_on("n1", lines={"two"}))
    steps = (line("a", "one"), line("b", "two"))
    bench.carry_out(*steps)
    bench.transport.answer = bad_on()

    end = bench.carry_out(*steps)

    assert end.exit_code == 0
    assert len(bench.asked("one")) == 4
    assert bench.asked("two") == ["n1", "n1", "n2", "n3", "n4"]


def test_a_resume_tidies_up_and_reports_again_after_what_it_did():
    bench = Bench(bad_on("n1", lines={"two"}))
    steps = (line("a", "one"), line("b", "two"))
    tidy = line("f", "tidy")
    once = line("o", "once", effect=Effect.WRITE, rerun=Rerun.NEVER)
    bench.carry_out(*steps, finally_=[tidy, once])
    bench.transport.answer = bad_on()

    end = bench.carry_out(*steps, finally_=[tidy, once])

    assert end.exit_code == 0
    assert bench.asked("tidy") == sorted(ALL + ALL)
    assert bench.asked("once") == ALL


def test_a_resume_that_has_nothing_left_to_do_tidies_up_no_second_time():
    bench = Bench()
    steps = (line("a", "one"), line("b", "two"))
    bench.carry_out(*steps, finally_=[line("f", "tidy")])

    bench.carry_out(*steps, finally_=[line("f", "tidy")])

    assert bench.asked("tidy") == ALL


def test_a_resume_asks_again_for_health_evidence_that_expired():
    bench = Bench(bad_on("n1", lines={"two"}))
    steps = (line("a", "one", good_for_s=3600.0), line("b", "two"))
    bench.carry_out(*steps)
    bench.transport.answer = bad_on()
    bench.clock.at += 3601

    bench.carry_out(*steps)

    assert len(bench.asked("one")) == 8


@pytest.mark.parametrize(
    ("rerun", "answer", "times", "code"),
    [
        (Rerun.SAFE, None, 2, 0),
        (Rerun.ASK, True, 2, 0),
        (Rerun.ASK, None, 1, 3),
        (Rerun.NEVER, True, 1, 3),
    ],
)
def test_a_write_left_in_the_middle_runs_again_only_as_the_runbook_says(rerun, answer, times, code):
    bench = Bench(asker=Asker(answer))
    step = line("w", "write", effect=Effect.WRITE, rerun=rerun, nodes=("n1",))
    bench.journal.die_at = 2  # after the intent, before the node's result
    with pytest.raises(KilledError):
        bench.carry_out(step)
    bench.journal.die_at = None

    end = bench.carry_out(step)

    assert end.exit_code == code
    assert len(bench.asked("write")) == times


def test_killed_after_any_journal_line_a_resume_ends_the_same():
    steps = (
        line("a", "one"),
        line("c", "x", verb="choose", save={"step": "last"}),
        line("b", "two {{ step }}", late=("step",), gate=Gate(GateKind.COUNT, 3),
             on_fail=OnFail.QUARANTINE),
        line("d", "three"),
    )  # fmt: skip
    calm = Bench(bad_on("n2", lines={"two 120"}))
    calm.carry_out(*steps)
    total = len(calm.journal.events)

    for die_at in range(1, total):
        bench = Bench(bad_on("n2", lines={"two 120"}))
        bench.journal.die_at = die_at
        with pytest.raises(KilledError):
            bench.carry_out(*steps)
        bench.journal.die_at = None

        end = bench.carry_out(*steps)

        assert end.exit_code == 0, die_at
        assert bench.story.saved == calm.story.saved
        assert set(bench.story.quarantined) == {"n2"}, die_at
        assert set(bench.asked("three")) == {"n1", "n3", "n4"}, die_at


def test_a_probe_runs_what_reads_and_pretends_nothing():
    bench = Bench()

    end = bench.carry_out(
        line("a", "one"),
        line("w", "write", effect=Effect.WRITE),
        line("b", "after"),
        probe=True,
    )

    assert bench.asked("write") == []
    assert bench.asked("after") == ALL
    assert bench.story.steps["w"].outcome == "not-run"
    assert end.exit_code == 0
    assert "probe" in end.reason


def test_a_probe_does_not_run_what_needs_a_value_of_a_step_not_run():
    bench = Bench()

    bench.carry_out(
        line("c", "x", verb="choose", effect=Effect.WRITE, save={"step": "last"}),
        line("b", "two {{ step }}", late=("step",)),
        probe=True,
    )

    assert bench.transport.asked == []
    assert bench.story.steps["b"].outcome == "not-run"


def test_a_repair_that_fails_leaves_the_ruling_to_the_step_itself():
    bench = Bench(answer=lambda node, command: finished(status=int(node.name == "n1")))
    repair = line("mend", "mend")
    one = line("look", gate=Gate(GateKind.ANY), on_fail_steps=(repair,))

    end = bench.carry_out(one, line("after", nodes=("n2",)))

    assert end.exit_code == 0
    assert bench.story.steps["mend"].outcome == "failed"
    assert bench.story.steps["after"].outcome == "done"


def test_a_ladder_of_repairs_is_climbed_only_as_far_as_it_must():
    well = {"n1": "reboot", "n2": "reset", "n3": "", "n4": ""}  # the rung that mends a node
    tried = []

    def answer(node, command):
        if command.line in ("reset", "reboot"):
            tried.append((node.name, command.line))
            well[node.name] = "" if well[node.name] == command.line else well[node.name]
            return finished()
        return finished(status=int(bool(well[node.name])))

    after = line("after-reset", "ask", on_fail_steps=(line("second", "reboot"),))
    one = line("look", "ask", on_fail_steps=(line("first", "reset"), after))

    end = Bench(answer=answer).carry_out(one)

    assert end.exit_code == 0
    assert sorted(tried) == [("n1", "reboot"), ("n1", "reset"), ("n2", "reset")]


def test_a_node_that_the_last_rung_set_aside_stays_out_and_the_mended_ones_stay_in():
    def answer(node, command):
        ill = node.name in ("n1", "n2") and (node.name != "n2" or ("n2", "reset") not in tried)
        tried.add((node.name, command.line))
        return finished(status=int(ill and command.line == "ask"))

    tried = set()
    bench = Bench(answer=answer)
    bench.verbs["drain"] = DRAIN
    isolate = line("isolate", "ill after all", "drain", effect=Effect.WRITE)
    last = line("after", "ask", on_fail_steps=(isolate,))
    one = line("look", "ask", on_fail_steps=(line("mend", "reset"), last))

    end = bench.carry_out(one)

    assert end.exit_code == 1
    assert [names for names, _ in bench.drained] == [("n1",)]
    assert set(bench.story.quarantined) == {"n1"}
    levels = {n: r.verdict.level.blocks for n, r in bench.story.steps["look"].results.items()}
    assert levels == {"n1": True, "n2": False, "n3": False, "n4": False}
