"""Does the node's clock follow a time server, and how far is it off?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, unknown, verdict, warned
from recovery.reading.content import told_by
from recovery.reading.expecting import number
from recovery.reading.sections import asking, pairs, read_sections

_START = "systemctl restart chronyd (or ntpd, systemd-timesyncd); is its server reachable?"
_STEP = (
    "chronyc makestep, then chronyc tracking again; check the hardware clock (hwclock --systohc)"
)
_OFF_S = 1.0
"""Clocks further off than this mix up the order of logs and Kerberos tickets; ours."""
_NTP_PEER = re.compile(
    r"([*#o+x. -])\S+\s+\S+\s+\d+\s+\S+\s+\S+\s+\S+\s+\d+\s+\S+\s+(-?[\d.]+)\s+\S+"
)


@dataclass(frozen=True, slots=True)
class Sync:
    """What the time service says; ``offset_s`` None where it does not tell."""

    service: str
    synchronised: bool
    offset_s: float | None
    source: str


def _parse(printed: Printed) -> Sync:
    sections = read_sections(printed, bare="chronyc")
    lines = [line for part in sections.values() for line in part]
    found = _chrony(lines) or _ntpd(lines) or _timedate(lines)
    if found is None:
        said = f": {lines[0].strip()[:80]!r}" if lines else ""
        raise ParseError(f"no time service answers{said}", remedy=_START)
    return found


def _chrony(lines: Sequence[str]) -> Sync | None:
    """``chronyc tracking``; its last line is the leap status."""
    told = dict(pairs(lines))
    leap, system = told.get("leap status"), told.get("system time", "")
    if "reference id" not in told or leap is None:
        return None
    match = re.match(r"([\d.]{1,20}) seconds (slow|fast)", system)
    if match is None or leap not in (
        "Normal",
        "Insert second",
        "Delete second",
        "Not synchronised",
    ):
        raise ParseError("chronyc tracking is cut or strange", remedy="run chronyc tracking")
    sign = -1 if match[2] == "slow" else 1
    return Sync(
        "chrony", leap != "Not synchronised", sign * _seconds(match[1]), told["reference id"]
    )


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ParseError(f"no seconds: {text!r}", remedy="ask the time service by hand") from error


def _ntpd(lines: Sequence[str]) -> Sync | None:
    """``ntpq -pn``: the peer with a star is followed; offsets are milliseconds."""
    if not any("refid" in line and "jitter" in line for line in lines):
        return None
    peers = [match for line in lines if (match := _NTP_PEER.fullmatch(line))]
    followed = next((match for match in peers if match[1] in "*o"), None)
    if followed is None:
        return Sync("ntpd", synchronised=False, offset_s=None, source=f"{len(peers)} peers")
    source = followed[0].split()[0].lstrip("*o")
    return Sync("ntpd", synchronised=True, offset_s=_seconds(followed[2]) / 1000, source=source)


def _timedate(lines: Sequence[str]) -> Sync | None:
    """``timedatectl show``: whether, not how well."""
    word = dict(pairs(lines)).get("ntpsynchronized")
    if word not in ("yes", "no"):
        return None
    return Sync("timedatectl", synchronised=word == "yes", offset_s=None, source="systemd")


def _judge(seen: Sync, most_s: float | None) -> Verdict:
    found: list[Finding] = []
    off_s = most_s or _OFF_S
    if not seen.synchronised:
        words = f"{seen.service} follows no time server ({seen.source})"
        found.append(failed(words, remedy=_START, code="clock.sync.none"))
    if seen.offset_s is not None and abs(seen.offset_s) > off_s:
        words = f"the clock is {seen.offset_s:+.3f} s off, {off_s:g} allowed"
        found.append(failed(words, remedy=_STEP, code="clock.sync.off"))
    elif seen.offset_s is not None and abs(seen.offset_s) > off_s / 10:
        words = f"the clock is {seen.offset_s:+.3f} s off"
        found.append(warned(words, remedy=_STEP, code="clock.sync.off"))
    if not found and seen.offset_s is None and most_s is not None:
        words = f"{seen.service} does not tell how far the clock is off; {most_s:g} s allowed"
        found.append(unknown(words, remedy="install chrony", code="clock.sync.not-told"))
    off = "" if seen.offset_s is None else f", {seen.offset_s * 1000:+.3f} ms"
    return verdict(found, otherwise=f"{seen.service} is synchronised{off}")


def _facts(seen: Sync) -> Mapping[str, Any]:
    return {
        "time_service": seen.service,
        "clock_synchronised": seen.synchronised,
        "clock_offset_s": seen.offset_s,
    }


CLOCK_SYNC = Check(
    name="clock.sync",
    question="Does the clock follow a time server, and how far is it off?",
    command=asking(
        {
            "chronyc": "chronyc -n tracking 2>&1",
            "ntpq": "ntpq -pn 2>&1",
            "timedatectl": "timedatectl show 2>&1",
        }
    ),
    parse=_parse,
    expect=lambda raw: number(raw, "clock_offset_max_s"),
    judge=_judge,
    facts=_facts,
    alike=lambda seen: {"time service": seen.service},
    recognises=told_by(
        "chronyc|ntpq|timedatectl", begins=r"## chronyc|Reference ID\s*: [0-9A-F]{8}"
    ),
    needs="chronyc (package chrony), ntpq (ntp) or timedatectl (systemd)",
    expects=("clock_offset_max_s",),
)
