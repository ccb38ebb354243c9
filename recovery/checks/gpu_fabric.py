"""Is every GPU registered with the NVSwitch fabric?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.model.check import Check
from recovery.model.verdict import Finding, Verdict, failed, unknown, verdict, warned
from recovery.reading.smi import claims, reader_of
from recovery.reading.smi_findings import cut_short, fold_gpus, unanswered, where
from recovery.reading.smi_words import Form, Gpu, Snapshot

_NAMES = ("fabric.",)
_MANAGER = (
    "systemctl status nvidia-fabricmanager and its log; find a missing GPU first (dmesg, Xid 79),"
    " then restart the fabric manager of the driver's version with the GPUs idle"
)
_WAIT = "ask again a minute later; registration takes that long after boot"
_SETTLE_S = 300.0  # registration is done within a minute or two of boot on healthy machines
_ZERO_UUID = "00000000-0000-0000-0000-000000000000"
_GOOD_HEALTH = frozenset({"healthy", "full", "false", "none", "no", "not degraded", "ok"})


@dataclass(frozen=True, slots=True)
class Expected:
    """How long the node is up, and whether NVLink reaches beyond it; None: not known."""

    uptime_s: float | None
    multi_node: bool
    n_links: int | None


def _expect(raw: Mapping[str, Any]) -> Expected:
    uptime, links = raw.get("uptime_s"), raw.get("expected_links")
    return Expected(
        uptime_s=float(uptime) if isinstance(uptime, int | float) else None,
        multi_node=raw.get("multi_node_nvlink") is True,
        n_links=links if isinstance(links, int) else None,
    )


def _judge(seen: Snapshot, expected: Expected) -> Verdict:
    found = cut_short(seen)
    by_state: dict[tuple[str, str], list[str]] = defaultdict(list)
    for gpu in seen.gpus:
        if gpu.has("fabric.state"):
            by_state[_state(gpu)].append(gpu.label)
        found += _health(seen, gpu)
        found += _domain(seen, gpu) if expected.multi_node else []
    for (state, status), labels in by_state.items():
        found += _of_state(state, status, labels, expected)
    if all(gpu.values.get("fabric.state", "").startswith("[") for gpu in seen.gpus):
        found += unanswered(seen, "fabric.state", "fabric state")
    shown = ", ".join(f"{fold_gpus(v)} {s}/{t}" for (s, t), v in by_state.items())
    return verdict(found, otherwise=f"fabric: {shown or 'health only'}")


def _state(gpu: Gpu) -> tuple[str, str]:
    return gpu.text("fabric.state") or "N/A", gpu.text("fabric.status") or "N/A"


def _of_state(state: str, status: str, labels: list[str], expected: Expected) -> list[Finding]:
    who = fold_gpus(labels)
    settled = expected.uptime_s is not None and expected.uptime_s > _SETTLE_S
    match state.lower():
        case "completed" if status.lower() in ("success", "n/a"):
            return []
        case "completed":
            words = f"{who}: fabric registration ended with {status!r}"
            return [failed(words, remedy=_MANAGER, component=who, code="gpu.fabric.failed")]
        case "n/a" if not expected.multi_node:
            return []
        case "n/a":
            words = f"{who}: no fabric state although NVLink reaches beyond this node"
            return [failed(words, remedy=_MANAGER, component=who, code="gpu.fabric.absent")]
        case "in progress" | "not started" if not settled:
            since = "" if expected.uptime_s is None else f" {expected.uptime_s:.0f} s after boot"
            words = f"{who}: fabric registration {state!r}{since}"
            return [unknown(words, remedy=_WAIT, component=who, code="gpu.fabric.waiting")]
        case _:
            words = f"{who}: fabric registration stuck at {state!r}"
            return [failed(words, remedy=_MANAGER, component=who, code="gpu.fabric.stuck")]


def _health(seen: Snapshot, gpu: Gpu) -> list[Finding]:
    found = []
    for name in gpu.values:
        value = gpu.text(name)
        if not name.startswith("fabric.health.") or value is None:
            continue
        if value.lower() in _GOOD_HEALTH:
            continue
        what = name.rpartition(".")[2].replace("_", " ")
        words = f"{where(seen, gpu.label)}: fabric health, {what}: {value}"
        make = warned if "in_progress" in name or value.lower() == "limited capacity" else failed
        found.append(make(words, remedy=_MANAGER, component=gpu.label, code="gpu.fabric.unhealthy"))
    return found


def _domain(seen: Snapshot, gpu: Gpu) -> list[Finding]:
    if gpu.text("fabric.clusterUuid") not in (None, _ZERO_UUID):
        return []
    words = f"{where(seen, gpu.label)}: no NVLink domain (ClusterUUID is zero)"
    remedy = "check nvidia-imex and the rack's fabric manager; the GPU reaches no other node"
    return [failed(words, remedy=remedy, component=gpu.label, code="gpu.fabric.no-domain")]


def _facts(seen: Snapshot) -> Mapping[str, Any]:
    told = [gpu for gpu in seen.gpus if gpu.has("fabric.state")]
    states = Counter("/".join(_state(gpu)) for gpu in told)
    cliques = dict.fromkeys(c for gpu in told if (c := gpu.text("fabric.cliqueId")))
    uuids = dict.fromkeys(u for gpu in told if (u := gpu.text("fabric.clusterUuid")))
    # A CSV has the state as one column, and one word where all rows agree.
    one_word = seen.form is Form.CSV and len(states) == 1
    found: dict[str, Any] = {"fabric": next(iter(states)) if one_word else dict(states)}
    if cliques:
        found["clique_ids"] = list(cliques)
    if uuids:
        found["cluster_uuid"] = next(iter(uuids)) if len(uuids) == 1 else list(uuids)
    return found


GPU_FABRIC = Check(
    name="gpu.fabric",
    question="Is every GPU registered with the NVSwitch fabric?",
    command="nvidia-smi -q",
    parse=reader_of(*_NAMES, what="the fabric"),
    expect=_expect,
    judge=_judge,
    facts=_facts,
    recognises=claims(*_NAMES),
    needs="nvidia-smi (the NVIDIA driver's user-space package, R535 or newer)",
    expects=("uptime_s", "multi_node_nvlink", "expected_links"),
    timeout_s=90.0,
)
