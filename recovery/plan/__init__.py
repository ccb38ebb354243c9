"""Runbook text -> Runbook -> Plan. Pure: a dry run is this package and nothing else."""

from recovery.plan.fields import render_step
from recovery.plan.grammar import parse_duration as seconds
from recovery.plan.grammar import parse_size as size_bytes
from recovery.plan.printed import parse_output
from recovery.plan.reader import Runbook, read_runbook
from recovery.plan.template import evaluate, render

__all__ = [
    "Runbook",
    "evaluate",
    "parse_output",
    "read_runbook",
    "render",
    "render_step",
    "seconds",
    "size_bytes",
]
