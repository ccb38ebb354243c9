"""Kept outputs of all kinds of tools, and how all checks together judge them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from recovery.engine.judging import AnyCheck, judge_text
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.model.verdict import Verdict
from recovery.registry import collect

CASES = Path(__file__).parents[1] / "cases"
WORDS = {"pass": "pass", "warn": "warn", "fail": "fail", "unreadable": "unknown"}


@dataclass(frozen=True)
class Kept:
    """One output: its bytes, what printed it, and what must be read and concluded."""

    id: str
    raw: bytes
    command: str
    exit_code: int | None
    stream: str
    context: Mapping[str, Any]
    reading: Mapping[str, Any]
    level: str

    def printed(self, raw: bytes | None = None, **changes: Any) -> Printed:
        text = (self.raw if raw is None else raw).decode("utf-8", "backslashreplace")
        out, err = ("", text) if self.stream == "stderr" else (text, "")
        values = {"exit_status": self.exit_code, "command": self.command, **changes}
        return Printed(out, err, **values)


@cache
def all_checks() -> tuple[AnyCheck, ...]:
    return tuple(collect("recovery.checks", Check).values())


def kept(kind: str) -> list[Kept]:
    folder = CASES / kind
    return [
        Kept(
            entry["id"],
            (folder / entry["file"]).read_bytes(),
            entry["command"],
            entry["exit_code"],
            entry.get("stream", "stdout"),
            entry["context"],
            entry["reading"],
            WORDS[entry.get("status") or entry["verdict"]["status"]],
        )
        for entry in yaml.safe_load((folder / "index.yaml").read_text(encoding="utf-8"))
    ]


def judged(printed: Printed, context: Mapping[str, Any] | None = None) -> tuple[Verdict, Any]:
    return judge_text(all_checks(), printed, context or {})


def level(text: str, command: str = "", **context: Any) -> str:
    """The level of a text that a command printed with status 0."""
    return judged(Printed(text, exit_status=0, command=command), context)[0].level.word


def differences(wanted: Any, found: Any, at: str = "") -> list[str]:
    """Where the facts are not as wanted; a mapping may hold more than is wanted."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        by_text = {str(key): value for key, value in found.items()}
        missing = [f"{at}.{key} is missing" for key in wanted if str(key) not in by_text]
        return missing + [
            line
            for key, value in wanted.items()
            if str(key) in by_text
            for line in differences(value, by_text[str(key)], f"{at}.{key}")
        ]
    if isinstance(wanted, list) and isinstance(found, list | tuple) and len(wanted) == len(found):
        pairs = enumerate(zip(wanted, found, strict=True))
        return [line for i, (w, f) in pairs for line in differences(w, f, f"{at}[{i}]")]
    if isinstance(wanted, float) and isinstance(found, int | float):
        return [] if abs(wanted - found) <= 1e-5 * max(1.0, abs(wanted)) else [f"{at}: {found!r}"]
    empty = wanted in ([], {}) and found in ([], {}, ())
    return [] if empty or wanted == found else [f"{at} is {found!r}, not {wanted!r}"]


def misses(case: Kept, **changes: Any) -> list[str]:
    """What is not as the case says."""
    found, facts = judged(case.printed(**changes), case.context)
    wrong = [] if found.level.word == case.level else [f"level {found.level.word}: {found.worst}"]
    return [f"{case.id}: {line}" for line in wrong + differences(case.reading, facts)]
