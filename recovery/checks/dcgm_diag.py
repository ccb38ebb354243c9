"""What does NVIDIA's own diagnostic say of the GPUs?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from recovery.model.check import Check, CheckEffect
from recovery.model.verdict import (
    Finding,
    Verdict,
    failed,
    passed,
    single,
    unknown,
    verdict,
    warned,
)
from recovery.reading.dcgm import looks_like_dcgm, read_dcgm
from recovery.reading.dcgm_words import Complaint, Diagnosis, Test
from recovery.reading.smi_findings import fold_gpus

_COMMAND = "dcgmi diag -r 1 -j"
_MONITOR = 1  # DCGM's severity "keep an eye on it"; 2 isolate, 4 triage, 5 configuration, 6 reset
_ISOLATE, _RESET = 2, 6
_LOOK = "read the message; drain the node, reset {who} or reboot, run dcgmi diag -r 3 again"
_REMEDIES = {
    _ISOLATE: "isolate the node and ask for an RMA of {who}",
    _RESET: "reset {who} (nvidia-smi --gpu-reset), then run dcgmi diag again",
}
_BY_WORD = (
    ("remapping failed", _REMEDIES[_ISOLATE]),
    ("field diagnostic", _REMEDIES[_ISOLATE]),
    ("thermal", "check fans, air flow and thermal contact of {who}; test again before an RMA"),
    ("pci link width", "reseat card or riser of {who}, check the slot, then a cold power cycle"),
    ("bandwidth", "lspci -vv of {who}: width and generation; ACS and IOMMU; reseat the card"),
    ("allocate", "find the process that holds memory of {who} (nvidia-smi), run again when idle"),
    ("persistence", "nvidia-smi -pm 1 or start nvidia-persistenced, then run again"),
)
_CODES = {
    -21: (
        "dcgm.diag.no-engine",
        "start it: systemctl start nvidia-dcgm (package datacenter-gpu-manager)",
    ),
    -39: ("dcgm.diag.busy", "wait until the other run has ended, then run it again"),
}
_AGAIN = "run dcgmi diag again on the idle node; compare with dcgmi discovery -l"
_KNOWN = frozenset({"pass", "fail", "error", "warn", "skip"})
_EXIT = {-51: "isolate", -30: "a test failed"}


def _nothing(raw: Mapping[str, Any]) -> None:
    return None


def _judge(seen: Diagnosis, expected: None) -> Verdict:
    if seen.trouble:
        return single(_trouble(seen))
    found = _cut(seen)
    for test in seen.tests:
        found += _of_test(test)
    found += _left_out(seen)
    if not found and not any(_counts(t).get("pass") for t in seen.tests):
        found.append(_nothing_ran())
    if not found and seen.exit_status not in (None, 0):
        found.append(_status(seen))
    return verdict(found, otherwise=_well(seen))


def _trouble(seen: Diagnosis) -> Finding:
    default = ("dcgm.diag.error", "run dcgmi diag on the node by hand and read its log")
    code, remedy = _CODES.get(seen.dcgm_return or 0, default)
    if not seen.connected:
        code, remedy = _CODES[-21]
    words = f"the diagnostic did not run: {seen.trouble!r}"
    return unknown(words, remedy=remedy, code=code)


def _cut(seen: Diagnosis) -> list[Finding]:
    if not seen.cut:
        return []
    remedy = "run dcgmi diag again with a longer time limit and keep the whole output"
    return [unknown(f"cut short: {seen.cut}", remedy=remedy, code="unreadable.cut")]


def _nothing_ran() -> Finding:
    remedy = "run dcgmi diag -r 1 on the node by hand; nothing tested is not healthy"
    return unknown("no test ran to its end", remedy=remedy, code="dcgm.diag.no-test")


def _status(seen: Diagnosis) -> Finding:
    meaning = _EXIT.get(seen.dcgm_return or 0, "no test says why")
    words = f"no test failed, yet dcgmi ended with status {seen.exit_status} ({meaning})"
    remedy = "run dcgmi diag on the node by hand and read the host engine's log"
    return unknown(words, remedy=remedy, code="dcgm.diag.status")


def _counts(test: Test) -> Counter[str]:
    said = [*test.gpus.values(), *test.everywhere] or [test.status]
    return Counter(status.lower() for status in said)


def _of_test(test: Test) -> list[Finding]:
    found = [_complained(test, complaint) for complaint in test.complaints]
    explained = {complaint.gpu for complaint in test.complaints}
    silent = [gpu for gpu in test.failed_gpus if gpu not in explained and None not in explained]
    counts = _counts(test)
    failing = {"fail", "error"} & ({test.status.lower()} | set(counts))
    if silent or (failing and not found):
        found.append(_failed(test, silent))
    found += _untested(test)
    return found


def _left_out(seen: Diagnosis) -> list[Finding]:
    """A test that names each GPU and names fewer than there are: the others were not tested."""
    found = []
    for test in seen.tests:
        named = {gpu for gpu in test.gpus if gpu is not None}
        if seen.n_gpus and named and not test.everywhere and len(named) < seen.n_gpus:
            words = f"{test.name} ran on {len(named)} of {seen.n_gpus} GPUs"
            found.append(warned(words, remedy=_AGAIN, code="dcgm.diag.left-out"))
    return found[:1]


def _who(gpu: int | None) -> str:
    return "the node" if gpu is None else f"GPU{gpu}"


def _fails(test: Test, complaint: Complaint) -> bool:
    """Version 3 prints "Fail" for a mere warning in JSON: its severity decides."""
    status = test.gpus.get(complaint.gpu, test.status)
    is_fail = status.lower() in ("fail", "error") or "Fail" in test.everywhere
    return is_fail and (complaint.severity is None or complaint.severity > _MONITOR)


def _complained(test: Test, complaint: Complaint) -> Finding:
    who = _who(complaint.gpu)
    words = f"{test.name}, {who}: {complaint.message}"
    low = complaint.message.lower()
    by_word = next((remedy for word, remedy in _BY_WORD if word in low), _LOOK)
    remedy = _REMEDIES.get(complaint.severity or 0, by_word).format(who=who)
    component = "" if complaint.gpu is None else who
    make = failed if _fails(test, complaint) else warned
    return make(words, remedy=remedy, component=component, code=_code(test))


def _code(test: Test) -> str:
    word = "".join(c if c.isalnum() else "-" for c in test.name.lower()).strip("-")
    return f"dcgm.diag.{word}"


def _failed(test: Test, gpus: list[int | None]) -> Finding:
    who = fold_gpus(_who(gpu) for gpu in gpus) or "the node"
    words = f"{test.name} failed on {who}"
    return failed(words, remedy=_LOOK.format(who=who), component=who, code=_code(test))


def _untested(test: Test) -> list[Finding]:
    """A GPU left out while others were tested is not known to be healthy."""
    said = test.gpus or {None: next(iter(test.everywhere), test.status)}
    by_word: dict[str, list[int | None]] = {}
    for gpu, status in said.items():
        by_word.setdefault(status.lower(), []).append(gpu)
    some_ran = "pass" in by_word or "fail" in by_word
    complained = {complaint.gpu for complaint in test.complaints}
    found = []
    for word, gpus in by_word.items():
        who = fold_gpus(_who(gpu) for gpu in gpus)
        words = f"{test.name}: {word!r} on {who}"
        if word == "warn" and not complained.issuperset(gpus):
            found.append(warned(words, remedy=_AGAIN, component=who, code=_code(test)))
        elif word == "skip" and some_ran:
            found.append(warned(words, remedy=_AGAIN, component=who, code="dcgm.diag.skipped"))
        elif word not in _KNOWN:
            found.append(unknown(words, remedy=_AGAIN, component=who, code="dcgm.diag.not-run"))
    return found


def _well(seen: Diagnosis) -> str:
    ran = [t for t in seen.tests if _counts(t).get("pass")]
    skipped = len(seen.tests) - len(ran)
    tail = f", {skipped} skipped" if skipped else ""
    gpus = f" on {seen.n_gpus} GPUs" if seen.n_gpus else ""
    return passed(f"{len(ran)} tests passed{gpus}{tail}").finding


def _facts(seen: Diagnosis) -> Mapping[str, Any]:
    found: dict[str, Any] = {"dcgm": seen.version, "driver": seen.driver, "gpus": seen.n_gpus}
    if seen.dcgm_return is not None:
        found["dcgm_return"] = seen.dcgm_return
    if seen.trouble:
        connected = {"runtime_error": True} if seen.is_json else {"connected": seen.connected}
        return {**found, **connected, "tests": 0}
    found["tests"] = {test.name: _told(seen, test) for test in seen.tests}
    found["failed"] = [one for test in seen.tests for one in _failures(test)]
    found["not_run"] = _listed(seen, "not run")
    found["skipped"] = _listed(seen, "skip")
    found["statuses"] = dict(Counter(s for t in seen.tests for s in t.gpus.values()))
    complaints = [c for test in seen.tests for c in test.complaints]
    found["distinct_warnings"] = len({(c.test, c.gpu, c.message) for c in complaints})
    found["warnings"] = [
        {"test": c.test, "gpu": c.gpu, "message": c.message}
        for t in seen.tests
        for c in t.complaints
        if not _fails(t, c)
    ]
    found["messages"] = {test.name: list(test.spoken) for test in seen.tests if test.spoken}
    return found


def _told(seen: Diagnosis, test: Test) -> Any:
    """One word where the test has one; version 3's table lists the GPUs by their result."""
    if seen.is_json or seen.major >= 4 or not (test.gpus or test.everywhere):
        return test.status
    found: dict[str, Any] = {word.lower(): "all" for word in test.everywhere}
    for gpu, status in test.gpus.items():
        found.setdefault(status.lower(), []).append(gpu)
    return found


