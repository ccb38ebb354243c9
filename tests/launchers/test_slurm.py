"""The slurm launcher against answers of squeue, sinfo, scontrol and sbatch as they print them."""

import shlex
from dataclasses import dataclass, field

import pytest

from recovery.errors import InputError
from recovery.launchers.slurm import SLURM
from recovery.model.node import Node
from recovery.model.output import Ending, Output
from recovery.model.verdict import Level
from tests.fakes import FakeTransport, FakeWorld, a_step, finished

A, B = Node("n1"), Node("n2")
JOB = {"line": "train.sbatch --resume=$RESUME_STEP", "name": "train", "log": "", "env": {}}
IDLE = "n1|idle|gpu*|none\nn2|idle|gpu*|none\nn3|idle|gpu*|none\n"


def shown(state, *, reason="None", nodes="(null)", restarts=0, **more):
    extra = " ".join(f"{k}={v}" for k, v in more.items())
    return (
        f"JobId=7 JobName=train UserId=ml(1000) JobState={state} Reason={reason} "
        f"Restarts={restarts} ExitCode={more.get('code', '0:0')} NodeList={nodes} NumNodes=2 "
        f"{extra} StdOut=/home/ml/slurm-7.out\n"
    )


RUNS = shown("RUNNING", nodes="n[1-2]")


@dataclass
class Scripted:
    """Answers each command of Slurm with the next of its answers; the last one stays."""

    sinfo: list = field(default_factory=lambda: [IDLE])
    squeue: list = field(default_factory=lambda: [""])
    sbatch: list = field(default_factory=lambda: ["7\n"])
    show: list = field(default_factory=lambda: [RUNS])
    asked: list = field(default_factory=list)

    def __call__(self, node, command):
        words = shlex.split(command.line)
        self.asked.append((node.name, command))
        name = "show" if "show" in words else words[0]
        answers = getattr(self, name, [""])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return finished(answer) if isinstance(answer, str) else answer

    def lines(self, word):
        return [c.line for _, c in self.asked if word in c.line]


def launched(slurm, nodes=(A, B), job=JOB, **world):
    fake = FakeWorld(transport=FakeTransport(slurm), step=a_step("launch"), **world)
    return SLURM.launch(nodes, job, fake), fake


def worst(results, node="n1"):
    return results[node].verdict.worst


def test_a_job_is_submitted_without_the_nodes_that_were_not_given():
    slurm = Scripted()

    results, world = launched(slurm, job={**JOB, "log": "/logs/a b", "env": {"RESUME_STEP": "9"}})

    sent = slurm.lines("sbatch")
    assert sent == [
        "sbatch --parsable --job-name=train --nodes=2 --exclude=n3 '--output=/logs/a b' "
        "--open-mode=append train.sbatch --resume=$RESUME_STEP"
    ]
    assert next(c.env for _, c in slurm.asked if "sbatch" in c.line) == {"RESUME_STEP": "9"}
    assert worst(results).finding == "job 7 was submitted"
    assert results["n2"].values == {
        "job": "7", "state": "running", "log": "/home/ml/slurm-7.out"
    }  # fmt: skip
    assert world.intents == [("launch", {"name": "train", "line": JOB["line"], "nodes": 2})]


def test_the_head_node_is_asked_where_the_inventory_names_one():
    slurm = Scripted()

    launched(slurm, variables={"slurm_head": "login"}, inventory_nodes={"login": Node("login")})

    assert {name for name, _ in slurm.asked} == {"login"}


def test_a_head_node_that_is_not_in_the_inventory_is_our_input_being_wrong():
    with pytest.raises(InputError, match="no node 'login'"):
        launched(Scripted(), variables={"slurm_head": "login"})


def test_a_running_job_of_this_name_is_left_alone():
    slurm = Scripted(squeue=["7|RUNNING|None|ml\n"])

    results, world = launched(slurm)

    assert worst(results).finding.startswith("a job of this name runs already, job 7 of ml")
    assert results["n2"].verdict.level is Level.FAIL
    assert slurm.lines("sbatch") == []
    assert slurm.lines("requeue") == []
    assert world.intents == []


def test_a_job_with_a_lost_node_is_requeued_and_freed():
    sinfo = IDLE.replace("n3|idle", "n3|down*")
    show = [shown("RUNNING", nodes="n[1,3]"), shown("PENDING", reason="BeginTime"), RUNS]
    slurm = Scripted(squeue=["7|RUNNING|None|ml\n"], sinfo=[sinfo], show=show)

    results, _ = launched(slurm)

    assert slurm.lines("requeue") == ["scontrol requeue 7"]
    assert slurm.lines("ExcNodeList") == ["scontrol update JobId=7 ExcNodeList=n3"]
    assert worst(results).finding == "job 7 was requeued: it had lost n3"


