"""Are all HCA ports that this node should use up, at full rate and in the subnet?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recovery.model.check import Check
from recovery.model.verdict import Finding, Verdict, failed, unknown, verdict, warned
from recovery.reading.ib import IB, IbPorts, Port, is_ib, parse_ib

_CABLE = (
    "reseat or change cable and optic, look at the switch port; after an outage check first that "
    "the leaf switch is powered"
)
_SUBNET = "start the subnet manager (OpenSM or UFM) first, then ask again; do not touch cables"


@dataclass(frozen=True, slots=True, kw_only=True)
class IbExpect:
    """What the node should have; None and empty: nobody said.

    ``storage`` ports must be up, whatever they are; ``ignored`` ones do not matter;
    ``ports`` names the only ones that matter, as ``mlx5_0/1``.
    """

    n_compute: int | None = None
    rate: float | None = None
    link_layer: str = IB
    storage: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    ports: frozenset[str] = frozenset()
    roce_mtu: int | None = None
    ipoib: bool = False


def expect(raw: Mapping[str, Any]) -> IbExpect:
    """Reads the expectations that the profile and the context name."""

    def names(key: str) -> frozenset[str]:
        return frozenset(str(name) for name in raw.get(key) or ())

    rate = raw.get("expected_rate")
    return IbExpect(
        n_compute=raw.get("expected_compute_hcas"),
        rate=None if rate is None else float(rate),
        link_layer=str(raw.get("expected_link_layer") or IB),
        storage=names("storage_hcas"),
        ignored=names("ignored_hcas"),
        ports=names("expected_ports"),
        roce_mtu=raw.get("expected_roce_mtu"),
        ipoib=bool(raw.get("ipoib_required")),
    )


def judge(found: IbPorts, expected: IbExpect) -> Verdict:
    """Judges only ports that the node should use: one that nobody cabled is no fault."""
    if found.absent:
        return verdict(_absent(found, expected), otherwise="no HCA here, and none expected")
    if found.mapping is not None:
        return verdict(_interfaces(found, expected), otherwise="all interfaces are up")
    compute = [p for p in found.ports if _is_compute(p, expected)]
    findings = [
        *_down(found, expected),
        *_unsteady(compute),
        *_waiting(compute),
        *_slow(compute, expected),
        *_mtu(found, expected),
    ]
    findings.extend(_count(compute, found, expected, explained=len(findings)))
    if found.torn:
        findings.append(unknown(f"the answer is cut: {found.torn}", remedy="run the tool again"))
    n_active = sum(p.active for p in compute)
    return verdict(findings, otherwise=f"{n_active} compute ports are up, as expected")


def _is_compute(port: Port, expected: IbExpect) -> bool:
    if expected.ports:
        return port.name in expected.ports
    if port.device in expected.ignored | expected.storage:
        return False
    return port.is_ethernet == (expected.link_layer != IB)


def _used(port: Port, expected: IbExpect) -> bool | None:
    """Whether the node should use the port; None where nobody said."""
    if expected.ports:
        return port.name in expected.ports
    if port.device in expected.ignored:
        return False
    if port.device in expected.storage:
        return True
    if expected.n_compute is None:
        return None
    return _is_compute(port, expected)


def _absent(found: IbPorts, expected: IbExpect) -> Iterator[Finding]:
    if expected.n_compute == 0:
        return
    make = unknown if expected.n_compute is None else failed
    yield make(
        f"the RDMA stack is not loaded: {found.absent}",
        remedy="`modprobe ib_core mlx5_ib`; `lspci | grep -i mellanox`; in a container give it "
        "access to /dev/infiniband",
        code="ib.state.no-stack",
    )


def _interfaces(found: IbPorts, expected: IbExpect) -> Iterator[Finding]:
    if not expected.ipoib:
        yield unknown(
            "this tool tells names only: (Down) is the network interface, not the port",
            remedy="run `ibstat` for the state of the ports",
            code="ib.state.names-only",
        )
        return
    for device, netdev in (found.mapping or {}).items():
        if device not in {*found.netdev_up, *expected.ignored}:
            yield failed(
                f"{device}: interface {netdev or '(none)'} is down and IPoIB is required",
                remedy=f"`ip link set {netdev} up` and look at its address" if netdev
                else "load ib_ipoib",
                component=device,
                code="ib.state.ipoib",
            )  # fmt: skip


def _down(found: IbPorts, expected: IbExpect) -> Iterator[Finding]:
    for port in found.ports:
        if port.active or port.waits_for_subnet or _used(port, expected) is False:
            continue
        if port.state is None:
            yield unknown(
                f"{port.name}: this text does not tell its state",
                remedy="run `ibstat` for the state of the ports",
                component=port.device,
                code="ib.state.no-state",
            )
        elif _used(port, expected):
            yield failed(
                f"{port.name} is {port.state}, {port.physical or 'physical state not told'}: "
                "no partner at the other end",
                remedy=_CABLE,
                component=port.device,
                code="ib.state.down",
            )
        else:
            yield warned(
                f"{port.name} is {port.state} ({port.physical}), nobody said if it is used",
                remedy="name it in storage_hcas or ignored_hcas, or give expected_compute_hcas",
                component=port.device,
                code="ib.state.maybe-unused",
            )


def _unsteady(compute: list[Port]) -> Iterator[Finding]:
    """Active to the subnet manager, and not up in the cable: it is coming or going."""
    for port in compute:
        physical = re.sub("[^a-z]", "", (port.physical or "linkup").lower())
        if port.active and not physical.endswith("linkup"):
            yield failed(
                f"{port.name} is Active, its physical state is {port.physical}",
                remedy=_CABLE,
                component=port.device,
                code="ib.state.unsteady",
            )


def _waiting(compute: list[Port]) -> Iterator[Finding]:
    waiting = [p for p in compute if p.waits_for_subnet]
    if not waiting:
        return
    everywhere = len(waiting) == len(compute) or not any(p.active for p in compute)
    names = ", ".join(p.device for p in waiting)
    if everywhere:
        text = f"{names}: link is up and no subnet manager has configured it: the fabric's fault"
        yield failed(text, remedy=_SUBNET, code="ib.state.no-subnet-manager")
        return
    for port in waiting:
        yield failed(
            f"{port.name} is {port.state}: the subnet manager has not configured it",
            remedy="read the subnet manager's log for its GUID and partition key; restart the port",
            component=port.device,
            code="ib.state.not-configured",
        )


def _slow(compute: list[Port], expected: IbExpect) -> Iterator[Finding]:
    if expected.rate is None:
        return
    for port in compute:
        if port.active and port.rate is not None and port.rate < expected.rate:
            lanes = f" ({port.width} {port.speed})" if port.width else ""
            yield failed(
                f"{port.name} runs at {port.rate:g} of {expected.rate:g} Gb/s{lanes}",
                remedy="clean or change the optics, reset the port, ask again",
                component=port.device,
                code="ib.state.rate",
            )
    silent = [p.device for p in compute if p.active and p.rate is None]
    if silent and len(silent) < len(compute):
        yield unknown(
            f"{', '.join(silent)}: the rate is not told, that of other ports is",
            remedy="run `ibstat` again; read /sys/class/infiniband/<HCA>/ports/1/rate",
            code="ib.state.no-rate",
        )
    elif compute and all(p.rate is None for p in compute):
        yield warned(
            "this tool does not tell the rate",
            remedy="run `ibstat` to see that every port runs at full rate",
            code="ib.state.no-rate",
        )


def _mtu(found: IbPorts, expected: IbExpect) -> Iterator[Finding]:
    wanted = expected.roce_mtu or 0
    for port in found.ports:
        used = port.is_ethernet and port.active and port.device not in expected.ignored
        if used and port.active_mtu is not None and port.active_mtu < wanted:
            yield failed(
                f"{port.name} uses MTU {port.active_mtu}, expected {wanted}",
                remedy="raise the MTU of its network interface (9000) and of the switch port",
                component=port.device,
                code="ib.state.mtu",
            )


def _count(
    compute: list[Port], found: IbPorts, expected: IbExpect, *, explained: int
) -> Iterator[Finding]:
    n_active = sum(p.active for p in compute)
    missing = expected.ports - {p.name for p in found.ports}
    for name in sorted(missing):
        yield failed(f"{name} is not there", remedy="`lspci`; reseat the card", component=name)
    if expected.ports:
        return
    if expected.n_compute is None:
        yield warned(
            f"{n_active} compute ports are up; nobody said how many there should be",
            remedy="give expected_compute_hcas (or a profile)",
            code="ib.state.no-expectation",
        )
    elif len(compute) < expected.n_compute:
        make = unknown if found.torn else failed
        yield make(
            f"{len(compute)} compute ports are there, expected {expected.n_compute}",
            remedy="`lspci | grep -i mellanox`; cold power cycle, then reseat the missing card",
            code="ib.state.count",
        )
    elif n_active < expected.n_compute and not explained:
        yield failed(
            f"{n_active} of {expected.n_compute} compute ports are up", remedy=_CABLE,
            code="ib.state.count",
        )  # fmt: skip


def facts(found: IbPorts) -> Mapping[str, Any]:
    """The facts by the names of `recover judge`; None where the text does not tell."""
    if found.absent:
        return {"devices": None, "absent": found.absent}
    active = [p for p in found.ports if p.active]
    told = found.mapping is None
    ethernet = [p for p in active if p.is_ethernet]
    return {
        "devices": len(found.devices),
        "ports": len(found.ports),
        "ib_active": len(active) - len(ethernet) if told else None,
        "eth_active": len(ethernet) if told else None,
        "not_active": [_broken(p) for p in found.ports if p.state and not p.active
                       and not p.waits_for_subnet],
        "initializing": [p.device for p in found.ports if p.waits_for_subnet],
        "order": list(found.devices),
        "lids": {p.device: p.lid for p in active if p.lid and not p.is_ethernet},
        "roce": {p.device: {"active_mtu": p.active_mtu} for p in ethernet if p.active_mtu},
        "mapping": found.mapping,
        "netdev_up": list(found.netdev_up),
        "firmware": dict(found.firmware),
    }  # fmt: skip


def _broken(port: Port) -> dict[str, Any]:
    return {
        "device": port.device,
        "port": port.port,
        "state": port.state,
        "physical": port.physical,
        "rate": port.rate,
        "link_layer": port.link_layer,
    }


def conclusions(found: IbPorts, expected: IbExpect) -> Mapping[str, Any]:
    """``low_rate``: ports that are up on fewer lanes or at a lower rate than expected."""

    def is_low(port: Port) -> bool:
        rate = expected.rate if _is_compute(port, expected) else None
        few_lanes = port.width in ("1X", "2X")
        return few_lanes or (rate is not None and port.rate is not None and port.rate < rate)

    low = [p for p in found.ports if p.active and is_low(p)]
    return {"low_rate": [{"device": p.device, "rate": p.rate, "width": p.width} for p in low]}


STATE = Check(
    name="ib.state",
    question="Are all HCA ports that the node should use up, at full rate and in the subnet?",
    command="ibstat",
    parse=parse_ib,
    expect=expect,
    judge=judge,
    facts=facts,
    conclusions=conclusions,
    recognises=is_ib,
    needs="ibstat (infiniband-diags)",
    expects=(
        "expected_compute_hcas",
        "expected_rate",
        "expected_link_layer",
        "storage_hcas",
        "ignored_hcas",
        "expected_ports",
        "expected_roce_mtu",
        "ipoib_required",
    ),
)
