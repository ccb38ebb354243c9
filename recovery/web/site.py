"""The pages and their addresses. Nothing here writes; every text is escaped by its template."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
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
class Watched:
    """A run that is followed; however many pages follow it, it is read and drawn once."""

    source: Source
    following: Following
    lock: threading.Lock = field(default_factory=threading.Lock)
    drawn: tuple[str, bool] = ("", True)
    drawn_at: float = float("-inf")

    def picture(self) -> tuple[str, bool]:
        """The run as JSON, and whether it goes on; never older than half of `EVERY_S`."""
        with self.lock:
            now = self.source.now()
            if now - self.drawn_at >= EVERY_S / 2:
                story, state, why = self.following.look()
                values = progress(story, state, why, self.source.fold, now)
                self.drawn = json.dumps(values), state == "running"
                self.drawn_at = now
            return self.drawn


@dataclass(slots=True)
class Site:
    """The page over one source of runs."""

    source: Source
    followers: int = 0
    watched: dict[str, Watched] = field(default_factory=dict)

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
        run = request.path_params["run"]
        if self.followers >= MOST_FOLLOWERS:
            raise HTTPException(503, "too many pages are open", headers={"retry-after": "30"})
        if run not in self.watched:
            following = _found(await to_thread.run_sync(self.source.follow, run))
            self.watched.setdefault(run, Watched(self.source, following))
        return StreamingResponse(self._told(self.watched[run]), media_type="text/event-stream")

    async def _told(self, watched: Watched) -> AsyncIterator[str]:
        last, spoke_at = "", anyio.current_time()
        self.followers += 1
        try:
            while True:
                began_at = anyio.current_time()
                text, goes_on = await to_thread.run_sync(watched.picture)
                if text != last:
                    yield f"event: progress\ndata: {text}\n\n"
                elif began_at - spoke_at > BEAT_S:
                    yield ": nothing new\n\n"
                spoke_at = began_at if text != last else spoke_at
                last = text
                if not goes_on:
                    yield "event: end\ndata: {}\n\n"
                    return
                # A run of ten thousand nodes takes a while to draw: leave time for others.
                await anyio.sleep(max(EVERY_S, 3 * (anyio.current_time() - began_at)))
        except StoreError as error:
            yield f"event: trouble\ndata: {json.dumps(error.message)}\n\n"
        finally:
            self.followers -= 1
            if not self.followers:
                self.watched.clear()


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