def test_a_job_held_after_requeue_is_released_and_started_now():
    held = shown("PENDING", reason="job_requeued_in_held_state", restarts=1)
    slurm = Scripted(squeue=["7|PENDING|job requeued in held state|ml\n"], show=[held, held, RUNS])

    results, _ = launched(slurm, job={**JOB, "env": {"RESUME_STEP": "9"}})

    assert slurm.lines("release") == ["scontrol release 7"]
    assert slurm.lines("StartTime") == ["scontrol update JobId=7 StartTime=now"]
    assert slurm.lines("Comment") == [
        "scontrol update JobId=7 ExcNodeList=n3 Comment=RESUME_STEP=9"
    ]
    assert results["n1"].verdict.level is Level.WARN
    assert "runs as it was submitted: step 9 is only in its comment" in worst(results).finding


def test_a_hold_of_the_administrator_stays():
    held = shown("PENDING", reason="JobHeldAdmin")
    slurm = Scripted(squeue=["7|PENDING|JobHeldAdmin|ml\n"], show=[held])

    results, _ = launched(slurm)

    assert slurm.lines("release") == []
    assert results["n1"].verdict.level is Level.UNKNOWN
    assert "an administrator holds it: `scontrol release 7`" in worst(results).remedy


def test_a_dead_node_that_we_drained_is_marked_down_once_to_free_the_job():
    drained = IDLE.replace("n3|idle|gpu*|none", "n3|draining*|gpu*|recover: check-1: gone")
    going = shown("COMPLETING", nodes="n3")
    slurm = Scripted(
        squeue=["7|COMPLETING|None|ml\n"], sinfo=[drained], show=[going, going, going, going, RUNS]
    )

    launched(slurm)

    assert slurm.lines("requeue") == []
    assert slurm.lines("State=DOWN") == [
        "scontrol update NodeName=n3 State=DOWN 'Reason=recover: check-1: gone'"
    ]


def test_a_job_that_waits_beyond_the_step_is_undecided_and_stays_in_the_queue():
    slurm = Scripted(show=[shown("PENDING", reason="Resources")])

    results, world = launched(slurm)

    assert results["n1"].verdict.level is Level.UNKNOWN
    assert "job 7 does not run yet: pending, Resources" in worst(results).finding
    assert sum(world.clock.slept) < 60


def test_a_job_that_fails_at_once_is_told_with_its_exit_status_and_log():
    slurm = Scripted(show=[RUNS, shown("FAILED", reason="NonZeroExitCode", code="1:0")])

    results, _ = launched(slurm)

    assert worst(results).finding == (
        "job 7 is over already: failed, exit status 1:0, NonZeroExitCode"
    )
    assert worst(results).remedy == "read its log: /home/ml/slurm-7.out"


def test_when_the_answer_of_sbatch_is_lost_the_queue_decides():
    lost = Output(Ending.LOST, reason="the session was lost")
    slurm = Scripted(sbatch=[lost], squeue=["", "7|PENDING|None|ml\n"])

    results, _ = launched(slurm)

    assert worst(results).finding == "job 7 was submitted; sbatch's answer was lost"
    assert len(slurm.lines("sbatch")) == 1


@pytest.mark.parametrize(
    "answer",
    [
        Output(Ending.TIMEOUT),
        finished(status=1, stderr="sbatch: error: Invalid qos"),
        finished("?"),
    ],
)
def test_no_answer_of_sbatch_is_a_start(answer):
    results, _ = launched(Scripted(sbatch=[answer]))

    assert results["n1"].verdict.level is Level.UNKNOWN
    assert worst(results).code == "launch.slurm-silent"


def test_a_silent_controller_of_slurm_is_undecided_and_nothing_is_submitted():
    slurm = Scripted(sinfo=[finished(status=1, stderr="slurm_load_node error: Unable to contact")])

    results, _ = launched(slurm)

    assert results["n1"].verdict.level is Level.UNKNOWN
    assert "Unable to contact" in worst(results).finding
    assert slurm.lines("sbatch") == []


def test_a_node_that_slurm_does_not_know_is_undecided():
    slurm = Scripted()

    results, _ = launched(slurm, nodes=(A, B, Node("n9.example")))

    assert "--nodes=2" in slurm.lines("sbatch")[0]
    assert results["n9.example"].verdict.level is Level.UNKNOWN


def test_a_node_that_the_job_does_not_need_is_said_to_be_spare():
    slurm = Scripted(show=[shown("RUNNING", nodes="n1")])

    results, _ = launched(slurm)

    assert worst(results, "n2").finding == "not needed: job 7 runs without it"


def test_a_resumed_run_finds_the_job_that_it_submitted():
    slurm = Scripted(squeue=["7|RUNNING|None|ml\n"])

    results, world = launched(slurm, intents=[("launch", {"name": "train"})])

    assert worst(results).finding == "job 7 runs already: this run started it"
    assert len(world.intents) == 1
