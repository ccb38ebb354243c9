"""What squeue and scontrol say about a job."""

import pytest

from recovery.errors import ParseError
from recovery.reading.slurm import Queued, read_job, read_squeue

# Slurm 22.05.8, `scontrol --oneliner show job`, shortened; names changed.
SHOWN = (
    "JobId=1 JobName=train-1 UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=4294901759 "
    "JobState=PENDING Reason=BeginTime Dependency=(null) Requeue=1 Restarts=1 BatchFlag=1 "
    "ExitCode=0:0 TimeLimit=365-00:00:00 TimeMin=N/A Partition=all AllocNode:Sid=localhost:14647 "
    "ReqNodeList=(null) ExcNodeList=n3 NodeList= NumNodes=2-2 NumCPUs=2 CPUs/Task=1 "
    "ReqB:S:C:T=0:0:*:* TRES=cpu=2,mem=200M,node=2 Command=/tmp/x/j.sh hello "
    "WorkDir=/tmp/x Comment=a b=c StdOut=/tmp/x/train 1.out Power=\n"
)


def test_a_requeued_job_waits_for_its_start_time():
    job = read_job(SHOWN)

    assert (job.id, job.state, job.reason, job.nodes) == ("1", "PENDING", "BeginTime", "")
    assert (job.least_nodes, job.restarts, job.exit_code) == (2, 1, "0:0")
    assert job.log == "/tmp/x/train 1.out"
    assert job.waits
    assert not job.held


@pytest.mark.parametrize(
    "reason",
    ["JobHeldUser", "job_requeued_in_held_state", "launch_failed_requeued_held",
     "JobHoldMaxRequeue"],
)  # fmt: skip
def test_a_hold_is_known_by_its_reason(reason):
    assert read_job(SHOWN.replace("BeginTime", reason)).held


@pytest.mark.parametrize(("state", "over"), [("RUNNING", False), ("NODE_FAIL", True)])
def test_a_job_is_over_when_it_neither_waits_nor_runs(state, over):
    assert read_job(SHOWN.replace("PENDING", state)).over is over


@pytest.mark.parametrize("text", ["", "No jobs in the system", "JobId=1 JobName=x"])
def test_what_is_no_job_is_refused(text):
    with pytest.raises(ParseError, match="not a job of Slurm"):
        read_job(text)


def test_the_queue_is_read_line_by_line_and_may_be_empty():
    text = "12|RUNNING|None|ml\n13|PENDING|job requeued in held state|ml\n"

    assert read_squeue(text)[1] == Queued("13", "PENDING", "job requeued in held state", "ml")
    assert [q.waits for q in read_squeue(text)] == [False, True]
    assert read_squeue("\n") == ()


@pytest.mark.parametrize("line", ["squeue: error", "12|RUNNING|None", "x|RUNNING|None|ml"])
def test_a_queue_of_another_shape_is_refused(line):
    with pytest.raises(ParseError, match="not a line of squeue"):
        read_squeue(line)
