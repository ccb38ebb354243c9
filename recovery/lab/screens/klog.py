"""The kernel log of a node: what a boot prints, what a fault prints, in the usual spellings.

Source: dmesg (util-linux 2.38) plain, ``-T`` and ``--time-format iso``; journalctl -k short.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from recovery.lab.hardware import Machine

Line = tuple[float, str]

_BOOT = """
0.000000 Linux version 5.15.0-122-generic (buildd@builder-amd64) (gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0) #132-Ubuntu SMP
0.000000 Command line: BOOT_IMAGE=/vmlinuz-5.15.0-122-generic root=UUID=6c0f ro iommu=pt pci=realloc=off
0.104417 pcieport 0000:00:01.0: PME: Signaling with IRQ 26
0.188203 EXT4-fs (nvme0n1p2): mounted filesystem with ordered data mode. Opts: errors=remount-ro
0.262781 mlx5_core 0000:1a:00.0: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)
0.340120 nvidia: module license 'NVIDIA' taints kernel.
0.340123 Disabling lock debugging due to kernel taint
0.361500 nvidia-nvlink: Nvlink Core is being initialized, major device number 511
0.390512 NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  {driver}  Release Build  (dvs-builder@U16-I3-C03-10-4)
0.402114 nvidia-nvswitch0: open (major=510)
0.433020 mlx5_core 0000:1a:00.0: mlx5_pcie_event:301:(pid 412): PCIe slot advertised sufficient power (75W).
0.470951 audit: type=1400 audit(0.470:2): apparmor="STATUS" operation="profile_load" name="nvidia_modprobe" pid=611
"""  # noqa: E501 - the kernel's own lines

# seconds before the end, then the line
_ROUTINE = """
1715 CRON[48112]: (root) CMD (/usr/lib/sysstat/debian-sa1 1 1)
1390 systemd[1]: Started Run system activity accounting tool.
1114 perf: interrupt took too long (2511 > 2500), lowering kernel.perf_event_max_sample_rate to 79500
782 chronyd[1204]: Selected source 10.0.0.1
515 CRON[48390]: (root) CMD (/usr/lib/sysstat/debian-sa1 1 1)
301 audit: type=1400 audit(0.301:9): apparmor="STATUS" operation="profile_replace" name="chronyd" pid=48401
47 systemd[1]: Started Session 812 of User root.
"""  # noqa: E501 - the log's own lines
_SERVICES = ("CRON[", "systemd[", "chronyd[")


def boot_lines(machine: Machine) -> tuple[Line, ...]:
    """What every boot prints: (seconds since boot, text)."""
    rows = (line.split(" ", 1) for line in _BOOT.strip().splitlines())
    return tuple((float(at), text.format(driver=machine.driver)) for at, text in rows)


def render(
    this_boot: Sequence[Line], last_boot: Sequence[Line], booted: tuple[float, float], name: str
) -> dict[str, str]:
    """The log files by name; ``booted`` are the POSIX seconds of this boot and of the last.

    Lines of the journal's files begin with the POSIX second and a tab, for the tool to select by.
    """
    now, before = booted
    journals = {
        f"journal-{style}{boot}": journal(lines, at, name, style)
        for style in STYLES
        for boot, lines, at in (("", this_boot, now), ("-previous", last_boot, before))
    }
    return {
        "dmesg": _plain(this_boot),
        "dmesg-T": _human(this_boot, now),
        "dmesg-iso": _iso(this_boot, now),
        "dmesg-x": _decoded(this_boot),
        **journals,
    }


STYLES: Mapping[str, str] = {
    "short": "{at:%b %d %H:%M:%S} {name} {text}",
    "short-iso": "{at:%Y-%m-%dT%H:%M:%S%z} {name} {text}",
    "short-unix": "{unix:.6f} {name} {text}",
    "cat": "{message}",
}


def journal(lines: Sequence[Line], booted_at: float, name: str, style: str) -> str:
    """The lines of one boot as journalctl prints them, each behind its POSIX second and a tab."""
    out = []
    for since, text in lines:
        unix = booted_at + since
        row = STYLES[style].format(
            at=_when(unix), unix=unix, name=name, text=_attributed(text), message=_message(text)
        )
        out.append(f"{int(unix)}\t{row}\n")
    return "".join(out)


def syslog(lines: Sequence[Line], booted_at: float, name: str) -> str:
    """The lines of one boot as ``/var/log/syslog`` has them."""
    rows = journal(lines, booted_at, name, "short").splitlines(keepends=True)
    return "".join(row.partition("\t")[2] for row in rows)


def routine(until: float) -> tuple[Line, ...]:
    """What a quiet node logs in its last half hour: (seconds since boot, text)."""
    rows = (line.split(" ", 1) for line in _ROUTINE.strip().splitlines())
    found = ((until - float(before), text) for before, text in rows)
    return tuple(line for line in found if line[0] > 2)


def is_kernel(text: str) -> bool:
    """Whether the kernel said it, and not a service."""
    return not text.startswith(_SERVICES)


def _attributed(text: str) -> str:
    return f"kernel: {text}" if is_kernel(text) else text


def _message(text: str) -> str:
    return text if is_kernel(text) else text.partition(": ")[2]


def filled(template: str, words: Mapping[str, object]) -> tuple[Line, ...]:
    """Lines of a fault: each line of ``template`` is seconds after the event, then the text."""
    rows = (line.split(" ", 1) for line in template.strip().splitlines())
    return tuple((float(after), text.format_map(words)) for after, text in rows)


def _plain(lines: Sequence[Line]) -> str:
    return "".join(f"[{at:12.6f}] {text}\n" for at, text in lines)


def _decoded(lines: Sequence[Line]) -> str:
    return "".join(f"kern  :warn  : [{at:12.6f}] {text}\n" for at, text in lines)


def _human(lines: Sequence[Line], booted_at: float) -> str:
    stamp = "%a %b %e %H:%M:%S %Y"
    return "".join(f"[{_when(booted_at + at).strftime(stamp)}] {text}\n" for at, text in lines)


def _iso(lines: Sequence[Line], booted_at: float) -> str:
    return "".join(
        f"{_when(booted_at + at).isoformat(timespec='microseconds').replace('.', ',')} {text}\n"
        for at, text in lines
    )


def _when(at: float) -> datetime:
    return datetime.fromtimestamp(at).astimezone()
