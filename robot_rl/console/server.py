"""The console's web server: a thread of its own beside the control loop, which never waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from aiohttp import web

from robot_rl.clock import Clock, SystemClock
from robot_rl.console.access.address import Address, ConsoleError
from robot_rl.console.access.guard import HEADERS, Access, guard
from robot_rl.console.access.tls import Certificate, Tls
from robot_rl.console.buttons import Log, PageActions, PageDevices
from robot_rl.console.control_lease import HEARTBEAT, Lease
from robot_rl.console.job_state import JobState
from robot_rl.console.places import Places
from robot_rl.console.protocol import MAX_BYTES
from robot_rl.console.read_routes import ReadRoutes
from robot_rl.console.recorded_episodes import Archive
from robot_rl.console.scene import Geometry
from robot_rl.console.snapshot import ConsoleSnapshot
from robot_rl.console.websocket import Page
from robot_rl.env.supervision import Supervised

STATIC = Path(__file__).parent / "static"
SILENCE = 10.0
"""Time after which a page that answers no ping is disconnected [s]."""
CLOSING = 2.0
"""Time that a page has to answer that it is disconnected [s]."""
WATCH_PERIOD = 0.02
"""Time between two checks of the page in control [s]."""
SEND_BUFFER = 128 * 1024
"""Bytes that may wait for a page before sending to it waits, too."""


class Console:
    """The server of the operator console. Use it in a `with` statement.

    Args:
        address: Where to listen.
        supervision: Of the robot.
        job: State of the job, which lists its requests.
        request: Passes a request to the job.
        on_label: Receives an episode's id and whether it was a success, when a person labels a recorded episode.
        token: The secret that pages need; None makes one unless only this machine can reach the console.
        certificate: PEM files of certificate and key; `own` makes and keeps one; None serves without TLS.
        store: Recorded episodes, to replay and label; of tasks that take turns, those of each by its name.
        log: File for the record of actions and notes of operators; of tasks that take turns, that of each by its name.
        geometry: Of the robot; None where nothing is known of it.
        heartbeat: Time without a message from the page in control after which the arm holds [s].
        silence: Time after which a page that answers no ping is disconnected [s].

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
        certificate: Certificate | None = None,
        store: Path | Mapping[str, Path] | None = None,
        log: Log | None = None,
        geometry: Geometry | None = None,
        heartbeat: float = HEARTBEAT,
        silence: float = SILENCE,
    ) -> None:
        self.devices = PageDevices.within(heartbeat)
        """Receive what the hands of the page in control do."""
        self.address = address
        self.tls = Tls(certificate, address) if certificate is not None else None
        self._access = Access(address, token)
        self._clock: Clock = SystemClock()
        self._lease = Lease(self._clock, heartbeat)
        self._snapshot = ConsoleSnapshot(job, supervision, geometry or Geometry())
        views = self._snapshot.views
        self._actions = PageActions(supervision, job, self._lease, self.devices, views, request, on_label, log)
        self._archive = Archive(store) if store is not None else None
        self._pages: dict[int, Page] = {}
        self._places = Places(self._lease)
        self._silence = silence
        self._numbers = 0
        self._ready = threading.Event()
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._serve, name="console", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end = asyncio.Event()

    @property
    def token(self) -> str | None:
        """The secret that pages need; None where only this machine can reach the console."""
        return self._access.token

    @property
    def port(self) -> int:
        """TCP port; where 0 was given, the free one that was found."""
        return self.address.port

    @property
    def serving(self) -> bool:
        """Whether pages can be opened."""
        return self._ready.is_set() and self._failure is None

    @property
    def page_count(self) -> int:
        """Number of open pages; connections that have not shown the token are none."""
        return self._places.taken

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
                f"the console cannot listen on {self.address.host}:{self.address.port}: {self._failure.strerror}; "
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
        app = web.Application(middlewares=[guard(self._access)], client_max_size=MAX_BYTES)
        app.router.add_get("/", self._index)
        app.router.add_get("/ws", self._socket)
        ReadRoutes(self._archive, self._snapshot, self._access).add_to(app)
        app.router.add_static("/static", STATIC)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            site = web.TCPSite(
                runner,
                self.address.host,
                self.address.port,
                ssl_context=self.tls.context if self.tls is not None else None,
            )
            await site.start()
            self.address.port = runner.addresses[0][1]  # where it was 0, the one that was free
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

    async def _index(self, request: web.Request) -> web.StreamResponse:
        return web.FileResponse(STATIC / "index.html", headers=HEADERS)

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(
            max_msg_size=MAX_BYTES, writer_limit=SEND_BUFFER, heartbeat=self._silence / 1.5, timeout=CLOSING
        )  # a ping after two thirds of the silence; its answer has as long as half of that
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
            admit=lambda number: self._make_room(self._places.admit(number)),
        )
        self._pages[number] = page
        self._make_room(self._places.arrive(number))
        try:
            await page.run()
        finally:
            del self._pages[number]
            self._places.leave(number)
        return socket

    def _make_room(self, number: int | None) -> None:
        """Disconnect a page that lost its place, if one did."""
        if number is not None:
            self._pages[number].make_room()
