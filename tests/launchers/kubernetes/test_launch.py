"""The kubernetes launcher: real kubectl against a stand-in for the API server."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from recovery.launchers.kubernetes import KUBERNETES
from recovery.model.node import Node
from recovery.model.ports import TransportKind
from recovery.model.verdict import Level
from recovery.registry import pick
from tests.fakes import FakeClock, FakeTransport, FakeWorld, a_step, finished
from tests.launchers.kubernetes.api import api_server

WHY_NOT = "" if shutil.which("kubectl") else "needs apt-get install kubernetes-client"
real = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "can")
ROOT = Path(__file__).parents[3]
N1, N2, N3 = (Node(f"n{i}") for i in (1, 2, 3))
TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "train:1"}]}}
MANIFEST = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "gpt"},
    "spec": {"parallelism": 2, "completions": 2, "template": TEMPLATE},
}


@pytest.fixture
def cluster():
    with api_server("n1", "n2", "n3") as running:
        yield running


@pytest.fixture
def afresh(cluster, tmp_path, monkeypatch):
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": cluster.url}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": ""}}],
    }  # fmt: skip
    (tmp_path / "config").write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    kind = pick("recovery.transports", TransportKind, "local")
    leash = (ROOT / "recovery/payloads/leash.sh").read_text()
    transport = kind.open({"leash": leash, "state_dir": str(tmp_path), "width": 4})

    def made():
        step = a_step("launch", timeout_s=600.0)
        return FakeWorld(transport=transport, clock=FakeClock(), step=step)

    yield made
    transport.close()


@pytest.fixture
def job(tmp_path):
    manifest = tmp_path / "train.yaml"
    manifest.write_text(json.dumps(MANIFEST))
    return {"line": str(manifest), "name": "gpt", "log": "", "env": {"RESUME_STEP": "120"}}


def worst(results, node="n1"):
    return results[node].verdict.worst


@real
def test_a_job_is_created_once_and_re_created_without_the_node_it_lost(cluster, afresh, job):
    world = afresh()
    created = KUBERNETES.launch((N1, N2), job, world)

    assert worst(created).finding == "Job gpt was created"
    assert created["n2"].values["state"] == "running"
    assert cluster.posted == ["/apis/batch/v1/namespaces/default/jobs?fieldValidation=Strict"]

    again = KUBERNETES.launch((N1, N2), job, world)
    other = KUBERNETES.launch((N1, N2), job, afresh())

    assert "this run started it" in worst(again).finding
    assert worst(other).code == "launch.already-runs"
    assert len(cluster.posted) == 1

    cluster.power_off("n2")
    later = KUBERNETES.launch((N1, N3), {**job, "env": {"RESUME_STEP": "100"}}, world)

    assert worst(later, "n3").finding == "Job gpt was re-created: it had lost n2"
    container = cluster.jobs["gpt"]["spec"]["template"]["spec"]["containers"][0]
    assert container["env"] == [{"name": "RESUME_STEP", "value": "100"}]
    assert {p["spec"]["nodeName"] for p in cluster.pods.values()} == {"n1", "n3"}
    assert any("kubernetes-gpt.json" in words for _, words, _ in world.notes)


@real
def test_with_fewer_nodes_there_are_fewer_pods_and_a_warning(cluster, afresh, job):
    results = KUBERNETES.launch((N3,), job, afresh())

    assert worst(results, "n3").level is Level.WARN
    assert "with 1 instead of 2 pods" in worst(results, "n3").finding
    assert cluster.jobs["gpt"]["spec"]["completions"] == 1


@real
def test_a_cordoned_node_gets_no_pod_and_says_so(cluster, afresh, job):
    cluster.nodes["n1"]["spec"]["unschedulable"] = True

    results = KUBERNETES.launch((N1, N2, N3), job, afresh())

    assert worst(results, "n1").code == "launch.kubernetes-strangers"
    assert {p["spec"]["nodeName"] for p in cluster.pods.values()} == {"n2", "n3"}


@real
def test_pods_without_a_place_are_told_in_the_schedulers_words(cluster, afresh, job):
    busy = {"metadata": {"name": "b", "labels": {}}, "spec": {"nodeName": "n1"}, "status": {}}
    cluster.pods["b"] = busy
    world = afresh()
    world.step = a_step("launch", timeout_s=9.0)

    results = KUBERNETES.launch((N1, N2), job, world)

    assert worst(results).level is Level.UNKNOWN
    assert "1 of 2 pods of gpt run" in worst(results).finding
    assert "no room" in worst(results).finding

    cluster.pods.clear()
    cluster.pods["b"] = busy
    KUBERNETES.launch((N1, N2), job, world)

    assert len(cluster.posted) == 1, "a job that waits as we told it keeps its place"
    assert worst(KUBERNETES.launch((N2,), job, world), "n2").level is Level.WARN


@real
def test_a_job_that_is_over_is_kept_as_evidence_and_created_anew(cluster, afresh, job):
    done = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}
    cluster.jobs["gpt"] = {**MANIFEST, "status": done}
    world = afresh()

    results = KUBERNETES.launch((N1, N2), job, world)

    assert "it was over: Failed, BackoffLimitExceeded" in worst(results).finding
    assert any(b"BackoffLimitExceeded" in kept for kept in world.evidence.values())


@real
@pytest.mark.parametrize(
    "manifest",
    [
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": {"name": "gpt"},
            "spec": {
                "replicatedJobs": [
                    {"name": "w", "template": {"spec": {"parallelism": 2, "template": TEMPLATE}}}
                ]
            },
        },
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": "gpt"},
            "spec": {
                "pytorchReplicaSpecs": {
                    "Master": {"replicas": 1, "template": TEMPLATE},
                    "Worker": {"replicas": 1, "template": TEMPLATE},
                }
            },
        },
    ],
    ids=["JobSet", "PyTorchJob"],
)
def test_other_kinds_of_jobs_are_created_and_waited_for(cluster, afresh, job, manifest):
    Path(job["line"]).write_text(json.dumps(manifest))

    results = KUBERNETES.launch((N1, N2), job, afresh())

    assert worst(results).finding == f"{manifest['kind']} gpt was created"
    assert json.dumps(cluster.jobs["gpt"]).count("RESUME_STEP") >= 1


@pytest.mark.parametrize("answer", [finished(""), finished("x", status=1, stderr="refused\n")])
def test_silence_and_a_refusal_of_kubectl_are_unknown_and_create_nothing(answer):
    transport = FakeTransport(lambda node, command: answer)
    world = FakeWorld(transport=transport, step=a_step("launch"))

    results = KUBERNETES.launch((N1,), {"line": "a.yaml", "name": "gpt", "env": {}}, world)

    assert worst(results).code == "launch.kubernetes-silent"
    assert not any("--raw" in line for _, line in transport.asked)
