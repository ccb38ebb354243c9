"""A BMC: where it is, what it may be asked, and the ways to ask it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from recovery.model.output import Output


class BmcAsk(StrEnum):
    """All that a BMC is ever asked. Nothing here clears a log or changes a setting."""

    STATUS = "status"
    ON = "on"
    OFF = "off"
    SOFT = "soft"  # asks the system to shut down, as its power button does
    SEL = "sel"  # its event log
    SENSORS = "sensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcAddress:
    """One node's BMC. ``options`` are the other values that the inventory gives for it."""

    node: str
    address: str
    user: str
    password: str = field(default="", repr=False)
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcKind:
    """A way to ask a BMC, on the shelf ``recovery/bmc``.

    ``ask`` gets the address, the question and its limit in seconds. It answers with text that
    `recovery.reading` knows, and never raises for what goes wrong at the BMC: an answer that
    could not be had is an output that is not ``ok``, with the reason on standard error.
    """

    name: str
    about: str
    ask: Callable[[BmcAddress, BmcAsk, float], Output]
