"""The step `launch`: what the launcher is given, on which nodes, and when nothing is started."""

from dataclasses import dataclass, field

import pytest

from recovery.model.kind import NodeResult
from recovery.model.node import Node
from recovery.model.ports import Launcher
from recovery.model.verdict import Level, passed, single
from recovery.steps.launch import LAUNCH, LaunchParams
from tests.fakes import FakeWorld, a_step

NODES = tuple(Node(f"n{i}", leaf="l1" if i < 4 else "l2") for i in range(1, 8))
CHOSEN = {
    "last_complete": 120,
    "path": "/c/iter_0000120",
    "framework": "megatron-dist",
    "components": ["model", "optimizer", "scheduler"],
    "shape": {"tensor_model_parallel_size": 8, "pipeline_model_parallel_size": 2, "world_size": 64},
}


@dataclass
class World(FakeWorld):
    """A world whose launcher remembers what it was asked to start."""

    started: list = field(default_factory=list)
    said: dict = field(default_factory=dict)

    def launcher(self, name):
        def launch(nodes, job, world):
            self.started.append((name, [n.name for n in nodes], job))
            return {
                n.name: NodeResult(node=n.name, verdict=single(passed("up")), values=self.said)
                for n in nodes
            }

        return Launcher(name=name, about="", launch=launch)


def launched(nodes=NODES, chosen=CHOSEN, world=None, **params):
    world = world or World()
    world.earlier_values = {"checkpoint": chosen} if chosen else {}
    world.profiles = {"expected_gpus": 8}
    return LAUNCH.run(LaunchParams(argument="./train.sh", **params), nodes, world), world


def test_the_launcher_is_told_the_step_its_path_and_the_frameworks_argument():
    world = World(step=a_step("launch", env={"RESUME_PATH": "/mine", "X": "1"}))

    _, world = launched((*NODES, Node("n8")), world=world, launcher="torchrun", name="gpt")

    ((launcher, names, job),) = world.started
    assert (launcher, len(names), job["name"]) == ("torchrun", 8, "gpt")
    assert job["env"] == {
        "RESUME_STEP": "120",
        "RESUME_PATH": "/mine",
        "RESUME_ARGUMENT": "--load /c --ckpt-step 120 --exit-on-missing-checkpoint",
        "X": "1",
    }


def test_without_a_checkpoint_nothing_is_said_of_one():
    result, world = launched(chosen=None)

    assert world.started[0][2]["env"] == {}
    assert result.verdict is None


def test_with_fewer_nodes_those_that_hold_whole_replicas_start_and_advice_is_given():
    result, world = launched()

    assert len(world.started[0][1]) == 6
    assert result.verdict.level is Level.WARN
    assert "7 nodes where 8 saved the checkpoint, 6 of them used" in result.verdict.worst.finding
    assert sorted(result.nodes) == [n.name for n in NODES]
    spares = [r for r in result.nodes.values() if r.values.get("state") == "spare"]
    assert [r.verdict.worst.finding for r in spares] == ["a spare: the job takes 6 nodes"]


@pytest.mark.parametrize(("nodes", "fewer"), [(NODES, "refuse"), (NODES[:1], "go")])
def test_nothing_is_started_when_the_runbook_or_the_layout_refuses(nodes, fewer):
    result, world = launched(nodes, fewer=fewer)

    assert world.started == []
    assert result.verdict.level is Level.FAIL
    assert result.nodes["n1"].verdict.level is Level.UNKNOWN


def test_anyhow_starts_on_all_nodes_there_are():
    result, world = launched(NODES[:1], fewer="anyhow")

    assert world.started[0][1] == ["n1"]
    assert result.verdict.level is Level.WARN


def test_a_line_that_runs_on_the_head_alone_says_nothing_of_how_many_nodes_there_are():
    result, world = launched(NODES[:1], world=World(step=a_step("launch", head_only=True)))

    assert world.started[0][1] == ["n1"]
    assert result.verdict is None


def test_a_job_that_fits_one_leaf_takes_that_leaf():
    _, world = launched(chosen=None, nodes_used=4)

    assert world.started[0][1] == ["n4", "n5", "n6", "n7"]


def test_the_log_is_where_the_launcher_says_when_the_runbook_does_not():
    result, _ = launched(chosen=None, world=World(said={"log": "/home/ml/slurm-7.out"}))

    assert result.values["log"] == "/home/ml/slurm-7.out"
