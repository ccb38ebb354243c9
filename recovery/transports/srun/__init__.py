"""Slurm's own launch tree: one `srun` carries a command to all nodes that are asked it at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recovery.model.ports import Transport, TransportKind


def _open(settings: Mapping[str, Any]) -> Transport:
    from recovery.transports.srun.transport import SrunTransport

    return SrunTransport(settings)


SRUN = TransportKind(
    name="srun", about="Slurm's own launch tree: one srun for many nodes", open=_open
)
