"""The page put together: template, style, script, values, and the rule of what it may load."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, Template
from markupsafe import Markup

from recovery.engine.history import story_of
from recovery.engine.summary import printable
from recovery.model.events import Event
from recovery.model.ports import Evidence
from recovery.reports.html import overview, pictures
from recovery.reports.html.nodes import page_data

Fold = Callable[[Iterable[str]], str]


@cache
def _page() -> Template:
    return Environment(autoescape=True, trim_blocks=False).from_string(_text("page.html.j2"))


@cache
def _text(name: str) -> str:
    return files("recovery.reports.html").joinpath(name).read_text(encoding="utf-8")


@cache
def policy() -> str:
    """The page's own rule (Content-Security-Policy): its one script, and nothing from outside."""
    digest = base64.b64encode(hashlib.sha256(_text("page.js").encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def render(events: Sequence[Event], evidence: Evidence, fold: Fold) -> str:
    """A run as one page that needs neither a server nor a network."""
    story = story_of(events)
    values = {
        **overview.head(story),
        "findings": overview.findings(story, fold),
        "set_aside": overview.set_aside(story, fold),
        "steps": [overview.step(s, story.last_at) for s in story.steps.values()],
        "grid": overview.grid(story, fold),
        "timeline": overview.timeline(story),
        "ladder": pictures.ladder(story),
        "mesh": pictures.mesh(story, fold),
        "pairs": pictures.pairs(story),
        "rails": pictures.rails(story),
        "curves": pictures.curves(story),
        "topologies": pictures.topologies(story, evidence, fold),
    }
    return _page().render(
        {k: _clean(v) for k, v in values.items()},
        policy=policy(),
        script=Markup(_text("page.js")),  # noqa: S704 - our own file
        style=Markup(_text("page.css")),  # noqa: S704 - as above
        data=_for_script(_clean(page_data(story, evidence, fold))),
    )


def _for_script(values: Any) -> Markup:
    """JSON that cannot end its own element, whatever words are in it."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 - no `<` is left in it


def _clean(value: Any) -> Any:
    """Text without control characters: they have no place in a page."""
    if isinstance(value, str):
        return value if value.isprintable() else printable(value)
    if isinstance(value, Mapping):
        return {k: _clean(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(v) for v in value]
    return value
