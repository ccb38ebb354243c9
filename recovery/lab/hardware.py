"""The machine that a node pretends to be: 8 x H100 SXM, 8 HCAs; faults change this value.

Source: bus addresses, NUMA ranges and firmware versions are those of common HGX H100 servers;
serials and UUIDs are made from the node's name, so they are stable and belong to nobody.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass

DRIVER = "550.90.07"
CUDA = "12.4"
GPU_NAME = "NVIDIA H100 80GB HBM3"
BUSY_MIB = 61264
IDLE_MIB = 4
TOTAL_MIB = 81559
BUS = ("0F", "2D", "44", "5B", "89", "A8", "C0", "D8")
NIC_BUS = ("1a", "3c", "4d", "5e", "9c", "ab", "bc", "cc")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as its tools see it."""

    slot: int
    uuid: str
    serial: str
    bus: str  # two hex digits, upper case
    temp_c: int
    power_w: float
    lost: bool = False
    uncorrected: int = 0
    remap_pending: bool = False
    links_down: tuple[int, ...] = ()

    @property
    def bus_id(self) -> str:
        """As nvidia-smi writes it."""
        return f"00000000:{self.bus}:00.0"

    @property
    def links(self) -> int:
        """NVLinks that are up, of 18."""
        return 18 - len(self.links_down)


@dataclass(frozen=True, slots=True)
class Hca:
    """One InfiniBand adapter, one port."""

    name: str
    guid: str
    lid: int
    rate_gbit: int = 400
    active: bool = True


@dataclass(frozen=True, slots=True)
class Machine:
    """One node's hardware. ``slow_peers``: nodes to which the path is slow."""

    name: str
    index: int
    leaf: str
    gpus: tuple[Gpu, ...]
    hcas: tuple[Hca, ...]
    disk_used_percent: int = 31
    clock_offset_s: int = 0
    slow_peers: tuple[str, ...] = ()
    driver: str = DRIVER

    @property
    def present(self) -> tuple[Gpu, ...]:
        """GPUs that are on the bus, in index order."""
        return tuple(g for g in self.gpus if not g.lost)


def healthy(name: str, index: int, leaf: str) -> Machine:
    """The machine with nothing wrong; the same name gives the same machine."""
    return Machine(
        name=name,
        index=index,
        leaf=leaf,
        gpus=tuple(_gpu(name, slot) for slot in range(8)),
        hcas=tuple(_hca(name, index, k) for k in range(8)),
    )


def draw(*words: object) -> int:
    """A number that depends on the words only, for variety without randomness."""
    text = "/".join(str(w) for w in words)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


def _gpu(name: str, slot: int) -> Gpu:
    number = draw(name, slot)
    return Gpu(
        slot=slot,
        uuid=f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{name}.{slot}.lab')}",
        serial=f"165{number % 10**10:010d}",
        bus=BUS[slot],
        temp_c=29 + number % 6,
        power_w=68 + number % 900 / 100,
    )


def _hca(name: str, index: int, k: int) -> Hca:
    return Hca(
        name=f"mlx5_{k}", guid=f"0x{draw(name, 'hca', k):012x}a0{k:02x}", lid=400 + index * 8 + k
    )
