"""Real simulators of BMCs: OpenIPMI's ipmi_sim, and sushy-tools' emulator of Redfish."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.transports.servers import until

PASSWORD = "lab-only-password"
EMULATOR = Path(sys.executable).parent / "sushy-emulator"
_LAN = """\
name "{name}"
set_working_mc 0x20
  startlan 1
    addr {address} {port}
    priv_limit admin
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  chassis_control "{hook}"
  user 2 true "admin" "{password}" admin 10 none md2 md5 straight
"""
# One controller with an event log; its one record says that the AC input was lost.
_EMULATED = """\
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
mc_enable 0x20
"""
# Called as: hook get|set WORD [VALUE]...; the state of the machine is one word in a file.
_HOOK = """#!/bin/sh
verb=$1; shift
echo "$verb $*" >>{folder}/asked
while [ $# -gt 0 ]; do
  case $verb-$1 in
    get-power|check-power) echo "power:$(cat {folder}/power)"; shift;;
    set-power) echo "$2" >{folder}/{sink}; shift 2;;
    get-boot) echo boot:default; shift;;
    *) shift; [ $verb = set ] && shift;;
  esac
done
exit 0
"""


def why_no_ipmi() -> str:
    """Why there can be no IPMI simulator here; empty when there can."""
    missing = [tool for tool in ("ipmitool", "ipmi_sim") if not shutil.which(tool)]
    return f"needs apt-get install ipmitool openipmi ({missing[0]})" if missing else ""


@dataclass
class IpmiSim:
    """One BMC on a UDP port of loopback, and the machine behind it: a file with its power."""

    folder: Path
    port: int

    @property
    def power(self) -> str:
        """``1`` or ``0``: the machine itself, whatever the BMC says."""
        return (self.folder / "power").read_text().strip()

    @property
    def asked(self) -> list[str]:
        """What the BMC did to the machine."""
        file = self.folder / "asked"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line for line in lines if line.startswith("set")]

    def add_ac_lost(self) -> None:
        """Writes a record into its event log, as ipmitool's users do."""
        file = self.folder / "event"
        # sensor type 0x09 (power unit), discrete event 0x6f, offset 4: AC lost
        file.write_text("0x04 0x09 0x01 0x6f 0x04 0xff 0xff # power unit: AC lost\n")
        subprocess.run(
            [*self.argv, "sel", "add", str(file)], check=True, capture_output=True, timeout=60,
            env={**os.environ, "IPMI_PASSWORD": PASSWORD},
        )  # fmt: skip

    @property
    def argv(self) -> tuple[str, ...]:
        """ipmitool with all but its question."""
        return ("ipmitool", "-I", "lanplus", "-H", "127.0.0.1", "-p", str(self.port),
                "-U", "admin", "-C", "3", "-E")  # fmt: skip


@contextlib.contextmanager
def ipmi_sim(
    folder: Path, *, obeys: bool = True, address: str = "127.0.0.1", port: int = 0, hub: str = ""
) -> Iterator[IpmiSim]:
    """A BMC in the network namespace ``hub``, or here.

    One that does not obey writes what it is told into ``wanted``: whoever holds the machine does
    it, and writes ``power`` when it is done.
    """
    folder.mkdir(parents=True)
    made = IpmiSim(folder, port or _free_udp_port())
    (folder / "power").write_text("1")
    own = folder / "hook.sh"
    own.write_text(_HOOK.format(folder=folder, sink="power" if obeys else "wanted"))
    own.chmod(0o755)
    (folder / "lan.conf").write_text(
        _LAN.format(name=folder.name, address=address, port=made.port, hook=own, password=PASSWORD)
    )
    (folder / "emu").write_text(_EMULATED)
    (folder / "state").mkdir()
    inside = ["nsenter", f"--net=/run/netns/{hub}"] if hub else []
    argv = [*inside, "ipmi_sim", "-n", "-c", str(folder / "lan.conf"), "-f", str(folder / "emu"),
            "-s", str(folder / "state")]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield made
    finally:
        _end(process)


@contextlib.contextmanager
def redfish(folder: Path) -> Iterator[str]:
    """The address of an emulator of Redfish with fake systems; its states change late."""
    folder.mkdir(parents=True)
    port = free_tcp_port()
    config = folder / "emulator.conf"
    config.write_text(
        f"SUSHY_EMULATOR_STATE_DIR = {str(folder)!r}\n"
        "SUSHY_EMULATOR_FAKE_SYSTEMS = [{'uuid': '11111111-2222-3333-4444-555555555555',"
        " 'name': 'n1', 'power_state': 'On', 'nics': []}]\n"
    )
    argv = [str(EMULATOR), "--fake", "-i", "127.0.0.1", "-p", str(port), "--config", str(config)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )

    def listens() -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    try:
        assert until(listens), (folder / "log").read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)


def _free_udp_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def free_tcp_port() -> int:
    """A port of loopback that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
