"""The words of a runbook and of the plan made from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Effect(StrEnum):
    """What a step does to a node."""

    READ = "read"
    WRITE = "write"
    DISRUPTIVE = "disruptive"


class Rerun(StrEnum):
    """Whether a step whose end is not known may run again."""

    SAFE = "safe"
    ASK = "ask"
    NEVER = "never"


class OnFail(StrEnum):
    """What a failing node does to the run."""

    ABORT = "abort"
    QUARANTINE = "quarantine"
    CONTINUE = "continue"


class RetryOn(StrEnum):
    """Which endings are tried again."""

    LOST = "lost"  # could not connect, or dropped
    TIMEOUT = "timeout"
    RC = "rc"
    EXPECT = "expect"
    BUSY = "busy"


class GateKind(StrEnum):
    """How a gate counts."""

    ALL = "all"
    ANY = "any"
    COUNT = "count"
    PERCENT = "percent"
    ALL_BUT = "all-but"


@dataclass(frozen=True, slots=True)
class Gate:
    """How many nodes must pass, out of those fixed when the step starts."""

    kind: GateKind = GateKind.ALL
    number: int = 0


@dataclass(frozen=True, slots=True)
class Retry:
    """Attempts in all (1 = no retry), back-off in seconds, and the endings that are retried."""

    times: int = 1
    from_s: float = 1.0
    cap_s: float = 60.0
    on: frozenset[RetryOn] = frozenset({RetryOn.LOST, RetryOn.BUSY})


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was written, for messages: ``file:line:column``."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Limits:
    """Run-wide limits; 0 nodes is no limit.

    ``disrupt`` nodes at most are switched, rebooted or reset by one run, ``disrupt_per_rack`` of
    one rack, ``disrupt_per_hour`` by all runs of the last hour; ``drain`` are set aside where
    others see it. One node is disrupted by the same verb ``attempts`` times within a week.
    """

    nodes_at_once: int = 256
    run_s: float = 4 * 3600.0
    disrupt: int = 0
    disrupt_per_rack: int = 0
    disrupt_per_hour: int = 0
    drain: int = 0
    attempts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a plan.

    ``fields`` are the verb's own values as written (``argument`` is the value of the verb key),
    templates not rendered; ``late`` names the values in them that a later step saves, so the
    engine renders them when the step starts. ``nodes`` are those selected at plan time;
    ``nodes_expression`` is kept for people. Where the runbook says ``nodes: head``, ``head_only``
    is true and ``nodes`` are all that may become it: the step runs on the first still in.
    ``variables`` are those that a fragment sees besides the plan's (its ``vars`` and ``with``);
    they come before all others when the step's templates and expressions are rendered.
    """

    id: str
    verb: str
    fields: Mapping[str, object]
    place: Place
    nodes: tuple[str, ...] = ()
    nodes_expression: str = ""
    head_only: bool = False
    when: str = ""
    at_once: int = 0  # 0: the run's limit
    batch: tuple[str, ...] = ()
    timeout_s: float = 60.0
    retry: Retry = Retry()
    parse: str = ""  # lines, json, csv, kv, or `regex:PATTERN`
    expect: tuple[str, ...] = ()
    agree: str = ""
    gate: Gate = Gate()
    on_fail: OnFail = OnFail.ABORT
    on_fail_steps: tuple[Step, ...] = ()
    save: Mapping[str, str] = field(default_factory=dict)
    keep: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    sudo: bool = False
    good_for_s: float | None = None
    effect: Effect = Effect.WRITE
    rerun: Rerun = Rerun.ASK
    disrupts: bool = False  # takes nodes away for a while: `limits:` hold it
    detach: bool = False
    empty_ok: bool = False
    late: tuple[str, ...] = ()
    variables: Mapping[str, object] = field(default_factory=dict)
    describe: str = ""
    n_waves: int = 1  # groups that are done one after the other, each with the whole time
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A rendered runbook bound to an inventory. Its digest names it; resume refuses another's.

    ``secrets`` names the variables whose value in ``variables`` is only a reference
    (``{"secret": "env:NAME"}`` or ``"inventory:NAME"``); the app puts the values in at run time.
    """

    runbook: str
    about: str
    cluster: str
    nodes: tuple[str, ...]
    steps: tuple[Step, ...]
    finally_: tuple[Step, ...]
    variables: Mapping[str, object]
    limits: Limits
    seed: int
    digest: str
    secrets: tuple[str, ...] = ()
