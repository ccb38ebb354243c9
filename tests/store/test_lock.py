"""One run per cluster."""

import os
import socket
import subprocess
import sys
import textwrap

import pytest

from recovery.errors import LockedError
from recovery.store.lock import ClusterLock, Owner, boot_id


def owner(pid=None, run="run-1"):
    return Owner("ada", socket.gethostname(), pid or os.getpid(), boot_id(), run, 1000.0, "mesh-1")


def test_a_second_run_is_refused_with_the_owners_words(tmp_path):
    first = ClusterLock(tmp_path, "c")
    first.acquire(owner(), now=1000.0)
    second = ClusterLock(tmp_path, "c")

    with pytest.raises(LockedError) as caught:
        second.acquire(owner(run="run-2"), now=1042.0)

    words = caught.value.message
    assert f"ada@{socket.gethostname()} (pid {os.getpid()})" in words
    assert "since 42 s" in words
    assert "run-1" in words
    assert "mesh-1" in words
    assert "--take-over" in caught.value.remedy
    assert caught.value.exit_code == 4


def test_another_cluster_is_free(tmp_path):
    first, second = ClusterLock(tmp_path, "c"), ClusterLock(tmp_path, "d")

    first.acquire(owner(), now=0)
    second.acquire(owner(), now=0)

    assert second.holder() == owner()


def test_a_released_lock_is_free_and_has_no_owner(tmp_path):
    lock = ClusterLock(tmp_path, "c")
    lock.acquire(owner(), now=0)

    lock.release()

    assert lock.holder() is None
    ClusterLock(tmp_path, "c").acquire(owner(), now=0)


def holding_process(folder, *, heeds_term=True):
    code = f"""
        import os, signal, sys
        from pathlib import Path
        from recovery.store.lock import ClusterLock, Owner, boot_id
        import socket
        lock = ClusterLock(Path({str(folder)!r}), "c")
        me = Owner("eve", socket.gethostname(), os.getpid(), boot_id(), "run-0", 1.0)
        lock.acquire(me, now=1.0)
        if {heeds_term}:
            signal.signal(signal.SIGTERM, lambda *a: sys.exit(0))
        print("held", flush=True)
        sys.stdin.read()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    return process


def test_the_lock_of_a_killed_process_is_free_at_once(tmp_path):
    process = holding_process(tmp_path)
    process.kill()
    process.communicate()

    lock = ClusterLock(tmp_path, "c")
    assert lock.holder().is_gone
    lock.acquire(owner(), now=0)


def test_taking_over_ends_the_holder_and_takes_the_lock(tmp_path):
    process = holding_process(tmp_path)

    lock = ClusterLock(tmp_path, "c")
    lock.acquire(owner(), now=0, take_over_s=30)

    process.communicate()
    assert process.returncode == 0
    assert lock.holder() == owner()


def test_the_holder_that_lives_is_not_gone(tmp_path):
    assert not owner().is_gone


def test_a_pid_of_another_boot_is_gone():
    assert Owner("a", socket.gethostname(), os.getpid(), "other", "r", 0.0).is_gone


def test_nothing_is_said_of_processes_on_other_hosts():
    assert not Owner("a", "elsewhere", 1, "other", "r", 0.0).is_gone
