"""The shape of a fault: what it changes in the machine, the log, the tools and the disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from recovery.lab.hardware import Machine


def _unchanged(machine: Machine, value: str) -> Machine:
    """The machine as it is."""
    del value
    return machine


def _no_words(machine: Machine, value: str) -> Mapping[str, object]:
    """No words for the log."""
    del machine, value
    return {}


def _no_tools(value: str) -> Mapping[str, str]:
    """No tool replaced."""
    del value
    return {}


def _no_damage(home: Path) -> None:
    """Nothing done to the disk."""
    del home


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that can be wrong with a node.

    ``change``: the hardware as the tools see it; ``log``: kernel lines (seconds after the event,
    then the text) filled with ``words``; ``tools``: name -> script that takes a tool's place;
    ``damage``: done once to the node's home. The farm itself heeds the ``switches``
    (refuse-login, other-hostkey, never-back, silent) while the fault lasts. ``until_reset``: a
    reset of the GPUs ends it.
    """

    name: str
    about: str
    default: str = ""
    value_help: str = ""
    change: Callable[[Machine, str], Machine] = field(default=_unchanged)
    log: str = ""
    words: Callable[[Machine, str], Mapping[str, object]] = field(default=_no_words)
    tools: Callable[[str], Mapping[str, str]] = field(default=_no_tools)
    damage: Callable[[Path], None] = field(default=_no_damage)
    until_reset: bool = False
    switches: frozenset[str] = frozenset()
