"""Reports of a run, from its journal and evidence alone."""

from __future__ import annotations

from recovery import inventory as inventories
from recovery.errors import StoreError
from recovery.model.ports import Report
from recovery.registry import pick
from recovery.store.journal import read_journal
from recovery.store.runs import RunFolder


def render(folder: RunFolder, name: str) -> str:
    """One report as text.

    Raises:
        RegistryError: no such report.
        StoreError: the journal cannot be read.
    """
    kind = pick("recovery.reports", Report, name)
    return kind.render(read_journal(folder.journal), folder.evidence, inventories.fold)


def write_reports(folder: RunFolder, formats: tuple[str, ...]) -> tuple[str, ...]:
    """Writes reports beside the journal; returns their paths.

    Raises:
        StoreError: a file cannot be written.
    """
    paths = []
    for name in formats:
        kind = pick("recovery.reports", Report, name)
        path = folder.reports / f"report{kind.suffix}"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(render(folder, name), encoding="utf-8")
        except OSError as error:
            raise StoreError(
                f"{path}: cannot be written: {error.strerror}", remedy="free space there"
            ) from error
        paths.append(str(path))
    return tuple(paths)
