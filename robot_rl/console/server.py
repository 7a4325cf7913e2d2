"""The console's web server: a thread of its own beside the control loop, which never waits for it."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

from robot_rl.clock import Clock, SystemClock
from robot_rl.console.access import Access, Address
from robot_rl.console.buttons import PageActions
from robot_rl.console.control_lease import HEARTBEAT, Lease
from robot_rl.console.job_state import JobState
from robot_rl.console.protocol import AXES, BUTTONS, MAX_BYTES
from robot_rl.console.recorded_episodes import Archive
from robot_rl.console.snapshot import ConsoleSnapshot
from robot_rl.console.websocket import Page
from robot_rl.env.supervision import Supervised
from robot_rl.errors import RobotRLError
from robot_rl.system.atomic_file import to_json
from robot_rl.teleop.pushed import PushedDevice

STATIC = Path(__file__).parent / "static"
MAX_PAGES = 12
WATCH_PERIOD = 0.02
"""Time between two checks of the page in control [s]."""
BACKSTOP = 1.25
"""Age of the newest input, in heartbeats, at which the control loop holds by itself, were this thread stuck."""
SEND_BUFFER = 128 * 1024
"""Bytes that may wait for a page before sending to it waits, too."""
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class ConsoleError(RobotRLError):
    """The console cannot be served, e.g. because its port is in use."""


class Console:
    """The server of the operator console. Use it in a `with` statement.

    Args:
        address: Where to listen.
        supervision: Of the robot.
        job: State of the job, which lists its requests.
        request: Passes a request to the job.
        on_label: Receives an episode's id and whether it was a success, when a person labels a recorded episode.
        token: The secret that pages need; None makes one unless only this machine can reach the console.
        certificate: PEM files of certificate and key; None serves without TLS.
        store: Recorded episodes, to replay and label.
        log: File for the record of actions and notes of operators.
        heartbeat: Time without a message from the page in control after which the arm holds [s].

    Raises:
        ConsoleError: if the certificate cannot be used.
    """

    def __init__(
        self,
        address: Address,
        supervision: Supervised,
        job: JobState,
        request: Callable[[str], None],
        *,
        on_label: Callable[[str, bool], None] = lambda episode_id, success: None,
        token: str | None = None,
        certificate: tuple[Path, Path] | None = None,
        store: Path | None = None,
        log: Path | None = None,
        heartbeat: float = HEARTBEAT,
    ) -> None:
        self.device = PushedDevice("browser", AXES, BUTTONS, name="console", max_age=BACKSTOP * heartbeat)
        """Receives the pages' keys, pads and gamepads."""
        self._address, self._access = address, Access(address, token)
        self._tls = _tls(*certificate) if certificate is not None else None
        self._clock: Clock = SystemClock()
        self._lease = Lease(self._clock, heartbeat)
        self._snapshot = ConsoleSnapshot(job, supervision)
        self._actions = PageActions(supervision, job, self._lease, self.device, request, on_label, log)
        self._archive = Archive(store) if store is not None else None
        self._pages: dict[int, Page] = {}
        self._numbers = 0
        self._ready = threading.Event()
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._serve, name="console", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end = asyncio.Event()

    @property
    def url(self) -> str:
        """The address for a browser, with the token."""
        host = f"[{self._address.host}]" if ":" in self._address.host else self._address.host
        scheme = "https" if self._tls is not None else "http"
        token = f"#token={self._access.token}" if self._access.token is not None else ""
        return f"{scheme}://{host}:{self._address.port}/{token}"

    @property
    def port(self) -> int:
        """TCP port; where 0 was given, the free one that was found."""
        return self._address.port

    @property
    def serving(self) -> bool:
        """Whether pages can be opened."""
        return self._ready.is_set() and self._failure is None

    @property
    def page_count(self) -> int:
        """Number of open pages."""
        return len(self._pages)

    @property
    def owner(self) -> str | None:
        """Name of the operator in control; None if nobody is."""
        owner = self._lease.owner
        return owner.name if owner is not None else None

    def record_to(self, log: Path) -> None:
        """Write the record of actions and notes to that file from now on."""
        self._actions.log = log

    def __enter__(self) -> Console:
        """Start to serve.

        Raises:
            ConsoleError: if it cannot listen there.
        """
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise ConsoleError(
                f"the console cannot listen on {self._address.host}:{self._address.port}: {self._failure.strerror}; "
                "choose another port with --console HOST:PORT"
            )
        return self

    def __exit__(self, *exception: object) -> None:
        """Disconnect all pages and stop."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    # --------------------------------------------------------- its own thread

    def _serve(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        app = web.Application(middlewares=[self._guard], client_max_size=MAX_BYTES)
        app.router.add_get("/", self._index)
        app.router.add_get("/ws", self._socket)
        app.router.add_get("/episodes/{id}", self._replay)
        app.router.add_get("/episodes/{id}/{camera}/{step}.jpg", self._frame)
        app.router.add_static("/static", STATIC)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            site = web.TCPSite(runner, self._address.host, self._address.port, ssl_context=self._tls)
            await site.start()
            self._address.port = runner.addresses[0][1]  # where it was 0, the one that was free
        except OSError as error:
            self._failure = error
            self._ready.set()
            await runner.cleanup()
            return
        self._loop = asyncio.get_running_loop()
        self._ready.set()
        watch = asyncio.create_task(self._watch())
        await self._end.wait()
        watch.cancel()
        await runner.cleanup()

    async def _watch(self) -> None:
        """Notice that the page in control has gone silent.

        Only the second check in a row counts: if it was this thread that was late, the page's messages are read in
        between.
        """
        overdue = False
        while True:
            await asyncio.sleep(WATCH_PERIOD)
            before, overdue = overdue, self._lease.overdue
            if before and overdue and self._lease.owner is not None:
                self._pages[self._lease.owner.page].lose(f"was silent for {self._lease.heartbeat:g} s")

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Refuse requests of other pages; add the headers that isolate ours."""
        if not self._access.same_origin(request.headers.get("Origin"), request.headers.get("Host", "")):
            return web.Response(status=403, text="this console answers its own page only", headers=HEADERS)
        response = await handler(request)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    async def _index(self, request: web.Request) -> web.StreamResponse:
        return web.FileResponse(STATIC / "index.html", headers=HEADERS)

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        if len(self._pages) >= MAX_PAGES:
            return web.Response(status=503, text=f"more than {MAX_PAGES} pages are open; close one")
        socket = web.WebSocketResponse(max_msg_size=MAX_BYTES, writer_limit=SEND_BUFFER)
        await socket.prepare(request)
        self._numbers += 1
        number = self._numbers
        page = Page(
            number,
            socket,
            actions=self._actions,
            lease=self._lease,
            access=self._access,
            archive=self._archive,
            clock=self._clock,
            snapshot=self._snapshot,
        )
        self._pages[number] = page
        try:
            await page.run()
        finally:
            del self._pages[number]
        return socket

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


def _tls(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise ConsoleError(f"cannot use certificate {certificate} with key {key}: {error}") from error
    return context
