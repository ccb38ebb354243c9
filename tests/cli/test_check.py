"""`recover check --local` as Slurm's health check and prolog would run it."""

import socket

import pytest

from recovery.errors import InputError, SchedulerError
from tests.app.schedulers import asked, on_path, put_tool
from tests.cli.places import recover

HERE = socket.gethostname().partition(".")[0]
WORDS = ("check", "gpu.count", "--local", "--profile", "h100-sxm8")


@pytest.fixture
def tools(tmp_path, monkeypatch):
    folder = tmp_path / "tools"
    put_tool(folder, "scontrol")
    slurm(folder, "idle", "none")
    monkeypatch.setenv("PATH", on_path(folder))
    monkeypatch.delenv("SLURM_SCRIPT_CONTEXT", raising=False)
    return folder


def slurm(folder, state, reason):
    put_tool(folder, "sinfo", says=f"{HERE}|{state}|gpu|{reason}\n")


def cards(folder, n_gpus):
    lines = [
        f"GPU {i}: NVIDIA H100 80GB HBM3 (UUID: GPU-{i:08x}-0000-0000-0000-000000000000)"
        for i in range(n_gpus)
    ]
    put_tool(folder, "nvidia-smi", says="\n".join(lines) + "\n")


def control(folder):
    return [line for line in asked(folder) if line.startswith("scontrol")]


def test_a_machine_that_is_well_passes_in_one_word(tools):
    cards(tools, 8)

    result = recover(*WORDS)

    assert (result.exit_code, result.output) == (0, "PASS\n")


def test_a_lost_gpu_fails_in_one_line_with_its_remedy(tools):
    cards(tools, 7)

    result = recover(*WORDS)

    assert result.exit_code == 1
    assert result.output.startswith("FAIL gpu.count: 7 of 8 GPUs: 1 missing; ")
    assert control(tools) == []


def test_a_tool_that_is_not_there_is_unknown_and_only_passes_when_told_so(tools):
    put_tool(tools, "nvidia-smi", status=127)

    assert recover(*WORDS).exit_code == 3
    assert recover(*WORDS, "--allow-unknown").exit_code == 0


def test_a_tool_that_hangs_costs_the_budget_and_no_more(tools):
    tool = tools / "nvidia-smi"
    tool.write_text("#!/bin/sh\nexec sleep 60\n")
    tool.chmod(0o755)

    result = recover(*WORDS, "--budget", "1s")

    assert result.exit_code == 3
    assert result.output.startswith("UNKNOWN gpu.count: ")


def test_a_failure_drains_with_a_mark_of_the_health_check(tools):
    cards(tools, 7)

    result = recover(*WORDS, "--drain")

    assert result.exit_code == 1
    (line,) = control(tools)
    assert line.startswith(
        f"scontrol update NodeName={HERE} State=DRAIN Reason=recover: check: gpu.count: 7 of 8"
    )


@pytest.mark.parametrize("reason", ["kernel update", "recover: mesh: slow", "recover: check: old"])
def test_a_node_that_is_out_keeps_its_reason(tools, reason):
    cards(tools, 7)
    slurm(tools, "drained", reason)

    recover(*WORDS, "--drain")

    assert control(tools) == []


def test_only_what_a_health_check_drained_does_a_health_check_give_back(tools):
    cards(tools, 8)
    slurm(tools, "drained", "recover: check: gpu.count: 7 of 8 GPUs")

    result = recover(*WORDS, "--drain")

    assert "resumed in Slurm" in result.output
    assert control(tools) == [f"scontrol update NodeName={HERE} State=RESUME"]


@pytest.mark.parametrize("reason", ["kernel update", "recover: mesh: slow"])
def test_what_others_or_a_deeper_test_drained_stays_out(tools, reason):
    cards(tools, 8)
    slurm(tools, "drained", reason)

    recover(*WORDS, "--drain")

    assert control(tools) == []


def test_what_could_not_be_told_changes_nothing(tools):
    put_tool(tools, "nvidia-smi", status=127)
    slurm(tools, "drained", "recover: check: x")

    recover(*WORDS, "--drain")

    assert control(tools) == []


@pytest.mark.parametrize("context", ["prolog_slurmd", "prolog_slurmctld", "epilog_slurmd"])
def test_nobody_calls_scontrol_in_a_prolog(tools, monkeypatch, context):
    cards(tools, 7)
    monkeypatch.setenv("SLURM_SCRIPT_CONTEXT", context)

    result = recover(*WORDS, "--drain")

    assert isinstance(result.exception, InputError)
    assert asked(tools) == ["nvidia-smi -L"]


def test_a_slurm_that_does_not_answer_is_said(tools):
    cards(tools, 7)
    put_tool(tools, "sinfo", status=1)

    assert isinstance(recover(*WORDS, "--drain").exception, SchedulerError)


def test_a_machine_that_the_inventory_does_not_know_is_refused(tmp_path, monkeypatch):
    (tmp_path / "c.yaml").write_text("all: {hosts: {n1: {}}}\n")
    monkeypatch.chdir(tmp_path)

    result = recover("check", "--local", "--cluster", "./c.yaml")

    assert isinstance(result.exception, InputError)
    assert "has no node" in result.exception.message


def test_it_asks_no_other_machine():
    assert recover("check", "gpu.count").exit_code == 2
