"""The RDMA ports of a node, from whichever tool printed them.

Each tool knows other things: ``ibstat`` and ``ibstatus`` the rate, ``rdma link`` the interface,
``ibv_devinfo`` the MTU, ``ibdev2netdev`` only names. What a tool does not say is None.

Source: rdma-core infiniband-diags 44.0 (ibstat, ibstatus), libibverbs examples (ibv_devinfo),
iproute2 rdma(8), MLNX_OFED ibdev2netdev, sysfs-class-infiniband.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.asked import tool_asked
from recovery.reading.ib_counters import has_ib_counters
from recovery.reading.once import once
from recovery.reading.plain import ends_with_newline, plain_lines

_STATE = re.compile(r"/ports/\d+/(?:phys_)?state:|\bstate:|\bstate ", re.IGNORECASE)
IB, ETHERNET = "InfiniBand", "Ethernet"
_ABSENT = re.compile(
    r"Failed to open NETLINK_RDMA socket|Failed to get IB devices list|No IB devices found"
    r"|Fatal error: +No devices|[Nn]o RDMA devices|ibpanic.*(?:can't|cannot) get|no CAs? found",
)
_RATE = re.compile(
    r"(?P<rate>\d+(?:\.\d+)?) ?(?:Gb/sec)?(?: \((?P<width>\d+X)(?: (?P<speed>\w+))?\))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """One port of one HCA. ``state`` is ibstat's word for it, ``physical`` the tool's own."""

    device: str
    port: int = 1
    state: str | None = None
    physical: str | None = None
    rate: float | None = None
    width: str | None = None
    speed: str | None = None
    link_layer: str | None = None
    lid: int | None = None
    sm_lid: int | None = None
    active_mtu: int | None = None
    netdev: str | None = None

    @property
    def name(self) -> str:
        """Device and port as people and expectations write it, ``mlx5_0/1``."""
        return f"{self.device}/{self.port}"

    @property
    def is_ethernet(self) -> bool:
        """Claims that it speaks Ethernet (RoCE)."""
        if self.link_layer is not None:
            return self.link_layer == ETHERNET
        return self.netdev is not None and self.lid is None

    @property
    def active(self) -> bool:
        """Claims that it carries traffic."""
        return self.state == "Active"

    @property
    def waits_for_subnet(self) -> bool:
        """Claims that its cable is fine and the subnet manager has not configured it."""
        return self.state in ("Initializing", "Armed")


@dataclass(frozen=True, slots=True, kw_only=True)
class IbPorts:
    """All ports in the order printed.

    ``firmware`` and ``kinds`` are by device. ``netdev_up`` is None unless the tool tells only
    interfaces. ``absent`` holds the tool's words when the node has no RDMA stack. ``torn`` says
    why the text cannot be the whole answer.
    """

    ports: tuple[Port, ...] = ()
    firmware: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    mapping: Mapping[str, str | None] | None = None
    netdev_up: tuple[str, ...] = ()
    absent: str = ""
    torn: str = ""

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices in the order printed."""
        return tuple(dict.fromkeys(p.device for p in self.ports))


@once
def parse_ib(printed: Printed) -> IbPorts:
    """The ports that any of the tools printed.

    Raises:
        ParseError: nothing was printed, or it is none of the tools.
    """
    text = printed.text
    said = f"{text}\n{printed.error_text}"
    if absent := _ABSENT.search(said):
        return IbPorts(absent=absent[0])
    if not text.strip():
        raise ParseError(
            f"no RDMA tool answered: {printed.error_text.strip()[:120]!r}",
            remedy="`lsmod | grep ib_core`; run `ibstat` and `rdma link` by hand on the node",
        )
    lines = plain_lines(text)
    for shape, read in _SHAPES:
        if any(shape.match(line) for line in lines):
            found = read([line for line in lines if line.strip()])
            return found if found.torn else _checked_end(found, text)
    raise ParseError(
        f"not the ports of RDMA devices: {text.strip()[:60]!r}",
        remedy="run `ibstat` by hand on the node",
    )


