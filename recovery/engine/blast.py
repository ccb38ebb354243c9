"""The blast radius: whom a run has disrupted and drained, and what would be too many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from recovery.engine.health import RELEASED
from recovery.engine.history import RunStory
from recovery.engine.parts import Parts
from recovery.engine.world import Recorder
from recovery.model.events import Intended
from recovery.model.node import Node
from recovery.model.runbook import Effect, Limits, Step
from recovery.model.verdict import Finding, Verdict, failed, single
from recovery.plan import Excess, excess_of

DISRUPT = "disrupt"
"""The intent before a node is switched, rebooted or reset; ``facts["node"]``."""
DRAIN = "drain"
"""The intent before nodes are set aside where others see it; ``facts["nodes"]``."""
HOUR_S = 3600.0
WEEK_S = 7 * 86400.0


@dataclass(frozen=True, slots=True)
class Blast:
    """Holds one run to its limits."""

    limits: Limits
    recorder: Recorder

    @property
    def _parts(self) -> Parts:
        return self.recorder.parts

    def refusal(self, step: Step, nodes: tuple[Node, ...]) -> Verdict | None:
        """Why a step may not disrupt so many nodes; None when it may.

        A verb that disrupts by itself journals each node as it comes to it; for a plain command
        all its nodes are journaled here.
        """
        verb = self._parts.verbs[step.verb]
        if not step.disrupts or not verb.on_nodes:
            return None
        excess = self._excess(nodes)
        if excess is not None:
            return single(
                failed(
                    f"{step.place}: {excess.message}; nothing was done",
                    remedy=excess.remedy,
                    code=f"blast.{excess.name.replace('_', '-')}",
                )
            )
        for node in nodes if verb.effect is not Effect.DISRUPTIVE else ():
            self._intend(step.id, DISRUPT, {"node": node.name, "what": step.id})
        return None

    def _excess(self, nodes: tuple[Node, ...]) -> Excess | None:
        hourly = self.limits.disrupt_per_hour
        since = self.recorder.now - HOUR_S
        return excess_of(
            tuple(node.name for node in nodes),
            self.limits,
            {name: node.rack for name, node in self._parts.nodes.items()},
            before=tuple(disrupted(self.recorder.story)),
            last_hour=tuple(self._parts.disrupted(since)) if hourly else (),
        )

    def spent(self, step: Step, node: Node) -> Finding | None:
        """Why a node is not disrupted once more by the same verb: what did not last is over."""
        key = (node.name, step.verb)
        every = attempts([self.recorder.story], before=self._parts.attempted())
        recent = [at for at in every.get(key, ()) if at >= self.recorder.now - WEEK_S]
        most = self.limits.attempts
        if not most or len(recent) < most:
            return None
        return failed(
            f"no {step.verb} again: {len(recent)} within a week, the limit is {most}",
            remedy="ask the vendor for a replacement (`recover bundle` packs the ticket); once "
            "mended, `recover return` starts the count anew",
            code="blast.attempts",
        )

    def drain(self, step: Step, names: tuple[str, ...], reason: str) -> str:
        """Has nodes set aside where others see it, unless those would be too many."""
        told = [i for i in self.recorder.story.intended if i.what == DRAIN]
        every = {*names, *(name for i in told for name in i.facts.get("nodes", ()))}
        if self.limits.drain and len(every) > self.limits.drain:
            excess = Excess("drain", self.limits.drain, len(every))
            return f"not drained: {excess.message}; {excess.remedy}"
        self._intend(step.id, DRAIN, {"nodes": list(names)})
        return self._parts.drain(names, f"{step.id}: {reason}")

    def _intend(self, step: str, what: str, facts: dict[str, object]) -> None:
        self.recorder.tell(Intended(at=self.recorder.now, step=step, what=what, facts=facts))


def disrupted(story: RunStory, *, since: float = 0.0) -> Iterable[str]:
    """Nodes that a run switched, rebooted or reset, or was about to."""
    return (
        str(intent.facts.get("node"))
        for intent in story.intended
        if intent.what == DISRUPT and intent.at >= since
    )


def attempts(
    stories: Iterable[RunStory],
    *,
    before: Mapping[tuple[str, str], Sequence[float]] | None = None,
) -> dict[tuple[str, str], list[float]]:
    """When each node was disrupted by which verb, since it was given back; oldest first."""
    found = {key: list(times) for key, times in (before or {}).items()}
    for story in stories:
        first: dict[tuple[str, object], object] = {}  # a power off may be two orders, one try
        for intent in story.intended:
            step, node = story.steps.get(intent.step), intent.facts.get("node")
            what = intent.facts.get("what")
            if intent.what != DISRUPT or step is None:
                continue
            if first.setdefault((intent.step, node), what) == what:
                found.setdefault((str(node), step.verb), []).append(intent.at)
        released = {
            str(name)
            for note in story.notes
            if note.kind == RELEASED
            for name in note.facts.get("nodes", ())
        }
        found = {key: times for key, times in found.items() if key[0] not in released}
    return found
