"""Runbook text -> Runbook -> Plan. Pure: a dry run is this package and nothing else."""

from recovery.plan.blast import Excess, excess_of
from recovery.plan.builder import build
from recovery.plan.fields import render_step
from recovery.plan.grammar import parse_duration as seconds
from recovery.plan.grammar import parse_size as size_bytes
from recovery.plan.grammar import show_duration
from recovery.plan.lint import lint
from recovery.plan.outline import outline, worst_case_of, worst_case_s
from recovery.plan.printed import parse_output
from recovery.plan.problems import Problem
from recovery.plan.reader import Runbook, read_runbook
from recovery.plan.schema import runbook_schema
from recovery.plan.template import evaluate, render
from recovery.plan.values import plan_as_values, plan_from_values

__all__ = [
    "Excess",
    "Problem",
    "Runbook",
    "build",
    "evaluate",
    "excess_of",
    "lint",
    "outline",
    "parse_output",
    "plan_as_values",
    "plan_from_values",
    "read_runbook",
    "render",
    "render_step",
    "runbook_schema",
    "seconds",
    "show_duration",
    "size_bytes",
    "worst_case_of",
    "worst_case_s",
]
