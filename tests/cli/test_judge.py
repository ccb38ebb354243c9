"""`recover judge`: captured text, by the same rules as a live node."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from recovery.cli.judge import COMMAND
from recovery.errors import InputError, RegistryError

CASES = Path(__file__).parents[1] / "cases"
POLLING = str(CASES / "ib" / "ib-ibstat-polling-rate10.txt")
XID_79 = str(CASES / "klog" / "klog-xid79-after-aer.log")


def judge(*words: str, given: str | None = None) -> Result:
    return CliRunner().invoke(COMMAND, list(words), input=given)


def test_a_failure_exits_1_and_names_what_to_do():
    result = judge(XID_79, "--command", "dmesg", "--exit-status", "0")

    assert result.exit_code == 1
    assert result.output.startswith("FAIL    ")
    assert "do: " in result.output


def test_json_has_level_findings_and_facts(tmp_path: Path):
    context = tmp_path / "context.yaml"
    context.write_text("expected_compute_hcas: 8\nstorage_hcas: [mlx5_2, mlx5_3]\n")

    result = judge(POLLING, "--expect", str(context), "--format", "json")

    told = json.loads(result.output)
    assert result.exit_code == 1
    assert told["level"] == "fail"
    assert told["facts"]["ib_active"] == 7
    assert set(told["findings"][0]) >= {"finding", "remedy", "component"}
    assert told["findings"][0]["component"] == "mlx5_4"


def test_a_check_may_be_named():
    told = json.loads(judge("kernel.errors", XID_79, "--format", "json").output)

    assert told["checks"] == ["kernel.errors"]


def test_standard_input_is_read():
    text = "Chassis Power is on\n"

    assert judge("-", given=text).exit_code == 0
    assert judge("-", given="Chassis Power is off\n").exit_code == 1


@pytest.mark.parametrize("text", ["", "hello world\n"])
def test_what_nobody_recognises_is_unknown_and_says_what_is_needed(text: str):
    result = judge("-", given=text)

    assert result.exit_code == 3
    assert "UNKNOWN" in result.output
    assert "do: " in result.output


def test_several_files_are_one_judgement_with_the_facts_of_each():
    result = judge(POLLING, XID_79, "--format", "json")

    told = json.loads(result.output)
    assert told["level"] == "fail"
    assert set(told["facts"]["files"]) == {POLLING, XID_79}


def test_a_profile_gives_expectations():
    told = json.loads(judge(POLLING, "--profile", "h100-sxm8", "--format", "json").output)

    assert told["level"] == "fail"


def test_error_output_may_be_a_file_of_its_own(tmp_path: Path):
    out, err = tmp_path / "out", tmp_path / "err"
    out.write_text("")
    err.write_text("Error: Unable to establish IPMI v2 / RMCP+ session\n")

    result = judge(str(out), "--stderr", str(err), "--command", "ipmitool chassis power status")

    assert result.exit_code == 3


def test_a_misspelt_check_and_a_missing_file_are_our_errors():
    with pytest.raises(RegistryError, match="did you mean"):
        CliRunner().invoke(COMMAND, ["gpu.xidd", XID_79], catch_exceptions=False)
    with pytest.raises(InputError, match="no file"):
        CliRunner().invoke(COMMAND, ["nowhere.txt"], catch_exceptions=False)


def test_expectations_must_be_a_mapping(tmp_path: Path):
    context = tmp_path / "context.yaml"
    context.write_text("- 8\n")

    with pytest.raises(InputError, match="must be a mapping"):
        CliRunner().invoke(COMMAND, [XID_79, "--expect", str(context)], catch_exceptions=False)
