"""One robot as the overview sees it: a page of the robot's console that is a program, and only looks and stops."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Callable
from typing import Any

import aiohttp

from robot_rl.console.admission import BAD_TOKEN
from robot_rl.overview.console_messages import ShownJob, ShownState
from robot_rl.overview.robot_address import RobotAddress
from robot_rl.system.printable import one_line

NAME = "the overview"
"""Of our page at the consoles."""
SILENCE = 3.0
"""Time without a message after which a console is taken to be gone, and longest time to connect [s].

A console sends its state ten times a second."""
RETRY = 1.0
"""Between two attempts to connect, and to stop [s]."""
PICTURE_PERIOD = 1.0
"""Between two requests for frames [s]."""
MAX_BYTES = 16 * 2**20
"""Of one message of a console."""


class WatchedRobot:
    """The connection to the console of a robot. Used by one thread only.

    Args:
        address: Of the console.
        log: Receives a line when the connection is made or lost.

    Attributes:
        picture: The newest frame of the first camera as JPEG, and a number that changes with it.
    """

    def __init__(self, address: RobotAddress, log: Callable[[str], object] = lambda text: None) -> None:
        self.address, self._log = address, log
        self.picture: tuple[int, bytes] = (0, b"")
        self._job: ShownJob | None = None
        self._state: ShownState | None = None
        self._heard = float("-inf")
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._why = "not connected yet"
        self._stop_for = ""  # who wants it stopped, until it is
        self._stopped_for = ""  # who had it stopped, until its console reports that it is released
        self._stop_sent = float("-inf")

    # For pages.

    @property
    def connected(self) -> bool:
        """Whether the console is heard."""
        return self._socket is not None and self._state is not None

    @property
    def stopped(self) -> bool:
        """Whether the console reports an emergency stop."""
        return self.connected and self._state is not None and self._state.emergency

    def facts(self) -> dict[str, Any]:
        """Return what pages show: the newest state, also where it is old, and what became of a stop."""
        job, state = self._job, self._state
        return {
            "name": self.address.name,
            "page": self.address.page,
            "connected": self.connected,
            "why": "" if self.connected else self._why,
            "age": None if state is None else round(time.monotonic() - self._heard, 1),
            "job": None if job is None else job.model_dump(),
            "state": None if state is None else state.model_dump(),
            "recent": (0, 0) if state is None else state.recent,
            "remark": "" if state is None else state.remark,
            "stop_wanted": bool(self._stop_for),
        }

    async def stop(self, who: str) -> None:
        """Stop the robot now, or as soon as there is a connection; it counts when its console reports the stop."""
        self._stop_for, self._stop_sent = who, float("-inf")
        await self._press_stop()

    def give_up(self) -> bool:
        """No longer stop a robot that could not be reached; return whether it was to be stopped."""
        wanted, self._stop_for, self._stopped_for = bool(self._stop_for), "", ""
        return wanted

    # The connection.

    async def watch(self, session: aiohttp.ClientSession) -> None:
        """Stay connected, for ever; whatever a console does, the others are watched on."""
        while True:
            try:
                async with asyncio.timeout(SILENCE):
                    socket = await session.ws_connect(
                        self.address.socket,
                        ssl=self.address.certificate,
                        max_msg_size=MAX_BYTES,
                        timeout=aiohttp.ClientWSTimeout(ws_close=1.0),
                    )
                try:
                    await self._serve(socket)
                finally:
                    self._socket = None
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(SILENCE):
                            await socket.close()
            except (aiohttp.ClientError, OSError) as error:
                self._lost(_reason(error))
            except Exception as error:  # noqa: BLE001  (whatever it sends, the others are watched on)
                self._lost(f"what answers there is no console of this version: {one_line(str(error))}")
            await asyncio.sleep(RETRY)

    async def _serve(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        await socket.send_json({"type": "hello", "name": NAME, "token": self.address.token})
        wanted_at = float("-inf")
        while True:
            async with asyncio.timeout(SILENCE):
                message = await socket.receive()
            if message.type == aiohttp.WSMsgType.BINARY:
                self._see(message.data)
            elif message.type == aiohttp.WSMsgType.TEXT:
                self._hear(socket, json.loads(message.data))
            else:
                wrong = socket.close_code == BAD_TOKEN
                self._lost("the token is wrong" if wrong else "the console has ended the connection")
                return
            if time.monotonic() - wanted_at > PICTURE_PERIOD:
                wanted_at = time.monotonic()
                await socket.send_json({"type": "seen"})
            await self._press_stop()

    def _hear(self, socket: aiohttp.ClientWebSocketResponse, message: dict[str, Any]) -> None:
        """Take what a console sends.

        Raises:
            ValueError: if it is not what one of this version sends.
        """
        if message["type"] in ("welcome", "job"):
            self._job = ShownJob.model_validate(message["job"])
        elif message["type"] == "state":
            state = ShownState.model_validate(message)
            if not self.connected:
                self._log(f"{self.address.name}: connected")
            before, self._state = self.stopped, state
            self._heard, self._socket = time.monotonic(), socket
            self._why = ""
            if self.stopped:
                self._stopped_for = self._stop_for or self._stopped_for
                if self._stop_for:
                    self._log(f"{self.address.name}: stopped")
                self._stop_for = ""
            elif before:
                self._stopped_for = ""  # somebody has released it, who stands there
            elif self._stopped_for:  # its process has begun anew
                self._stop_for, self._stopped_for = self._stopped_for, ""

    def _see(self, data: bytes) -> None:
        """Keep the frame of the first camera; see `picture_message`."""
        if data[:1] == b"\0":
            self.picture = (self.picture[0] + 1, data[3:])

    async def _press_stop(self) -> None:
        """Request the stop that is wanted, again and again until the console reports it."""
        if self._socket is None or not self._stop_for or time.monotonic() - self._stop_sent < RETRY:
            return
        self._stop_sent = time.monotonic()
        try:
            await self._socket.send_json({"type": "do", "what": "e-stop"})  # as a console of any version understands it
            await self._socket.send_json({"type": "do", "what": "e-stop", "by": self._stop_for})
        except (aiohttp.ClientError, ConnectionError) as error:
            self._log(f"{self.address.name}: the stop was not delivered: {error}")

    def _lost(self, why: str) -> None:
        if why != self._why:
            self._log(f"{self.address.name}: {why}")
        self._why = why


def _reason(error: Exception) -> str:
    """Return why there is no connection, and what cures it where that is known."""
    match error:
        case TimeoutError():
            return "it does not answer"
        case aiohttp.ServerFingerprintMismatch():
            return "its certificate has another fingerprint; compare with what its console prints"
        case aiohttp.ClientConnectorCertificateError():
            return "its certificate is signed by nobody whom this machine trusts; add &sha256=FINGERPRINT"
        case aiohttp.WSServerHandshakeError():
            return f"no console answers there (HTTP {error.status})"
        case aiohttp.ServerDisconnectedError():
            return "it ends every connection; if it serves TLS, its address begins with https://"
        case aiohttp.ClientConnectorError(os_error=cause):
            return f"no connection: {system_reason(cause)}"
        case _:
            return f"no connection: {error}"


def system_reason(error: OSError) -> str:
    """Return what the operating system says; asyncio's own text names the call instead."""
    return os.strerror(error.errno) if error.errno is not None and error.errno > 0 else error.strerror or str(error)
