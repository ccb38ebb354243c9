"""`recover explain`, `recover checks` and `recover triage`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from recovery.cli.checks import COMMAND as CHECKS
from recovery.cli.explain import COMMAND as EXPLAIN
from recovery.cli.triage import COMMAND as TRIAGE
from recovery.errors import InputError

CASES = Path(__file__).parents[1] / "cases"


def test_an_xid_is_explained_with_meaning_remedy_ladder_and_source():
    told = CliRunner().invoke(EXPLAIN, ["xid", "79"]).output

    assert "vanished from PCIe" in told
    assert "power cycle -> isolate" in told
    assert "source" in told


@pytest.mark.parametrize(
    "code",
    ["gpu.xid.48", "sxid 20034", "ib.state.down", "train.first-error.cuda-oom", "unreadable"],
)
def test_a_code_of_a_finding_is_explained(code: str):
    result = CliRunner().invoke(EXPLAIN, code.split())

    assert result.exit_code == 0
    assert len(result.output) > 40


def test_what_is_not_known_is_an_error_with_a_remedy():
    with pytest.raises(InputError, match="nothing is known"):
        CliRunner().invoke(EXPLAIN, ["xid", "9999"], catch_exceptions=False)


def test_every_check_is_listed_with_its_exact_command():
    rows = json.loads(CliRunner().invoke(CHECKS, ["--format", "json"]).output)
    commands = CliRunner().invoke(CHECKS, ["--commands"]).output

    assert {"gpu.xid", "ib.state", "bmc.sel"} <= {row["check"] for row in rows}
    assert all(row["question"].endswith("?") and row["command"] in commands for row in rows)


def test_the_table_of_checks_is_markdown():
    lines = CliRunner().invoke(CHECKS, ["--markdown"]).output.splitlines()

    assert lines[1].startswith("|---")
    assert all(line.startswith("| ") and line.endswith(" |") for line in lines[2:])


def test_triage_names_the_root_over_the_logs_of_two_nodes(tmp_path: Path):
    line = "[rank{0}]:[E1129 {1} x.cpp:1] CUDA error: {2}\n"
    first, second = tmp_path / "node-01.log", tmp_path / "node-02.log"
    first.write_text(line.format(1, "10:00:05.0", "unspecified launch failure"))
    second.write_text(line.format(9, "10:00:01.0", "uncorrectable ECC error encountered"))
    kernel = tmp_path / "kern"
    kernel.write_text("Nov 29 10:00:01 node-02 kernel: NVRM: Xid (PCI:0000:1b:00): 48, pid=1, x\n")

    result = CliRunner().invoke(TRIAGE, [str(first), str(second), "--kernel", f"node-02={kernel}"])

    assert result.exit_code == 1
    assert "rank 9, node-02: uncorrectable memory error" in result.output
    assert "later: cuda error of 1" in result.output
    assert "kernel of node-02: NVRM: Xid" in result.output


def test_triage_sets_clocks_right(tmp_path: Path):
    line = "[rank{0}]:[E1129 {1} x.cpp:1] CUDA error: unspecified launch failure\n"
    logs = []
    for node, rank, at in (("n1", 1, "10:00:00.0"), ("n2", 9, "10:00:05.0")):
        path = tmp_path / f"{node}.txt"
        path.write_text(line.format(rank, at))
        logs.append(f"{node}={path}")

    result = CliRunner().invoke(TRIAGE, [*logs, "--offset", "n2=30", "--format", "json"])

    assert json.loads(result.output)["facts"]["first_error"]["rank"] == 9


def test_triage_of_a_stop_by_the_scheduler_is_no_crash():
    log = CASES / "train" / "train-slurm-time-limit-not-a-crash.log"

    assert CliRunner().invoke(TRIAGE, [str(log)]).exit_code == 0


def test_triage_of_something_else_says_so(tmp_path: Path):
    (tmp_path / "x.log").write_text("hello\n")

    with pytest.raises(InputError, match="no iteration and no error"):
        CliRunner().invoke(TRIAGE, [str(tmp_path / "x.log")], catch_exceptions=False)


def test_what_loads_gpus_or_writes_is_listed_as_such():
    rows = json.loads(CliRunner().invoke(CHECKS, ["--format", "json"]).output)
    effects = {row["check"]: row["effect"] for row in rows if row["effect"] != "read"}

    assert effects == {
        "bugreport": "writes",
        "dcgm.diag-3": "active",
        "gpu.bandwidth": "active",
        "gpu.burn": "active",
        "nccl.result": "active",
    }
    assert "loads the GPUs" in CliRunner().invoke(CHECKS, []).output
