"""The addresses of the dashboard: the page, its files, the answers, and the news.

| Address | What it gives |
|---|---|
| `/` | the page; what it shows stands behind the `#` |
| `/static/…`, `/vendor/…` | its modules and its style sheet; uPlot |
| `/api/NAME?…` | the answer to a question, as JSON (`answers`) |
| `/film?run=…&name=…` | a film in the folder of a run |
| `/news` | server-sent events: the names of runs and sweeps that have changed |
"""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator
from typing import Protocol

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from stepladder.dashboard.answers import answer
from stepladder.dashboard.page import live_page
from stepladder.dashboard.queries.films import film_file
from stepladder.dashboard.queries.sweeps import sweep_stamps
from stepladder.dashboard.run_index import RunIndex, Stamp
from stepladder.dashboard.server.guard import Access, Guard
from stepladder.errors import StepladderError
from stepladder.visible import one_visible_line

NEWS_S = 1.0
"""Seconds between two looks at the runs' files."""


def make_app(index: RunIndex, access: Access, stopping: threading.Event) -> ASGIApp:
    """Return the dashboard of some runs as an ASGI app.

    Args:
        index: The runs.
        access: Who may ask.
        stopping: Set when the server is to end, so that no stream keeps it.
    """

    def ask(request: Request) -> Response:
        # Starlette runs it in a thread, as databases are read.
        try:
            found = answer(index, request.path_params["name"], request.query_params)
        except (StepladderError, OSError) as error:
            return JSONResponse({"problem": one_visible_line(error)}, status_code=422)
        return JSONResponse(found)

    def film(request: Request) -> Response:
        words = request.query_params
        try:
            path, kind = film_file(index.folder(words.get("run", "")), words.get("name", ""))
        except (StepladderError, OSError) as error:
            return JSONResponse({"problem": one_visible_line(error)}, status_code=404)
        return FileResponse(path, media_type=kind)

    async def show(request: Request) -> Response:
        return HTMLResponse(live_page())

    async def stream(request: Request) -> Response:
        return StreamingResponse(news(index, request, stopping), media_type="text/event-stream")

    package = "stepladder.dashboard"
    app = Starlette(
        routes=[
            Route("/", show),
            Route("/api/{name}", ask),
            Route("/news", stream),
            Route("/film", film),
            Mount("/static", StaticFiles(packages=[(package, "static")])),
            Mount("/vendor", StaticFiles(packages=[(package, "vendor")])),
        ]
    )
    return Guard(app, access)


def _stamps(index: RunIndex) -> dict[str, Stamp]:
    return {**sweep_stamps(index), **index.stamps()}


class Reader(Protocol):
    """Who reads the news; a request is one."""

    async def is_disconnected(self) -> bool:
        """Whether nobody reads any more."""
        ...


async def news(
    index: RunIndex, reader: Reader, stopping: threading.Event, pause_s: float = NEWS_S
) -> AsyncGenerator[str, None]:
    """Yield the names of runs and sweeps that have changed, when some have; else a sign of life."""
    before = await asyncio.to_thread(_stamps, index)
    yield "retry: 2000\n\n"
    while not stopping.is_set() and not await reader.is_disconnected():
        await asyncio.sleep(pause_s)
        now = await asyncio.to_thread(_stamps, index)
        changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        before = now
        yield f"data: {json.dumps(changed)}\n\n" if changed else ": still here\n\n"
