"""`junit`: a test suite a step, a test case a node, for CI systems."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET  # writes only: nothing foreign is parsed
from collections.abc import Callable, Iterable, Sequence

from recovery.engine.history import StepStory, story_of
from recovery.model.events import Event
from recovery.model.ports import Evidence, Report
from recovery.model.result import NodeResult
from recovery.model.verdict import Level

# XML 1.0 knows no other control characters, not even as references.
_FORBIDDEN = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _render(
    events: Sequence[Event], evidence: Evidence, fold: Callable[[Iterable[str]], str]
) -> str:
    story = story_of(events)
    root = ET.Element("testsuites", name=story.started.run if story.started else "")
    for step in story.steps.values():
        root.append(_suite(step))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(step: StepStory) -> ET.Element:
    levels = [r.verdict.level for r in step.results.values()]
    suite = ET.Element(
        "testsuite",
        name=step.id,
        tests=str(len(levels)),
        failures=str(levels.count(Level.FAIL)),
        errors=str(levels.count(Level.UNKNOWN)),
        skipped="0",
    )
    suite.extend(_case(step.id, r) for r in step.results.values())
    return suite


def _case(step: str, result: NodeResult) -> ET.Element:
    case = ET.Element("testcase", classname=step, name=result.node, time=f"{result.duration_s:.3f}")
    tags = {Level.FAIL: "failure", Level.UNKNOWN: "error"}
    level = result.verdict.level
    if level in tags:
        worst = result.verdict.worst
        bad = ET.SubElement(case, tags[level], message=_clean(worst.finding))
        bad.text = _clean("\n".join(f"{f.finding} -> {f.remedy}" for f in result.verdict.findings))
    return case


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("?", text)


JUNIT = Report(name="junit", about="for CI systems", suffix=".xml", render=_render)
