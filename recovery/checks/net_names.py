"""Does the node find itself and the machines that a job needs by name, and do they answer?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, unknown, verdict, warned
from recovery.reading.content import told_by
from recovery.reading.expecting import wanted
from recovery.reading.sections import looping, read_sections

_DNS = "look at /etc/resolv.conf and /etc/hosts; is the name server up after the outage?"
_OWN = "add the node's name to /etc/hosts or DNS: NCCL and MPI ask for it"
_ENTRY = re.compile(r"([0-9a-fA-F.:]{2,45}(?:%\w+)?)\s+\S+.*")
_PING = re.compile(r"(\d+) packets transmitted, (\d+)(?: packets)? received")
_LINE = (
    'getent hosts "$d"; getent_status=$?; echo "getent=$getent_status";'
    ' command -v ping >/dev/null 2>&1 && ping -n -c 1 -W 2 "$d" 2>&1 | grep transmitted'
)


@dataclass(frozen=True, slots=True)
class Name:
    """One name: its addresses, and whether an echo came back (None: nobody sent one)."""

    addresses: tuple[str, ...]
    answers: bool | None
    is_own: bool = False


def _parse(printed: Printed) -> Mapping[str, Name]:
    sections = read_sections(printed)
    found = {}
    for position, (name, lines) in enumerate(sections.items()):
        if not any(line.startswith("getent=") for line in lines):
            raise ParseError(f"no answer for {name}", remedy="getent hosts NAME on the node")
        addresses = tuple(m[1] for line in lines if (m := _ENTRY.fullmatch(line.strip())))
        pings = [int(m[2]) for line in lines if (m := _PING.search(line))]
        found[name] = Name(addresses, pings[0] > 0 if pings else None, is_own=position == 0)
    if not found:
        raise ParseError("no name was asked", remedy="run the check's command on the node")
    return found


def _judge(seen: Mapping[str, Name], expected: tuple[str, ...]) -> Verdict:
    found: list[Finding] = []
    for name, one in seen.items():
        found += _own(name, one) if one.is_own else _other(name, one)
    for name in expected:
        if name not in seen:
            words = f"{name} was not asked for"
            remedy = f'give the step `env: {{CHECK_NAMES: "{" ".join(expected)}"}}`'
            found.append(unknown(words, remedy=remedy, component=name, code="net.names.not-asked"))
    return verdict(found, otherwise=f"{', '.join(seen)} found by name")


def _own(name: str, one: Name) -> list[Finding]:
    if not one.addresses:
        words = f"the node does not find itself as {name}"
        return [failed(words, remedy=_OWN, component=name, code="net.names.own")]
    if all(address.startswith("127.") or address == "::1" for address in one.addresses):
        words = f"the node's own name {name} stands for loopback ({one.addresses[0]})"
        return [warned(words, remedy=_OWN, component=name, code="net.names.loopback")]
    return []


def _other(name: str, one: Name) -> list[Finding]:
    if not one.addresses:
        words = f"{name} has no address here"
        return [failed(words, remedy=_DNS, component=name, code="net.names.unknown")]
    if one.answers is False:
        words = f"{name} ({one.addresses[0]}) does not answer an echo"
        remedy = f"is it up? ip route get {one.addresses[0]}; a firewall may drop echoes"
        return [failed(words, remedy=remedy, component=name, code="net.names.silent")]
    return []


def _facts(seen: Mapping[str, Name]) -> Mapping[str, Any]:
    return {"addresses": {name: list(one.addresses) for name, one in seen.items()}}


NET_NAMES = Check(
    name="net.names",
    question="Does the node find itself and its head node by name, and do they answer?",
    # CHECK_NAMES comes with the step's `env`: the command stays the same for every cluster.
    command=looping('"$(uname -n)" $CHECK_NAMES', _LINE, needs="getent"),
    parse=_parse,
    expect=lambda raw: wanted(raw, "reach_names"),
    judge=_judge,
    facts=_facts,
    recognises=told_by("getent hosts", begins=r"getent=\d"),
    needs="getent (libc-bin), ping (iputils)",
    expects=("reach_names",),
)
