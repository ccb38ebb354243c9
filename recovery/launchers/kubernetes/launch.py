"""`kubernetes`: found first, then re-created where it is over or lost, and waited for."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recovery.engine.jobs import already_runs, claim, same_for_all
from recovery.engine.outcome import ending_finding
from recovery.errors import InputError, ParseError, SchedulerError
from recovery.inventory import fold
from recovery.launchers.kubernetes.manifest import Manifest, bound_to, fitted, read_manifest
from recovery.launchers.kubernetes.seen import (
    NODES,
    KubeNode,
    Pod,
    ended,
    read_job,
    read_nodes,
    read_pods,
)
from recovery.model.node import CONTROLLER, Node
from recovery.model.output import Command
from recovery.model.ports import Launcher, World
from recovery.model.result import NodeResult
from recovery.model.verdict import Finding, failed, passed, single, unknown, warned

POLL_S = 2.0
ASK_S = 60.0
SPARE_S = 3.0


@dataclass(slots=True)
class _Cluster:
    """Kubernetes, asked by kubectl on one machine about one job."""

    nodes: tuple[Node, ...]
    job: Mapping[str, Any]
    world: World
    head: Node
    ends_at: float
    manifest: Manifest
    known: Mapping[str, KubeNode] = field(default_factory=dict)

    @property
    def mine(self) -> tuple[str, ...]:
        """The nodes given that Kubernetes knows and would use."""
        usable = (self.known.get(n.name) for n in self.nodes)
        return tuple(k.name for k in usable if k and k.schedulable and k.ready)

    @property
    def hostnames(self) -> list[str]:
        """What those nodes' hostname labels say."""
        return sorted(self.known[name].hostname for name in self.mine)

    def pods(self) -> tuple[Pod, ...]:
        """The job's pods now."""
        selector = f"{self.manifest.kind.label}={self.manifest.name}"
        return read_pods(self.ask("get", "pods", *self._there(), "-l", selector, "-o", "json"))

    def seen(self) -> dict[str, Any] | None:
        """The job as Kubernetes has it; None when it has none of this name."""
        return read_job(self.ask("get", *self._it(), "--ignore-not-found", "-o", "json"))

    def delete(self) -> None:
        """Deletes the job; its pods end after it."""
        self.ask("delete", *self._it(), "--ignore-not-found", "--wait=false")

    def bury(self, pod: Pod) -> None:
        """Takes a pod of a dead node off the books: nobody there can confirm its end."""
        force = ("--grace-period=0", "--force", "--ignore-not-found", "--wait=false")
        self.ask("delete", "pod", pod.name, *self._there(), *force)

    def _it(self) -> tuple[str, ...]:
        kind = self.manifest.kind
        group = kind.api.partition("/")[0]
        return (f"{kind.plural}.{group}", self.manifest.name, *self._there())

    def _there(self) -> tuple[str, ...]:
        return ("-n", self.manifest.namespace)

    def ask(self, *words: str, stdin: bytes = b"") -> str:
        """What kubectl printed."""
        return _asked(self.head, words, self.world, stdin)

    def pause(self) -> bool:
        """Waits a little; false when the step's time is up."""
        if self.world.clock.monotonic() + POLL_S > self.ends_at:
            return False
        self.world.clock.sleep(POLL_S)
        return True


def _asked(head: Node, words: tuple[str, ...], world: World, stdin: bytes = b"") -> str:
    """What kubectl printed.

    Raises:
        SchedulerError: it failed, did not end, or printed more than is kept.
    """
    line = shlex.join(("kubectl", *words))
    output = world.run(head, Command(line, timeout_s=ASK_S, stdin=stdin, sudo=world.step.sudo))
    ending = ending_finding(output)
    if ending:
        raise SchedulerError(f"kubectl {words[0]}: {ending.finding}", remedy=ending.remedy)
    if not output.ok or output.stdout_dropped:
        said = (output.error_text.strip() or f"exit status {output.exit_status}").splitlines()[-1]
        raise SchedulerError(f"kubectl {words[0]}: {said[:200]}", remedy=f"run it by hand: {line}")
    return output.text


def _launch(
    nodes: tuple[Node, ...], job: Mapping[str, Any], world: World
) -> Mapping[str, NodeResult]:
    try:
        cluster = _look(nodes, job, world)
        if not cluster.mine:
            return same_for_all(nodes, _strangers(cluster), world)
        how = _obtain(cluster)
        if how.level.blocks:
            return same_for_all(nodes, how, world)
        pods, finding = _wait(cluster)
        if finding:
            return same_for_all(nodes, finding, world)
        return _running(cluster, pods, how)
    except (SchedulerError, ParseError) as error:
        finding = unknown(error.message, remedy=error.remedy, code="launch.kubernetes-silent")
        return same_for_all(nodes, finding, world)


