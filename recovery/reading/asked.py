"""Which tool a command line asks, so that a check knows whether the answer is its to read.

People name the command loosely: a pipeline, a launcher's log, an HTTP request, a description.
Where no tool is named, the content has to say what it is.
"""

from __future__ import annotations

import re

_TOOLS = (
    ("bug-report", re.compile(r"\bnvidia-bug-report")),
    ("smi", re.compile(r"\b(?:nvidia|rocm|amd)-smi\b|\bnvcc\b")),
    ("dcgm", re.compile(r"\bdcgm(?:i|proftester)?\b")),
    ("nccl", re.compile(r"\b\w+_perf(?:_mpi)?\b|\bnvbandwidth\b")),
    (
        "klog",
        re.compile(
            r"\bdmesg\b|\bjournalctl\b(?![^|]* (?:-u|--unit))|/dev/kmsg"
            r"|\bkern(?:el)?\.log|/var/log/(?:syslog|messages)"
        ),
    ),
    (
        "ib",
        re.compile(
            r"\bibstat(?:us)?\b|\bibv_devinfo\b|\bibdev2netdev\b|\brdma (?:-\S+ )*(?:link|dev)\b"
            r"|/sys/class/infiniband|\bperfquery\b"
        ),
    ),
    ("ethtool", re.compile(r"\bethtool\b")),
    ("ipmi", re.compile(r"\bipmi-?tool\b|\bipmi-(?:sel|sensors|chassis|power)\b")),
    ("redfish", re.compile(r"/redfish/|\bredfish\b", re.IGNORECASE)),
)
_TRAINING = re.compile(
    r"\btorchrun\b|\bdeepspeed\b|\baccelerate launch\b|torch\.distributed\.(?:run|launch)\b"
    r"|\b(?:pre)?train\w*\.(?:py|log)\b|\bfine-?tune\w*\.py\b|\bpretrain_\w+"
    r"|\bLightning\b|\bHF Trainer\b"
)


def tool_asked(command: str) -> str:
    """The kind of tool that the command names first, ``train`` for a training, else ``""``."""
    named = [(m.start(), kind) for kind, pattern in _TOOLS if (m := pattern.search(command))]
    if named:
        return min(named)[1]
    return "train" if _TRAINING.search(command) else ""


def is_filtered(command: str) -> bool:
    """Claims that a filter stands behind the tool: what is absent proves nothing."""
    return bool(
        re.search(r"\b[ef]?grep\b|\brg\b|\bawk\b|\bsed -n\b|\bhead\b|\btail\b|--grep|-g\s", command)
    )
