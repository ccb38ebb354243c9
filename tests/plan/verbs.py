"""Small verbs of the language's shape, so that these tests do not lean on the real ones."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, field_validator

from recovery.errors import InputError, SelectionError
from recovery.model.inventory import Inventory
from recovery.model.kind import StepResult, Verb
from recovery.model.node import Node
from recovery.model.runbook import Effect, Plan, Rerun
from recovery.plan import build, read_runbook, seconds, size_bytes


class Params(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LineParams(Params):
    argument: str = Field(min_length=1)


class WaitParams(LineParams):
    every: str = "5s"

    @field_validator("every")
    @classmethod
    def _duration(cls, value: str) -> str:
        seconds(value)
        return value


class LaunchParams(LineParams):
    name: str = "training"
    log: str = ""


class ScriptParams(LineParams):
    args: tuple[str, ...] = ()


class NamesParams(Params):
    argument: tuple[str, ...]

    @field_validator("argument", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value


class MeshParams(Params):
    argument: Literal["all_reduce", "all_gather"]
    size: str = "8G"
    only: str = ""
    levels: Annotated[int, WithJsonSchema({"type": ["integer", "array"]})] = Field(default=6, ge=1)

    @field_validator("levels", mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        return len(value) if isinstance(value, list | tuple) else value

    @field_validator("size")
    @classmethod
    def _size(cls, value: str) -> str:
        size_bytes(value)
        return value


class CheckpointParams(LineParams):
    require: tuple[str, ...] = ()
    before: int = 0


class PowerParams(Params):
    argument: Literal["on", "off", "cycle", "status"]
    orderly: str = "1m"
    off_for: str = "30s"
    settle: str = "10s"
    every: str = "5s"
    inrush: Annotated[int, WithJsonSchema({"type": ["integer", "string"]})] = 8
    may_fail: bool = False


class RebootParams(Params):
    argument: str | None = None
    ready: tuple[str, ...] = ()
    may_fail: bool = False


class ResetParams(NamesParams):
    may_fail: bool = False


def _waves(params: PowerParams, nodes: tuple[Node, ...]) -> tuple[tuple[Node, ...], ...]:
    most = params.inrush
    return tuple(nodes[at : at + most] for at in range(0, len(nodes), most))


def _nothing(params: Any, nodes: Any, world: Any) -> StepResult:
    return StepResult(nodes={})


def verb(name: str, params: type[Params], effect: Effect = Effect.READ, **more: Any) -> Verb[Any]:
    return Verb(
        name=name,
        about=f"the verb {name}",
        effect=effect,
        params=params,
        describe=more.pop("describe", lambda p: f"{name} {p.argument}"),
        run=_nothing,
        **more,
    )


LINE = {"commands": lambda p: (p.argument,)}
VERBS = {
    one.name: one
    for one in (
        verb("run", LineParams, Effect.WRITE, rerun=Rerun.ASK, **LINE),
        verb("script", ScriptParams, Effect.WRITE, rerun=Rerun.ASK),
        verb("playbook", LineParams, Effect.WRITE, rerun=Rerun.ASK),
        verb("check", NamesParams),
        verb("freeze", NamesParams),
        verb("mesh", MeshParams, describe=lambda p: f"mesh {p.argument} of {p.size}"),
        verb("checkpoint", CheckpointParams),
        verb("launch", LaunchParams, Effect.DISRUPTIVE, disrupts=False, rerun=Rerun.NEVER, **LINE),
        verb("verify", LineParams),
        verb("power", PowerParams, Effect.DISRUPTIVE, waves=_waves),
        verb("drain", LineParams, Effect.WRITE),
        verb("reboot", RebootParams, Effect.DISRUPTIVE),
        verb("reset", ResetParams, Effect.DISRUPTIVE),
        verb("wait", WaitParams, **LINE),
        verb("approve", LineParams, on_nodes=False),
        verb("report", NamesParams, on_nodes=False),
    )
}
CHECKS = ("gpu.count", "gpu.ecc", "gpu.thermal", "gpu.topology", "gpu.xid", "driver.match")


def cluster(n_nodes: int = 4, **variables: object) -> Inventory:
    """An inventory of nodes n1..nN in the group gpu; `bad` is a group of n1."""
    names = [f"n{i}" for i in range(1, n_nodes + 1)]
    return Inventory(
        name="test",
        source="test.yaml",
        nodes={name: Node(name) for name in names},
        groups={"gpu": tuple(names), "bad": ("n1",), "empty": ()},
        variables=variables,
    )


def select(inventory: Inventory, expression: str) -> tuple[str, ...]:
    """Enough of node expressions for these tests: names and @groups, joined by commas."""
    chosen: set[str] = set()
    for word in expression.replace("|", ",").split(","):
        name = word.strip()
        known = inventory.groups if name.startswith("@") else {n: (n,) for n in inventory.nodes}
        if name.removeprefix("@") not in known:
            raise SelectionError(f"no node called {name!r}", remedy="see `recover nodes`")
        chosen |= set(known[name.removeprefix("@")])
    return tuple(name for name in inventory.nodes if name in chosen)


def fold(names: Any) -> str:
    return "+".join(names)


def plan_of(text: str, inventory: Inventory | None = None, **given: Any) -> Plan:
    """The plan of a runbook text; ``files`` are what `use` finds, ``overrides`` what -e gives."""
    held = inventory or cluster()
    files = given.get("files", {})

    def load(name: str) -> tuple[str, str]:
        if name not in files:
            raise InputError(f"no runbook called {name!r}", remedy="check the name")
        return files[name], name

    return build(
        read_runbook(text, "book.yaml", VERBS),
        held,
        VERBS,
        overrides=given.get("overrides", {}),
        nodes=given.get("nodes"),
        load=load,
        select=lambda expression: select(held, expression),
        fold=fold,
        check_names=CHECKS,
        seed=7,
    )


def book(steps: str, top: str = "") -> str:
    """A runbook text: the head, more keys of the top, then the steps as they are indented here."""
    return f'runbook: test\nnodes: "@gpu"\n{top}steps:\n{steps}'