def _look(nodes: tuple[Node, ...], job: Mapping[str, Any], world: World) -> _Cluster:
    """Reads the manifest as kubectl does, and asks what the nodes are."""
    head = _head(world)
    line = shlex.split(str(job["line"]))
    read = ("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", line[-1])
    manifest = read_manifest(_asked(head, read, world))
    ends_at = world.clock.monotonic() + world.step.timeout_s - SPARE_S
    cluster = _Cluster(nodes, job, world, head, ends_at, manifest)
    cluster.known = read_nodes(cluster.ask("get", "nodes", "-o", f"jsonpath={NODES}"))
    return cluster


def _head(world: World) -> Node:
    """Where kubectl runs: the variable ``kubernetes_head`` names it, else the controller."""
    name = world.variables.get("kubernetes_head")
    if not name:
        return CONTROLLER
    if str(name) not in world.inventory_nodes:
        raise InputError(
            f"kubernetes_head: no node {str(name)!r} in the inventory",
            remedy="add it to the inventory, or leave kubernetes_head out to ask from here",
        )
    return world.inventory_nodes[str(name)]


def _strangers(cluster: _Cluster) -> Finding:
    name = cluster.nodes[0].name
    known = cluster.known.get(name)
    why = "is cordoned or not ready" if known else "is not known to Kubernetes"
    return unknown(
        f"none of the nodes can take a pod, such as {name!r}: it {why}",
        remedy="name the nodes as `kubectl get nodes` does; `kubectl uncordon` those that are fit",
        code="launch.kubernetes-strangers",
    )


def _obtain(cluster: _Cluster) -> Finding:
    """Finds the job, or creates it; says how we came by it, or why there is none."""
    found = cluster.seen()
    ours = any(i.get("name") == cluster.job["name"] for i in cluster.world.intentions("launch"))
    if found is None:
        claim(cluster.nodes, cluster.job, cluster.world)
        return _create(cluster, "was created")
    pods = cluster.pods()
    lost = sorted({pod.node for pod in pods if _is_lost(cluster, pod)})
    over = ended(found)
    waits_as_told = ours and bound_to(found) == cluster.hostnames
    if not over and not lost and (waits_as_told or any(pod.node for pod in pods)):
        return _left_alone(cluster, ours=ours)
    claim(cluster.nodes, cluster.job, cluster.world)
    _keep(cluster, found, pods)
    cluster.delete()
    if not _gone(cluster):
        return _stays(cluster)
    why = f"it was over: {over}" if over else "no pod of it ran"
    return _create(cluster, f"was re-created: {f'it had lost {fold(lost)}' if lost else why}")


def _is_lost(cluster: _Cluster, pod: Pod) -> bool:
    """Claims that a pod sits on a node that is dead, or that we were not given."""
    if not pod.node or pod.phase in ("Succeeded", "Failed"):
        return False
    node = cluster.known.get(pod.node)
    return node is None or not node.ready or not (node.schedulable or _given(cluster, node))


def _given(cluster: _Cluster, node: KubeNode) -> bool:
    return any(node.name == n.name for n in cluster.nodes)


def _left_alone(cluster: _Cluster, *, ours: bool) -> Finding:
    name = f"{cluster.manifest.kind.name} {cluster.manifest.name}"
    if ours:
        return passed(f"{name} runs already: this run started it")
    return already_runs(f"{name} in namespace {cluster.manifest.namespace}")


def _keep(cluster: _Cluster, found: Mapping[str, Any], pods: tuple[Pod, ...]) -> None:
    """What the job was goes into the evidence before it is deleted."""
    named = f"kubernetes-{cluster.manifest.name}.json"
    told = {"job": found, "pods": [(p.name, p.node, p.phase, p.trouble) for p in pods]}
    kept = cluster.world.keep(named, json.dumps(told, indent=1).encode())
    cluster.world.note(f"the job before this one is kept as {named}", facts={"digest": kept.digest})


def _gone(cluster: _Cluster) -> bool:
    """Waits until neither the job nor a pod of it is left; buries the pods of dead nodes."""
    buried: set[str] = set()
    while True:
        pods = cluster.pods()
        if not pods and cluster.seen() is None:
            return True
        for pod in pods:
            node = cluster.known.get(pod.node)
            if pod.node and (node is None or not node.ready) and pod.name not in buried:
                cluster.bury(pod)
                buried.add(pod.name)
        if not cluster.pause():
            return False


