"""`command`: the job's line on every node over our own transport, detached, kept on the node."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from recovery.engine.outcome import ending_finding, node_result
from recovery.model.node import Node
from recovery.model.output import Command, Output
from recovery.model.ports import Launcher, World
from recovery.model.result import NodeResult
from recovery.model.verdict import Finding, failed, passed, unknown

DEFAULT_PORT = 29500  # torchrun's own default for the rendezvous
ALREADY_RUNS = 5  # detach.sh: a job of this name still runs; it prints the pid


def _launch(
    nodes: tuple[Node, ...], job: Mapping[str, Any], world: World
) -> Mapping[str, NodeResult]:
    before = world.intentions("launch")
    ours = any(intent.get("name") == job["name"] for intent in before)
    if not ours:
        world.intend("launch", {"name": job["name"], "line": job["line"], "nodes": len(nodes)})
    ranks = {node.name: rank for rank, node in enumerate(nodes)}
    head = nodes[0]

    def start(node: Node) -> NodeResult:
        env = {**rank_environment(head, ranks[node.name], len(nodes), world), **job["env"]}
        words = ("start", str(job["name"]), str(job["log"]), str(job["line"]))
        output = world.run(node, _detach(words, env, world))
        finding = _finding(output, ours=ours)
        return node_result(node.name, output, [finding], values=told(output))

    results = world.fan_out(nodes, start)
    fresh = [n for n in nodes if results[n.name].values.get("state") == "started"]
    if any(r.verdict.level.blocks for r in results.values()) and fresh:
        _take_back(fresh, str(job["name"]), world)
    return results


def rank_environment(head: Node, rank: int, size: int, world: World) -> dict[str, str]:
    """The rendezvous variables that torch.distributed and most launchers read (one rank a node)."""
    variables = {**world.variables, **head.variables}
    address = str(variables.get("master_addr") or head.address or head.name)
    return {
        "MASTER_ADDR": address,
        "MASTER_PORT": str(variables.get("master_port", DEFAULT_PORT)),
        "RANK": str(rank),
        "NODE_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "NNODES": str(size),
    }


def _detach(words: tuple[str, ...], env: Mapping[str, str], world: World) -> Command:
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


def _finding(output: Output, *, ours: bool) -> Finding:
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
        return failed(
            f"a job of this name runs already, pid {pid}; none was started",
            remedy="stop it, or give this one another name",
            code="launch.already-runs",
        )
    words = values.get("reason") or (output.error_text.strip() or "no reason given")
    return unknown(
        f"not started: {words[:160]}",
        remedy="run the launch line by hand on this node",
        code="launch.not-started",
    )


def _take_back(nodes: list[Node], name: str, world: World) -> None:
    """Stops the ranks just started when others could not: half a job only burns time."""

    def stop(node: Node) -> Output:
        return world.run(node, _detach(("stop", name), {}, world))

    world.note(f"stopping the {len(nodes)} ranks just started: not all could start")
    world.each(nodes, stop)


COMMAND = Launcher(
    name="command",
    about="the job's line on every node over SSH, one rank a node, detached",
    launch=_launch,
)
