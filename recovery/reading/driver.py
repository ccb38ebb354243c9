"""The versions of the NVIDIA driver and CUDA that a node's parts name.

Source: /proc/driver/nvidia/version of the proprietary and the open kernel module; the title of
``nvidia-smi``, ``nvidia-smi --version`` and ``-q``; ``nvcc -V``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from recovery.errors import ParseError
from recovery.model.output import Printed
from recovery.reading.plain import plain_lines
from recovery.reading.smi import read_smi
from recovery.reading.smi_errors import Trouble, find_troubles, nvml_version
from recovery.reading.smi_words import Form

_VERSION = r"(\d{2,4}\.\d{1,4}(?:\.\d{1,4})?)"
_KERNEL = re.compile(rf"NVRM version: .*?(?:Kernel Module|Module)(?: for \S+)?\s+{_VERSION}\b")
_DRIVER = re.compile(
    rf"^(?:DRIVER version|KMD version|Driver Version|KMD Version)\s*: {_VERSION}", re.IGNORECASE
)
_CUDA = re.compile(r"^CUDA (?:UMD )?Version\s*: (\d{1,2}\.\d{1,2})", re.IGNORECASE)
_NVML = re.compile(rf"^NVML version\s*: {_VERSION}", re.IGNORECASE)
_TITLE = re.compile(
    rf"(?:Driver|KMD) Version: ?{_VERSION}(?:\s+CUDA(?: UMD)? Version: ?(\d{{1,2}}\.\d{{1,2}}))?"
)
_NVCC = re.compile(r"Cuda compilation tools, release (\d{1,2}\.\d{1,2}), V([\d.]+)")
_NO_NVCC = re.compile(r"nvcc: (?:command )?not found|no nvcc", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """What each part says of itself; None where the text does not tell.

    ``kernel`` is the loaded module, ``driver`` what nvidia-smi says, ``nvml`` the user-space
    library, ``cuda`` the newest CUDA that the driver runs, ``nvcc`` the toolkit's compiler.
    """

    kernel: str | None = None
    driver: str | None = None
    nvml: str | None = None
    cuda: str | None = None
    nvcc: str | None = None
    troubles: tuple[Trouble, ...] = ()
    no_nvcc: bool = False


def read_versions(printed: Printed) -> Versions:
    """The versions that the text names, in any of the forms above, also several in one text.

    Raises:
        ParseError: not one version and no error line of nvidia-smi.
    """
    lines = plain_lines(printed.text)
    both = (*lines, *plain_lines(printed.error_text))
    first = partial(_first, both)
    title = next((m for line in lines if (m := _TITLE.search(line))), None)
    found = Versions(
        kernel=first(_KERNEL),
        driver=first(_DRIVER) or (title[1] if title else None) or _from_csv(printed),
        nvml=first(_NVML) or nvml_version(both),
        cuda=first(_CUDA) or (title[2] if title else None) or _cuda_of_xml(printed),
        nvcc=first(_NVCC),
        troubles=find_troubles(both),
        no_nvcc=any(_NO_NVCC.search(line) for line in both),
    )
    if not found.troubles and not any((found.kernel, found.driver, found.nvml, found.nvcc)):
        raise ParseError(
            "no version of the NVIDIA driver or of CUDA in the text",
            remedy="cat /proc/driver/nvidia/version and nvidia-smi by hand on the node",
        )
    return found


def _first(lines: tuple[str, ...], pattern: re.Pattern[str]) -> str | None:
    return next((m[1] for line in lines if (m := pattern.search(line.strip()))), None)


def _from_csv(printed: Printed) -> str | None:
    try:
        seen = read_smi(printed)
    except ParseError:
        return None
    return seen.driver if seen.form in (Form.CSV, Form.XML) else None


def _cuda_of_xml(printed: Printed) -> str | None:
    try:
        seen = read_smi(printed)
    except ParseError:
        return None
    return seen.cuda if seen.form is Form.XML else None
