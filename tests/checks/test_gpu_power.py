"""Power limits and draws."""

from __future__ import annotations

from recovery.checks.gpu_power import GPU_POWER
from recovery.model.output import Printed
from recovery.model.verdict import Level
from recovery.reading.smi import read_smi
from tests.checks.smi_texts import ask, csv, query

HEADER = "index, power.draw [W], power.limit [W]"


def test_draws_below_the_expected_limit_pass() -> None:
    text = csv(HEADER, "0, 76.10 W, 700.00 W", "1, 80.25 W, 700.00 W")

    judged = ask(GPU_POWER, text, {"power_limit_w": 700})

    assert judged.verdict.level is Level.PASS
    assert judged.facts["power_w"] == {"GPU0": 76.1, "GPU1": 80.25}


def test_a_decimal_comma_is_read() -> None:
    text = csv(HEADER, "0, 76,10 W, 700,00 W", "1, 80,25 W, 700,00 W")

    assert ask(GPU_POWER, text).facts["power_w"] == {"GPU0": 76.1, "GPU1": 80.25}


def test_a_limit_below_the_profile_fails() -> None:
    text = csv(HEADER, "0, 76.10 W, 500.00 W", "1, 80.25 W, 700.00 W")

    judged = ask(GPU_POWER, text, {"power_limit_w": 700})

    assert judged.verdict.level is Level.FAIL
    assert judged.verdict.worst.component == "GPU0"


def test_a_limit_unlike_the_others_warns_without_a_profile() -> None:
    rows = [f"{i}, 76.10 W, {500 if i == 2 else 700}.00 W" for i in range(4)]

    judged = ask(GPU_POWER, csv(HEADER, *rows))

    assert judged.verdict.level is Level.WARN
    assert judged.verdict.worst.code == "gpu.power.unlike"


def test_no_draw_anywhere_is_unknown() -> None:
    assert ask(GPU_POWER, csv(HEADER, "0, [N/A], 700.00 W")).verdict.level is Level.UNKNOWN


def test_module_power_of_grace_is_not_taken_for_the_gpus() -> None:
    gpu = {
        "GPU Power Readings": {"Average Power Draw": "71.27 W"},
        "Module Power Readings": {"Average Power Draw": "900.00 W"},
    }

    assert ask(GPU_POWER, query([gpu])).facts["power_w"] == {"GPU0": 71.27}


def test_a_node_with_another_limit_is_named() -> None:
    assert GPU_POWER.compare is not None
    seen = {
        f"a{i}": read_smi(Printed(csv(HEADER, f"0, 70 W, {500 if i == 3 else 700} W")))
        for i in range(4)
    }

    assert list(GPU_POWER.compare(seen)) == ["a3"]
