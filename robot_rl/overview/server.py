"""The web server of the overview: each page sees all robots and may stop all of them, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import aiohttp
from aiohttp import WSMsgType, web

from robot_rl import console
from robot_rl.clock import Clock, SystemClock
from robot_rl.console.access.address import Address, ConsoleError
from robot_rl.console.access.guard import HEADERS, Access, guard
from robot_rl.console.access.rate_limit import RateLimit
from robot_rl.console.access.tls import Certificate, Tls
from robot_rl.console.admission import SEND_SECONDS, TOO_MANY, TOO_SLOW, let_in
from robot_rl.console.protocol import (
    MAX_BYTES,
    BadMessageError,
    ButtonMessage,
    parse,
    picture_message,
)
from robot_rl.overview.watched_robot import WatchedRobot, system_reason
from robot_rl.system.atomic_file import to_json

STATIC = Path(__file__).parent / "static"
CONSOLE_STATIC = Path(console.__file__).parent / "static"
MOST_ROBOTS = 256
"""A frame names its robot with one byte."""
PING_PERIOD = 7.0
"""Between two pings of a page [s]."""
STATE_PERIOD = 0.25
"""Between two messages to a page [s]."""


class Overview:
    """Serves the page of all robots.

    Args:
        address: Where to listen.
        robots: In the order in which they are shown.
        token: The secret that pages need; None makes one unless only this machine can reach the overview.
        certificate: PEM files of certificate and key; `own` makes and keeps one; None serves without TLS.
        log: Receives a line when a person stops the robots.

    Raises:
        ConsoleError: if the certificate cannot be used.
    """

    def __init__(
        self,
        address: Address,
        robots: Sequence[WatchedRobot],
        *,
        token: str | None = None,
        certificate: Certificate | None = None,
        log: Callable[[str], object] = lambda text: None,
    ) -> None:
        self.address, self._robots, self._log = address, robots, log
        self.tls = Tls(certificate, address) if certificate is not None else None
        self._access = Access(address, token)
        self._clock: Clock = SystemClock()

    @property
    def token(self) -> str | None:
        """The secret that pages need; None where only this machine can reach the overview."""
        return self._access.token

    async def serve(self, ready: Callable[[], object]) -> None:
        """Watch the robots and serve pages until this is cancelled.

        Args:
            ready: Called once pages can be opened.

        Raises:
            ConsoleError: if it cannot listen there.
        """
        app = web.Application(middlewares=[guard(self._access)], client_max_size=MAX_BYTES)
        app.router.add_get("/", self._index)
        app.router.add_get("/ws", self._socket)
        app.router.add_static("/static", STATIC)
        app.router.add_static("/console", CONSOLE_STATIC)  # its colours, and its words for who is in control
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await self._listen_there(runner)
            connector = aiohttp.TCPConnector(limit=0)  # by default it would be 100
            async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as group:
                for robot in self._robots:
                    group.create_task(robot.watch(session))
                ready()
        finally:
            await runner.cleanup()

    async def _listen_there(self, runner: web.AppRunner) -> None:
        address, context = self.address, None if self.tls is None else self.tls.context
        try:
            await web.TCPSite(runner, address.host, address.port, ssl_context=context).start()
        except OSError as error:
            raise ConsoleError(
                f"the overview cannot listen on {address.host}:{address.port}: {system_reason(error)}; choose another "
                "port with --listen HOST:PORT"
            ) from error
        address.port = runner.addresses[0][1]  # where it was 0, the one that was free

    async def _index(self, request: web.Request) -> web.StreamResponse:
        return web.FileResponse(STATIC / "index.html", headers=HEADERS)

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(max_msg_size=MAX_BYTES, heartbeat=PING_PERIOD, timeout=SEND_SECONDS)
        await socket.prepare(request)
        name = await let_in(socket, self._access)
        if name is None:
            return socket
        sender = asyncio.create_task(self._send(socket))
        try:
            await self._listen(socket, name)
        finally:
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)
        return socket

    async def _listen(self, socket: web.WebSocketResponse, name: str) -> None:
        limit = RateLimit(self._clock)
        async for message in socket:
            if not limit.allows():
                await socket.close(code=TOO_MANY, message=b"too many messages")
                return
            try:
                wanted = parse(message.data) if message.type == WSMsgType.TEXT else None
            except BadMessageError as error:
                await socket.send_str(to_json({"type": "error", "text": f"not understood: {error}"}))
                continue
            match wanted:
                case ButtonMessage(what="stop all"):
                    self._log(f"all robots are stopped by {name}")
                    await asyncio.gather(*(robot.stop(name) for robot in self._robots))
                case ButtonMessage(what="give up"):
                    missing = [robot.address.name for robot in self._robots if robot.give_up()]
                    self._log(f"{name} no longer wants to stop {', '.join(missing) or 'anybody'}")
                case _:
                    text = "not understood; valid: do stop all, do give up"
                    await socket.send_str(to_json({"type": "error", "text": text}))

    async def _send(self, socket: web.WebSocketResponse) -> None:
        """Send the state of all robots, and frames that are new; a page that is too slow is disconnected."""
        shown = [0] * len(self._robots)
        try:
            while True:
                async with asyncio.timeout(SEND_SECONDS):
                    await socket.send_str(to_json({"type": "robots", "robots": [one.facts() for one in self._robots]}))
                for place, robot in enumerate(self._robots):
                    number, frame = robot.picture
                    if number != shown[place]:
                        shown[place] = number
                        async with asyncio.timeout(SEND_SECONDS):
                            await socket.send_bytes(picture_message(place, 0.0, frame))
                await asyncio.sleep(STATE_PERIOD)
        except TimeoutError:
            await socket.close(code=TOO_SLOW, message=b"too slow", drain=False)
