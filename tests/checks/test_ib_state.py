"""Ports of HCAs: only those that the node should use are judged."""

from __future__ import annotations

import pytest

from recovery.checks.ib_counters import COUNTERS
from recovery.checks.ib_state import STATE
from recovery.checks.net_ethtool import ETHTOOL
from recovery.engine.judging import judge_one
from recovery.model.output import Printed


def ca(device: str, *, state: str = "Active", physical: str = "LinkUp", rate: int = 400,
       layer: str = "InfiniBand", sm: int = 1) -> str:  # fmt: skip
    return (
        f"CA '{device}'\n\tCA type: MT4129\n\tNumber of ports: 1\n"
        f"\tFirmware version: 28.39.3560\n\tPort 1:\n\t\tState: {state}\n"
        f"\t\tPhysical state: {physical}\n\t\tRate: {rate}\n\t\tBase lid: 7\n\t\tSM lid: {sm}\n"
        f"\t\tLink layer: {layer}\n"
    )


def ask(text: str, error: str = "", status: int = 0, **context: object):
    return judge_one(STATE, Printed(text, error, status, "ibstat"), context)


def level(text: str, **context: object) -> str:
    return ask(text, **context).verdict.level.word


BOTH = {"expected_compute_hcas": 2, "expected_rate": 400}


def test_all_expected_ports_up_at_full_rate_pass():
    assert level(ca("mlx5_0") + ca("mlx5_1"), **BOTH) == "pass"


def test_without_an_expected_number_nothing_passes():
    assert level(ca("mlx5_0")) == "warn"


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"state": "Down", "physical": "Polling", "rate": 10}, "ib.state.down"),
        ({"rate": 200}, "ib.state.rate"),
        ({"state": "Initializing", "sm": 0}, "ib.state.not-configured"),
        ({"state": "Armed"}, "ib.state.not-configured"),
    ],
)
def test_a_used_port_that_is_not_as_it_should_be_fails(wrong: dict[str, object], code: str):
    found = ask(ca("mlx5_0") + ca("mlx5_1", **wrong), **BOTH).verdict

    assert (found.level.word, found.worst.code, found.worst.component) == ("fail", code, "mlx5_1")


def test_a_missing_card_fails():
    assert level(ca("mlx5_0"), **BOTH) == "fail"


def test_ports_that_all_wait_blame_the_fabric_and_not_the_node():
    waiting = {"state": "Initializing", "sm": 0}

    found = ask(ca("mlx5_0", **waiting) + ca("mlx5_1", **waiting), **BOTH).verdict

    assert found.worst.code == "ib.state.no-subnet-manager"
    assert "do not touch cables" in found.worst.remedy


def test_an_ethernet_port_without_a_cable_is_no_fault_where_nobody_uses_it():
    unused = ca("mlx5_2", state="Down", physical="Disabled", rate=40, layer="Ethernet")

    assert level(ca("mlx5_0") + ca("mlx5_1") + unused, **BOTH) == "pass"


def test_a_storage_port_must_be_up_at_any_rate():
    storage = {"rate": 100, "layer": "Ethernet"}
    two = ca("mlx5_0") + ca("mlx5_1")

    assert level(two + ca("mlx5_2", **storage), storage_hcas=["mlx5_2"], **BOTH) == "pass"
    down = ca("mlx5_2", state="Down", physical="Polling", layer="Ethernet")
    assert level(two + down, storage_hcas=["mlx5_2"], **BOTH) == "fail"


def test_a_block_without_its_end_is_unknown_not_a_missing_card():
    whole = ca("mlx5_0") + ca("mlx5_1")

    assert level(whole[: whole.rindex("\t\tLink layer")], **BOTH) == "unknown"


def test_no_output_is_unknown():
    assert ask("", **BOTH).verdict.level.word == "unknown"


@pytest.mark.parametrize(
    "said",
    [
        "Failed to open NETLINK_RDMA socket",
        "Failed to get IB devices list: Function not implemented",
        "Fatal error:  No devices",
        "No IB devices found",
    ],
)
def test_a_node_without_the_rdma_stack_fails_where_cards_are_expected(said: str):
    assert ask("", f"{said}\n", 1, **BOTH).verdict.level.word == "fail"
    assert ask("", f"{said}\n", 1).verdict.level.word == "unknown"
    assert ask("", f"{said}\n", 1, expected_compute_hcas=0).verdict.level.word == "pass"


def test_names_of_interfaces_are_no_state_of_ports():
    text = "mlx5_0 port 1 ==> ib0 (Down)\nmlx5_1 port 1 ==> ib1 (Up)\n"

    assert level(text) == "unknown"
    assert level(text, ipoib_required=True) == "fail"


def test_a_tool_without_rates_cannot_prove_them():
    text = "link mlx5_0/1 subnet_prefix fe80:0 lid 4 state ACTIVE physical_state LINK_UP \n"

    assert level(text, expected_compute_hcas=1, expected_rate=400) == "warn"
    assert level(text, expected_compute_hcas=1) == "pass"


def test_counters_at_their_largest_value_prove_nothing():
    text = (
        "# Port counters: mlx5_5 port 1 (CapMask: 0x5300)\nPortSelect:......................1\n"
        "SymbolErrorCounter:..............65535\nLinkDownedCounter:...............255\n"
    )

    judged = judge_one(COUNTERS, Printed(text, exit_status=0), {})

    assert judged.verdict.worst.code == "ib.counters.saturated"
    assert judged.facts["saturated"] == ["mlx5_5/symbol_error", "mlx5_5/link_downed"]


def test_link_drops_of_a_network_card_are_judged_by_the_day():
    text = "NIC statistics:\n     rx_crc_errors_phy: 0\n     link_down_events_phy: 4\n"

    def of(**context: object) -> str:
        return judge_one(ETHTOOL, Printed(text, exit_status=0), context).verdict.level.word

    assert of(uptime_s=86400) == "fail"
    assert of(uptime_s=40 * 86400) == "warn"
    assert of() == "warn"


def test_several_network_cards_are_told_apart():
    text = (
        "# eth0\nNIC statistics:\n     rx_crc_errors_phy: 0\n     link_down_events_phy: 0\n"
        "# eth1\nNIC statistics:\n     rx_crc_errors_phy: 9\n     link_down_events_phy: 0\n"
    )

    found = judge_one(ETHTOOL, Printed(text, exit_status=0), {}).verdict

    assert (found.level.word, found.worst.component) == ("warn", "eth1")


def test_a_virtual_card_without_physical_counters_is_unknown():
    text = "NIC statistics:\n     rx_packets: 5\n"

    assert judge_one(ETHTOOL, Printed(text, exit_status=0), {}).verdict.level.word == "unknown"
