"""Has every GPU its power limit, and does it draw what its limit allows?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.model.check import Check
from recovery.model.verdict import Finding, Verdict, failed, single, verdict, warned
from recovery.reading.agreement import SHARE, agree
from recovery.reading.smi import claims, reader_of
from recovery.reading.smi_findings import cut_short, silent_on, unanswered, where
from recovery.reading.smi_words import Gpu, Snapshot

_NAMES = ("power.",)
_LIMIT = "nvidia-smi -i <GPU> -pl <watts> as root; look for a power policy that lowers it"
_OVER = 1.1
_SAME_W = 1.0


@dataclass(frozen=True, slots=True)
class Expected:
    """The limit that every GPU has to have, in watts."""

    limit_w: float | None


def _expect(raw: Mapping[str, Any]) -> Expected:
    value = raw.get("power_limit_w")
    return Expected(float(value) if isinstance(value, int | float) else None)


def _judge(seen: Snapshot, expected: Expected) -> Verdict:
    name = "power.draw" if any(g.has("power.draw") for g in seen.gpus) else "power.draw.instant"
    found = [*cut_short(seen), *unanswered(seen, name, "power draw")]
    usual = _usual_limit(seen)
    for gpu in seen.gpus:
        found += [*_draw(seen, gpu), *_limit(seen, gpu, expected.limit_w, usual)]
    limit = f", limit {usual:g} W" if usual is not None else ", no limit in this answer"
    compared = "" if expected.limit_w is not None else "; the profile names no limit"
    draws = _draws(seen).values()
    drawn = f"{min(draws):g} to {max(draws):g} W drawn" if draws else "no power draw in this answer"
    return verdict(found, otherwise=f"{drawn}{silent_on(seen, name)}{limit}{compared}")


def _usual_limit(seen: Snapshot) -> float | None:
    limits = Counter(w for gpu in seen.gpus if (w := gpu.number("power.limit")) is not None)
    return limits.most_common(1)[0][0] if limits else None


def _draw(seen: Snapshot, gpu: Gpu) -> list[Finding]:
    drawn, limit = _drawn(gpu), gpu.number("power.limit")
    place = where(seen, gpu.label)
    if drawn is not None and drawn <= 0:
        words, code = f"{place}: draws {drawn:g} W, which no living GPU does", "gpu.power.none"
    elif drawn is not None and limit and drawn > limit * _OVER:
        words, code = f"{place}: draws {drawn:g} W with a limit of {limit:g} W", "gpu.power.over"
    else:
        return []
    remedy = "ask again; if it stays, look at the power supplies and reset the GPU"
    return [warned(words, remedy=remedy, component=gpu.label, code=code)]


def _limit(
    seen: Snapshot, gpu: Gpu, expected_w: float | None, usual_w: float | None
) -> list[Finding]:
    limit = gpu.number("power.limit")
    place = where(seen, gpu.label)
    if limit is None:
        return []
    if expected_w is not None and limit < expected_w - _SAME_W:
        words = f"{place}: limited to {limit:g} W, {expected_w:g} W expected"
        return [failed(words, remedy=_LIMIT, component=gpu.label, code="gpu.power.limit")]
    if usual_w is not None and abs(limit - usual_w) > _SAME_W:
        words = f"{place}: limited to {limit:g} W, the other GPUs to {usual_w:g} W"
        return [warned(words, remedy=_LIMIT, component=gpu.label, code="gpu.power.unlike")]
    return []


def _drawn(gpu: Gpu) -> float | None:
    average = gpu.number("power.draw")
    return average if average is not None else gpu.number("power.draw.instant")


def _draws(seen: Snapshot) -> dict[str, float]:
    pairs = ((gpu.label, _drawn(gpu)) for gpu in seen.gpus)
    return {label: drawn for label, drawn in pairs if drawn is not None}


def _facts(seen: Snapshot) -> Mapping[str, Any]:
    limits = {g.label: w for g in seen.gpus if (w := g.number("power.limit")) is not None}
    return {"power_w": _draws(seen), "power_limits_w": limits}


def _compare(nodes: Mapping[str, Snapshot], share: float = SHARE) -> Mapping[str, Verdict]:
    common = agree({node: _usual_limit(seen) for node, seen in nodes.items()}, share=share)
    if common is None:
        return {}
    return {
        node: single(
            warned(
                f"GPUs limited to {limit:g} W; {common.n_agree} of {common.n_nodes} nodes have"
                f" {common.value:g} W",
                remedy=_LIMIT,
                code="gpu.power.unlike-nodes",
            )
        )
        for node, limit in common.outliers.items()
    }


GPU_POWER = Check(
    name="gpu.power",
    question="Has every GPU its power limit, and does it keep to it?",
    command="nvidia-smi -q",
    parse=reader_of(*_NAMES, what="power"),
    expect=_expect,
    judge=_judge,
    facts=_facts,
    recognises=claims(*_NAMES),
    compare=_compare,
    needs="nvidia-smi (the NVIDIA driver's user-space package)",
    expects=("power_limit_w",),
    timeout_s=90.0,
)
