"""A manifest is bound to nodes, told its step, and shrunk only where that is clear."""

import json

import pytest

from recovery.errors import ParseError
from recovery.launchers.kubernetes.manifest import HOSTNAME, fitted, read_manifest


def template(**spec):
    return {"spec": {"containers": [{"name": "c", "env": [{"name": "RESUME_STEP"}]}], **spec}}


def a_job(**spec):
    made = {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "gpt", "uid": "u"}}
    return {**made, "spec": {"parallelism": 4, "template": template(**spec)}, "status": {"a": 1}}


def read(*objects):
    return read_manifest("\n".join(json.dumps(o) for o in objects))


def test_each_term_of_an_affinity_gets_the_nodes_too():
    terms = [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"matchFields": []}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    manifest = read(a_job(affinity={"nodeAffinity": required}))

    made = fitted(manifest, hostnames=["b", "a"], env={"RESUME_STEP": "7"}, pods=9)

    spec = made.job["spec"]["template"]["spec"]
    bound = spec["affinity"]["nodeAffinity"][next(iter(required))]["nodeSelectorTerms"]
    ours = {"key": HOSTNAME, "operator": "In", "values": ["a", "b"]}
    assert [term["matchExpressions"][-1] for term in bound] == [ours, ours]
    assert len(bound[0]["matchExpressions"]) == 2
    assert spec["containers"][0]["env"] == [{"name": "RESUME_STEP", "value": "7"}]
    assert "status" not in made.job
    assert "uid" not in made.job["metadata"]
    assert made.pods == 4


def test_a_pytorch_job_drops_workers_and_never_its_master():
    parts = {
        "Master": {"replicas": 1, "template": template()},
        "Worker": {"replicas": 7, "template": template()},
    }
    job = {"kind": "PyTorchJob", "apiVersion": "kubeflow.org/v1", "metadata": {"name": "gpt"}}
    manifest = read({**job, "spec": {"pytorchReplicaSpecs": parts}})

    made = fitted(manifest, hostnames=["a"], env={}, pods=6)

    replicas = {k: v["replicas"] for k, v in made.job["spec"]["pytorchReplicaSpecs"].items()}
    assert replicas == {"Master": 1, "Worker": 5}


def test_which_of_two_groups_to_shrink_is_not_guessed():
    one = {"template": {"spec": {"parallelism": 4, "template": template()}}}
    job = {"kind": "JobSet", "apiVersion": "x/v1", "metadata": {"name": "gpt"}}
    manifest = read({**job, "spec": {"replicatedJobs": [one, one]}})

    with pytest.raises(ParseError, match="not clear which to drop"):
        fitted(manifest, hostnames=["a"], env={}, pods=7)


@pytest.mark.parametrize(
    "text",
    ["", "error: no such file", '{"kind": "List"}', '{"kind": "Pod", "metadata": {"name": "x"}}'],
)
def test_what_is_not_one_job_is_refused(text):
    with pytest.raises(ParseError):
        read_manifest(text)


def test_what_stands_beside_the_job_is_kept():
    service = {"kind": "Service", "metadata": {"name": "gpt"}}

    manifest = read({"kind": "List", "items": [service, a_job()]})

    assert manifest.others == (service,)
    assert manifest.path == "/apis/batch/v1/namespaces/default/jobs"
