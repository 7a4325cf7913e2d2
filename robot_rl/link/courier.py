"""Two threads that carry messages, so that whoever controls a robot never waits for a socket."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable

from robot_rl.errors import LinkError, RobotRLError
from robot_rl.link.connection import Connection
from robot_rl.link.messages import Message, encode

QUEUE_CAPACITY = 10_000
"""Messages that may wait to be sent: a quarter of an hour of steps at 10 Hz."""


class Courier:
    """Sends what is posted, in that order, and hands over what arrives.

    Args:
        connection: To the peer; it belongs to the courier from now on.
        on_message: Given each message that arrives, by the receiving thread.
        on_error: Told, by either thread, why nothing is carried any more.
        capacity: Messages that may wait to be sent.
    """

    def __init__(
        self,
        connection: Connection,
        on_message: Callable[[Message], None],
        on_error: Callable[[RobotRLError], None],
        *,
        capacity: int = QUEUE_CAPACITY,
    ) -> None:
        self._connection, self._on_message, self._on_error = connection, on_message, on_error
        self._queue: queue.Queue[bytes | None] = queue.Queue(capacity)
        self._threads = [
            threading.Thread(target=run, name=run.__name__, daemon=True) for run in (self._send, self._receive)
        ]
        for thread in self._threads:
            thread.start()

    def post(self, message: Message) -> None:
        """Returns at once; the message will be sent.

        Raises:
            LinkError: if it may not cross, or too many are waiting already; nothing is ever dropped.
        """
        try:
            self._queue.put_nowait(encode(message))
        except queue.Full as error:
            raise LinkError(
                f"{self._queue.maxsize} messages wait to be sent; the other side does not keep up: "
                "lower update_to_data, or end episodes sooner"
            ) from error

    def close(self) -> None:
        """Hangs up and ends the threads; what has not been sent by then never will be."""
        self._connection.hang_up()
        with contextlib.suppress(queue.Full):  # a thread that has something to send finds out without
            self._queue.put_nowait(None)
        for thread in self._threads:
            thread.join()
        self._connection.close()

    def _send(self) -> None:
        try:
            while (content := self._queue.get()) is not None:
                self._connection.send_encoded(content)
        except RobotRLError as error:
            self._on_error(error)

    def _receive(self) -> None:
        try:
            while True:
                self._on_message(self._connection.receive())
        except RobotRLError as error:
            self._on_error(error)
