"""What is known of each node from many runs: newest answers, who is set aside, who is a lemon."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from recovery.engine.history import RunStory, StepStory
from recovery.model.events import Noted
from recovery.model.result import NodeResult
from recovery.model.verdict import Finding, Level

MESH = "mesh"
RELEASED = "node.released"
"""Kind of the note that a run leaves when its nodes were given back; ``facts["nodes"]``."""
_ASKING = ("check", "wait", MESH)  # verbs whose results say something about a node's health


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The newest answer of one node to one question (a check, a mesh, being reachable)."""

    question: str
    level: Level
    at: float
    run: str
    finding: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """A node that a run set aside, and no later one cleared. ``since`` is the first such run."""

    step: str
    reason: str
    remedy: str
    since: float
    run: str


@dataclass(slots=True)
class NodeHistory:
    """All that the runs say about one node."""

    node: str
    answers: dict[str, Answer] = field(default_factory=dict)
    aside: Aside | None = None
    returned_at: float | None = None
    n_runs: int = 0
    n_bad_runs: int = 0
    findings: Counter[str] = field(default_factory=Counter)  # code -> number of runs with it

    @property
    def last_at(self) -> float | None:
        """When it answered last."""
        return max((a.at for a in self.answers.values()), default=None)

    @property
    def worst(self) -> Answer | None:
        """The worst of the newest answers."""
        return max(self.answers.values(), key=lambda a: (a.level, a.at), default=None)

    @property
    def lemon_share(self) -> float:
        """The share of runs in which something was wrong with it."""
        return self.n_bad_runs / self.n_runs if self.n_runs else 0.0


def histories(stories: Iterable[RunStory]) -> dict[str, NodeHistory]:
    """The nodes of all runs; stories come oldest first."""
    found: dict[str, NodeHistory] = {}
    for story in stories:
        if story.started is not None:
            _take_run(found, story, story.started.run)
    return found


def _take_run(found: dict[str, NodeHistory], story: RunStory, run: str) -> None:
    seen: dict[str, set[str]] = {}  # node -> what was wrong, in short
    for step in _asking(story):
        for name, result in step.results.items():
            history = found.setdefault(name, NodeHistory(name))
            at = step.finished_nodes[name]
            history.answers |= {a.question: a for a in answers(step, result, at, run)}
            blocking = [f for f in result.verdict.findings if f.level.blocks]
            seen.setdefault(name, set()).update(f.code or step.id for f in blocking)
    for name, event in story.quarantined.items():
        found.setdefault(name, NodeHistory(name))
        seen.setdefault(name, set()).update(() if seen.get(name) else {event.step})
    for name, wrong in seen.items():
        _take_node(found[name], story, run, wrong)
    _take_released(found, story.notes)


def _asking(story: RunStory) -> Iterator[StepStory]:
    """Steps that say something about health: verbs that ask, and commands that only read."""
    steps = story.started.plan.get("steps", ()) if story.started else ()
    reads = {step.get("id") for step in steps if step.get("effect") == "read"}
    for step in story.steps.values():
        if step.verb in _ASKING or (step.verb == "run" and step.id in reads):
            yield step


def _take_node(history: NodeHistory, story: RunStory, run: str, wrong: set[str]) -> None:
    history.n_runs += 1
    history.n_bad_runs += bool(wrong)
    history.findings.update(wrong)
    event = story.quarantined.get(history.node)
    if event is None:
        # Set aside until all that was wrong has been asked again, and answered well.
        still = wrong or any(a.level.blocks for a in history.answers.values())
        history.aside = history.aside if still else None
        return
    since = history.aside.since if history.aside else event.at
    history.aside = Aside(
        step=event.step, reason=event.reason, remedy=event.remedy, since=since, run=run
    )


def _take_released(found: dict[str, NodeHistory], notes: Iterable[Noted]) -> None:
    for note in notes:
        for name in note.facts.get("nodes", ()) if note.kind == RELEASED else ():
            history = found.setdefault(str(name), NodeHistory(str(name)))
            history.aside, history.returned_at = None, note.at
            # What was found before the repair says nothing about the repaired node.
            history.answers = {q: a for q, a in history.answers.items() if not a.level.blocks}


def answers(step: StepStory, result: NodeResult, at: float, run: str) -> Iterator[Answer]:
    """The answers in one result: one for each check, else one for the step."""
    checks = result.values.get("checks")
    rest = result.verdict.level
    for name, word in checks.items() if isinstance(checks, dict) else ():
        worst = _worst_of(result, name)
        level = max(Level[str(word).upper()], worst.level if worst else Level.PASS)
        rest = Level.PASS if level >= rest else rest
        shown = worst or result.verdict.worst
        yield Answer(
            question=str(name),
            level=level,
            at=at,
            run=run,
            finding=shown.finding,
            remedy=shown.remedy,
        )
    if not checks or rest.blocks:
        yield Answer(
            question=MESH if step.verb == MESH else step.id,
            level=result.verdict.level,
            at=at,
            run=run,
            finding=result.verdict.worst.finding,
            remedy=result.verdict.worst.remedy,
        )


def _worst_of(result: NodeResult, check: str) -> Finding | None:
    own = [f for f in result.verdict.findings if f.finding.startswith(f"{check}: ")]
    return max(own, key=lambda f: f.level, default=None)
