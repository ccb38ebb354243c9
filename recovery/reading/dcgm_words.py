"""What a run of ``dcgmi diag`` found, whichever version and form printed it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Complaint:
    """One warning: ``severity`` and ``error_id`` are DCGM's own, None in the text form."""

    test: str
    gpu: int | None
    message: str
    error_id: int | None = None
    severity: int | None = None


@dataclass(frozen=True, slots=True)
class Test:
    """One test: what it says as a whole, and of each GPU; None as a key stands for the node."""

    name: str
    status: str
    gpus: Mapping[int | None, str] = field(default_factory=dict)
    complaints: tuple[Complaint, ...] = ()
    spoken: tuple[str, ...] = ()  # the text form's messages, in order
    everywhere: frozenset[str] = frozenset()  # statuses that the text gave for all GPUs at once

    @property
    def failed_gpus(self) -> tuple[int | None, ...]:
        """The GPUs that it fails, in order."""
        return tuple(g for g, status in self.gpus.items() if status.lower() in ("fail", "error"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One run. ``trouble`` says why it ran no test; ``cut`` why the text cannot be whole."""

    tests: tuple[Test, ...] = ()
    version: str | None = None
    driver: str | None = None
    n_gpus: int | None = None
    is_json: bool = False
    major: int = 4
    trouble: str = ""
    connected: bool = True
    dcgm_return: int | None = None
    cut: str = ""
    exit_status: int | None = None
