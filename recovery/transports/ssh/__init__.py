"""SSH: fabric and paramiko, one connection a node for all steps, every command on a leash."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recovery.model.ports import Transport, TransportKind


def _open(settings: Mapping[str, Any]) -> Transport:
    # fabric and paramiko load some 400 modules: not before a node is to be reached.
    from recovery.transports.ssh.transport import SshTransport

    return SshTransport(settings)


SSH = TransportKind(
    name="ssh",
    about="SSH by paramiko; one connection a node, every command on a leash",
    open=_open,
)
