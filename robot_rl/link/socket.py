"""Whole messages over a stream socket: each is its size in four bytes, then its content.

One thread may send while another receives. Whoever holds the other end of the socket is trusted to be the peer: the
learner's process inherits it and nobody else can reach it. A socket that others can connect to needs authentication
before it becomes a `Connection`. There is no time limit here, because a peer that is stopped and continued (Ctrl-Z, a
debugger) is as good as before, and one that dies ends the stream; who waits for an answer sets the limit.

Two threads that carry messages, so that whoever controls a robot never waits for a socket.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import struct
import threading
from collections.abc import Callable

from robot_rl.errors import LinkError, RobotRLError
from robot_rl.link.messages import Message, decode, encode
from robot_rl.system.message_codec import check_size

_SIZE = struct.Struct("<I")


class PeerGoneError(LinkError):
    """The other side has closed the connection, or its process has ended."""


class Connection:
    """One peer.

    Args:
        stream: A connected stream socket; it belongs to the connection from now on.
        peer: What to call the other side in errors.
    """

    def __init__(self, stream: socket.socket, peer: str) -> None:
        self._stream, self._peer = stream, peer

    def send(self, message: Message) -> None:
        """Sends a message; waits while the peer does not take it.

        Raises:
            PeerGoneError: if nobody is there any more.
            LinkError: if the message may not cross.
        """
        self.send_encoded(encode(message))

    def send_encoded(self, content: bytes) -> None:
        """Sends the bytes of a message; raises as `send` does."""
        try:
            self._stream.sendall(_SIZE.pack(len(content)) + content)
        except OSError as error:
            raise self._gone(error) from error

    def receive(self) -> Message:
        """The next message, however long it takes to arrive.

        Raises:
            PeerGoneError: if nobody is there any more.
            LinkError: if what arrives is not a message.
        """
        (size,) = _SIZE.unpack(self._read(_SIZE.size, "between two messages"))
        check_size(size, f"a message of the {self._peer}")
        return decode(self._read(size, "in the middle of a message"))

    def hang_up(self) -> None:
        """Ends the connection for both sides and wakes a thread that waits in `receive` or `send`."""
        with contextlib.suppress(OSError):  # it had ended before
            self._stream.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Gives the socket back, once no thread uses it any more."""
        self.hang_up()
        self._stream.close()

    def _read(self, size: int, where: str) -> bytes:
        content = bytearray(size)
        left = memoryview(content)
        while left:
            try:
                count = self._stream.recv_into(left)
            except OSError as error:
                raise self._gone(error) from error
            if count == 0:
                raise PeerGoneError(f"the {self._peer} has ended the connection {where}")
            left = left[count:]
        return bytes(content)

    def _gone(self, error: OSError) -> PeerGoneError:
        return PeerGoneError(f"the {self._peer} is gone: {error.strerror or error}")


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
