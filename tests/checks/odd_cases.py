"""Odd but real answers of all kinds of tools, as ``tests/cases/odd/cases.yaml`` lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from recovery.model.output import Printed
from tests.checks.outputs import CASES

ODD = CASES / "odd"


@dataclass(frozen=True)
class Odd:
    """One answer, and how the worst finding about it has to begin."""

    id: str
    kind: str
    raw: bytes
    command: str
    exit_code: int | None
    is_error_text: bool
    context: Mapping[str, Any]
    level: str
    alone: str
    code: str
    says: str

    def printed(self, *, command: str | None = None, text: str | None = None) -> Printed:
        whole = self.raw.decode() if text is None else text
        out, err = ("", whole) if self.is_error_text else (whole, "")
        named = self.command if command is None else command
        return Printed(out, err, exit_status=self.exit_code, command=named)


@cache
def odd_cases() -> tuple[Odd, ...]:
    body = yaml.safe_load((ODD / "cases.yaml").read_text(encoding="utf-8"))
    return tuple(
        Odd(
            id=row["id"],
            kind=row["kind"],
            raw=(ODD / row["file"]).read_bytes(),
            command=row["command"],
            exit_code=row["exit_code"],
            is_error_text=row.get("stream") == "stderr",
            context=row.get("context", {}),
            level=row["level"],
            alone=row.get("alone", row["level"]),
            code=row["code"],
            says=row["says"],
        )
        for row in body["cases"]
    )
