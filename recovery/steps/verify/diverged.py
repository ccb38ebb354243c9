"""What follows when the training is not that of before: it is stopped, and the way back is said."""

from __future__ import annotations

from recovery.engine.jobs import detached, told
from recovery.model.node import Node
from recovery.model.output import Output
from recovery.model.ports import World
from recovery.model.verdict import Finding, failed

_DOWN = frozenset({"stopped", "ended", "lost"})


def back(world: World, step: int | None) -> str:
    """The command that goes on from the checkpoint before ``step``."""
    older = f" -e before={step}" if step is not None else ""
    return (
        f"recover run {world.cluster}{older}: it resumes from the checkpoint before (its step"
        ' `checkpoint` says `before: "{{ before }}"`, as power-loss.yaml does)'
    )


def left_alone(world: World, step: int | None) -> Finding:
    """The finding on a job that diverged and that was not to be stopped."""
    return failed(
        "the training is not that of before; its job was left as it is",
        remedy=f"stop it (`on_divergence: stop` does), both logs are kept; {back(world, step)}",
        code="verify.diverged",
    )


def stop_job(world: World, nodes: tuple[Node, ...], step: int | None) -> Finding:
    """Stops the job that this run started on the nodes; the finding says where it did not end."""
    name = str(world.values("launch").get("job") or "")
    if not name:
        return failed(
            "the training is not that of before; this run did not start it, so it was not stopped",
            remedy=f"stop it, both logs are kept; then {back(world, step)}",
            code="verify.diverged",
        )
    world.note(f"stopping {name}: the training is not that of before", kind="verify")
    up: list[str] = []

    def stop(node: Node) -> Output:
        output = world.run(node, detached(("stop", name), {}, world))
        if told(output).get("state") not in _DOWN:
            up.append(node.name)
        return output

    world.each(nodes, stop)
    if up:
        return failed(
            f"the training is not that of before; {name} may still run on {', '.join(sorted(up))}",
            remedy=f"stop it there, both logs are kept; then {back(world, step)}",
            code="verify.diverged",
        )
    return failed(
        f"the training is not that of before: {name} was stopped, both logs are kept",
        remedy=back(world, step),
        code="verify.diverged",
    )
