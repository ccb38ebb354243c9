"""The lease: before a run changes a node, no other controller may be at work on it.

The lock of `recovery.store` holds one controller's runs apart; this holds controllers apart that
share no state folder. A node keeps it by its own clock until the step must have ended, so that a
controller that died holds nobody up for longer; a reboot ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from recovery.engine.fanout import fan_out
from recovery.engine.transporting import Transports
from recovery.engine.world import Recorder
from recovery.inventory import fold
from recovery.model.events import Noted
from recovery.model.node import Node
from recovery.model.output import Command, Ending, Output
from recovery.model.runbook import Effect, Step
from recovery.model.verdict import Finding, Verdict, failed, verdict

ASK_S = 20.0
LONGER_S = 120.0  # than the step's own limit: attempts, grace, the next step's start
HELD, NOWHERE = 3, 4
_NOT_SHARED = ("local", "replay")  # nobody else's controller comes that way


@dataclass(slots=True)
class Lease:
    """What one sitting of a run holds."""

    recorder: Recorder
    transports: Transports
    width: int
    _held: dict[str, Node] = field(default_factory=dict)

    def refusal(self, step: Step, nodes: Sequence[Node]) -> Verdict | None:
        """Takes the nodes for a step that changes them; says who has them, where it may not."""
        verb = self.recorder.parts.verbs[step.verb]
        if step.effect is Effect.READ or not verb.on_nodes or not self.recorder.parts.controller:
            return None
        wanted = [node for node in nodes if _is_leased(node)]
        seconds = step.timeout_s * step.retry.times + LONGER_S
        answers = self._ask(wanted, {"LEASE_DO": "take", "LEASE_S": str(int(seconds))})
        self._held.update((node.name, node) for node, answer in answers if answer.ok)
        self._note(step, [n.name for n, o in answers if o.exit_status == NOWHERE])
        held = {n.name: o.text.strip() for n, o in answers if o.exit_status == HELD}
        return verdict(self._by_others(held), otherwise="nobody else") if held else None

    def give_back(self) -> None:
        """Gives all nodes back; where one does not answer, its time ends it."""
        nodes, self._held = list(self._held.values()), {}
        self._ask(nodes, {"LEASE_DO": "give"})

    def _ask(self, nodes: Iterable[Node], values: dict[str, str]) -> list[tuple[Node, Output]]:
        parts, story = self.recorder.parts, self.recorder.story
        started = story.started
        env = {
            "LEASE_ID": parts.controller,
            "LEASE_RUN": started.run if started else "-",
            "LEASE_WHO": started.owner if started else "-",
            "LEASE_FORCE": "1" if parts.take_over else "",
            **values,
        }
        line = parts.payload("lease.sh")

        def ask(node: Node) -> tuple[Node, Output]:
            more = {**env, "LEASE_PORT": str(node.port or 22)}
            return node, self.transports.run(node, Command(line, timeout_s=ASK_S, env=more))

        def broken(node: Node, trace: str) -> tuple[Node, Output]:
            return node, Output(Ending.NEVER_STARTED, reason=trace)

        return fan_out(nodes, ask, width=self.width, broken=broken, done=lambda *_: None)

    def _note(self, step: Step, names: list[str]) -> None:
        if names:
            words = f"{fold(names)}: nowhere to write a lease; another controller would not see us"
            self.recorder.tell(Noted(at=self.recorder.now, step=step.id, message=words))

    def _by_others(self, held: dict[str, str]) -> Iterable[Finding]:
        by_whom: dict[tuple[str, str], list[str]] = {}
        seconds: dict[tuple[str, str], int] = {}
        for name, words in held.items():
            run, left, who = (*words.split(" ", 3)[1:], "?", "0", "?")[:3]
            by_whom.setdefault((run, who), []).append(name)
            seconds[run, who] = max(seconds.get((run, who), 0), int(left))
        own = self.recorder.story.started
        for (run, who), names in by_whom.items():
            yield failed(
                f"{fold(names)}: another controller is at work there: run {run} of {who}, "
                f"for {seconds[run, who]} s more at most",
                remedy="wait for its end, or stop it there; `recover resume "
                f"{own.run if own else 'last'} --take-over` takes the nodes",
                code="lease.held",
            )


def _is_leased(node: Node) -> bool:
    said = str(node.variables.get("lease", "yes")).lower()
    return node.transport not in _NOT_SHARED and said not in ("false", "no", "0", "off")
