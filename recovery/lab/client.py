"""What the command line asks of the lab: start it, talk to it, stop it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from typing import Any

from recovery.lab import processes
from recovery.lab.errors import LabError
from recovery.lab.farm import Plan
from recovery.lab.layout import Layout


def ask(layout: Layout, verb: str, **words: object) -> Any:
    """Sends one request to the running lab and returns its answer.

    Raises:
        LabError: the lab is not up, or refuses.
    """
    request = json.dumps({"verb": verb, **words}).encode() + b"\n"
    with socket.socket(socket.AF_UNIX) as link:
        try:
            link.connect(str(layout.control))
        except OSError as error:
            raise LabError("the lab is not up", remedy="recover lab up") from error
        link.sendall(request)
        with link.makefile("rb") as lines:
            reply = json.loads(lines.readline() or b'{"error": "no answer", "remedy": ""}')
    if "error" in reply:
        raise LabError(reply["error"], remedy=reply["remedy"])
    return reply["answer"]


def is_up(layout: Layout) -> bool:
    """Whether the lab answers."""
    try:
        ask(layout, "status")
    except LabError:
        return False
    return True


def start(layout: Layout, plan: Plan, *, fresh: bool) -> bool:
    """Starts the background process and returns when all nodes answer; False: it was up already.

    ``fresh`` ends a running lab and forgets everything its nodes had.

    Raises:
        LabError: it could not start.
    """
    if fresh:
        stop(layout)
        _forget(layout)
    elif is_up(layout):
        return False
    if plan.isolate and not can_isolate():
        raise LabError(
            "this machine gives no user and mount namespaces without root",
            remedy="leave --isolate out: the inventory's paths are relative to each node's home",
        )
    layout.root.mkdir(parents=True, exist_ok=True, mode=0o700)
    ours, theirs = os.pipe()
    argv = [sys.executable, "-m", "recovery.lab", "--dir", str(layout.root)]
    argv += ["--nodes", str(plan.n_nodes), "--port", str(plan.port), "--ready", str(theirs)]
    argv += ["--python", plan.python, *(["--isolate"] if plan.isolate else [])]
    with layout.log.open("ab") as log:
        subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            pass_fds=[theirs], start_new_session=True, cwd="/", check=False,
        )  # fmt: skip
    os.close(theirs)
    with os.fdopen(ours) as told:
        words = told.read().splitlines()
    if words[:1] == ["ready"]:
        return True
    message, remedy = (*words, f"read {layout.log}", "")[:2] if words else ("", "")
    raise LabError(message or "the lab could not start", remedy=remedy or f"read {layout.log}")


def can_isolate() -> bool:
    """Whether an unprivileged user may have a mount namespace of its own here."""
    try:
        probe = subprocess.run(["unshare", "-Urm", "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return probe.returncode == 0


def stop(layout: Layout) -> bool:
    """Ends the lab and every process of its nodes; False when it was not up."""
    was_up = is_up(layout)
    if was_up:
        pid = int(layout.pid_file.read_text())
        ask(layout, "down")
        _wait_for_end(pid)
    names = frozenset(p.node for p in processes.of_lab(layout.root))
    processes.kill(layout.root, names)
    return was_up


def _wait_for_end(pid: int) -> None:
    """The process is not our child: wait for its descriptor where there is one, else poll."""
    import select
    import time

    if hasattr(os, "pidfd_open"):
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        select.select([descriptor], [], [], 20)
        os.close(descriptor)
        return
    for _ in range(400):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)


def _forget(layout: Layout) -> None:
    """Deletes the lab's folder, if it is one."""
    marks = (layout.key, layout.log)
    if not layout.root.exists() or not any(layout.root.iterdir()):
        return
    if not any(mark.exists() for mark in marks):
        raise LabError(
            f"{layout.root} is not a lab's folder; it is not deleted",
            remedy="choose an empty folder with --dir",
        )
    shutil.rmtree(layout.root)
