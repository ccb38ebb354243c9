"""The pages and their addresses. Nothing here writes; every text is escaped by its template."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import anyio
from anyio import to_thread
from jinja2 import Environment, Template
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from recovery.errors import StoreError
from recovery.web.guard import POLICY, Guard
from recovery.web.progress import progress
from recovery.web.source import Following, Source

EVERY_S = 0.5  # how often a followed run is looked at
BEAT_S = 15.0  # a line without news, so that a dead connection is noticed
MOST_FOLLOWERS = 32
ROWS = 200
_STATIC = {"live.js": "text/javascript", "site.css": "text/css"}
_HEX = frozenset("0123456789abcdef")


@cache
def _page(name: str) -> Template:
    return Environment(autoescape=True).from_string(_text(name))


@cache
def _text(name: str) -> str:
    return files("recovery.web").joinpath("pages", name).read_text(encoding="utf-8")


@dataclass(slots=True)
class Site:
    """The page over one source of runs."""

    source: Source
    followers: int = 0

    def runs(self, request: Request) -> Response:
        """All runs, newest first."""
        rows = self.source.rows()
        values = {"rows": rows[:ROWS], "more": max(0, len(rows) - ROWS)}
        return HTMLResponse(_page("runs.html.j2").render(values))

    def run(self, request: Request) -> Response:
        """One run, live."""
        name = request.path_params["run"]
        _found(self.source.follow(name))
        return HTMLResponse(_page("run.html.j2").render(run=name))

    def report(self, request: Request) -> Response:
        """The whole report of a run, under its own policy."""
        text = _found(self.source.report(request.path_params["run"]))
        policy = f"{self.source.report_policy}; frame-ancestors 'none'"
        return HTMLResponse(text, headers={"content-security-policy": policy})

    def evidence(self, request: Request) -> Response:
        """One piece of evidence: as text, or to be saved where it is none."""
        digest = request.path_params["digest"]
        right = len(digest) == 64 and set(digest) <= _HEX
        if not right or request.path_params["part"] != digest[:2]:
            raise HTTPException(404, "no such evidence")
        content = _found(self.source.evidence(request.path_params["run"], digest))
        alone = {"content-security-policy": f"{POLICY}; sandbox"}
        if b"\0" in content:
            alone["content-disposition"] = f'attachment; filename="{digest[:12]}"'
            return Response(content, media_type="application/octet-stream", headers=alone)
        return PlainTextResponse(content.decode("utf-8", "backslashreplace"), headers=alone)

    def static(self, request: Request) -> Response:
        """The script and the style of the pages."""
        name = request.path_params["name"]
        if name not in _STATIC:
            raise HTTPException(404, "no such file")
        return Response(_text(name), media_type=_STATIC[name])

    async def events(self, request: Request) -> Response:
        """The run's progress as server-sent events: a whole picture each time."""
        following = _found(await to_thread.run_sync(self.source.follow, request.path_params["run"]))
        if self.followers >= MOST_FOLLOWERS:
            raise HTTPException(503, "too many pages are open", headers={"retry-after": "30"})
        return StreamingResponse(self._told(following), media_type="text/event-stream")

    async def _told(self, following: Following) -> AsyncIterator[str]:
        self.followers += 1
        last, silent_s = "", 0.0
        try:
            while True:
                picture = await to_thread.run_sync(self._picture, following)
                text = json.dumps(picture)
                if text != last:
                    yield f"event: progress\ndata: {text}\n\n"
                elif silent_s >= BEAT_S:
                    yield ": nothing new\n\n"
                silent_s = 0.0 if text != last or silent_s >= BEAT_S else silent_s + EVERY_S
                last = text
                if picture["state"] != "running":
                    yield "event: end\ndata: {}\n\n"
                    return
                await anyio.sleep(EVERY_S)
        except StoreError as error:
            yield f"event: trouble\ndata: {json.dumps(error.message)}\n\n"
        finally:
            self.followers -= 1

    def _picture(self, following: Following) -> dict[str, Any]:
        story, state, why = following.look()
        return progress(story, state, why, self.source.fold, self.source.now())


def _found(value: Any) -> Any:
    if value is None:
        raise HTTPException(404, "no such run")
    return value


def _unreadable(request: Request, error: Exception) -> Response:
    words = error.message if isinstance(error, StoreError) else "it cannot be read"
    return PlainTextResponse(f"{words}\n", 500)


def site(source: Source, *, token: str = "") -> Guard:
    """The application: its pages behind their guard."""
    pages = Site(source)
    run = "/runs/{run}"
    routes = [
        Route("/", pages.runs),
        Route("/static/{name}", pages.static),
        Route(f"{run}/", pages.run),
        Route(f"{run}/events", pages.events),
        Route(f"{run}/reports/report.html", pages.report),
        Route(f"{run}/evidence/{{part}}/{{digest}}", pages.evidence),
    ]
    app = Starlette(routes=routes, exception_handlers={StoreError: _unreadable})
    return Guard(app, token)
