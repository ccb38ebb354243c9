"""A job's manifest -> the same job on the nodes that are left, told which step to resume from."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recovery.errors import ParseError

HOSTNAME = "kubernetes.io/hostname"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of job: its API, its name in a path, the label of its pods that names it."""

    name: str
    api: str
    plural: str
    label: str


# Source: batch/v1 of Kubernetes; jobset_types.go of kubernetes-sigs/jobset (v1alpha2);
# common_types.go of kubeflow/training-operator (v1).
KINDS = {
    kind.name: kind
    for kind in (
        Kind(name="Job", api="batch/v1", plural="jobs", label="job-name"),
        Kind(
            name="JobSet",
            api="jobset.x-k8s.io/v1alpha2",
            plural="jobsets",
            label="jobset.sigs.k8s.io/jobset-name",
        ),
        Kind(
            name="PyTorchJob",
            api="kubeflow.org/v1",
            plural="pytorchjobs",
            label="training.kubeflow.org/job-name",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Manifest:
    """The job's own object, and what else its file names (a Service, a ConfigMap)."""

    job: Json
    others: tuple[Json, ...] = ()

    @property
    def kind(self) -> Kind:
        """What kind of job it is."""
        return KINDS[self.job["kind"]]

    @property
    def name(self) -> str:
        """The job's name."""
        return str(self.job["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Where it lives."""
        return str(self.job["metadata"].get("namespace") or "default")

    @property
    def path(self) -> str:
        """The API's path of all jobs of this kind in this namespace."""
        return f"/apis/{self.job['apiVersion']}/namespaces/{self.namespace}/{self.kind.plural}"

    @property
    def pods(self) -> int:
        """How many pods it starts at once."""
        return sum(times * int(holder.get(key, 1)) for holder, key, times in _counts(self.job))


def read_manifest(text: str) -> Manifest:
    """The job of what ``kubectl create --dry-run=client -o json`` printed: one object or several.

    Raises:
        ParseError: not JSON, or not exactly one job of a kind that we know.
    """
    objects = tuple(_objects(text))
    jobs = [o for o in objects if o.get("kind") in KINDS and (o.get("metadata") or {}).get("name")]
    if len(jobs) != 1:
        raise ParseError(
            f"the manifest holds {len(jobs)} jobs that have a name, not one",
            remedy=f"give the file of one job: {', '.join(KINDS)}",
        )
    if not any(True for _ in _templates(jobs[0])):
        raise ParseError("the job has no pod template", remedy="look at its spec")
    return Manifest(jobs[0], tuple(o for o in objects if o is not jobs[0]))


def _objects(text: str) -> Iterator[Json]:
    decoder, rest = json.JSONDecoder(), text.strip()
    try:
        while rest:
            found, end = decoder.raw_decode(rest)
            rest = rest[end:].lstrip()
            yield from found["items"] if found.get("kind") == "List" else (found,)
    except (ValueError, AttributeError, KeyError) as error:
        raise ParseError(
            f"not an object in JSON: {rest[:60]!r}", remedy="kubectl create --dry-run=client"
        ) from error


def fitted(
    manifest: Manifest, *, hostnames: Iterable[str], env: Mapping[str, str], pods: int
) -> Manifest:
    """The job bound to these nodes, with ``env`` in every container, of at most ``pods`` pods.

    What the manifest itself demands of nodes stays; a variable of the same name is replaced. It is
    never given more pods than it has.

    Raises:
        ParseError: it must shrink, and which of its numbers to lower is not clear.
    """
    job = _clean(manifest.job)
    for template in _templates(job):
        _bind(template["spec"], sorted(hostnames))
        for container in _containers(template["spec"]):
            kept = [e for e in container.get("env") or [] if e.get("name") not in env]
            container["env"] = [*kept, *({"name": n, "value": v} for n, v in sorted(env.items()))]
    shrunk = Manifest(job, manifest.others)
    if shrunk.pods > pods:
        _shrink(job, shrunk.pods - pods)
    return shrunk


def bound_to(job: Json) -> list[str]:
    """The hostnames that `fitted` bound a job to; none when it did not."""
    for template in _templates(job):
        affinity = (template["spec"].get("affinity") or {}).get("nodeAffinity") or {}
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
        for term in required.get("nodeSelectorTerms") or []:
            for demand in reversed(term.get("matchExpressions") or []):
                if demand.get("key") == HOSTNAME:
                    return list(demand.get("values") or [])
    return []


def _clean(job: Json) -> Json:
    """A copy without what only the server writes."""
    copied = copy.deepcopy(job)
    copied.pop("status", None)
    for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"):
        copied["metadata"].pop(name, None)
    return copied


def _templates(part: Any) -> Iterator[Json]:
    """The pod templates in a job, at any depth."""
    if isinstance(part, list):
        for item in part:
            yield from _templates(item)
    if not isinstance(part, dict):
        return
    inside = part.get("template")
    if isinstance(inside, dict) and (inside.get("spec") or {}).get("containers"):
        yield inside
        return
    for value in part.values():
        yield from _templates(value)


def _containers(spec: Json) -> Iterator[Json]:
    yield from spec.get("initContainers") or []
    yield from spec["containers"]


def _bind(spec: Json, hostnames: list[str]) -> None:
    """Adds the nodes to each of the terms: one of them is enough for the scheduler."""
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms = required.get("nodeSelectorTerms") or [{}]
    ours = {"key": HOSTNAME, "operator": "In", "values": hostnames}
    required["nodeSelectorTerms"] = [
        {**term, "matchExpressions": [*(term.get("matchExpressions") or []), ours]}
        for term in terms
    ]


def _counts(job: Json) -> list[tuple[Json, str, int]]:
    """Where the job says how many pods it has: the holder, its key, how often that is meant."""
    spec = job.get("spec") or {}
    if job["kind"] == "PyTorchJob":
        return [(s, "replicas", 1) for s in (spec.get("pytorchReplicaSpecs") or {}).values()]
    if job["kind"] == "JobSet":
        return [
            (part["template"]["spec"], "parallelism", int(part.get("replicas", 1)))
            for part in spec.get("replicatedJobs") or []
        ]
    return [(spec, "parallelism", 1)]


def _shrink(job: Json, less: int) -> None:
    """Lowers the one number that can give ``less`` pods: the workers, or the only one there is."""
    able = [
        (holder, key, less // times)
        for holder, key, times in _counts(job)
        if less % times == 0 and int(holder.get(key, 1)) > less // times
    ]
    if len(able) != 1:
        raise ParseError(
            f"the job has {less} pods more than there are nodes, and it is not clear which to drop",
            remedy="lower its number of pods in the manifest",
        )
    holder, key, drop = able[0]
    was = int(holder.get(key, 1))
    if holder.get("completions") == was:
        holder["completions"] = was - drop
    holder[key] = was - drop
