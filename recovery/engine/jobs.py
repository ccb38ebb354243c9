"""Starting one rank a node, detached, by `detach.sh`: what all launchers over SSH share."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from recovery.engine.outcome import ending_finding, node_result
from recovery.model.output import Command, Output
from recovery.model.result import NodeResult
from recovery.model.verdict import Finding, failed, passed, single, unknown

if TYPE_CHECKING:
    from recovery.model.node import Node
    from recovery.model.ports import World

DEFAULT_PORT = 29500  # torchrun's own default for the rendezvous
ALREADY_RUNS = 5  # detach.sh: a job of this name still runs; it prints the pid


@dataclass(frozen=True, slots=True)
class Rank:
    """What one node is to run."""

    line: str
    env: Mapping[str, str] = field(default_factory=dict)


def claim(nodes: tuple[Node, ...], job: Mapping[str, Any], world: World) -> bool:
    """Journals the intent to start the job; true when this run had journaled it before."""
    ours = any(intent.get("name") == job["name"] for intent in world.intentions("launch"))
    if not ours:
        world.intend("launch", {"name": job["name"], "line": job["line"], "nodes": len(nodes)})
    return ours


def start_ranks(
    nodes: tuple[Node, ...],
    job: Mapping[str, Any],
    world: World,
    rank: Callable[[int, Node], Rank],
) -> dict[str, NodeResult]:
    """Starts ``rank(number, node)`` on every node, numbered as the nodes are ordered, or on none.

    A job of the same name that runs is left alone: a failure, unless this run started it.
    """
    ours = claim(nodes, job, world)
    ranks = {node.name: rank(number, node) for number, node in enumerate(nodes)}

    def start(node: Node) -> NodeResult:
        mine = ranks[node.name]
        words = ("start", str(job["name"]), str(job["log"]), mine.line)
        output = world.run(node, detached(words, {**mine.env, **job["env"]}, world))
        finding = _started(output, ours=ours)
        return node_result(node.name, output, [finding], values=told(output))

    results = world.fan_out(nodes, start)
    fresh = [n for n in nodes if results[n.name].values.get("state") == "started"]
    if any(r.verdict.level.blocks for r in results.values()) and fresh:
        _take_back(fresh, str(job["name"]), world)
    return results


def rendezvous(head: Node, world: World) -> tuple[str, str]:
    """Address and port where the ranks meet: the first node's, unless variables say otherwise."""
    variables = {**world.variables, **head.variables}
    address = str(variables.get("master_addr") or head.address or head.name)
    return address, str(variables.get("master_port", DEFAULT_PORT))


def detached(words: tuple[str, ...], env: Mapping[str, str], world: World) -> Command:
    """The command that hands ``words`` to detach.sh."""
    return Command(
        f"sh -s -- {shlex.join(words)}",
        timeout_s=60.0,
        env=env,
        stdin=world.payload("detach.sh").encode(),
        sudo=world.step.sudo,
    )


def told(output: Output) -> dict[str, str]:
    """The ``key=value`` lines that detach.sh printed."""
    pairs = (line.partition("=") for line in output.text.splitlines())
    return {key: value for key, equals, value in pairs if equals}


def already_runs(what: str) -> Finding:
    """The finding that a job of this name runs, which this run did not start."""
    return failed(
        f"a job of this name runs already, {what}; none was started",
        remedy="stop it, or give this one another name",
        code="launch.already-runs",
    )


def same_for_all(nodes: Iterable[Node], finding: Finding, world: World) -> dict[str, NodeResult]:
    """One finding about the whole job, told of each of its nodes."""
    return world.fan_out(nodes, lambda node: NodeResult(node=node.name, verdict=single(finding)))


def _started(output: Output, *, ours: bool) -> Finding:
    by_ending = ending_finding(output)
    if by_ending:
        return by_ending
    values = told(output)
    pid = values.get("pid", "unknown")
    if output.exit_status == 0 and values.get("state") == "started":
        return passed(f"started, pid {pid}")
    if output.exit_status == ALREADY_RUNS and ours:
        return passed(f"runs already, pid {pid}: this run started it")
    if output.exit_status == ALREADY_RUNS:
        return already_runs(f"pid {pid}")
    words = values.get("reason") or (output.error_text.strip() or "no reason given")
    return unknown(
        f"not started: {words[:160]}",
        remedy="run the launch line by hand on this node",
        code="launch.not-started",
    )


def _take_back(nodes: list[Node], name: str, world: World) -> None:
    """Stops the ranks just started when others could not: half a job only burns time."""

    def stop(node: Node) -> Output:
        return world.run(node, detached(("stop", name), {}, world))

    world.note(f"stopping the {len(nodes)} ranks just started: not all could start")
    world.each(nodes, stop)
