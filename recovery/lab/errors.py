"""The lab's own error."""

from __future__ import annotations

from recovery.errors import InputError


class LabError(InputError):
    """Something the lab was asked for that it cannot do."""
