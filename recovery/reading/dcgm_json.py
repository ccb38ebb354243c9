"""``dcgmi diag -j`` of DCGM 3 and 4.

Source: NVIDIA/DCGM, dcgmi/Diag.cpp of the tags v3.3.9 and v4.6.0. In version 3 ``gpu_id`` is a
text, a GPU that did not run leaves ``null`` at its place in ``results``, and a warning prints the
status "Fail"; version 4 numbers entities and repeats each warning in ``test_summary``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from recovery.errors import ParseError
from recovery.reading.dcgm_words import Complaint, Diagnosis, Test

_ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
_RETURN = re.compile(r"Return: \((-?\d+)\)")
_REMEDY = "run dcgmi diag -j again on the node and keep the whole output"
_DEEPEST = 60


def looks_like_json(text: str) -> bool:
    """Claims that the text is, or begins as, the diagnostic's JSON."""
    head = text[:4000]
    return "{" in head and any(f'"{root}"' in head for root in _ROOTS)


def read_json(text: str) -> Diagnosis:
    """One run.

    Raises:
        ParseError: not JSON to its end (cut short), or without the diagnostic.
    """
    document = _document(text)
    root = next((document[name] for name in _ROOTS if name in document), None)
    if not isinstance(root, dict):
        raise ParseError("the JSON has no diagnostic in it", remedy=_REMEDY)
    meta = _mapping(document.get("metadata"))
    trouble = str(root.get("runtime_error") or "").strip()
    code = _RETURN.search(trouble)
    return Diagnosis(
        tests=tuple(_tests(root)),
        version=_text(meta.get("version") or document.get("version") or root.get("version")),
        driver=_text(
            meta.get("Driver Version Detected") or document.get("Driver Version Detected")
        ),
        n_gpus=_n_gpus(document),
        is_json=True,
        major=4 if "DCGM Diagnostic" in document else 3,
        trouble=trouble,
        dcgm_return=int(code[1]) if code else None,
    )


def _document(text: str) -> dict[str, Any]:
    start = text.find("{")
    if text.count("[") > 200_000 or _too_deep(text):
        raise ParseError("the JSON is nested too deep to be a diagnostic", remedy=_REMEDY)
    try:
        value, _ = json.JSONDecoder().raw_decode(text[max(start, 0) :])
    except ValueError as error:
        raise ParseError(f"the JSON is cut short or damaged: {error}", remedy=_REMEDY) from error
    if not isinstance(value, dict):
        raise ParseError("the JSON is not a diagnostic", remedy=_REMEDY)
    return value


def _too_deep(text: str) -> bool:
    depth = 0
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', text):
        mark = match[0]
        depth += (mark in "[{") - (mark in "]}")
        if depth > _DEEPEST:
            return True
    return False


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and re.fullmatch(r"\d{1,4}", value) else None


def _n_gpus(document: Mapping[str, Any]) -> int | None:
    ids = document.get("GPU Device IDs")
    if isinstance(ids, list):
        return len(ids)
    for group in map(_mapping, _items(document.get("entity_groups"))):
        if group.get("entity_group") == "GPU":
            return len(_items(group.get("entities")))
    return None


def _tests(root: Mapping[str, Any]) -> Iterator[Test]:
    for category in map(_mapping, _items(root.get("test_categories"))):
        for test in map(_mapping, _items(category.get("tests"))):
            yield _test(test)


def _test(test: Mapping[str, Any]) -> Test:
    name = str(test.get("name") or "unnamed")
    gpus: dict[int | None, str] = {}
    complaints: dict[tuple[int | None, str], Complaint] = {}
    for position, entry in enumerate(_items(test.get("results"))):
        if entry is None:
            gpus[position] = "Not Run"
            continue
        result = _mapping(entry)
        for gpu in _gpus(result):
            gpus[gpu] = str(result.get("status") or "Unknown")
            for complaint in _complaints(name, gpu, result):
                complaints[(gpu, complaint.message)] = complaint
    summary = _mapping(test.get("test_summary"))
    told = {complaint.message for complaint in complaints.values()}
    for complaint in _complaints(name, None, summary):
        if complaint.message not in told:
            complaints[(None, complaint.message)] = complaint
    status = str(summary.get("status") or "") or _overall(gpus)
    return Test(name, status, gpus, tuple(complaints.values()))


def _gpus(result: Mapping[str, Any]) -> tuple[int | None, ...]:
    """The GPUs that a result is about; the plugin host's own JSON names several in one text."""
    named = re.findall(r"\d{1,4}", str(result.get("gpu_ids", "")))[:256]
    return tuple(map(int, named)) or (_gpu(result),)


def _gpu(result: Mapping[str, Any]) -> int | None:
    if result.get("entity_group", "GPU") != "GPU":
        return None
    number = _number(result.get("gpu_id"))
    return number if number is not None else _number(result.get("entity_id"))


def _complaints(test: str, gpu: int | None, result: Mapping[str, Any]) -> Iterator[Complaint]:
    for entry in _items(result.get("warnings")):
        one = _mapping(entry)
        message = str(one.get("warning") or one.get("message") or entry)
        yield Complaint(
            test,
            gpu if gpu is not None else gpu_in(message),
            message,
            _number(one.get("error_id")),
            _number(one.get("error_severity")),
        )


def gpu_in(message: str) -> int | None:
    """The GPU that a message names; None where it names none or several."""
    named = set(re.findall(r"\bGPU ?(\d{1,3})\b", message))
    return int(named.pop()) if len(named) == 1 else None


def _overall(gpus: Mapping[int | None, str]) -> str:
    for word in ("Fail", "Warn", "Pass", "Skip"):
        if any(status.lower() == word.lower() for status in gpus.values()):
            return word
    return next(iter(gpus.values()), "Unknown")
