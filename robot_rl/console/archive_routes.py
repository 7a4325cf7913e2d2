"""The pages' requests for recorded episodes: what is drawn of one, and its frames."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiohttp import web

from robot_rl.console.access import Access
from robot_rl.console.recorded_episodes import Archive
from robot_rl.errors import RobotRLError
from robot_rl.system.atomic_file import to_json


class ArchiveRoutes:
    """The addresses below `/episodes`.

    Args:
        archive: Recorded episodes, None if there are none.
        access: The checks before a page is served.
    """

    def __init__(self, archive: Archive | None, access: Access) -> None:
        self._archive, self._access = archive, access

    def add_to(self, app: web.Application) -> None:
        """Add the addresses to the server."""
        app.router.add_get("/episodes/{id}", self._replay)
        app.router.add_get("/episodes/{id}/{camera}/{step}.jpg", self._frame)

    async def _replay(self, request: web.Request) -> web.StreamResponse:
        archive = self._let_in(request)
        return await _answer(lambda: to_json(archive.replay(request.match_info["id"])), "application/json")

    async def _frame(self, request: web.Request) -> web.StreamResponse:
        archive, what = self._let_in(request), request.match_info
        if not what["step"].isdecimal():
            raise web.HTTPBadRequest(text="the step must be a whole number")
        return await _answer(lambda: archive.frame(what["id"], what["camera"], int(what["step"][:6])), "image/jpeg")

    def _let_in(self, request: web.Request) -> Archive:
        """Return the recorded episodes, for a page that has the token."""
        if not self._access.knows(request.headers.get("Authorization", "").removeprefix("Bearer ")):
            raise web.HTTPUnauthorized(text="wrong token")
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
