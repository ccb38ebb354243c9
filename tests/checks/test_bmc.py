"""What a BMC tells: events, sensors, power."""

from __future__ import annotations

import json

import pytest

from recovery.checks.bmc_power import POWER
from recovery.checks.bmc_sel import SEL
from recovery.checks.bmc_sensors import SENSORS
from recovery.checks.bugreport import BUG_REPORT
from recovery.engine.judging import judge_one
from recovery.model.output import Printed


def ask(check, text: str, error: str = "", status: int | None = 0, **context: object):
    return judge_one(check, Printed(text, error, status, check.command), context)


def record(number: str, what: str, direction: str = "Asserted") -> str:
    return f"   {number} | 11/29/26 | 02:20:00 UTC | {what} | {direction}\n"


@pytest.mark.parametrize(
    ("what", "level"),
    [
        ("Memory #0x87 | Uncorrectable ECC", "fail"),
        ("Memory #0x87 | Correctable ECC", "warn"),
        ("Processor #0x01 | IERR", "fail"),
        ("Fan #0x41 | Lower Critical going low", "fail"),
        ("Temperature #0x30 | Upper Non-critical going high", "warn"),
        ("Power Supply #0x85 | Power Supply AC lost", "warn"),
        ("Power Supply #0x85 | Failure detected", "fail"),
        ("Power Unit #0x01 | Redundancy Lost", "warn"),
        ("OS Boot | C: boot completed", "pass"),
        ("System Boot Initiated #0x9a | Initiated by power up", "pass"),
        ("Event Logging Disabled #0x01 | Log area reset/cleared", "pass"),
        ("Strange Thing #0x01 | Something new", "warn"),
    ],
)
def test_an_event_that_stands_has_its_level(what: str, level: str):
    assert ask(SEL, record("1", what)).verdict.level.word == level


def test_an_event_that_was_taken_back_is_over():
    fan = "Fan #0x41 | Lower Critical going low "

    assert ask(SEL, record("9", fan) + record("a", fan, "Deasserted")).verdict.level.word == "pass"


def test_record_numbers_are_hexadecimal():
    text = record("9", "OS Boot | x") + record("a", "OS Boot | x") + record("10", "OS Boot | x")

    assert ask(SEL, text).facts["ids"] == [9, 10, 16]


def test_an_empty_log_passes_and_no_output_does_not():
    assert ask(SEL, "SEL has no entries\n").verdict.level.word == "pass"
    assert ask(SEL, "").verdict.level.word == "unknown"


def entry(number: int, message: str, severity: str = "Critical", code: object = "Assert"):
    return {
        "@odata.type": "#LogEntry.v1_1_0.LogEntry",
        "Created": f"2026-11-29T01:40:{number:02d}-06:00",
        "EntryCode": code,
        "EntryType": "SEL",
        "Id": str(number),
        "Message": message,
        "Severity": severity,
    }


def redfish(*entries: object, **more: object) -> str:
    return json.dumps({"Members": list(entries), "Members@odata.count": len(entries), **more})


def test_redfish_entries_pair_whatever_the_order_and_the_type_of_their_code():
    lost = entry(1, "The power input for power supply 2 is lost.", code=[{"Member": "Assert"}])
    back = entry(2, "The power input for power supply 2 has been restored.", "OK", "Deassert")

    for order in ((lost, back), (back, lost)):
        judged = ask(SEL, redfish(*order))
        assert judged.verdict.level.word == "pass"
        assert judged.facts["restored"] == ["power supply 2 input"]


def test_a_page_with_more_behind_it_never_passes():
    page = redfish(entry(1, "Log cleared.", "OK"), **{"Members@odata.nextLink": "/x?$skip=50"})

    assert ask(SEL, page).verdict.level.word == "unknown"


def test_an_error_body_says_nothing_of_the_machine():
    info = {"MessageId": "Base.1.8.1.SessionLimitExceeded", "MessageSeverity": "Critical"}
    body = json.dumps({"error": {"code": "x", "@Message.ExtendedInfo": [info]}})

    judged = ask(POWER, body, status=22)

    assert judged.verdict.level.word == "unknown"
    assert judged.facts["message_id"] == "SessionLimitExceeded"


SDR = "".join(f"CPU{n} Temp        | 29 degrees C      | ok\n" for n in range(8))


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("FAN4             | 420 RPM           | cr", "fail"),
        ("FAN4             | 420 RPM           | nc", "warn"),
        ("FAN3             | no reading        | ns", "pass"),
        ("Pwr Unit Redund  | 0x00              | ok", "pass"),
        ("Pwr Unit Redund  | 77h | ok  | 21.1 | Redundancy Lost", "warn"),
        ("Inlet Temp       | 04h | cr  |  7.1 | 52 degrees C", "fail"),
        ("FAN 1            | 420.000    | RPM        | cr | 300 | 500 | na | na", "fail"),
        ("FAN 1,420,RPM,cr", "fail"),
        ("PS1 Input Power  | 900 Watts | ok\nPS2 Input Power  | 0 Watts | ok", "warn"),
        ("PS1 Input Power  | 450 Watts | ok\nPS2 Input Power  | 455 Watts | ok", "pass"),
    ],
)  # fmt: skip
def test_a_sensor_has_its_level(line: str, level: str):
    assert ask(SENSORS, f"{SDR}{line}\n").verdict.level.word == level


def test_a_list_without_any_reading_is_unknown():
    assert ask(SENSORS, "FAN1 | no reading | ns\n" * 9).verdict.level.word == "unknown"


def test_a_handful_of_sensors_is_no_whole_list():
    assert ask(SENSORS, "FAN1 | 8000 RPM | ok\n").verdict.level.word == "warn"


def test_redfish_sensors_are_read():
    fan = {"Name": "Fan 1", "Reading": 420, "ReadingUnits": "RPM", "Status": {"Health": "Critical"}}

    assert ask(SENSORS, json.dumps({"Fans": [fan]})).facts["critical"] == ["Fan 1"]


def test_a_node_that_is_off_fails_and_names_the_policy():
    text = (
        "System Power         : off\nPower Restore Policy : always-off\nCooling/Fan Fault : false\n"
    )

    found = ask(POWER, text).verdict

    assert found.level.word == "fail"
    assert "restore policy" in found.worst.finding


def test_a_node_that_will_not_come_back_is_a_warning():
    text = "System Power : on\nPower Restore Policy : always-off\nCooling/Fan Fault : false\n"

    assert ask(POWER, text).verdict.level.word == "warn"


def test_a_status_without_its_end_is_unknown():
    assert ask(POWER, "System Power         : on\nPower Overload  : fal").verdict.level.word == (
        "unknown"
    )


def test_a_bmc_that_cannot_be_asked_is_not_a_node_that_is_off():
    judged = ask(POWER, "", "Error: Unable to establish IPMI v2 / RMCP+ session\n", 1)

    assert judged.verdict.level.word == "unknown"
    assert judged.facts == {"power": None, "reachable": False}


def test_redfish_tells_the_power_state():
    assert ask(POWER, '{"PowerState": "On", "Status": {"Health": "OK"}}').facts["power"] == "on"


def test_a_bug_report_without_its_end_is_missing_evidence():
    start = "Start of NVIDIA bug report log file.  Please include this file\n"

    assert ask(BUG_REPORT, start).verdict.level.word == "unknown"
    whole = f"{start}End of NVIDIA bug report log file.\n"
    assert ask(BUG_REPORT, whole).verdict.level.word == "pass"
