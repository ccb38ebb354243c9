"""Was nvidia-bug-report collected whole?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recovery.errors import ParseError
from recovery.model.check import Check, CheckEffect
from recovery.model.output import Printed
from recovery.model.verdict import Verdict, passed, single, unknown
from recovery.reading.asked import tool_asked

_START = re.compile(r"Start of NVIDIA bug report log file|nvidia-bug-report\.sh will now collect")
_END = re.compile(r"End of NVIDIA bug report log file|^\s*(?:\S+\s+)*complete\.?\s*$", re.MULTILINE)
_NOT_ROOT = re.compile(r"run nvidia-bug-report\.sh as root|must be root", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class BugReport:
    """Whether the report has its end; ``why`` it has not."""

    complete: bool
    why: str = ""


def parse(printed: Printed) -> BugReport:
    """What the script printed, or the report itself.

    Raises:
        ParseError: neither.
    """
    said = f"{printed.text}\n{printed.error_text}"
    if _NOT_ROOT.search(said):
        return BugReport(complete=False, why="it needs root; nothing was written")
    if not _START.search(said):
        raise ParseError(
            f"not nvidia-bug-report: {said.strip()[:80]!r}",
            remedy="`sudo nvidia-bug-report.sh` on the node",
        )
    if printed.exit_status not in (0, None):
        return BugReport(complete=False, why=f"it ended with status {printed.exit_status}")
    if not _END.search(said):
        return BugReport(complete=False, why="it has a beginning and no end")
    return BugReport(complete=True)


def expect(raw: Mapping[str, Any]) -> None:
    """A report needs no expectation."""
    return


def judge(report: BugReport, expected: None) -> Verdict:
    """Evidence that was not kept is missing, never done."""
    if report.complete:
        return single(passed("nvidia-bug-report was collected whole"))
    return single(
        unknown(
            f"nvidia-bug-report is missing: {report.why}",
            remedy="`sudo nvidia-bug-report.sh` (`--safe-mode` when it hangs) before the driver is "
            "unloaded",
            code="bugreport.missing",
        )
    )


def recognises(printed: Printed) -> bool:
    """Claims the script's output and the report."""
    asked = tool_asked(printed.command)
    if asked:
        return asked == "bug-report"
    head = f"{printed.text[:4096]}\n{printed.error_text[:4096]}"
    return bool(_START.search(head) or re.search(r"nvidia-bug-report\.sh as root", head))


BUG_REPORT = Check(
    name="bugreport",
    question="Was nvidia-bug-report collected whole?",
    command="nvidia-bug-report.sh --output-file /var/tmp/nvidia-bug-report.log",
    parse=parse,
    expect=expect,
    judge=judge,
    recognises=recognises,
    effect=CheckEffect.WRITES,
    needs_root=True,
    needs="nvidia-bug-report.sh (NVIDIA driver)",
    timeout_s=300.0,
)
