"""``dcgmi diag`` as a table, of DCGM 3 and 4.

Source: NVIDIA/DCGM, dcgmi/Diag.cpp of the tags v3.3.9 and v4.6.0. Only the first row of a test has
its name; a message is cut every 45 characters, also inside words, and must be joined as it is;
version 4 has one row for each GPU below the test's own row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from recovery.errors import ParseError
from recovery.reading.dcgm_json import gpu_in
from recovery.reading.dcgm_words import Complaint, Diagnosis, Test

_TITLE = re.compile(r"^\|\s*Diagnostic\s*\|\s*Result\s*\|\s*$")
_BORDER = re.compile(r"^\+[-=]+\+[-=]+\+\s*$")
_SECTION = re.compile(r"^[|+]-+\s+(\w[\w ]*?)\s+-+[|+]")
_ROW = re.compile(r"^\| (.{25}) \| (.*?)\s?\|?\s*$")
_ENTITY = re.compile(r"^(GPU|CPU|NvSwitch|NVSwitch|Switch|Entity)\s?(\d{1,3}): (.+)$")
_MANY = re.compile(r"^(\w[\w ]*?) - (All|GPUs?: ([\d, ]+))\s*$")
_NOTICE = re.compile(r"^(Warning|Error|Info)(?:: ([A-Za-z]+)(\d+))?$")
_STATUSES = frozenset({"pass", "fail", "warn", "skip", "not run", "error", "retest"})
_WRAP = 45
_REMEDY = "run dcgmi diag again on the node and keep the whole output"


@dataclass(slots=True)
class _Open:
    """A test whose rows are still coming."""

    name: str
    status: str = ""
    gpus: dict[int | None, str] = field(default_factory=dict)
    messages: list[tuple[str, int | None, list[str]]] = field(default_factory=list)
    everywhere: set[str] = field(default_factory=set)

    def closed(self) -> Test:
        complaints, spoken = [], []
        for kind, gpu, parts in self.messages:
            message = "".join(parts).rstrip()
            spoken.append(message)
            if kind != "Info":
                told = gpu if gpu is not None else gpu_in(message)
                complaints.append(Complaint(self.name, told, message))
        status = self.status or _overall(self.gpus, self.everywhere)
        return Test(
            self.name,
            status,
            self.gpus,
            tuple(complaints),
            tuple(spoken),
            frozenset(self.everywhere),
        )


@dataclass(slots=True)
class _Table:
    metadata: dict[str, str] = field(default_factory=dict)
    tests: list[_Open] = field(default_factory=list)
    section: str = ""
    label: str = ""  # of the row before: an empty label goes on with it
    odd: str = ""


def looks_like_table(lines: Sequence[str]) -> bool:
    """Claims that the lines are such a table, or the beginning of one."""
    return any(_TITLE.match(line.strip()) for line in lines[:500])


def read_table(lines: Sequence[str]) -> Diagnosis:
    """One run.

    Raises:
        ParseError: the table has no test in it.
    """
    start = next(i for i, line in enumerate(lines) if _TITLE.match(line.strip()))
    table = _Table()
    closed = False
    for line in lines[start + 1 :]:
        row = line.strip()
        closed = bool(_BORDER.match(row)) and bool(table.section) if row else closed
        if row:
            _row(row, table)
    if not table.tests and not table.metadata:
        raise ParseError("the diagnostic's table is cut short: no test in it", remedy=_REMEDY)
    version = table.metadata.get("DCGM Version") or None
    ids = table.metadata.get("GPU Device IDs Detected", "")
    return Diagnosis(
        tests=tuple(one.closed() for one in table.tests),
        version=version,
        driver=table.metadata.get("Driver Version Detected") or None,
        n_gpus=len([i for i in ids.split(",") if i.strip()]) or None,
        major=int(version.partition(".")[0]) if version and version[:1].isdigit() else 4,
        cut=table.odd or ("" if closed else "the table ends before its last border"),
    )


def _row(row: str, table: _Table) -> None:
    section = _SECTION.match(row)
    if section:
        table.section, table.label = section[1], ""
        return
    match = _ROW.match(row)
    if match is None:
        if not _BORDER.match(row) and not table.odd:
            table.odd = f"a row cannot be read: {row[:60]!r}"
        return
    if not row.endswith("|"):
        table.odd = f"the table ends within a row: {row[:60]!r}"
    _told(match[1].strip(), match[2], table)


def _told(label: str, raw: str, table: _Table) -> None:
    if table.section.lower() == "metadata":
        _metadata(label, raw, table)
    elif _NOTICE.match(label):
        _notice(label, raw, table)
    elif label:
        table.tests.append(_Open(label))
        table.label = label
        _result(raw.strip(), table.tests[-1], table)
    elif table.tests:
        _continued(raw, table)


def _metadata(label: str, raw: str, table: _Table) -> None:
    key = label or table.label
    table.metadata[key] = table.metadata.get(key, "") + raw.strip()
    table.label = key


def _notice(label: str, raw: str, table: _Table) -> None:
    match = _NOTICE.match(label)
    if match is None or not table.tests:
        return
    gpu = int(match[3]) if match[3] and match[2] == "GPU" and len(match[3]) < 4 else None
    table.tests[-1].messages.append((match[1], gpu, [_piece(raw)]))
    table.label = "notice"


def _piece(raw: str) -> str:
    """Exactly what was cut off: 45 characters with their blanks, less at the end."""
    return raw[:_WRAP].ljust(min(_WRAP, len(raw))) if len(raw) >= _WRAP else raw


def _continued(raw: str, table: _Table) -> None:
    test = table.tests[-1]
    text = raw.strip()
    is_result = _ENTITY.match(text) or _MANY.match(text) or text.lower() in _STATUSES
    if table.label == "notice" and not is_result:
        test.messages[-1][2].append(_piece(raw))
    else:
        _result(text, test, table)


def _result(text: str, test: _Open, table: _Table) -> None:
    entity, many = _ENTITY.match(text), _MANY.match(text)
    if entity:
        is_gpu = entity[1] == "GPU"
        test.gpus[int(entity[2]) if is_gpu else None] = entity[3].strip()
    elif many and many[3]:
        for number in re.findall(r"\d{1,4}", many[3]):
            test.gpus[int(number)] = many[1]
    elif many:
        test.everywhere.add(many[1])
    elif text.lower() in _STATUSES:
        test.status = text
    elif not table.odd:
        table.odd = f"{test.name}: result {text[:40]!r} is not known"


def _overall(gpus: dict[int | None, str], everywhere: set[str]) -> str:
    said = {status.lower() for status in (*gpus.values(), *everywhere)}
    for word in ("Fail", "Error", "Warn", "Not Run", "Pass", "Skip"):
        if word.lower() in said:
            return word
    return "Unknown"