def _stays(cluster: _Cluster) -> Finding:
    return unknown(
        f"{cluster.manifest.kind.name} {cluster.manifest.name} was deleted and is still there",
        remedy="`kubectl describe` it: a finalizer, or a pod that does not end; then "
        "`recover resume`",
        code="launch.kubernetes-stays",
    )


def _create(cluster: _Cluster, how: str) -> Finding:
    """Creates what else the manifest names where it is not there, then the job, strictly read."""
    mine, wanted = cluster.mine, cluster.manifest
    made = fitted(wanted, hostnames=cluster.hostnames, env=cluster.job["env"], pods=len(mine))
    for other in made.others:
        _beside(cluster, other)
    # Past kubectl's own reading of it: an older kubectl checks nothing, the server all.
    strict = f"{made.path}?fieldValidation=Strict"
    cluster.ask("create", "--raw", strict, "-f", "-", stdin=json.dumps(made.job).encode())
    words = f"{made.kind.name} {made.name} {how}"
    if made.pods == wanted.pods:
        return passed(words)
    return warned(
        f"{words}, with {made.pods} instead of {wanted.pods} pods",
        remedy="its command must not name the number of nodes itself",
        code="launch.kubernetes-fewer",
    )


def _beside(cluster: _Cluster, other: Mapping[str, Any]) -> None:
    text = json.dumps(other).encode()
    there = cluster.ask("get", "--ignore-not-found", "-o", "name", "-f", "-", stdin=text)
    if not there.strip():
        cluster.ask("create", "--validate=false", "-f", "-", stdin=text)


def _wait(cluster: _Cluster) -> tuple[tuple[Pod, ...], Finding | None]:
    """Looks until all pods have run for two looks, the job is over, or the time is."""
    ran_before = False
    while True:
        found, pods = cluster.seen(), cluster.pods()
        over = "deleted by somebody" if found is None else ended(found)
        if over:
            return pods, _over(cluster, over)
        wanted = Manifest(found).pods if found else 0
        runs = sum(pod.runs for pod in pods) >= wanted > 0
        if runs and ran_before:
            return pods, None
        ran_before = runs
        if not cluster.pause():
            return pods, _still_waits(cluster, pods, wanted)


def _over(cluster: _Cluster, how: str) -> Finding:
    manifest = cluster.manifest
    logs = f"kubectl logs -n {manifest.namespace} -l {manifest.kind.label}={manifest.name}"
    return failed(
        f"{manifest.kind.name} {manifest.name} is over already: {how}",
        remedy=f"read its logs: {logs}",
        code="launch.kubernetes-ended",
    )


def _still_waits(cluster: _Cluster, pods: tuple[Pod, ...], wanted: int) -> Finding:
    runs = sum(pod.runs for pod in pods)
    stuck = next((pod for pod in pods if pod.trouble), None)
    why = f"; {stuck.name}: {stuck.trouble}" if stuck else ""
    remedy = stuck.remedy if stuck else "`kubectl describe pod` says more"
    return unknown(
        f"{runs} of {wanted} pods of {cluster.manifest.name} run{why}",
        remedy=f"{remedy}; the job stays: `recover resume` waits on",
        code="launch.kubernetes-waits",
    )


def _running(cluster: _Cluster, pods: tuple[Pod, ...], how: Finding) -> dict[str, NodeResult]:
    manifest = cluster.manifest
    busy = {pod.node for pod in pods}
    values = {
        "job": f"{manifest.kind.plural}/{manifest.name}",
        "state": "running",
        "log": str(cluster.job["log"]),
    }

    def tell(node: Node) -> NodeResult:
        if node.name in busy:
            return NodeResult(node=node.name, verdict=single(how), values=values)
        return NodeResult(node=node.name, verdict=single(_idle(cluster, node)))

    return cluster.world.fan_out(cluster.nodes, tell)


def _idle(cluster: _Cluster, node: Node) -> Finding:
    if node.name in cluster.mine:
        return passed(f"not needed: {cluster.manifest.name} runs without it")
    return unknown(
        "Kubernetes does not know this node, or gives it no pods",
        remedy="`kubectl get nodes`; then uncordon it, or name it as Kubernetes does",
        code="launch.kubernetes-strangers",
    )


KUBERNETES = Launcher(
    name="kubernetes",
    about="a Job, JobSet or PyTorchJob by kubectl: found first, re-created without bad nodes",
    launch=_launch,
)
