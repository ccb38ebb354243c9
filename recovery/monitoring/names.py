"""What dcgm-exporter calls what it measures: up to 4.8, and from 4.9 on.

4.9 renamed the fields that DCGM 4.7 deprecates. Temperatures and power kept their units; memory
went from MiB to bytes, so it is only ever compared with itself.

Source: release notes of dcgm-exporter 4.9.0; field identifiers of DCGM 4.7 (docs.nvidia.com).
"""

from __future__ import annotations

TEMP = ("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP_CELSIUS")
MEM_TEMP = ("DCGM_FI_DEV_MEMORY_TEMP", "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS")
POWER = ("DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_BOARD_POWER_WATTS")
XID = ("DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR")
USED = ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_USED_BYTES")
FREE = ("DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_FREE_BYTES")
REMAP_FAILED = ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "DCGM_FI_DEV_ROW_REMAP_FAILED")


def either(names: tuple[str, str], cards: str = "") -> str:
    """The one or the other, as one expression; ``cards`` selects some of them."""
    old, new = names
    return f"({old}{cards} or {new}{cards})"


def share_in_use(cards: str = "") -> str:
    """The share of a card's memory that is in use; each version's units by themselves."""
    old, new = (f"{used}{cards} / ({used}{cards} + {free}{cards})"
                for used, free in zip(USED, FREE, strict=True))  # fmt: skip
    return f"({old} or {new})"
