"""What kubectl prints of nodes, jobs and pods; silence is no answer."""

import json

import pytest

from recovery.errors import ParseError
from recovery.launchers.kubernetes.seen import ended, read_job, read_nodes, read_pods


def test_a_node_says_whether_pods_may_come_and_whether_it_answers():
    nodes = read_nodes("n1\th1\t\tTrue\nn2\t\ttrue\tTrue\nn3\th3\t\tUnknown\n")

    assert (nodes["n1"].hostname, nodes["n2"].hostname) == ("h1", "n2")
    assert [n.schedulable for n in nodes.values()] == [True, False, True]
    assert [n.ready for n in nodes.values()] == [True, True, False]


@pytest.mark.parametrize("read", [read_nodes, read_pods])
@pytest.mark.parametrize("text", ["", "[]", "{}", "error: refused"])
def test_silence_and_noise_are_no_answer(read, text):
    with pytest.raises(ParseError):
        read(text)


def test_nothing_printed_means_that_there_is_no_such_job():
    assert read_job("\n") is None
    with pytest.raises(ParseError):
        read_job("{}")


@pytest.mark.parametrize(
    ("kind", "status", "words"),
    [
        ("Complete", "True", "Complete"),
        ("Failed", "False", ""),
        ("Suspended", "True", ""),
        ("Succeeded", "True", "Succeeded"),
    ],
)
def test_a_job_is_over_by_its_condition_alone(kind, status, words):
    assert ended({"status": {"conditions": [{"type": kind, "status": status}]}}) == words


def test_a_pod_that_cannot_start_says_why_and_what_to_do():
    waits = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    status = {"phase": "Running", "containerStatuses": [waits]}
    text = json.dumps({"items": [{"metadata": {"name": "p"}, "status": status}]})

    (pod,) = read_pods(text)

    assert pod.trouble == "ImagePullBackOff: no such image"
    assert "registry" in pod.remedy
    assert not pod.runs
