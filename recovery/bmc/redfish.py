"""`redfish`: Redfish over HTTPS by sushy (``pip install 'recover[bmc]'``)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from recovery.model.bmc import BmcAddress, BmcAsk, BmcKind
from recovery.model.output import Ending, Output

CONNECT_S, READ_S = 3.0, 30.0
# Source: the enumeration ResetType of Redfish's Resource schema (DSP8010).
_ORDERS = {BmcAsk.ON: "On", BmcAsk.OFF: "ForceOff", BmcAsk.SOFT: "GracefulShutdown"}


def _ask(at: BmcAddress, question: BmcAsk, limit_s: float) -> Output:
    started = time.monotonic()
    try:
        import sushy
    except ImportError:
        why = "sushy is not installed: pip install 'recover[bmc]'"
        return Output(Ending.NEVER_STARTED, reason=why)
    try:
        text, error = json.dumps(_answer(at, question, limit_s), indent=1), ""
    # The last three: what a JSON document of another shape does to sushy.
    except (sushy.exceptions.SushyError, LookupError, ValueError, TypeError, AttributeError) as bad:
        text, error = "", _words(at, bad)
    return Output(
        Ending.FINISHED,
        exit_status=1 if error else 0,
        stdout=text.encode(),
        stderr=error.encode(),
        duration_s=time.monotonic() - started,
    )


def _words(at: BmcAddress, bad: Exception) -> str:
    """One line about what went wrong; a BMC that is away is named as ipmitool's users know it."""
    said = " ".join(str(bad).split())[:300] or type(bad).__name__
    if type(bad).__name__ == "ConnectionError":
        return f"Connection timed out or refused at {at.address}: {said}"
    if type(bad).__name__ == "AccessError":
        return f"{at.address} refuses user {at.user!r}: username invalid or password invalid"
    return f"{type(bad).__name__}: {said}"


def _answer(at: BmcAddress, question: BmcAsk, limit_s: float) -> Any:
    import sushy

    # One try a question: what is retried, and for how long, is the step's to say. Basic
    # authentication leaves no session behind; a BMC has room for a few.
    connector = sushy.connector.Connector(
        _url(at),
        verify=at.options.get("verify", True),
        server_side_retries=1,
        default_request_timeout=min(READ_S, limit_s),
        connect_timeout=min(CONNECT_S, limit_s),
    )
    auth = sushy.auth.BasicAuth(at.user, at.password)
    root = sushy.Sushy(_url(at), auth=auth, connector=connector)
    system = _system(at, root)

    def get(path: str) -> Mapping[str, Any]:
        found = connector.get(path).json()
        if not isinstance(found, dict):
            raise TypeError(f"{path} is no object")
        return found

    match question:
        case BmcAsk.STATUS:
            return system.json
        case BmcAsk.SEL:
            return _event_log(system.json, get)
        case BmcAsk.SENSORS:
            return _sensors(system.json, get)
        case BmcAsk.ON | BmcAsk.OFF | BmcAsk.SOFT:
            system.reset_system(sushy.ResetType(_ORDERS[question]))
    return {}


def _url(at: BmcAddress) -> str:
    return at.address if "://" in at.address else f"https://{at.address}"


def _system(at: BmcAddress, root: Any) -> Any:
    """The system that the inventory names, or the only one.

    Raises:
        LookupError: there are several, or none of that name: never guess what to switch.
    """
    systems = root.get_system_collection().get_members()
    wanted = at.options.get("system")
    found = [s for s in systems if wanted in (None, s.identity, s.name)]
    if len(found) != 1:
        known = ", ".join(str(s.identity) for s in systems)[:200] or "none"
        raise LookupError(f"{len(found)} systems fit (system: {wanted}); it has: {known}")
    return found[0]


def _event_log(system: Mapping[str, Any], get: Callable[[str], Mapping[str, Any]]) -> Any:
    """All entries of the system's first log that has some, in the form of one collection."""
    services = get(_link(system, "LogServices"))
    found: Any = None
    for service in services.get("Members", []):
        about = get(str(service["@odata.id"]))
        if "Entries" not in about:
            continue  # dumps and the like
        entries = _all_pages(get(_link(about, "Entries")), get)
        if entries["Members"]:
            return entries
        found = found or entries
    if found is None:
        raise LookupError("it has no event log")
    return found


def _all_pages(page: Mapping[str, Any], get: Callable[[str], Mapping[str, Any]]) -> Any:
    members = list(page.get("Members", []))
    last, more = page, page.get("Members@odata.nextLink")
    while more and len(members) < 20_000:
        last = get(str(more))
        members += last.get("Members", [])
        more = last.get("Members@odata.nextLink")
    rest = {k: v for k, v in page.items() if k != "Members@odata.nextLink"}
    return {**rest, "Members": members, **({"Members@odata.nextLink": more} if more else {})}


def _sensors(system: Mapping[str, Any], get: Callable[[str], Mapping[str, Any]]) -> Any:
    chassis = get(str(system["Links"]["Chassis"][0]["@odata.id"]))
    parts = ("Thermal", "Power")
    return {name: get(_link(chassis, name)) for name in parts if name in chassis}


def _link(item: Mapping[str, Any], name: str) -> str:
    try:
        return str(item[name]["@odata.id"])
    except (KeyError, TypeError) as error:
        raise LookupError(f"it has no {name}") from error


REDFISH = BmcKind(name="redfish", about="Redfish over HTTPS, by sushy", ask=_ask)
