"""Does the node run the kernel, and the kernel command line, that it should and its peers do?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.errors import ParseError
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Verdict, failed, verdict
from recovery.reading.content import told_by
from recovery.reading.expecting import wanted, word
from recovery.reading.sections import asking, first_line, read_sections

_BOOT = (
    "boot the expected kernel: grubby --info=ALL or the boot menu of your image;"
    " a node that missed the last image update boots the old one after a power loss"
)
# They name the machine or its disk, and so differ rightly.
_OWN = ("BOOT_IMAGE", "root", "resume", "initrd", "ip", "BOOTIF", "hostname", "nodeid", "rd")


@dataclass(frozen=True, slots=True)
class Kernel:
    """The running kernel and the words it was started with."""

    release: str
    words: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Expected:
    """The release, and words that the command line must have; None and empty: nobody said."""

    release: str | None
    words: tuple[str, ...]


def _parse(printed: Printed) -> Kernel:
    sections = read_sections(printed, bare="kernel")
    release = first_line(sections, "kernel")
    if release is None or not release[:1].isdigit() or " " in release:
        raise ParseError(f"no kernel release: {release!r}", remedy="uname -r on the node")
    line = first_line(sections, "command line")
    return Kernel(release, tuple(line.split()) if line else None)


def _expect(raw: Mapping[str, Any]) -> Expected:
    return Expected(word(raw, "kernel_expected"), wanted(raw, "kernel_words"))


def _judge(seen: Kernel, expected: Expected) -> Verdict:
    found = []
    if expected.release and not seen.release.startswith(expected.release):
        words = f"kernel {seen.release}, {expected.release} expected"
        found.append(failed(words, remedy=_BOOT, code="kernel.version.other"))
    missing = [w for w in expected.words if seen.words is not None and w not in seen.words]
    if missing:
        words = f"the kernel's command line lacks {' '.join(missing)}"
        remedy = "add it to the boot loader's configuration, rebuild it, reboot"
        found.append(failed(words, remedy=remedy, code="kernel.version.words"))
    compared = "" if expected.release else "; no expected version to compare with"
    return verdict(found, otherwise=f"kernel {seen.release}{compared}")


def _alike(seen: Kernel) -> Mapping[str, str | None]:
    own = [w for w in seen.words or () if w.partition("=")[0].split(".")[0] not in _OWN]
    line = None if seen.words is None else " ".join(sorted(own))
    return {"kernel": seen.release, "kernel command line": line}


def _facts(seen: Kernel) -> Mapping[str, Any]:
    line = None if seen.words is None else " ".join(seen.words)
    return {"kernel": seen.release, "kernel_command_line": line}


KERNEL_VERSION = Check(
    name="kernel.version",
    question="Does the node run the expected kernel, with the command line of its peers?",
    command=asking({"kernel": "uname -r", "command line": "cat /proc/cmdline"}),
    parse=_parse,
    expect=_expect,
    judge=_judge,
    facts=_facts,
    alike=_alike,
    recognises=told_by(r"^uname|^echo '## kernel'", begins=r"## kernel"),
    needs="uname (coreutils)",
    expects=("kernel_expected", "kernel_words"),
)
