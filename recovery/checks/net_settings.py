"""Are the node's network interfaces up, with the MTU that they and their peers should have?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Finding, Verdict, failed, single, unknown, verdict, warned
from recovery.reading.content import told_by
from recovery.reading.expecting import number, wanted
from recovery.reading.plain import plain_lines

_VIRTUAL = ("lo", "docker", "veth", "br-", "virbr", "cali", "flannel", "cni", "tun", "tap", "dummy")
_MTU = "ip link set IFACE mtu N, and in the network's configuration; the switch must allow it too"
_UP = "look at cable and switch port; ip link set IFACE up; journalctl -u NetworkManager"


@dataclass(frozen=True, slots=True)
class Interface:
    """One interface that is no virtual one. Source: iproute2 6.1, ``ip -json link show``."""

    name: str
    up: bool
    mtu: int


@dataclass(frozen=True, slots=True)
class Expected:
    """MTU of the interfaces that are up, and names of those that must be."""

    mtu: float | None
    up: tuple[str, ...]


def _parse(printed: Printed) -> tuple[Interface, ...]:
    text = "\n".join(plain_lines(printed.text))
    try:
        links = json.loads(text)
    except (ValueError, RecursionError) as error:
        said = (text.strip() or printed.error_text.strip())[:60]
        remedy = "run ip -json link show on the node (iproute2 of 2018 or newer)"
        raise ParseError(f"not the interfaces as JSON: {said!r}", remedy=remedy) from error
    if not isinstance(links, list) or not links:
        raise ParseError("no interface in the answer", remedy="run ip link show on the node")
    return tuple(one for link in links if (one := _interface(link)) is not None)


def _interface(link: object) -> Interface | None:
    if not isinstance(link, Mapping):
        raise ParseError("no interface", remedy="run ip -json link show on the node")
    if not link:
        return None  # older iproute2 prints {} for what a filter left out
    name, mtu = link.get("ifname"), link.get("mtu")
    if not isinstance(name, str) or not isinstance(mtu, int):
        raise ParseError("an interface without name or MTU", remedy="run ip link show")
    if name.startswith(_VIRTUAL):
        return None
    state, flags = link.get("operstate"), link.get("flags")
    carries = isinstance(flags, list) and "LOWER_UP" in flags
    return Interface(name, up=state == "UP" or (state == "UNKNOWN" and carries), mtu=mtu)


def _expect(raw: Mapping[str, Any]) -> Expected:
    return Expected(number(raw, "expected_mtu"), wanted(raw, "expected_interfaces"))


def _judge(seen: tuple[Interface, ...], expected: Expected) -> Verdict:
    up = {one.name: one for one in seen if one.up}
    if not up:
        remedy = "ip link show: is this a container without interfaces of its own?"
        return single(unknown("no interface is up", remedy=remedy, code="net.settings.none"))
    found: list[Finding] = [
        failed(f"{name} is not up", remedy=_UP, component=name, code="net.settings.down")
        for name in expected.up
        if name not in up
    ]
    for one in up.values():
        if expected.mtu and one.mtu != expected.mtu and one.name in (expected.up or up):
            words = f"{one.name}: MTU {one.mtu}, {expected.mtu:g} expected"
            make = failed if one.name in expected.up else warned
            found.append(make(words, remedy=_MTU, component=one.name, code="net.settings.mtu"))
    shown = ", ".join(f"{one.name} MTU {one.mtu}" for one in up.values())
    return verdict(found, otherwise=f"up: {shown}")


def _alike(seen: tuple[Interface, ...]) -> Mapping[str, int | str | None]:
    return {f"MTU of {one.name}": one.mtu for one in seen if one.up}


def _facts(seen: tuple[Interface, ...]) -> Mapping[str, Any]:
    return {"interfaces": {one.name: one.mtu for one in seen if one.up}}


NET_SETTINGS = Check(
    name="net.settings",
    question="Are the network interfaces up, with the MTU that they should have?",
    command="ip -json link show",
    parse=_parse,
    expect=_expect,
    judge=_judge,
    facts=_facts,
    alike=_alike,
    recognises=told_by(
        r"^ip (?:-\S+ )*(?:-j|link)", begins=r"\s*\[?\s*\{\s*\"if(?:index|name)\"\s*:"
    ),
    needs="ip (package iproute2)",
    expects=("expected_mtu", "expected_interfaces"),
)