def is_ib(printed: Printed) -> bool:
    """Claims that the command asks for RDMA ports or, naming no tool, that the text shows them."""
    asked = tool_asked(printed.command)
    if has_ib_counters(printed.text) and not _STATE.search(printed.text[:262144]):
        return False
    if asked:
        return asked == "ib"
    if _ABSENT.search(f"{printed.text[:4096]}\n{printed.error_text[:4096]}"):
        return True
    try:
        return bool(parse_ib(Printed(printed.text)).ports or "==>" in printed.text)
    except ParseError:
        return False


def _checked_end(found: IbPorts, text: str) -> IbPorts:
    if ends_with_newline(text):
        return found
    values = {name: getattr(found, name) for name in IbPorts.__slots__}
    return IbPorts(**{**values, "torn": "the last line is not whole"})


def _whole(text: str | None) -> int | None:
    """A decimal or ``0x`` number; None for everything else."""
    try:
        return int(text or "", 0)
    except ValueError:
        return int(text) if text and text.isdecimal() and len(text) < 20 else None


def _state(text: str | None) -> str | None:
    """Ibstat's word for the state in every spelling: ``4: ACTIVE``, ``PORT_INIT (2)``."""
    if not text:
        return None
    word = re.sub(r"^\d+: *|^PORT_| \(\d+\)$", "", text.strip()).upper()
    return {"INIT": "Initializing", "ARMED": "Armed"}.get(word, word.capitalize())


def _physical(text: str | None) -> str | None:
    """The tool's own word for the physical state, without the number of ``5: LinkUp``."""
    return re.sub(r"^\d+: *| \(\d+\)$", "", text.strip()) if text else None


def _rate(text: str | None) -> tuple[float | None, str | None, str | None]:
    match = _RATE.match((text or "").strip())
    if match is None:
        return None, None, None
    return float(match["rate"]), match["width"], match["speed"]


def _port(device: str, number: int, said: Mapping[str, str]) -> Port:
    """A port from keys of any tool, lower case with underscores."""
    rate, width, speed = _rate(said.get("rate"))
    mtu = _whole((said.get("active_mtu") or "").partition(" ")[0])
    return Port(
        device=device,
        port=number,
        state=_state(said.get("state")),
        physical=_physical(said.get("physical_state") or said.get("phys_state")),
        rate=rate,
        width=width,
        speed=speed,
        link_layer=said.get("link_layer"),
        lid=_whole(said.get("base_lid") or said.get("port_lid") or said.get("lid")),
        sm_lid=_whole(said.get("sm_lid")),
        active_mtu=mtu,
        netdev=said.get("netdev"),
    )


def _key_value(line: str) -> tuple[str, str]:
    key, _, value = line.strip().partition(":")
    return key.strip().lower().replace(" ", "_"), value.strip()


@dataclass(slots=True)
class _Blocks:
    """Ports gathered line by line from a tool that prints blocks."""

    last_key: str  # the key that closes the block of a port
    ports: list[Port] = field(default_factory=list)
    firmware: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    wanted: dict[str, int] = field(default_factory=dict)
    device: str = ""
    number: int | None = None
    said: dict[str, str] = field(default_factory=dict)
    torn: str = ""

    def open(self, device: str) -> None:
        self.close()
        self.device = device

    def start(self, number: int) -> None:
        self.close()
        self.number = number

    def close(self) -> None:
        if self.number is None:
            return
        if self.last_key not in self.said:
            self.torn = self.torn or f"the block of {self.device}/{self.number} is not whole"
        else:
            self.ports.append(_port(self.device, self.number, self.said))
        self.number, self.said = None, {}

    def note(self, key: str, value: str) -> None:
        if self.number is not None:
            self.said[key] = value
        elif key in ("firmware_version", "fw_ver"):
            self.firmware[self.device] = value
        elif key in ("ca_type", "vendor_part_id", "board_id"):
            self.kinds.setdefault(self.device, value)
        elif key in ("number_of_ports", "phys_port_cnt"):
            self.wanted[self.device] = _whole(value) or 0

    def result(self) -> IbPorts:
        self.close()
        for device, n_wanted in self.wanted.items():
            if sum(p.device == device for p in self.ports) < n_wanted:
                self.torn = self.torn or f"ports of {device} are missing"
        if self.device and not any(p.device == self.device for p in self.ports):
            self.torn = self.torn or f"{self.device} is named and none of its ports"
        return IbPorts(
            ports=tuple(self.ports), firmware=self.firmware, kinds=self.kinds, torn=self.torn
        )


