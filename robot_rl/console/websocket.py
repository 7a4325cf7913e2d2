"""The connection of one page: its messages are executed, and the state is sent no faster than it is received."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from aiohttp import WSMsgType, web

from robot_rl.clock import Clock
from robot_rl.console import protocol
from robot_rl.console.access.guard import Access
from robot_rl.console.access.rate_limit import RateLimit
from robot_rl.console.admission import DISPLACED, NONSENSE, SEND_SECONDS, TOO_MANY, TOO_SLOW, let_in
from robot_rl.console.buttons import PageActions
from robot_rl.console.control_lease import Lease, LeaseError
from robot_rl.console.recorded_episodes import Archive
from robot_rl.console.snapshot import ConsoleSnapshot
from robot_rl.errors import RobotRLError
from robot_rl.system.atomic_file import to_json

STATE_PERIOD, FRAME_PERIOD = 0.1, 0.08
MAX_BAD = 10
"""Invalid messages after which a page is disconnected."""


class Page:
    """One connection.

    Args:
        number: Of the connection.
        socket: The connection.
        actions: Executes the requests.
        lease: Who holds control.
        access: The checks before a page is served.
        archive: Recorded episodes, None if there are none.
        clock: Source of time.
        snapshot: The state to show.
        admit: Called with the number once the page has shown the token.
    """

    def __init__(
        self,
        number: int,
        socket: web.WebSocketResponse,
        *,
        actions: PageActions,
        lease: Lease,
        access: Access,
        archive: Archive | None,
        clock: Clock,
        snapshot: ConsoleSnapshot,
        admit: Callable[[int], None],
    ) -> None:
        self.number, self.name = number, f"page {number}"
        self._socket, self._actions, self._lease, self._access, self._archive = socket, actions, lease, access, archive
        self._limit = RateLimit(clock)
        self._snapshot, self._admit = snapshot, admit
        self._wants_frames = asyncio.Event()
        self._bad = 0
        self._visit: asyncio.Task[str | None] | None = None
        self._displaced = False
        self._job = dict[str, Any]()  # the facts of it that the page has

    async def run(self) -> None:
        """Serve the page until it goes or is disconnected."""
        why = "closed the page or lost the connection"
        self._visit = asyncio.create_task(self._serve())
        try:
            why = await self._visit or why
        except asyncio.CancelledError:
            if not self._displaced:
                raise
            self.lose(why)
            await self._socket.close(code=DISPLACED, message=b"too many pages are open, and another one came")
        finally:
            self.lose(why)

    def make_room(self) -> None:
        """Begin to disconnect this page, because another one needs its place."""
        self._displaced = True
        if self._visit is not None:
            self._visit.cancel()

    async def _serve(self) -> str | None:
        """Let the page in and serve it; return why it was disconnected, if it was."""
        if not await self._let_in():
            return None
        senders = [asyncio.create_task(self._send_states()), asyncio.create_task(self._send_frames())]
        try:
            return await self._listen()
        finally:
            for task in senders:
                task.cancel()
            await asyncio.gather(*senders, return_exceptions=True)

    def lose(self, why: str) -> None:
        """Take control from this page, if it holds it, and hold the arm."""
        if self._lease.give_back(self.number) is not None:
            self._actions.lost(self.name, why)

    async def _let_in(self) -> bool:
        name = await let_in(self._socket, self._access)
        if name is None:
            return False
        self.name = name
        self._admit(self.number)
        self._job = self._snapshot.job()
        await self._send({"type": "welcome", "page": self.number, "job": self._job})
        return True

    async def _listen(self) -> str | None:
        """Execute messages until the page goes; return why it was disconnected, if it was."""
        async for message in self._socket:
            if not self._limit.allows():
                self.lose("sent too many messages")
                await self._socket.close(code=TOO_MANY, message=b"too many messages")
                return "sent too many messages"
            if message.type != WSMsgType.TEXT:
                break
            try:
                await self._execute(protocol.parse(message.data))
            except protocol.BadMessageError as error:
                self._bad += 1
                await self._send({"type": "error", "text": f"not understood: {error}"})
                if self._bad >= MAX_BAD:
                    self.lose("sent messages that are none")
                    await self._socket.close(code=NONSENSE, message=b"too many messages that are none")
                    return "sent messages that are none"
            except RobotRLError as error:
                await self._send({"type": "error", "text": str(error)})
        return None

    async def _execute(self, message: protocol.PageMessage) -> None:
        actions = self._actions
        match message:
            case protocol.InputMessage():
                if self._lease.owner is not None and self._lease.owner.page == self.number:
                    actions.lead(self.number, message)
            case protocol.FramesShownMessage():
                self._wants_frames.set()
            case protocol.PingMessage():
                await self._send({"type": "pong", "at": message.at})
            case protocol.HiddenMessage():
                self.lose("left the page out of sight")
            case protocol.LeaseMessage(take=True):
                self._lease.take(self.number, self.name)
                actions.write(self.name, "took control")
            case protocol.LeaseMessage():
                if self._lease.give_back(self.number) is not None:
                    actions.left(self.name)
            case protocol.ButtonMessage():
                name = f"{message.by} at {self.name}" if message.by else self.name
                actions.do(self.number, name, message.what, message.episode)
            case protocol.NoteMessage():
                actions.note(self.name, message.kind, message.text)
                await self._send({"type": "noted", "text": message.text})
            case protocol.LabelMessage():
                self._lease.check(self.number)
                if self._archive is None:
                    raise LeaseError("nothing is recorded here")
                label = partial(self._archive.label, message.episode, message.success, self.name)
                overlay = await asyncio.get_running_loop().run_in_executor(None, label)
                actions.labelled(self.name, message.episode, message.success, overlay)
                await self._send({"type": "labelled", "episode": message.episode, "success": message.success})
            case protocol.HelloMessage():
                raise protocol.BadMessageError("hello was sent before")

    async def _send_states(self) -> None:
        shown = -1
        while True:
            state = self._snapshot.state()
            owner = self._lease.owner
            mine = owner is not None and owner.page == self.number
            if (job := self._snapshot.job()) is not self._job:  # it is the turn of another task
                self._job = job
                await self._send({"type": "job", "job": job})
            await self._send({"type": "state", **state, "owner": owner.name if owner else None, "mine": mine})
            if state["curves_version"] != shown:
                shown = state["curves_version"]
                await self._send({"type": "curves", **self._snapshot.curves()})
            await asyncio.sleep(STATE_PERIOD)

    async def _send_frames(self) -> None:
        sent = None
        while True:
            await self._wants_frames.wait()
            pictures = await asyncio.get_running_loop().run_in_executor(None, self._snapshot.pictures)
            if pictures is not None and pictures is not sent:
                self._wants_frames.clear()
                sent = pictures
                for number, jpeg in enumerate(pictures.jpegs):
                    message = protocol.picture_message(number, pictures.age, jpeg)
                    await self._in_time(self._socket.send_bytes(message))
            await asyncio.sleep(FRAME_PERIOD)

    async def _send(self, message: dict[str, Any]) -> None:
        await self._in_time(self._socket.send_str(to_json(message)))

    async def _in_time(self, sending: Any) -> None:
        """Send; a page that does not receive it in time, or is gone, ends the connection."""
        try:
            async with asyncio.timeout(SEND_SECONDS):  # `wait_for` of Python 3.11 may swallow a cancellation
                await sending
        except TimeoutError:
            self.lose("does not take what is sent")
            await self._socket.close(code=TOO_SLOW, message=b"too slow", drain=False)
            raise
