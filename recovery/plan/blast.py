"""How many nodes a run may disrupt: the limits as numbers, and who would be beyond them.

A wrong expression, a check that convicts everybody, a loop at night: each would take a cluster
down through a tool that switches nodes. The strictest of runbook and inventory counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from recovery.errors import InputError, TemplateError
from recovery.model.inventory import Inventory
from recovery.model.runbook import Limits, Step
from recovery.plan.grammar import GrammarError, parse_most
from recovery.plan.keys import LimitKeys
from recovery.plan.problems import Problem, problem
from recovery.plan.scope import Scope

HOUR = "disrupt_per_hour"
NAMES = ("disrupt", "disrupt_per_rack", "disrupt_per_hour", "drain", "attempts")
# Where nobody says: so few that a mistake is a bad night and no lost week; enough for a repair.
_LEAST = 4
_SHARES = {"disrupt": 10, "disrupt_per_rack": 0, "disrupt_per_hour": 10, "drain": 50, "attempts": 0}


@dataclass(frozen=True, slots=True)
class Excess:
    """A limit that would be passed: its name and number, and how many nodes there would be."""

    name: str
    limit: int
    wanted: int
    where: str = ""

    @property
    def message(self) -> str:
        """What is refused, in words."""
        words = {
            "disrupt": "in this run",
            "disrupt_per_rack": f"of rack {self.where} in this run",
            "disrupt_per_hour": "within an hour, with the runs before",
            "drain": "drained by this run",
        }
        return (
            f"{self.wanted} nodes {words[self.name]} would be more than the limit of {self.limit}"
        )

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return (
            f"name fewer nodes; or, if all of them are meant, raise it: limits: "
            f"{{{self.name}: {self.wanted}}} in runbook and inventory, as the strictest counts"
        )


def limits_of(keys: LimitKeys, inventory: Inventory, scope: Scope) -> Limits:
    """The limits of a runbook, held to those of the inventory; templates are filled in.

    Raises:
        InputError: a limit that is none.
    """
    given = inventory.variables.get("limits")
    cluster = given if isinstance(given, Mapping) else {}
    unknown = sorted(set(map(str, cluster)) - set(NAMES))
    if unknown:
        raise InputError(
            f"{inventory.source}: limits: {unknown[0]!r} is none", remedy=f"one of {NAMES}"
        )
    total = len(inventory.nodes)
    found = {
        name: _number(name, (getattr(keys, name), cluster.get(name, "")), total, scope)
        for name in NAMES
    }
    if not cluster.get(HOUR) and not getattr(keys, HOUR):  # what one run may is fine in an hour
        found[HOUR] = max(found[HOUR], found["disrupt"]) if found["disrupt"] else 0
    said = (_rendered("attempts", keys.attempts, scope), str(cluster.get("attempts", "")))
    if any(word.endswith("%") for word in said):
        raise InputError("limits: attempts: a share of what?", remedy="a number of times, as 2")
    return replace(Limits(int(keys.nodes_at_once), float(keys.run)), **found)


def _number(name: str, said: Iterable[object], total: int, scope: Scope) -> int:
    words = [word for one in said if (word := _rendered(name, one, scope))]
    if not words:
        share = _SHARES[name]
        return max(_LEAST, total * share // 100) if share else 0
    return min((_count(word, total) for word in words if word != "all"), default=0)


def _rendered(name: str, word: object, scope: Scope) -> str:
    try:
        text = scope.render_now(word) if isinstance(word, str) else word
        return parse_most(text) if text != "" else ""
    except GrammarError as error:
        raise InputError(f"limits: {name}: {error.message}", remedy=error.remedy) from error
    except TemplateError as error:
        raise InputError(f"limits: {name}: {error.message}", remedy=error.remedy) from error


def _count(word: str, total: int) -> int:
    """Percent rounds down, since it is a limit; but one node may always be touched."""
    share = word.removesuffix("%")
    return max(1, total * int(share) // 100) if share != word else int(word)


def excess_of(
    nodes: Collection[str],
    limits: Limits,
    racks: Mapping[str, str | None],
    *,
    before: Collection[str] = (),
    last_hour: Collection[str] = (),
) -> Excess | None:
    """The first limit that is passed when ``nodes`` are disrupted after those of ``before``."""
    run = {*before, *nodes}
    if limits.disrupt and len(run) > limits.disrupt:
        return Excess("disrupt", limits.disrupt, len(run))
    most = limits.disrupt_per_rack
    by_rack = Counter(racks.get(name) for name in run)
    for rack, count in sorted((r, n) for r, n in by_rack.items() if r):
        if most and count > most:
            return Excess("disrupt_per_rack", most, count, rack)
    hour = {*run, *last_hour}
    if limits.disrupt_per_hour and len(hour) > limits.disrupt_per_hour:
        return Excess("disrupt_per_hour", limits.disrupt_per_hour, len(hour))
    return None


def problems_of(
    steps: Iterable[Step], limits: Limits, racks: Mapping[str, str | None]
) -> Iterator[Problem]:
    """The steps that could not be carried out within the limits, seen before anything is done.

    What runs only on a condition, or only on nodes that fail, is held to them when it runs.
    """
    before: set[str] = set()
    for step in steps:
        if not step.disrupts or step.when:
            continue
        nodes = step.nodes[:1] if step.head_only else step.nodes
        excess = excess_of(nodes, limits, racks, before=before)
        if excess is not None:
            yield problem(step.place, f"{step.id}: {excess.message}", excess.remedy)
            return
        before |= set(nodes)