_CA = re.compile(r"CA '([^']+)'")
_PORT = re.compile(r"\s*Port (\d+):$")


def _ibstat(lines: Sequence[str]) -> IbPorts:
    blocks = _Blocks("link_layer")
    for line in lines:
        if line.startswith("CA '") and (ca := _CA.match(line)):
            blocks.open(ca[1])
        elif "Port " in line and (port := _PORT.match(line.rstrip())):
            blocks.start(int(port[1]))
        elif blocks.device and ":" in line and line[:1].isspace():
            blocks.note(*_key_value(line))
    return blocks.result()


def _ibstatus(lines: Sequence[str]) -> IbPorts:
    blocks = _Blocks("link_layer")
    for line in lines:
        if head := re.match(r"Infiniband device '([^']+)' port (\d+) status:", line):
            blocks.open(head[1])
            blocks.start(int(head[2]))
        elif blocks.device and ":" in line and line[:1].isspace():
            blocks.note(*_key_value(line))
    return blocks.result()


def _ibv_devinfo(lines: Sequence[str]) -> IbPorts:
    blocks = _Blocks("link_layer")
    for line in lines:
        key, value = _key_value(line)
        if key == "hca_id":
            blocks.open(value)
        elif key == "port" and value.isdecimal():
            blocks.start(int(value))
        elif blocks.device:
            blocks.note(key, value)
    return blocks.result()


def _rdma_link(lines: Sequence[str]) -> IbPorts:
    ports, torn = [], ""
    for line in lines:
        head = re.match(r"(?:\d+(?:/\d+)?: )?link (\S+?)/(\d+):? (.*)", line.strip())
        if head is None:
            continue
        words = head[3].split()
        said = dict(zip(words[::2], words[1::2], strict=False))
        if "physical_state" not in said:
            torn = f"the line of {head[1]} is not whole"
            continue
        ib = "lid" in said or "subnet_prefix" in said
        ports.append(_port(head[1], int(head[2]), {**said, "link_layer": IB if ib else ETHERNET}))
    return IbPorts(ports=tuple(ports), torn=torn)


_SYSFS = re.compile(r"/sys/class/infiniband/([^/]+)/ports/(\d+)/([^:]+?):(.*)")


def _sysfs(lines: Sequence[str]) -> IbPorts:
    said: dict[tuple[str, int], dict[str, str]] = {}
    for line in lines:
        match = _SYSFS.match(line)
        if match and "/" not in match[3]:
            said.setdefault((match[1], int(match[2])), {})[match[3]] = match[4].strip()
        elif match:
            said.setdefault((match[1], int(match[2])), {})
    return IbPorts(ports=tuple(_port(device, n, values) for (device, n), values in said.items()))


_NETDEV = re.compile(r"(?P<device>\S+) port (?P<port>\d+) ==> (?P<netdev>\S*) \((?P<state>\w+)\)")


def _ibdev2netdev(lines: Sequence[str]) -> IbPorts:
    found = [match for line in lines if (match := _NETDEV.match(line))]
    return IbPorts(
        ports=tuple(
            Port(device=m["device"], port=int(m["port"]), netdev=m["netdev"] or None) for m in found
        ),
        mapping={m["device"]: m["netdev"] or None for m in found},
        netdev_up=tuple(m["device"] for m in found if m["state"] == "Up"),
    )


_SHAPES = (
    (re.compile(r"CA '"), _ibstat),
    (re.compile(r"Infiniband device '"), _ibstatus),
    (re.compile(r"hca_id:\s"), _ibv_devinfo),
    (re.compile(r"\s*(?:\d+(?:/\d+)?: )?link \S+/\d+"), _rdma_link),
    (re.compile(r"/sys/class/infiniband/"), _sysfs),
    (re.compile(r"\S+ port \d+ ==> "), _ibdev2netdev),
)
