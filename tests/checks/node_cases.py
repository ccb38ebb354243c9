"""Answers to the checks that have a folder of YAML cases; one case a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from recovery.engine.judging import AnyCheck, Judged, judge_one
from recovery.model.check import Check
from recovery.model.output import Printed
from recovery.registry import collect

CASES = Path(__file__).parents[1] / "cases"


@dataclass(frozen=True)
class Case:
    """What a node printed, what it should have, and what we must conclude."""

    folder: str
    name: str
    text: str
    error_text: str
    command: str | None
    exit_status: int
    context: Mapping[str, Any]
    level: str
    finding: str
    facts: Mapping[str, Any]
    source: str

    @property
    def check(self) -> AnyCheck:
        return checks()[self.folder]

    def judged(self, text: str | None = None) -> Judged:
        command = self.check.command if self.command is None else self.command
        printed = Printed(
            self.text if text is None else text, self.error_text, self.exit_status, command
        )
        return judge_one(self.check, printed, self.context)


@cache
def checks() -> dict[str, AnyCheck]:
    """All checks by the name of their case folder."""
    found = collect("recovery.checks", Check)
    return {name.replace(".", "_").replace("-", "_"): check for name, check in found.items()}


@cache
def cases() -> tuple[Case, ...]:
    found = (p for p in sorted(CASES.glob("*/*.yaml")) if p.name != "index.yaml")
    return tuple(_read(path) for path in found if path.parent.name in checks())


def _read(path: Path) -> Case:
    body = yaml.safe_load(path.read_text(encoding="utf-8"))
    return Case(
        folder=path.parent.name,
        name=path.stem,
        text=body["text"],
        error_text=body.get("stderr", ""),
        command=body.get("command"),
        exit_status=body.get("exit_status", 0),
        context=body.get("context", {}),
        level=body["level"],
        finding=body.get("finding", ""),
        facts=body.get("facts", {}),
        source=body["source"],
    )
