"""Which log of a Redfish service is the event log; pages as the published schema has them."""

from __future__ import annotations

from typing import Any

import pytest

from recovery.bmc.redfish import _event_log

SERVICES = "/redfish/v1/Systems/1/LogServices"
SYSTEM = {"LogServices": {"@odata.id": SERVICES}}


def pages(**logs: Any) -> dict[str, Any]:
    """A service whose logs have such entries; None is a log without any list of entries."""
    found: dict[str, Any] = {
        SERVICES: {"Members": [{"@odata.id": f"{SERVICES}/{name}"} for name in logs]}
    }
    for name, entries in logs.items():
        at = f"{SERVICES}/{name}"
        found[at] = {"Id": name}
        if entries is not None:
            found[at]["Entries"] = {"@odata.id": f"{at}/Entries"}
            found[f"{at}/Entries"] = {"Members": entries, "Members@odata.count": len(entries)}
    return found


def ids(**logs: Any) -> list[str]:
    return [entry["Id"] for entry in _event_log(SYSTEM, pages(**logs).__getitem__)["Members"]]


def test_the_first_log_that_has_entries_is_taken() -> None:
    assert ids(Dump=None, Lclog=[], Sel=[{"Id": "1"}, {"Id": "2"}]) == ["1", "2"]


def test_logs_that_are_all_empty_are_an_empty_log() -> None:
    assert ids(Lclog=[], Sel=[]) == []


def test_all_pages_of_a_log_are_read() -> None:
    told = pages(Sel=[{"Id": "1"}])
    told[f"{SERVICES}/Sel/Entries"]["Members@odata.nextLink"] = f"{SERVICES}/Sel/Entries?$skip=1"
    told[f"{SERVICES}/Sel/Entries?$skip=1"] = {"Members": [{"Id": "2"}]}

    found = _event_log(SYSTEM, told.__getitem__)

    assert [entry["Id"] for entry in found["Members"]] == ["1", "2"]


def test_a_service_without_any_log_says_so() -> None:
    with pytest.raises(LookupError, match="no event log"):
        _event_log(SYSTEM, pages(Dump=None).__getitem__)
