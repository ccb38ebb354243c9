"""Do the optics and cables of the HCAs carry bits without errors, within their own limits?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, single, unknown, verdict, warned
from recovery.reading.content import told_by
from recovery.reading.expecting import number, wanted, word
from recovery.reading.optics import Optic, read_optics
from recovery.reading.sections import looping

BER_MAX = 1e-12
"""Bit errors a bit that reach programs, at most: InfiniBand architecture specification, as NVIDIA's
DGX SuperPOD cabling guide has it. From `BER_WARN` on, that guide's factory test of cables."""
BER_WARN = 1e-15
RAW_BER_MAX = 1e-7
"""Before correction: oracle-quickstart/oci-hpc@b5285a6 check_gpu_setup.py."""

_CLEAN = "clean both ends of the fibre, reseat the optic; `mlxlink -d {0} --pc`, load, read again"
_SWAP = "swap optic and cable one at a time, at both ends; watch where the errors go"
_UPDATE = "update the modules of one kind together (mlxfwmanager or flint with the maker's image)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Ratios that are too many, the optics' firmware, devices that do not matter."""

    ber_max: float
    raw_ber_max: float
    firmware: str | None
    ignored: frozenset[str]


def _expect(raw: Mapping[str, Any]) -> Expected:
    return Expected(
        ber_max=number(raw, "ber_max") or BER_MAX,
        raw_ber_max=number(raw, "raw_ber_max") or RAW_BER_MAX,
        firmware=word(raw, "optics_firmware_expected"),
        ignored=frozenset(wanted(raw, "ignored_hcas")),
    )


def _judge(seen: tuple[Optic, ...], expected: Expected) -> Verdict:
    used = [one for one in seen if one.device not in expected.ignored]
    linked = [one for one in used if one.active]
    found = [
        finding
        for one in used
        for finding in (*_untold(one), *_errors(one, expected), *_beyond(one), *_advice(one))
    ]
    found += _firmware(used, expected.firmware)
    if not linked and not found:
        remedy = (
            "is any port up (ibstat)? list ib.optics under not_applicable where there is no HCA"
        )
        return single(unknown("no port has a link", remedy=remedy, code="ib.optics.none"))
    worst = max((one.raw for one in linked if one.raw is not None), default=None)
    shown = "" if worst is None else f", raw error ratio at most {worst:.0e}"
    return verdict(found, otherwise=f"{len(linked)} links without errors{shown}")


def _untold(one: Optic) -> Iterator[Finding]:
    if one.trouble or (one.active and one.seen is None):
        said = one.trouble or "its error ratio is not in the answer"
        yield unknown(
            f"{one.device}: {said}",
            remedy="run `mlxlink -d DEVICE -m -c` as root; the card's firmware may be too old",
            component=one.device,
            code="ib.optics.not-told",
        )


def _errors(one: Optic, expected: Expected) -> Iterator[Finding]:
    remedy, since = _CLEAN.format(one.device), _since(one)
    if one.seen is not None and one.seen > expected.ber_max:
        words = f"{one.device}: {one.seen:.0e} bit errors a bit reach programs{since}"
        yield failed(words, remedy=_SWAP, component=one.device, code="ib.optics.errors")
    elif one.seen is not None and one.seen > BER_WARN:
        words = f"{one.device}: {one.seen:.0e} bit errors a bit reach programs{since}"
        yield warned(words, remedy=remedy, component=one.device, code="ib.optics.errors")
    elif one.raw is not None and one.raw > expected.raw_ber_max:
        words = f"{one.device}: {one.raw:.0e} bit errors a bit before correction{since}"
        yield warned(words, remedy=remedy, component=one.device, code="ib.optics.raw")


def _since(one: Optic) -> str:
    hours = f" in {one.minutes / 60:.0f} h" if one.minutes is not None else ""
    part = f" ({one.part} {one.serial})".replace(" )", ")") if one.part else ""
    return f"{hours}{part}"


def _beyond(one: Optic) -> Iterator[Finding]:
    """A module that is too hot shuts down; other values outside its limits are a warning."""
    for name, reading in one.measured.items():
        value = reading.beyond
        if value is None or not one.active:
            continue
        words = f"{one.device}: {name} {value:g}, the module allows {reading.low:g} to "
        words += f"{reading.high:g}"
        hot = name == "temperature" and value > reading.high
        make = failed if hot else warned
        remedy = "cool it: fans, blanks, air flow around the cages" if hot else _SWAP
        code = "ib.optics.hot" if hot else "ib.optics.beyond"
        yield make(words, remedy=remedy, component=one.device, code=code)


def _advice(one: Optic) -> Iterator[Finding]:
    said = one.advice.strip(" .")
    if one.active and said and said.lower() not in ("no issue was observed", "n/a"):
        words = f"{one.device}: mlxlink says {said[:120]!r}"
        remedy = _CLEAN.format(one.device)
        yield warned(words, remedy=remedy, component=one.device, code="ib.optics.advice")


def _firmware(seen: list[Optic], expected: str | None) -> Iterator[Finding]:
    for part, versions in _by_part(seen).items():
        if expected and versions != {expected}:
            words = f"{part}: firmware {', '.join(sorted(versions))}, {expected} expected"
            yield warned(words, remedy=_UPDATE, code="ib.optics.firmware")
        elif len(versions) > 1:
            words = f"{part}: firmware {', '.join(sorted(versions))} side by side"
            yield warned(words, remedy=_UPDATE, code="ib.optics.mixed")


def _by_part(seen: list[Optic] | tuple[Optic, ...]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for one in seen:
        if one.part and one.firmware:
            found.setdefault(one.part, set()).add(one.firmware)
    return found


def _facts(seen: tuple[Optic, ...]) -> Mapping[str, Any]:
    return {
        "optics": {one.device: f"{one.part} {one.serial}".strip() for one in seen if one.part},
        "optics_firmware": {one.device: one.firmware for one in seen if one.firmware},
        "ber": {one.device: one.seen for one in seen if one.seen is not None},
        "raw_ber": {one.device: one.raw for one in seen if one.raw is not None},
        "temps_c": {
            one.device: one.measured["temperature"].values[0]
            for one in seen
            if "temperature" in one.measured
        },
    }


def _alike(seen: tuple[Optic, ...]) -> Mapping[str, str | None]:
    return {f"firmware of {part}": "+".join(sorted(v)) for part, v in _by_part(seen).items()}


_BEGINS = (
    r"## /sys/class/infiniband/|Operational Info|-E- .*mlxlink|mlxlink: (?:command )?not found"
)
_told = told_by(r"\bm[ls][xt]link\b", begins=_BEGINS)


def _recognises(printed: Printed) -> bool:
    return _told(printed) or (not printed.command and '"Operational Info"' in printed.text[:4096])


IB_OPTICS = Check(
    name="ib.optics",
    question="Do optics and cables of the HCAs carry bits without errors, in their own limits?",
    command=looping("/sys/class/infiniband/*", 'mlxlink -d "${d##*/}" -m -c 2>&1', needs="mlxlink"),
    parse=read_optics,
    expect=_expect,
    judge=_judge,
    facts=_facts,
    alike=_alike,
    recognises=_recognises,
    needs_root=True,
    needs="mlxlink (NVIDIA MFT, package mft)",
    expects=("ber_max", "raw_ber_max", "optics_firmware_expected", "ignored_hcas"),
    timeout_s=60.0,
)
