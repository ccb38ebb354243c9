"""Why the testbed cannot be had here, and the small ways to run tools."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

Found = TypeVar("Found")
_CLONE_NEWNET = 0x40000000

# tool -> the Debian package that has it
TOOLS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "nft": "nftables",
    "/usr/sbin/sshd": "openssh-server",
    "ssh-keygen": "openssh-client",
    "mkfs.ext4": "e2fsprogs",
    "unshare": "util-linux",
    "setpriv": "util-linux",
    "nsenter": "util-linux",
    "/usr/bin/python3": "python3",
}


def why_no_testbed() -> str:
    """Why hosts in namespaces cannot be made here; empty when they can."""
    if sys.platform != "linux":
        return "needs Linux: network namespaces"
    if os.geteuid() != 0:
        return "needs root: network namespaces"
    missing = sorted({package for tool, package in TOOLS.items() if not shutil.which(tool)})
    if missing:
        return f"needs apt-get install {' '.join(missing)}"
    tried = ["unshare", "--net", "--mount", "--pid", "--time", "--fork", "true"]
    if subprocess.run(tried, capture_output=True, check=False).returncode:
        return "needs CAP_SYS_ADMIN: no namespace can be made here"
    return ""


def sh(*words: object, check: bool = True, said: str | None = None) -> str:
    """Runs a tool to its end and returns what it printed; ``said`` is its standard input."""
    argv = [str(w) for w in words]
    done = subprocess.run(
        argv, input=said or "", capture_output=True, text=True, timeout=60, check=False
    )
    assert not check or done.returncode == 0, f"{argv}: {done.stderr}{done.stdout}"
    return done.stdout


def ip(lines: Iterable[str], *, netns: str | None = None) -> None:
    """Runs lines of `ip` in one process, in a network namespace."""
    inside = ["-n", netns] if netns else []
    sh("ip", *inside, "-batch", "-", said="\n".join(lines) + "\n")


def within(netns: str, work: Callable[[], Found]) -> Found:
    """Does ``work`` where its sockets belong to a network namespace."""
    found: list[Found] = []

    def inside() -> None:
        with Path(f"/run/netns/{netns}").open() as place:
            if ctypes.CDLL(None, use_errno=True).setns(place.fileno(), _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), f"setns {netns}")
        found.append(work())

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    return found[0]
