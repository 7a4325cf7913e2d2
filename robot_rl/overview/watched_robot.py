"""One robot as the overview sees it: a page of the robot's console that is a program, and only looks and stops."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from typing import Any

import aiohttp

from robot_rl.overview.robot_address import RobotAddress

NAME = "the overview"
"""Of our page at the consoles."""
SILENCE = 3.0
"""Time without a message after which a console is taken to be gone [s]; it sends its state ten times a second."""
RETRY = 1.0
"""Between two attempts to connect, and to stop [s]."""
PICTURES = 1.0
"""Between two requests for frames [s]."""
MAX_BYTES = 16 * 2**20
"""Of one message of a console."""
_SHOWN = ("phase", "episode", "kept", "health", "holds", "question", "owner")
RECENT = 20
"""Newest episodes in the rate of success."""


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
        self._job: dict[str, Any] = {}
        self._state: dict[str, Any] = {}
        self._heard = float("-inf")
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._why = "not connected yet"
        self._reported = ""
        self._stop_for = ""  # who wants it stopped, until it is
        self._stop_sent = float("-inf")

    # For pages.

    @property
    def connected(self) -> bool:
        """Whether the console is heard."""
        return self._socket is not None and bool(self._state)

    @property
    def stopped(self) -> bool:
        """Whether the console reports an emergency stop."""
        return self.connected and any(hold["name"] == "e-stop" for hold in self._state["holds"])

    def facts(self) -> dict[str, Any]:
        """Return what pages show: the newest state, also where it is old, and what became of a stop."""
        rows = [row for row in self._state.get("ended", ()) if not row["demonstration"] and row["success"] is not None]
        recent = [row["success"] for row in rows[-RECENT:]]
        remarks = self._state.get("remarks") or [{}]
        return {
            "name": self.address.name,
            "page": self.address.page,
            "connected": self.connected,
            "why": "" if self.connected else self._why,
            "age": round(time.monotonic() - self._heard, 1) if self._state else None,
            "job": self._job,
            "state": {key: self._state.get(key) for key in _SHOWN} if self._state else None,
            "recent": [sum(recent), len(recent)],
            "remark": remarks[-1].get("text", ""),
            "stop_wanted": bool(self._stop_for),
        }

    async def stop(self, who: str) -> None:
        """Stop the robot now, or as soon as there is a connection; it counts when its console reports the stop."""
        self._stop_for, self._stop_sent = who, float("-inf")
        await self._press_stop()

    def give_up(self) -> None:
        """No longer stop a robot that could not be reached."""
        self._stop_for = ""

    # The connection.

    async def watch(self, session: aiohttp.ClientSession) -> None:
        """Stay connected, for ever."""
        while True:
            try:
                async with session.ws_connect(
                    self.address.socket, ssl=self.address.certificate, max_msg_size=MAX_BYTES, timeout=_closing()
                ) as socket:
                    await self._serve(socket)
            except TimeoutError:
                self._lost("it does not answer")
            except aiohttp.ServerFingerprintMismatch:
                self._lost("its certificate has another fingerprint; compare with what its console prints")
            except aiohttp.ClientConnectorCertificateError:
                self._lost("its certificate is signed by nobody whom this machine trusts; add &sha256=FINGERPRINT")
            except aiohttp.WSServerHandshakeError as error:
                self._lost(f"no console answers there (HTTP {error.status})")
            except aiohttp.ClientConnectorError as error:
                self._lost(f"no connection: {_reason(error.os_error)}")
            except (aiohttp.ClientError, OSError) as error:
                self._lost(f"no connection: {error}")
            except (ValueError, KeyError, TypeError):
                self._lost("what answers there is no console of this version")
            self._socket = None
            await asyncio.sleep(RETRY)

    async def _serve(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        await socket.send_json({"type": "hello", "name": NAME, "token": self.address.token})
        asked = float("-inf")
        while True:
            async with asyncio.timeout(SILENCE):
                message = await socket.receive()
            if message.type == aiohttp.WSMsgType.BINARY:
                self._see(message.data)
            elif message.type == aiohttp.WSMsgType.TEXT:
                self._hear(socket, json.loads(message.data))
            else:
                wrong = socket.close_code == 4401
                self._lost("the token is wrong" if wrong else "the console has ended the connection")
                return
            if time.monotonic() - asked > PICTURES:
                asked = time.monotonic()
                await socket.send_json({"type": "seen"})
            await self._press_stop()

    def _hear(self, socket: aiohttp.ClientWebSocketResponse, message: dict[str, Any]) -> None:
        if message["type"] == "welcome":
            self._job = message["job"]
        elif message["type"] == "state":
            if not self.connected:
                self._log(f"{self.address.name}: connected")
            self._state, self._heard, self._socket = message, time.monotonic(), socket
            self._why = self._reported = ""
            if self._stop_for and self.stopped:
                self._log(f"{self.address.name}: stopped")
                self._stop_for = ""

    def _see(self, data: bytes) -> None:
        """Keep the frame of the first camera; see `picture_message`."""
        if data[0] == 0:
            self.picture = (self.picture[0] + 1, data[3:])

    async def _press_stop(self) -> None:
        """Request the stop that is wanted, again and again until the console reports it."""
        if self._socket is None or not self._stop_for or time.monotonic() - self._stop_sent < RETRY:
            return
        self._stop_sent = time.monotonic()
        try:
            await self._socket.send_json({"type": "do", "what": "e-stop"})
            await self._socket.send_json({"type": "note", "text": f"stopped by {self._stop_for} from the overview"})
        except (aiohttp.ClientError, ConnectionError) as error:
            self._log(f"{self.address.name}: the stop was not delivered: {error}")

    def _lost(self, why: str) -> None:
        self._why = why
        if why != self._reported:
            self._log(f"{self.address.name}: {why}")
        self._reported = why


def _reason(error: OSError) -> str:
    """Return what the operating system says; asyncio's own text names the call instead."""
    return os.strerror(error.errno) if error.errno is not None and error.errno > 0 else error.strerror or str(error)


def _closing() -> aiohttp.ClientWSTimeout:
    """Return how long a console may take to say goodbye."""
    return aiohttp.ClientWSTimeout(ws_close=1.0)
