"""A session lost in the middle of a command: a reboot is proved, never guessed."""

import pytest

from recovery.engine.lost import ASK, with_cause
from recovery.engine.outcome import command_result
from recovery.model.node import Node
from recovery.model.output import Ending, Output
from recovery.model.verdict import Level
from tests.engine.runs import Bench, line
from tests.fakes import FakeClock, FakeWorld, finished

LOST = Output(Ending.LOST, reason="the connection was lost after 40.0 s")
ID = "11111111-2222-3333-4444-555555555555"


def told(*answers, elapsed_s=60.0, output=LOST):
    """What a lost output becomes when the node answers so, in turn, then the last again."""
    left, clock = list(answers), FakeClock()

    def ask(command):
        return left.pop(0) if len(left) > 1 else left[0]

    return with_cause(output, clock, ask, sent_at=clock.monotonic() - elapsed_s)


def test_a_boot_younger_than_the_command_is_named():
    found = told(finished(f"{ID}\n12.5 99.0\n"))

    assert (found.ending, found.trouble) == (Ending.LOST, "rebooted")
    assert found.reason.endswith(f"the node rebooted meanwhile: up 12 s, boot id {ID}")


def test_a_node_that_is_still_booting_is_asked_again():
    found = told(Output(Ending.NEVER_STARTED, reason="refused"), finished(f"{ID}\n1.5 9\n"))

    assert found.trouble == "rebooted"


def test_a_node_that_still_answers_while_it_goes_down_is_asked_again():
    old, gone = finished(f"{ID}\n3600.0 99.0\n"), Output(Ending.NEVER_STARTED, reason="refused")

    assert told(old, old, gone, gone, old, gone, finished(f"{ID}\n1.5 9\n")).trouble == "rebooted"


@pytest.mark.parametrize(
    "answer",
    [
        finished(f"{ID}\n3600.0 99.0\n"),
        finished("cat: /proc/uptime: Input/output error"),
        finished("", status=1),
        Output(Ending.NEVER_STARTED, reason="no route"),
    ],
)
def test_without_proof_of_a_boot_the_loss_stays_a_loss(answer):
    assert told(answer) == LOST


def test_only_a_loss_is_looked_into():
    assert told(finished(f"{ID}\n1 1\n"), output=finished("x")) == finished("x")


def test_a_reboot_in_a_step_is_a_finding_with_a_code_of_its_own():
    def answer(node, command):
        return finished(f"{ID}\n0.5 1.0\n") if command.line == ASK else lost(node)

    def lost(node):
        bench.clock.at += 40
        return LOST if node.name == "n2" else finished()

    bench = Bench(answer)
    end = bench.carry_out(line("a", "one"))

    worst = bench.story.steps["a"].results["n2"].verdict.worst
    assert end.exit_code == 3
    assert (worst.code, worst.level) == ("node.rebooted", Level.UNKNOWN)


def test_what_was_cut_from_a_long_output_is_said_and_counted():
    output = Output(Ending.FINISHED, exit_status=0, stdout=b"x" * 9, stdout_dropped=84_000_000)

    result = command_result(FakeWorld(), Node("a"), output, what="command")

    assert result.verdict.level is Level.WARN
    assert "84 MB were cut from the middle" in result.verdict.worst.finding
    assert result.kept[0].dropped_bytes == 84_000_000
