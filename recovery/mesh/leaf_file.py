"""Which leaf a node hangs on, read from a topology file.

Three forms: Slurm's ``topology.conf``, the output of ``ibnetdiscover``, and two columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from recovery.errors import InputError

_SLURM = re.compile(r"^\s*SwitchName=(\S+).*?\bNodes=(\S+)", re.IGNORECASE)
_SWITCH = re.compile(r'^Switch\s+\d+\s+"[^"]+"\s+#\s+"([^"]*)"')
_PORT = re.compile(r'^\[\d+\]\s+"H-[^"]*"\[\d+\](?:\([^)]*\))?\s+#\s+"([^"\s]+)')

Expand = Callable[[str], Iterable[str]]


def read_leaves(text: str, source: str, expand: Expand) -> dict[str, str]:
    """Leaf by node. ``expand`` turns a hostlist (``node[001-032]``) into names.

    A node on several switches (a switch a rail) is put on the first one named, so that nodes which
    share all their switches share their leaf.

    Raises:
        InputError: none of the three forms, or a node on two leaves in the two-column form.

    Source: topology.conf(5) of Slurm, ibnetdiscover(8) of infiniband-diags.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found = _of_slurm(lines, expand) or _of_ibnetdiscover(lines)
    if not found:
        found = _of_columns(lines, source, expand)
    if not found:
        raise InputError(
            f"{source}: no leaf of any node is in it",
            remedy="give `NODE LEAF` lines, Slurm's topology.conf, or what ibnetdiscover printed",
        )
    return found


def _of_slurm(lines: Iterable[str], expand: Expand) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines:
        if match := _SLURM.match(line):
            for name in expand(match.group(2)):
                found.setdefault(name, match.group(1))
    return found


def _of_ibnetdiscover(lines: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    switch = ""
    for line in lines:
        if match := _SWITCH.match(line):
            switch = match.group(1).split(";")[-1].split(":")[0].strip()
        elif switch and (port := _PORT.match(line)):
            found.setdefault(port.group(1), switch)
    return found


def _of_columns(lines: Iterable[str], source: str, expand: Expand) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        words = re.split(r"[\s,;=:]+(?![^\[]*\])", line.strip())
        if len(words) != 2:
            raise InputError(
                f"{source}: line {number} is not `NODE LEAF`: {line.strip()[:60]!r}",
                remedy="give `NODE LEAF` lines, Slurm's topology.conf, or ibnetdiscover's output",
            )
        for name in expand(words[0]):
            if found.setdefault(name, words[1]) != words[1]:
                raise InputError(
                    f"{source}: node {name!r} is on {found[name]!r} and on {words[1]!r}",
                    remedy="name each node once",
                )
    return found
