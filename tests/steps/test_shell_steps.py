"""`run`, `script`: one line on every node, its end judged, its output kept."""

import pytest

from recovery.model.node import Node
from recovery.model.output import Ending, Output
from recovery.model.verdict import Level
from recovery.steps.run import RUN, RunParams
from recovery.steps.script import SCRIPT, ScriptParams
from tests.fakes import FakeTransport, FakeWorld, a_step, finished

A, B = Node("a"), Node("b")


def ran(answer, params=None, verb=RUN, **world):
    fake = FakeWorld(transport=FakeTransport(answer), **world)
    result = verb.run(params or RunParams(argument="uptime"), (A, B), fake)
    return result.nodes, fake


def test_a_line_that_exits_0_passes_and_its_output_is_kept():
    nodes, world = ran(lambda node, command: finished(f"{node.name}\n"))

    assert nodes["a"].verdict.level is Level.PASS
    assert nodes["a"].values["lines"] == ["a"]
    assert world.evidence[nodes["b"].kept[0].digest] == b"b\n"


def test_a_line_that_exits_3_fails_with_the_last_words_of_the_command():
    nodes, _ = ran(lambda node, command: finished(status=3, stderr="x\nno such device\n"))

    worst = nodes["a"].verdict.worst
    assert worst.level is Level.FAIL
    assert "exit status 3: no such device" in worst.finding


@pytest.mark.parametrize(
    ("output", "code"),
    [
        (Output(Ending.TIMEOUT, duration_s=9), "node.timeout"),
        (Output(Ending.LOST), "node.lost"),
        (Output(Ending.NEVER_STARTED), "node.unreachable"),
        (Output(Ending.NEVER_STARTED, trouble="hostkey", reason="changed"), "node.hostkey"),
        (Output(Ending.NEVER_STARTED, trouble="auth"), "node.auth"),
        (Output(Ending.FINISHED, exit_status=1, trouble="sudo"), "node.sudo"),
    ],
)
def test_every_other_end_is_unknown_with_its_own_finding_and_remedy(output, code):
    nodes, _ = ran(lambda node, command: output)

    worst = nodes["a"].verdict.worst
    assert worst.level is Level.UNKNOWN
    assert worst.code == code
    assert worst.remedy


def test_a_killed_command_fails_and_names_the_signal():
    nodes, _ = ran(lambda node, command: Output(Ending.FINISHED, signal="KILL"))

    assert nodes["a"].verdict.level is Level.FAIL
    assert "signal KILL" in nodes["a"].verdict.worst.finding


def test_the_step_gives_environment_sudo_and_limit_to_the_command():
    seen = []
    step = a_step(env={"A": "b c"}, sudo=True, timeout_s=7.0)

    ran(lambda node, command: seen.append(command) or finished(), step=step)

    assert (seen[0].env, seen[0].sudo, seen[0].timeout_s) == ({"A": "b c"}, True, 7.0)


def test_a_script_is_sent_by_standard_input_and_its_arguments_are_quoted():
    seen = []
    params = ScriptParams(argument="fix.sh", args=("a b", "$(rm -rf /)"))

    ran(
        lambda node, command: seen.append(command) or finished(),
        params,
        SCRIPT,
        files={"fix.sh": b"echo hi\n"},
    )

    assert seen[0].stdin == b"#!/bin/sh\necho hi\n"
    assert seen[0].line.endswith("'a b' '$(rm -rf /)' </dev/null")


def test_a_script_really_arrives_and_runs(tmp_path):
    import subprocess

    def answer(node, command):
        done = subprocess.run(
            ["/bin/sh", "-c", command.line],
            input=command.stdin,
            capture_output=True,
            env={"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)},
            check=False,
        )
        return finished(done.stdout, status=done.returncode, stderr=done.stderr.decode())

    params = ScriptParams(argument="x", args=("a b", "c'd"))
    script = b'#!/bin/sh\nprintf "%s|" "$@"; exit 4\n'
    nodes, _ = ran(answer, params, SCRIPT, files={"x": script})

    assert nodes["a"].values["stdout"] == "a b|c'd|"
    assert nodes["a"].exit_status == 4
    assert list(tmp_path.iterdir()) == []
