"""The command launcher: every rank once, never twice, half a job is taken back."""

import shlex

import pytest

from recovery.engine.jobs import ALREADY_RUNS
from recovery.launchers.command import COMMAND
from recovery.model.node import Node
from recovery.model.output import Ending, Output
from recovery.model.verdict import Level
from tests.fakes import FakeTransport, FakeWorld, finished

A, B = Node("a", address="10.0.0.1"), Node("b", address="10.0.0.2")
JOB = {"line": "train --resume 120", "name": "job-1", "log": "log/train.log", "env": {"X": "y z"}}
STARTED = finished("state=started\npid=42\n")


def launched(answer, **world):
    seen = []

    def answering(node, command):
        seen.append((node.name, command))
        return answer(node, command)

    fake = FakeWorld(transport=FakeTransport(answering), **world)
    return COMMAND.launch((A, B), JOB, fake), seen, fake


def words(command):
    return shlex.split(command.line)


def test_each_node_gets_its_rank_and_the_rendezvous_of_the_first():
    results, seen, _ = launched(lambda node, command: STARTED)

    environments = {name: command.env for name, command in seen}
    assert environments["b"]["RANK"] == "1"
    assert environments["b"]["MASTER_ADDR"] == "10.0.0.1"
    assert environments["a"]["WORLD_SIZE"] == "2"
    assert environments["a"]["X"] == "y z"
    assert results["a"].verdict.level is Level.PASS


def test_the_line_arrives_as_one_word():
    _, seen, _ = launched(lambda node, command: STARTED)

    assert words(seen[0][1]) == ["sh", "-s", "--", "start", "job-1", "log/train.log", JOB["line"]]


def test_the_intent_is_journaled_before_anything_is_started():
    order = []

    class World(FakeWorld):
        def intend(self, what, facts):
            order.append(what)
            super().intend(what, facts)

    world = World(transport=FakeTransport(lambda n, c: order.append("start") or STARTED))
    COMMAND.launch((A, B), JOB, world)

    assert order == ["launch", "start", "start"]


def test_a_job_of_this_name_that_another_started_is_a_failure():
    running = finished("state=running\npid=7\n", status=ALREADY_RUNS)

    results, _, _ = launched(lambda node, command: running)

    assert results["a"].verdict.level is Level.FAIL
    assert "pid 7" in results["a"].verdict.worst.finding


def test_a_job_that_this_run_started_before_it_was_interrupted_is_found_and_kept():
    running = finished("state=running\npid=7\n", status=ALREADY_RUNS)
    earlier = [("launch", {"name": "job-1"})]

    results, _, world = launched(lambda node, command: running, intents=earlier)

    assert results["a"].verdict.level is Level.PASS
    assert len(world.intents) == 1


def test_an_answer_without_words_is_not_a_start():
    results, _, _ = launched(lambda node, command: finished(""))

    assert results["a"].verdict.level is Level.UNKNOWN


@pytest.mark.parametrize(
    "output", [Output(Ending.NEVER_STARTED), finished("state=failed\nreason=no space\n", status=6)]
)
def test_half_a_job_is_taken_back(output):
    results, seen, _ = launched(lambda node, command: STARTED if node.name == "a" else output)

    stops = [name for name, command in seen if words(command)[3] == "stop"]
    assert stops == ["a"]
    assert results["b"].verdict.level is Level.UNKNOWN
