"""What nvidia-smi said, in one shape whatever the form of the answer.

Values keep the text that was printed; their names are those of ``--query-gpu`` with the newer
spelling (``clocks_event_reasons.*``), so that a check reads the table, ``-q``, XML and CSV alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from recovery.reading import cell
from recovery.reading.smi_errors import Trouble


class Form(StrEnum):
    """In which form nvidia-smi answered."""

    QUERY = "nvidia-smi -q"
    XML = "nvidia-smi -q -x"
    CSV = "nvidia-smi --query-gpu"
    TABLE = "nvidia-smi"
    LIST = "nvidia-smi -L"
    NVLINK = "nvidia-smi nvlink -s"
    APPS = "nvidia-smi --query-compute-apps"
    ERROR = "an error message"


@dataclass(frozen=True, slots=True)
class Process:
    """A process on a GPU; what the table or the query did not name is None."""

    gpu: str
    pid: int | None
    name: str
    memory_mib: int | None


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as one answer shows it. ``printed`` maps our names to those that were printed."""

    label: str
    values: Mapping[str, str]
    printed: Mapping[str, str] = field(default_factory=dict)
    links: tuple[str, ...] | None = None  # nvlink -s: one text for each link
    mig_devices: int = 0

    def has(self, name: str) -> bool:
        """Claims that the answer speaks of this value, be it absent."""
        return name in self.values

    def text(self, name: str) -> str | None:
        """The value, or None where there is none: not asked, absent or failed."""
        value = self.values.get(name)
        return None if value is None else cell.told(value)

    def number(self, name: str) -> float | None:
        """The value as a number, or None."""
        value = self.text(name)
        return None if value is None else cell.decimal(value)

    def count(self, name: str) -> int | None:
        """The value as a whole number, or None."""
        value = self.text(name)
        return None if value is None else cell.whole(value)

    def says(self, name: str, *words: str) -> bool:
        """Claims that the value is one of these words, whatever its case."""
        value = self.text(name)
        return value is not None and value.lower() in words

    @property
    def failed(self) -> tuple[str, ...]:
        """Our names of the values that the driver failed to read."""
        return tuple(n for n, v in self.values.items() if cell.is_failed(v))

    @property
    def absent(self) -> tuple[str, ...]:
        """Our names of the values that the driver says are not there."""
        return tuple(n for n, v in self.values.items() if cell.is_absent(v))


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One answer. ``cut`` says why the text cannot be whole; empty where it is."""

    form: Form
    gpus: tuple[Gpu, ...] = ()
    attached: int | None = None
    driver: str | None = None
    cuda: str | None = None
    nvml: str | None = None
    processes: tuple[Process, ...] | None = None
    troubles: tuple[Trouble, ...] = ()
    cut: str = ""
    exit_status: int | None = None
    picked: bool = False  # the command asked for some GPUs only

    @property
    def n_gpus(self) -> int | None:
        """How many GPUs the driver says there are; None where the text does not tell."""
        if self.attached is not None:
            return self.attached
        if self.gpus:
            return len(self.gpus)
        return 0 if any(t.code == "gpu.count.none" for t in self.troubles) else None

    def speaks_of(self, prefixes: tuple[str, ...]) -> bool:
        """Claims that some GPU has a value whose name begins with one of these."""
        return any(name.startswith(prefixes) for gpu in self.gpus for name in gpu.values)
