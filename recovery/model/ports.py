"""The ports: what the core asks of the world outside. Each has a real and a fake implementation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from recovery.model.bmc import BmcAsk
    from recovery.model.check import Check
    from recovery.model.events import Event
    from recovery.model.node import Node
    from recovery.model.output import Command, Output
    from recovery.model.result import Kept, NodeResult
    from recovery.model.runbook import Step
    from recovery.model.verdict import Finding


class Clock(Protocol):
    """Time. ``sleep`` returns early and raises `InterruptedRunError` when the run is stopped."""

    def now(self) -> float:
        """POSIX seconds."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    def sleep(self, seconds: float) -> None:
        """Waits; the only way to wait."""


class Transport(Protocol):
    """Carries commands to nodes. Thread-safe; many nodes at once; one connection a node."""

    name: str

    def run(self, node: Node, command: Command) -> Output:
        """Runs to one of the four endings; never raises for what goes wrong on the node.

        When a limit, a stop or a lost connection ended it, no process of the command is left on the
        node, or ``trouble`` is ``unkillable`` or ``unsure`` and ``reason`` says what may be left. A
        command that ended by itself keeps the children that it left behind (a daemon it started);
        ``reason`` says so when one holds the output.
        """

    def stop(self, grace_s: float) -> None:
        """Ends all running commands (TERM, grace, KILL); commands asked for later never start."""

    def close(self) -> None:
        """Ends all connections."""


class Journal(Protocol):
    """The append-only record of a run."""

    def append(self, event: Event) -> None:
        """Stores one event; state changes are on disk when this returns.

        Raises:
            StoreError: the disk is full or gone; the run stops at once.
        """


class Evidence(Protocol):
    """Big outputs, stored once under their digest."""

    def put(self, content: bytes) -> str:
        """Stores bytes and returns their sha256 as hex."""

    def get(self, digest: str) -> bytes:
        """The bytes again.

        Raises:
            StoreError: not there, or altered.
        """


class Asker(Protocol):
    """Asks the operator."""

    def ask(self, question: str, approval: str, timeout_s: float) -> tuple[bool | None, str]:
        """Returns (answer, by whom); None when nobody answered in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report on the shelf ``recovery/reports``: all events of a run -> text.

    ``fold`` shortens node names (``node[001-064]``). Evidence that is missing is said, not raised.
    """

    name: str
    about: str
    suffix: str  # of the file: ``.html``
    render: Callable[[Sequence[Event], Evidence, Callable[[Iterable[str]], str]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportKind:
    """A transport on the shelf ``recovery/transports``.

    ``open`` gets run-wide settings: ``leash`` (text of the payload), ``state_dir`` (a folder of
    our own, for control files), ``width`` (most commands at once).
    """

    name: str
    about: str
    open: Callable[[Mapping[str, Any]], Transport]


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """A launcher on the shelf ``recovery/launchers``: starts the training, once, on all nodes.

    ``launch`` gets the nodes in rank order, the job's values (``line``, ``name``, ``log``,
    ``env``, ``step``) and the world; a job of the same name that still runs is a finding.
    """

    name: str
    about: str
    launch: Callable[[tuple[Node, ...], Mapping[str, Any], World], Mapping[str, NodeResult]]


class World(Protocol):
    """All that a verb may do. Given to `Verb.run`; nothing else reaches the outside."""

    @property
    def run_id(self) -> str:
        """The run's name."""

    @property
    def cluster(self) -> str:
        """The inventory's name."""

    @property
    def seed(self) -> int:
        """The plan's seed; all that looks random follows from it."""

    @property
    def step(self) -> Step:
        """The step, rendered."""

    @property
    def variables(self) -> Mapping[str, Any]:
        """Variables of runbook and inventory (`all`), saved values, and ``nodes`` still in."""

    @property
    def inventory_nodes(self) -> Mapping[str, Node]:
        """Every node of the inventory."""

    @property
    def clock(self) -> Clock:
        """Time."""

    def run(self, node: Node, command: Command) -> Output:
        """Runs one command on one node within what is left of the step's time."""

    def bmc(self, node: Node, question: BmcAsk) -> Output | None:
        """Asks the node's BMC, within what is left of the step's time; None: none is known."""

    def fan_out(
        self, nodes: Iterable[Node], work: Callable[[Node], NodeResult]
    ) -> dict[str, NodeResult]:
        """Does ``work`` on all nodes at once, up to the width limit, each result journaled.

        An exception in ``work`` becomes UNKNOWN for its node with the traceback as evidence.
        """

    def each(
        self, items: Iterable[Any], work: Callable[[Any], Any], *, at_least: int = 1
    ) -> list[Any]:
        """Does ``work`` on all items at once (groups of a mesh round), in order, not journaled.

        ``at_least`` so many at once, whatever the run's width: those that wait for each other.
        """

    def keep(self, name: str, content: bytes) -> Kept:
        """Stores evidence and returns what a `NodeResult` lists in ``kept``."""

    def kept(self, digest: str) -> bytes:
        """Evidence of this run again."""

    def note(self, message: str, *, kind: str = "", facts: Mapping[str, Any] | None = None) -> None:
        """Tells people and reports about progress."""

    def intend(self, what: str, facts: Mapping[str, Any]) -> None:
        """Journals the intent of a side effect; on disk when this returns."""

    def intentions(self, what: str) -> tuple[Mapping[str, Any], ...]:
        """Facts of all intents of this name in this run so far, earlier sittings included."""

    def spent(self, node: Node) -> Finding | None:
        """Why this verb may not disrupt the node once more (`limits: attempts`); else None."""

    def set_aside(self, nodes: tuple[Node, ...], reason: str, remedy: str) -> str:
        """Takes nodes out of the later steps and of the scheduler; returns what it said."""

    def results(self, verb: str) -> Mapping[str, NodeResult]:
        """The newest result of each node in finished steps of this verb in this run."""

    def values(self, verb: str) -> Mapping[str, Any]:
        """The step values of the newest finished step of this verb in this run."""

    def profile(self, node: Node) -> Mapping[str, Any]:
        """Expectations for the node: hardware profile, then inventory variables, merged flat."""

    def check(self, name: str) -> Check[Any, Any]:
        """The check called so."""

    def launcher(self, name: str) -> Launcher:
        """The launcher called so."""

    def payload(self, name: str) -> str:
        """The text of a file in ``recovery/payloads``."""

    def local_file(self, path: str) -> bytes:
        """A file of the controller (a script that is sent to nodes).

        Raises:
            InputError: it cannot be read.
        """

    def ask(self, question: str, timeout_s: float) -> tuple[bool | None, str]:
        """Asks the operator; None when nobody answered in time."""

    def report(self, formats: tuple[str, ...]) -> tuple[str, ...]:
        """Writes reports of the run so far; returns their paths."""

    def playbook(
        self, playbook: str, nodes: tuple[Node, ...], options: Mapping[str, Any]
    ) -> dict[str, NodeResult]:
        """Runs an Ansible playbook on the nodes (needs the extra `recover[ansible]`)."""
