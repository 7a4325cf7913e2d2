"""Requests that only read: what is drawn of a recorded episode and its frames, for pages; metrics, for monitors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiohttp import web

from robot_rl.console.access.guard import Access
from robot_rl.console.metrics_text import exposition
from robot_rl.console.recorded_episodes import Archive
from robot_rl.console.snapshot import ConsoleSnapshot
from robot_rl.errors import RobotRLError
from robot_rl.system.atomic_file import to_json


class ReadRoutes:
    """The addresses below `/episodes`, and `/metrics`.

    Args:
        archive: Recorded episodes, None if there are none.
        snapshot: The state of the job and of the arm.
        access: The checks before anything is served.
    """

    def __init__(self, archive: Archive | None, snapshot: ConsoleSnapshot, access: Access) -> None:
        self._archive, self._snapshot, self._access = archive, snapshot, access

    def add_to(self, app: web.Application) -> None:
        """Add the addresses to the server."""
        app.router.add_get("/episodes/{id}", self._replay)
        app.router.add_get("/episodes/{id}/{camera}/{step}.jpg", self._frame)
        app.router.add_get("/metrics", self._metrics)

    async def _replay(self, request: web.Request) -> web.StreamResponse:
        archive = self._let_in(request)
        return await _answer(lambda: to_json(archive.replay(request.match_info["id"])), "application/json")

    async def _frame(self, request: web.Request) -> web.StreamResponse:
        archive, what = self._let_in(request), request.match_info
        if not what["step"].isdecimal():
            raise web.HTTPBadRequest(text="the step must be a whole number")
        return await _answer(lambda: archive.frame(what["id"], what["camera"], int(what["step"][:6])), "image/jpeg")

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        self._check_token(request)
        text = exposition(self._snapshot.job(), self._snapshot.state(), self._snapshot.episodes())
        return web.Response(body=text.encode(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    def _check_token(self, request: web.Request) -> None:
        """Refuse a request without the token."""
        if not self._access.knows(request.headers.get("Authorization", "").removeprefix("Bearer ")):
            raise web.HTTPUnauthorized(text="wrong token")

    def _let_in(self, request: web.Request) -> Archive:
        """Return the recorded episodes, for a page that has the token."""
        self._check_token(request)
        if self._archive is None:
            raise web.HTTPNotFound(text="nothing is recorded here")
        return self._archive


async def _answer(make: Callable[[], str | bytes], content_type: str) -> web.Response:
    """Return what a thread makes, so that other pages are served meanwhile."""
    try:
        content = await asyncio.get_running_loop().run_in_executor(None, make)
    except RobotRLError as error:
        raise web.HTTPNotFound(text=str(error)) from error
    body = content.encode() if isinstance(content, str) else content
    return web.Response(body=body, content_type=content_type)
