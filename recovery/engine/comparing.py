"""Nodes of one profile compared with one another: who differs from what most of them say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from recovery.model.check import Check
from recovery.model.node import Node
from recovery.model.verdict import Finding, Level, Verdict, unknown, warned
from recovery.reading.agreement import SHARE, agree

AnyCheck = Check[Any, Any]
VARIABLE = "agreement_share"
_REMEDY = (
    "bring the node to what the others have, or give it a profile of its own;"
    f" `-e {VARIABLE}=0.9` asks for a larger majority"
)


def read_share(raw: object) -> float | None:
    """The share that makes a majority, above a half: ``0.8``, ``80%``; None where it is none."""
    if raw is None:
        return SHARE
    text = str(raw).strip()
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        return None
    return value if 0.5 < value <= 1 else None


def compared(
    check: AnyCheck,
    parsed: Mapping[str, Any],
    nodes: Mapping[str, Node],
    share: float | None,
) -> Mapping[str, tuple[Finding, ...]]:
    """What comparing the nodes' facts adds to each node; nothing for those that are alike.

    ``parsed`` holds the facts of the nodes that gave a readable answer. Without a ``share`` that
    can be used nobody is called alike: each node is UNKNOWN.
    """
    if check.compare is None and check.alike is None:
        return {}
    if share is None:
        return {name: (_no_share(),) for name in parsed}
    found: dict[str, list[Finding]] = {}
    for kind in _by_profile(parsed, nodes):
        for name, verdict in _verdicts(check, kind, share):
            found.setdefault(name, []).extend(
                f for f in verdict.findings if f.level is not Level.PASS
            )
    return {name: tuple(findings) for name, findings in found.items()}


def _no_share() -> Finding:
    return unknown(
        f"the nodes were not compared: {VARIABLE} is no share",
        remedy=f"write {VARIABLE} as a number above 0.5 up to 1, or as a percentage like 80%",
        code="agreement.share",
    )


def _by_profile(parsed: Mapping[str, Any], nodes: Mapping[str, Node]) -> list[dict[str, Any]]:
    """Machines of different kinds differ rightly."""
    kinds: dict[str | None, dict[str, Any]] = {}
    for name, facts in parsed.items():
        node = nodes.get(name)
        kinds.setdefault(node.profile if node else None, {})[name] = facts
    return [kind for kind in kinds.values() if len(kind) > 1]


def _verdicts(
    check: AnyCheck, facts: Mapping[str, Any], share: float
) -> Iterator[tuple[str, Verdict]]:
    if check.compare is not None:
        yield from check.compare(facts, share).items()
    if check.alike is not None:
        yield from unlike(check.name, {n: check.alike(f) for n, f in facts.items()}, share).items()


def unlike(
    check: str, values: Mapping[str, Mapping[str, str | int | float | None]], share: float
) -> Mapping[str, Verdict]:
    """The outliers of each named value: WARN, with what most nodes have."""
    found: dict[str, list[Finding]] = {}
    for key in dict.fromkeys(key for named in values.values() for key in named):
        common = agree({node: named.get(key) for node, named in values.items()}, share=share)
        if common is None:
            continue
        usual = f"{common.n_agree} of {common.n_nodes} nodes have {common.value}"
        for node, value in common.outliers.items():
            words = f"{key} is {value}; {usual}"
            found.setdefault(node, []).append(
                warned(words, remedy=_REMEDY, component=key, code=f"{check}.unlike")
            )
    return {node: Verdict(tuple(findings)) for node, findings in found.items()}
