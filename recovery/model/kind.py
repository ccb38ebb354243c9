"""A verb of the runbook language: one file on the shelf ``recovery/steps``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from recovery.model.result import Kept as Kept
from recovery.model.result import NodeResult as NodeResult
from recovery.model.result import StepResult as StepResult
from recovery.model.runbook import Effect, Rerun

if TYPE_CHECKING:
    from pydantic import BaseModel

    from recovery.model.node import Node
    from recovery.model.ports import World

Params = TypeVar("Params", bound="BaseModel")


def _one_wave(params: Any, nodes: tuple[Node, ...]) -> tuple[tuple[Node, ...], ...]:
    return (nodes,)


def _no_price(params: Any, n_nodes: int) -> str:
    return ""


def _no_commands(params: Any) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb(Generic[Params]):
    """One verb.

    ``params`` is a frozen pydantic model with ``extra="forbid"``: its field ``argument`` is the
    value of the verb key (`mesh: all_reduce`), its other fields are keys that this verb adds to a
    step (`size: 8G`). ``describe`` says in one line what the step will do, ``commands`` the exact
    lines that it runs on a node, ``price`` what it costs on so many nodes, in words. ``run`` must
    return a result for every node it is given and must
    not raise for what goes wrong on a node. ``on_nodes`` is false for verbs that run on the
    controller alone (approve, report): they are given the one node `CONTROLLER`. ``together`` is
    true where nodes are judged with one another (mesh, launch): a retry or a resume then repeats
    the step on all its nodes. ``effect_of`` is the effect with such values, where it is less than
    ``effect`` (`power: status` reads). ``disrupts`` is false where a
    disruptive step takes no node away (launch): the limits of `limits:` are not about it.
    ``waves`` cuts the nodes of a batch into groups that are done one
    after the other, each with the step's whole time, the next only if somebody of the one before
    passed.
    """

    name: str
    about: str
    effect: Effect
    params: type[Params]
    describe: Callable[[Params], str]
    run: Callable[[Params, tuple[Node, ...], World], StepResult]
    effect_of: Callable[[Params], Effect] | None = None
    disrupts: bool = True
    commands: Callable[[Params], tuple[str, ...]] = _no_commands
    price: Callable[[Params, int], str] = _no_price
    waves: Callable[[Params, tuple[Node, ...]], tuple[tuple[Node, ...], ...]] = _one_wave
    on_nodes: bool = True
    together: bool = False
    rerun: Rerun = Rerun.SAFE
    timeout_s: float = 60.0
