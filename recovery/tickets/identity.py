"""Serials and firmware of a node and its GPUs, read from the evidence that goes into the ticket."""

from __future__ import annotations

import re
from collections.abc import Iterable

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.sections import without_end
from recovery.reading.smi import is_smi_command, read_smi
from recovery.reading.smi_words import Gpu

_PARTS = {
    "pci": "pci.bus_id",
    "name": "name",
    "serial": "serial",
    "uuid": "uuid",
    "vbios": "vbios_version",
}
_MACHINE = {
    # our word: the kernel's name of it (class/dmi/id), then ipmitool's (fru print, mc info)
    "vendor": ("sys_vendor", "Product Manufacturer"),
    "product": ("product_name", "Product Name"),
    "serial": ("product_serial", "Product Serial"),
    "chassis serial": ("chassis_serial", "Chassis Serial"),
    "board serial": ("board_serial", "Board Serial"),
    "BIOS": ("bios_version",),
    "BIOS date": ("bios_date",),
    "BMC firmware": ("Firmware Revision",),
}
_LINE = re.compile(r"^\s*([\w ]*\w)\s*:\s*(\S.*?)\s*$", re.M)
# What makers leave in a field that they never filled.
_EMPTY = re.compile(r"(?i)to be filled|not specified|default string|^(none|n/?a|unknown|0+|x+)$")


def machine_in(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What the evidence called ``identity`` says of the machine; parts that nobody told are out."""
    told: dict[str, str] = {}
    for name, text in texts:
        if name == "identity":
            told |= {m[1]: m[2] for m in _LINE.finditer(text) if not _EMPTY.search(m[2])}
    known = {word: [told[n] for n in names if n in told] for word, names in _MACHINE.items()}
    return {word: values[0] for word, values in known.items() if values}


def gpus_in(texts: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """One row a GPU, by its place: what all answers together say of it.

    ``texts``: (the command or the name of the evidence, what was printed). A text that is none of
    nvidia-smi's adds nothing.
    """
    rows: dict[str, dict[str, str]] = {}
    for name, text in texts:
        for gpu in _gpus(name, text):
            if place := gpu.text("pci.bus_id"):
                rows.setdefault(place.lower(), {}).update(_row(gpu))
    return [rows[place] for place in sorted(rows)]


def _row(gpu: Gpu) -> dict[str, str]:
    told = {ours: gpu.text(theirs) for ours, theirs in _PARTS.items()}
    return {name: value for name, value in told.items() if value}


def _gpus(name: str, text: str) -> tuple[Gpu, ...]:
    command = "nvidia-smi -q" if name == "nvidia-smi-q" else name
    if not is_smi_command(command):
        return ()
    try:
        return read_smi(without_end(Printed(text, command=command))).gpus
    except ParseError:
        return ()
