"""Is the container runtime there, up, and able to give GPUs to a container?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, single, unknown, verdict
from recovery.reading.content import told_by
from recovery.reading.expecting import word
from recovery.reading.sections import asking, pairs, read_sections

_PARTS = {
    "toolkit": "nvidia-container-cli --version 2>&1",
    "docker": "docker version --format 'server={{.Server.Version}}' 2>&1",
    "containerd": "systemctl show containerd -p LoadState -p ActiveState 2>&1",
    "enroot": "enroot version 2>&1",
    "apptainer": "apptainer --version 2>&1",
}
_VERSION = re.compile(r"(?:^|[\s=:v])(\d{1,4}\.\d{1,4}(?:\.\d{1,6})?[\w.+~-]{0,20})")
_GONE = re.compile(r"not found|No such file|not be found|not-found")
_REFUSED = re.compile(r"permission denied", re.IGNORECASE)
_TOOLKIT = "install nvidia-container-toolkit (libnvidia-container-tools), restart the runtime"


@dataclass(frozen=True, slots=True)
class Part:
    """One program: its version or state; ``there`` and ``up`` as far as it tells."""

    there: bool
    up: bool
    says: str


def _parse(printed: Printed) -> Mapping[str, Part]:
    sections = read_sections(printed)
    if not set(sections) & set(_PARTS):
        raise ParseError("no word of a container runtime", remedy="run the check's command")
    return {name: _part(name, sections[name]) for name in _PARTS if name in sections}


def _part(name: str, lines: tuple[str, ...]) -> Part:
    text = " ".join(line.strip() for line in lines)[:400]
    if not text or _GONE.search(text):
        return Part(there=False, up=False, says=text[:120])
    if name == "containerd":
        state = dict(pairs(lines)).get("activestate", "")
        return Part(there=bool(state), up=state == "active", says=state or text[:120])
    match = _VERSION.search(text)
    return Part(there=True, up=match is not None, says=match[1] if match else text[:120])


def _judge(seen: Mapping[str, Part], expected: str | None) -> Verdict:
    there = {name: part for name, part in seen.items() if part.there}
    runtimes = {name: part for name, part in there.items() if name != "toolkit"}
    if expected == "none":
        return verdict((), otherwise="no container runtime is asked of this node")
    if expected is None and not runtimes:
        remedy = "set container_runtime: docker, containerd, enroot, apptainer or none"
        return single(unknown("no container runtime is here, and nobody said if one should be",
                              remedy=remedy, code="container.runtime.none"))  # fmt: skip
    names = [expected] if expected else list(runtimes)
    found = [finding for name in names for finding in _of(name, seen.get(name))]
    if "toolkit" not in there and expected not in (None, "apptainer"):
        words = "no nvidia-container-cli: containers get no GPU"
        found.append(failed(words, remedy=_TOOLKIT, code="container.runtime.toolkit"))
    words = ", ".join(f"{name} {part.says}" for name, part in there.items())
    return verdict(found, otherwise=words)


def _of(name: str, part: Part | None) -> list[Finding]:
    if part is None:
        remedy = f"one of: {', '.join(p for p in _PARTS if p != 'toolkit')}, none"
        return [unknown(f"container_runtime {name!r} is not known here", remedy=remedy)]
    if not part.there:
        remedy = f"install {name}; is it on the PATH of this login?"
        return [failed(f"{name} is not here", remedy=remedy, code="container.runtime.absent")]
    if not part.up:
        if _REFUSED.search(part.says):
            words = f"{name} does not talk to this login: {part.says!r}"
            return [
                unknown(words, remedy="ask with `sudo: true`", code="container.runtime.refused")
            ]
        remedy = f"systemctl status {name}; start it, and enable it at boot"
        words = f"{name} does not answer: {part.says!r}"
        return [failed(words, remedy=remedy, code="container.runtime.down")]
    return []


def _alike(seen: Mapping[str, Part]) -> Mapping[str, str | None]:
    return {name: part.says if part.there else None for name, part in seen.items()}


def _facts(seen: Mapping[str, Part]) -> Mapping[str, Any]:
    return {name: said for name, said in _alike(seen).items() if said is not None}


CONTAINER_RUNTIME = Check(
    name="container.runtime",
    question="Is the container runtime up and able to give GPUs to a container?",
    command=asking(_PARTS),
    parse=_parse,
    expect=lambda raw: word(raw, "container_runtime"),
    judge=_judge,
    facts=_facts,
    alike=_alike,
    recognises=told_by(r"nvidia-container-cli", begins=r"## toolkit"),
    needs="docker, containerd, enroot or apptainer, and nvidia-container-toolkit",
    expects=("container_runtime",),
)
