"""`recover triage --run`: the first error out of what a run froze, on all nodes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from recovery.cli.triage import COMMAND as TRIAGE
from recovery.errors import InputError
from tests.cli.places import recover

SAID = "[rank{0}]:[E1129 {1} x.cpp:1] CUDA error: {2}\n"
KERNEL = "Nov 29 10:00:01 n2 kernel: NVRM: Xid (PCI:0000:1b:00): 48, pid=1, name=python\n"
FREEZE = 'runbook: keep\nnodes: "@all"\nsteps:\n  - freeze: [{what}]\n    gate: any\n'


def run_of(folder: Path, *, what: str = "training-state, kernel-log", shared: bool = False) -> str:
    """A run of `freeze` on two nodes that are this machine; the state folder."""
    logs = {"n1": SAID.format(1, "10:00:05.0", "unspecified launch failure"),
            "n2": SAID.format(9, "10:00:01.0", "uncorrectable ECC error encountered")}  # fmt: skip
    hosts = {}
    for node, text in logs.items():
        (folder / node).mkdir()
        (folder / node / "train.log").write_text("".join(logs.values()) if shared else text)
        hosts[node] = {"transport": "local", "train_log": str(folder / node / "train.log"),
                       "log_dir": str(folder / node)}  # fmt: skip
    (folder / "n2" / "kern.log").write_text(KERNEL)
    (folder / "c.yaml").write_text(json.dumps({"all": {"hosts": hosts}}))
    (folder / "keep.yaml").write_text(FREEZE.format(what=what))
    words = ("run", str(folder / "c.yaml"), "--runbook", str(folder / "keep.yaml"))
    recover(*words, "--state", str(folder / "state"))
    return str(folder / "state")


def triaged(state: str, *words: str):
    return CliRunner().invoke(
        TRIAGE, ["--run", "last", "--state", state, *words], catch_exceptions=False
    )


def test_the_first_error_of_all_nodes_is_named_with_the_kernel_event_beside_it(tmp_path):
    done = triaged(run_of(tmp_path))

    assert done.exit_code == 1
    assert "rank 9, n2: uncorrectable memory error" in done.output
    assert "later: cuda error of 1" in done.output
    assert "kernel of n2: NVRM: Xid (PCI:0000:1b:00): 48" in done.output


def test_the_clocks_were_measured_in_the_run(tmp_path):
    ahead = json.loads(triaged(run_of(tmp_path), "--format", "json").output)["clock_ahead_s"]

    assert set(ahead) == {"n1", "n2"}
    assert all(abs(seconds) < 30 for seconds in ahead.values())


def test_a_log_on_a_shared_file_system_is_read_once(tmp_path):
    done = triaged(run_of(tmp_path, shared=True), "--format", "json")

    assert len(json.loads(done.output)["facts"]["secondary"]) == 1


def test_a_run_that_kept_no_training_log_says_what_to_do(tmp_path):
    state = run_of(tmp_path, what="kernel-log")

    with pytest.raises(InputError, match="kept no training log") as found:
        triaged(state)
    assert "train_log" in found.value.remedy


def test_logs_or_a_run_but_not_both_and_not_neither():
    assert CliRunner().invoke(TRIAGE, []).exit_code == 2
    assert CliRunner().invoke(TRIAGE, ["x.log", "--run", "last"]).exit_code == 2
