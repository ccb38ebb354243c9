"""One event of the kernel log, and how a line becomes one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from recovery.reading.klog_lines import Line


@dataclass(frozen=True, slots=True)
class KernelEvent:
    """What one message reports. ``values`` are its facts by the names that `recover judge` prints.

    ``seconds`` compares with other events of the same log; ``usec`` is that of ``/dev/kmsg``.
    """

    kind: str
    values: dict[str, Any]
    text: str = ""
    seconds: float | None = None
    since_boot_s: float | None = None
    usec: int | None = None

    @property
    def code(self) -> int | None:
        """The Xid or SXid, when it is one."""
        found = self.values.get("xid", self.values.get("sxid"))
        return found if isinstance(found, int) else None

    @property
    def device(self) -> str:
        """The PCI address or name of the part meant, as far as the line says."""
        return str(self.values.get("pci") or self.values.get("dev") or "")


Build = Callable[[re.Match[str]], Mapping[str, Any]]
Rule = tuple[str, re.Pattern[str], Build]


def read_by(rules: tuple[Rule, ...], line: Line) -> KernelEvent | None:
    """The event of the first rule that the message obeys from its first character on."""
    for kind, pattern, build in rules:
        match = pattern.match(line.text)
        if match is not None:
            return KernelEvent(
                kind, dict(build(match)), line.text, line.seconds, line.since_boot_s, line.usec
            )
    return None


def pci_of(text: str) -> str:
    """A PCI address in the kernel's own form: four digits of domain, lower case."""
    domain, _, rest = text.lower().partition(":")
    if ":" not in rest:
        return f"0000:{domain}:{rest}"
    return f"{domain[-4:].zfill(4)}:{rest}"


def known(**values: object) -> dict[str, Any]:
    """The values that are known: what the line does not say is left out, never 0."""
    return {name: value for name, value in values.items() if value is not None and value != ""}


def whole(text: str | None) -> int | None:
    """A number, or None where the line has none."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 20 else None