def _failures(test: Test) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for gpu in test.failed_gpus:
        said = next((c for c in test.complaints if c.gpu == gpu), None)
        one: dict[str, Any] = {"test": test.name, "gpu": gpu}
        if said is not None:
            one |= {"message": said.message}
            one |= {"error_id": said.error_id, "severity": said.severity} if said.error_id else {}
        found.append(one)
    return found


def _listed(seen: Diagnosis, status: str) -> list[dict[str, Any]]:
    return [
        {"test": test.name, "gpu": gpu}
        for test in seen.tests
        for gpu, said in test.gpus.items()
        if said.lower() == status
    ]


DCGM_DIAG = Check(
    name="dcgm.diag",
    question="What does NVIDIA's own diagnostic say of the GPUs?",
    command=_COMMAND,
    parse=read_dcgm,
    expect=_nothing,
    judge=_judge,
    facts=_facts,
    recognises=looks_like_dcgm,
    needs="dcgmi and a running nv-hostengine (package datacenter-gpu-manager)",
    timeout_s=180.0,
)

DCGM_DIAG_3 = replace(
    DCGM_DIAG,
    name="dcgm.diag-3",
    question="Under load for 15 minutes: do the GPUs pass NVIDIA's own stress tests?",
    command="dcgmi diag -r 3 -j",
    effect=CheckEffect.ACTIVE,
    recognises=None,  # any answer of dcgmi diag is read by dcgm.diag
    timeout_s=2400.0,
)
