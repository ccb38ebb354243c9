"""Heat: by the card's own limits, by the profile, by the peers; and what it does to clocks."""

from __future__ import annotations

from typing import Any

import pytest

from recovery.checks.gpu_thermal import GPU_THERMAL
from recovery.checks.gpu_throttle import GPU_THROTTLE
from recovery.model.output import Printed
from recovery.model.verdict import Level
from recovery.reading.smi import read_smi
from tests.checks.smi_texts import ask, csv, query


def temp(now: str, **more: str) -> dict[str, Any]:
    return {"Temperature": {"GPU Current Temp": now, **more}}


def modern(now: str, margin: str) -> dict[str, Any]:
    limits = {
        "GPU T.Limit Temp": margin,
        "GPU Slowdown T.Limit Temp": "-2 C",
        "GPU Max Operating T.Limit Temp": "0 C",
    }
    return temp(now, **limits)


@pytest.mark.parametrize(
    ("margin", "level"),
    [("55 C", Level.PASS), ("1 C", Level.PASS), ("0 C", Level.WARN), ("-2 C", Level.FAIL)],
)
def test_the_margin_that_the_card_reports_decides(margin: str, level: Level) -> None:
    assert ask(GPU_THERMAL, query([modern("31 C", margin)])).verdict.level is level


def test_a_card_without_a_margin_is_judged_by_its_absolute_limits() -> None:
    limits = {"GPU Slowdown Temp": "89 C", "GPU Max Operating Temp": "85 C"}

    assert ask(GPU_THERMAL, query([temp("84 C", **limits)])).verdict.level is Level.PASS
    assert ask(GPU_THERMAL, query([temp("86 C", **limits)])).verdict.level is Level.WARN
    assert ask(GPU_THERMAL, query([temp("89 C", **limits)])).verdict.level is Level.FAIL


def test_the_profile_sets_limits_too() -> None:
    context = {"temp_warn_c": 70, "temp_max_c": 80}

    assert ask(GPU_THERMAL, query([temp("69 C")]), context).verdict.level is Level.PASS
    assert ask(GPU_THERMAL, query([temp("70 C")]), context).verdict.level is Level.WARN
    assert ask(GPU_THERMAL, query([temp("80 C")]), context).verdict.level is Level.FAIL


def test_hot_memory_fails_by_the_profile() -> None:
    text = query([temp("40 C", **{"Memory Current Temp": "96 C"})])

    judged = ask(GPU_THERMAL, text, {"mem_temp_max_c": 95})

    assert judged.verdict.level is Level.FAIL
    assert "memory" in judged.verdict.worst.finding


def test_a_gpu_far_above_its_peers_warns_without_any_limit() -> None:
    text = query([temp(f"{n} C") for n in (31, 32, 30, 55)])

    judged = ask(GPU_THERMAL, text)

    assert judged.verdict.level is Level.WARN
    assert judged.verdict.worst.component == "GPU3"


def test_no_temperature_at_all_is_unknown() -> None:
    assert ask(GPU_THERMAL, query([temp("N/A")] * 2)).verdict.level is Level.UNKNOWN


def test_a_gpu_that_tells_none_is_named_in_the_pass() -> None:
    judged = ask(GPU_THERMAL, query([temp("31 C"), temp("N/A")]))

    assert judged.verdict.level is Level.PASS
    assert "GPU1 not told" in judged.verdict.worst.finding


def test_a_node_far_hotter_than_the_others_is_named() -> None:
    assert GPU_THERMAL.compare is not None
    nodes = {
        f"a0{i}": read_smi(Printed(query([temp(f"{t} C")])))
        for i, t in enumerate((30, 31, 32, 33, 60))
    }

    assert list(GPU_THERMAL.compare(nodes)) == ["a04"]


REASONS = "index, clocks_event_reasons.active"


@pytest.mark.parametrize(
    ("mask", "level"),
    [
        ("0x0000000000000000", Level.PASS),
        ("0x0000000000000001", Level.PASS),  # idle
        ("0x0000000000000004", Level.PASS),  # power cap: normal under load
        ("0x0000000000000008", Level.FAIL),
        ("0x0000000000000009", Level.WARN),  # hardware slowdown while idle: a change of clocks
        ("0x0000000000000020", Level.WARN),
        ("0x0000000000000048", Level.FAIL),
        ("0x0000000000000088", Level.FAIL),
    ],
)
def test_the_mask_alone_tells_the_reasons(mask: str, level: Level) -> None:
    assert ask(GPU_THROTTLE, csv(REASONS, f"0, {mask}", "1, 0x0")).verdict.level is level


def test_not_active_is_not_active() -> None:
    quiet = {"HW Slowdown": "Not Active", "SW Thermal Slowdown": "Not Active"}

    assert (
        ask(GPU_THROTTLE, query([{"Clocks Throttle Reasons": quiet}])).verdict.level is Level.PASS
    )


def test_the_nested_reason_of_the_long_listing_is_read() -> None:
    hot = {"Idle": "Not Active", "HW Slowdown": "Active"}
    text = (
        query([{"Clocks Event Reasons": hot}]).replace("HW Slowdown", "HW Slowdown", 1)
        + "            HW Thermal Slowdown           : Active\n"
    )

    judged = ask(GPU_THROTTLE, text)

    assert judged.facts["throttled"] == {"GPU0": ["hw_slowdown", "hw_thermal_slowdown"]}


def test_reasons_that_no_gpu_tells_are_unknown() -> None:
    assert ask(GPU_THROTTLE, csv(REASONS, "0, [N/A]", "1, [N/A]")).verdict.level is Level.UNKNOWN
