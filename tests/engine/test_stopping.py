"""A stop in the middle of a step, and what a resume asks before it repeats a write."""

import pytest

from recovery.model.output import Ending, Output
from recovery.model.runbook import Effect, Rerun
from tests.engine.runs import Asker, Bench, KilledError, line
from tests.fakes import finished

CUT = Output(Ending.LOST, reason="stopped on request; its processes were ended")
LOST = Output(Ending.LOST, reason="the connection was lost after 3 s")


def write(**more):
    return line("w", "write", effect=Effect.WRITE, rerun=Rerun.ASK, **more)


def test_commands_that_the_operator_cut_off_are_unfinished_and_no_finding():
    bench = Bench(lambda node, command: CUT if node.name == "n3" else finished())
    bench.stop_when = lambda b: "SIGINT" if len(b.transport.asked) >= 3 else ""

    end = bench.carry_out(line("a", "one"))

    assert (end.outcome, end.exit_code) == ("interrupted", 130)
    assert "n3" in bench.story.interrupted.unfinished
    assert "n3" not in bench.story.steps["a"].results


def test_a_node_whose_processes_survive_a_stop_keeps_its_finding():
    left = Output(Ending.LOST, reason="KILL did not end pid 7", trouble="unkillable")
    bench = Bench(lambda node, command: left)
    bench.stop_when = lambda b: "SIGTERM" if b.transport.asked else ""

    end = bench.carry_out(line("a", "one", nodes=("n1",)))

    assert end.exit_code == 143
    assert "pid 7" in bench.story.steps["a"].results["n1"].verdict.worst.finding


@pytest.mark.parametrize(("answer", "times", "code"), [(None, 4, 3), (True, 5, 0)])
def test_a_write_that_was_lost_is_repeated_by_a_resume_only_when_asked(answer, times, code):
    bench = Bench(lambda node, command: LOST if node.name == "n2" else finished())
    bench.carry_out(write())
    bench.transport.answer, bench.asker = (lambda node, command: finished()), Asker(answer)

    end = bench.carry_out(write())

    assert end.exit_code == code
    assert len(bench.asked("write")) == times


def test_a_write_that_all_nodes_ended_is_not_asked_about_nor_repeated():
    bench = Bench()
    bench.journal.die_at = 3  # the run, the step's intent, the node's result; then nothing
    with pytest.raises(KilledError):
        bench.carry_out(write(nodes=("n1",)))
    bench.journal.die_at = None

    end = bench.carry_out(write(nodes=("n1",)))

    assert end.exit_code == 0
    assert bench.asker.asked == []
    assert bench.asked("write") == ["n1"]
