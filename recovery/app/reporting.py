"""Reports of a run, from its journal and evidence alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from recovery import inventory as inventories
from recovery.errors import StoreError
from recovery.model.events import Event
from recovery.model.ports import Report
from recovery.registry import pick
from recovery.store.journal import read_after
from recovery.store.runs import RunFolder


@dataclass(slots=True)
class Reporter:
    """Reports of one run, as often as wanted: of its journal only what is new is read again."""

    folder: RunFolder
    _events: list[Event] = field(default_factory=list)
    _offset: int = 0

    def render(self, name: str) -> str:
        """One report as text.

        Raises:
            RegistryError: no such report.
            StoreError: the journal cannot be read.
        """
        kind = pick("recovery.reports", Report, name)
        more, self._offset = read_after(self.folder.journal, self._offset)
        self._events += more
        return kind.render(tuple(self._events), self.folder.evidence, inventories.fold)

    def write(self, formats: tuple[str, ...]) -> tuple[str, ...]:
        """Writes reports beside the journal; returns their paths.

        Raises:
            StoreError: a file cannot be written.
        """
        return tuple(self._written(name) for name in formats)

    def _written(self, name: str) -> str:
        kind = pick("recovery.reports", Report, name)
        path = self.folder.reports / f"report{kind.suffix}"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.render(name), encoding="utf-8")
        except OSError as error:
            raise StoreError(
                f"{path}: cannot be written: {error.strerror}", remedy="free space there"
            ) from error
        return str(path)


def render(folder: RunFolder, name: str) -> str:
    """One report of a run as text; raises as `Reporter.render`."""
    return Reporter(folder).render(name)
