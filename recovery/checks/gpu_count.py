"""Are all GPUs there, and are they of one kind?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, single, unknown, verdict, warned
from recovery.reading.agreement import SHARE, agree
from recovery.reading.smi import claims_any, read_smi
from recovery.reading.smi_findings import cut_short, fold_gpus, of_trouble
from recovery.reading.smi_words import Form, Snapshot

_LOOK = (
    "look for the missing one: lspci -d 10de:, dmesg for Xid 79, the BMC's event log;"
    " then power-cycle the node (cold)"
)


@dataclass(frozen=True, slots=True)
class Expected:
    """How many GPUs the node has to show, and what their name has in it."""

    n_gpus: int | None
    name: str | None


def _parse(printed: Printed) -> Snapshot:
    return read_smi(printed)


def _expect(raw: Mapping[str, Any]) -> Expected:
    value = raw.get("expected_gpus")
    name = raw.get("expected_gpu_name")
    return Expected(value if isinstance(value, int) else None, str(name) if name else None)


def _judge(seen: Snapshot, expected: Expected) -> Verdict:
    found = [of_trouble(t) for t in seen.troubles if t.code == "gpu.count.none"]
    found += cut_short(seen)
    n_seen = seen.n_gpus
    if n_seen is None:
        found.append(_not_counted(seen))
    elif not found:
        found += _compared(n_seen, expected.n_gpus)
        found += [*_twice(seen), *_left_out(seen), *_mixed(seen), *_named(seen, expected.name)]
    elif seen.attached is not None:
        # The driver's own count stands even where the descriptions are cut.
        found += _compared(seen.attached, expected.n_gpus)
    words = "no expected number to compare with" if expected.n_gpus is None else "as expected"
    return verdict(found, otherwise=f"{n_seen} GPUs, {words}")


def _not_counted(seen: Snapshot) -> Finding:
    trouble = next(iter(seen.troubles), None)
    because = f": {trouble.line!r}" if trouble else ""
    return unknown(
        f"the GPUs could not be counted{because}",
        remedy=trouble.remedy if trouble else "run nvidia-smi -L on the node by hand",
        code="gpu.count.unknown",
    )


def _compared(n_seen: int, n_expected: int | None) -> list[Finding]:
    if n_expected is None or n_seen == n_expected:
        return []
    if n_seen > n_expected:
        words = f"{n_seen} GPUs, {n_expected} expected: the profile is for another machine"
        remedy = "name the right hardware profile for this node"
        return [failed(words, remedy=remedy, code="gpu.count.more")]
    missing = n_expected - n_seen
    words = f"{n_seen} of {n_expected} GPUs: {missing} missing"
    return [failed(words, remedy=_LOOK, code="gpu.count.missing")]


def _twice(seen: Snapshot) -> list[Finding]:
    """One GPU under two numbers: one is missing, and the count hides it."""
    labels: dict[str, list[str]] = {}
    for gpu in seen.gpus:
        if uuid := gpu.text("uuid"):
            labels.setdefault(uuid, []).append(gpu.label)
    return [
        failed(
            f"{fold_gpus(same)} have one UUID, {uuid}",
            remedy="a GPU cannot be listed twice: reload the driver or reboot, then compare with "
            "lspci -d 10de: and gpu.identity",
            component=fold_gpus(same),
            code="gpu.count.twice",
        )
        for uuid, same in labels.items()
        if len(same) > 1
    ]


def _left_out(seen: Snapshot) -> list[Finding]:
    """The driver numbers its GPUs without a gap: a number that is left out did not answer."""
    if seen.form is not Form.LIST or seen.picked:
        return []
    numbers = {int(gpu.label[3:]) for gpu in seen.gpus if gpu.label[3:].isdigit()}
    missing = [f"GPU{i}" for i in range(max(numbers, default=0)) if i not in numbers]
    if not missing:
        return []
    words = f"{fold_gpus(missing)} did not answer: the list goes up to GPU{max(numbers)} without it"
    return [failed(words, remedy=_LOOK, component=fold_gpus(missing), code="gpu.count.missing")]


def _mixed(seen: Snapshot) -> list[Finding]:
    names = Counter(name for gpu in seen.gpus if (name := gpu.text("name")))
    if len(names) < 2:
        return []
    listed = ", ".join(f"{n} x {name}" for name, n in names.most_common())
    remedy = "check that the right boards are in this node"
    return [warned(f"GPUs of different kinds: {listed}", remedy=remedy, code="gpu.count.mixed")]


def _named(seen: Snapshot, wanted: str | None) -> list[Finding]:
    """Names in the table are cut with dots, so the beginning that is there has to fit."""
    others = [
        f"{gpu.label} {name!r}"
        for gpu in seen.gpus
        if wanted and (name := gpu.text("name")) and not _fits(name, wanted)
    ]
    if not others:
        return []
    words = f"{', '.join(others[:4])}; the profile is for {wanted!r}"
    remedy = "name the right hardware profile for this node, or look which boards are in it"
    return [failed(words, remedy=remedy, code="gpu.count.kind")]


def _fits(name: str, wanted: str) -> bool:
    low, whole = name.lower(), wanted.lower()
    if not low.endswith("..."):
        return whole in low
    shown = low.rstrip(".").removeprefix("nvidia ").strip()
    return whole.removeprefix("nvidia ").startswith(shown)


def _facts(seen: Snapshot) -> Mapping[str, Any]:
    found: dict[str, Any] = {"gpus": seen.n_gpus}
    uuids = [uuid for gpu in seen.gpus if (uuid := gpu.text("uuid"))]
    serials = [serial for gpu in seen.gpus if (serial := gpu.text("serial"))]
    names = Counter(name for gpu in seen.gpus if (name := gpu.text("name")))
    mig = {gpu.label: gpu.mig_devices for gpu in seen.gpus if gpu.mig_devices}
    for key, value in (("uuids", uuids), ("serials", serials), ("mig_devices", mig)):
        if value:
            found[key] = value
    if names:
        found["models"] = dict(names)
    return found


def _identity(seen: Snapshot) -> tuple[int | None, tuple[str, ...]]:
    return seen.n_gpus, tuple(sorted({gpu.text("name") or "" for gpu in seen.gpus}))


def _compare(nodes: Mapping[str, Snapshot], share: float = SHARE) -> Mapping[str, Verdict]:
    common = agree({node: _identity(seen) for node, seen in nodes.items()}, share=share)
    if common is None:
        return {}
    count, names = common.value
    usual = f"{common.n_agree} of {common.n_nodes} nodes have {count} x {' + '.join(names)}"
    return {
        node: single(
            warned(
                f"{n} x {' + '.join(kinds)}; {usual}",
                remedy="take the node out, or give it its own hardware profile",
                code="gpu.count.unlike",
            )
        )
        for node, (n, kinds) in common.outliers.items()
    }


GPU_COUNT = Check(
    name="gpu.count",
    question="Are all GPUs there, and of one kind?",
    command="nvidia-smi -L",
    parse=_parse,
    expect=_expect,
    judge=_judge,
    facts=_facts,
    recognises=claims_any,
    compare=_compare,
    needs="nvidia-smi (the NVIDIA driver's user-space package)",
    expects=("expected_gpus", "expected_gpu_name"),
)
