"""Faults of the network: a slow adapter, a slow path, a node that cannot be reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from recovery.lab.fault import Fault
from recovery.lab.hardware import NIC_BUS, Machine


def _slow_adapter(machine: Machine, value: str) -> Machine:
    hcas = tuple(replace(h, rate_gbit=100) if h.name == value else h for h in machine.hcas)
    return replace(machine, hcas=hcas)


def _slow_path(machine: Machine, value: str) -> Machine:
    return replace(machine, slow_peers=tuple(value.split(",")))


def _adapter(machine: Machine, value: str) -> Mapping[str, object]:
    del machine
    return {"hca": value, "bus": NIC_BUS[int(value.rpartition("_")[2])]}


SLOW_NIC = Fault(
    name="slow-nic",
    about="one adapter trained at a quarter of its rate",
    default="mlx5_3",
    value_help="adapter, mlx5_0 to mlx5_7",
    change=_slow_adapter,
    words=_adapter,
    log="""
0.000000 mlx5_core 0000:{bus}:00.0 {hca}: Port: 1 Link DOWN
0.120000 mlx5_core 0000:{bus}:00.0 {hca}: Port: 1 Link ACTIVE
""",
)

SLOW_PAIR = Fault(
    name="slow-pair",
    about="the path to another node is slow, though both ends are well",
    default="node02",
    value_help="the other node",
    change=_slow_path,
)

REFUSE_LOGIN = Fault(
    name="refuse-login",
    about="the node's SSH server accepts no key",
    switches=frozenset({"refuse-login"}),
)

HOSTKEY_CHANGED = Fault(
    name="hostkey-changed",
    about="the node shows another host key than the one that is known",
    switches=frozenset({"other-hostkey"}),
)

SILENT = Fault(
    name="silent",
    about="the node takes connections and never says a word",
    switches=frozenset({"silent"}),
)

NEVER_BACK = Fault(
    name="never-back",
    about="the node stays off when the power returns, and after a reboot",
    switches=frozenset({"never-back"}),
)
