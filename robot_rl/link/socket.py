"""Whole messages over a stream socket: each is its size in four bytes, then its content.

One thread may send while another receives. The holder of the other end of the socket is trusted: the process of the
learner inherits it and nothing else can reach it. A socket that others can connect to needs authentication before it
becomes a `Connection`. There is no time limit here, because a peer that is stopped and continued (Ctrl-Z, a debugger)
is as good as before, and one that dies ends the stream; the caller that waits for an answer sets the limit.

A `Courier` sends and receives in two threads of its own, so that the control of a robot never waits for a socket.
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
        peer: Name of the other side in errors.
    """

    def __init__(self, stream: socket.socket, peer: str) -> None:
        self._stream, self._peer = stream, peer

    def send(self, message: Message) -> None:
        """Send a message; wait while the peer does not accept it.

        Raises:
            PeerGoneError: if the peer is gone.
            LinkError: if the message has no encoding.
        """
        self.send_encoded(encode(message))

    def send_encoded(self, content: bytes) -> None:
        """Send the bytes of a message; raise as `send` does."""
        try:
            self._stream.sendall(_SIZE.pack(len(content)) + content)
        except OSError as error:
            raise self._gone(error) from error

    def receive(self) -> Message:
        """Wait for the next message.

        Raises:
            PeerGoneError: if the peer is gone.
            LinkError: if what arrives is not a message.
        """
        (size,) = _SIZE.unpack(self._read(_SIZE.size, "between two messages"))
        check_size(size, f"a message of the {self._peer}")
        return decode(self._read(size, "in the middle of a message"))

    def hang_up(self) -> None:
        """End the connection for both sides and wake a thread that waits in `receive` or `send`."""
        with contextlib.suppress(OSError):  # it had ended before
            self._stream.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket, once no thread uses it any more."""
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
    """Sends what is posted, in that order, and delivers what arrives.

    Args:
        connection: To the peer; it belongs to the courier from now on.
        on_message: Receives each message that arrives, in the receiving thread.
        on_error: Receives the reason why nothing is carried any more, in either thread.
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
        """Queue a message to be sent; return at once.

        Raises:
            LinkError: if it has no encoding, or too many are waiting already; nothing is ever dropped.
        """
        try:
            self._queue.put_nowait(encode(message))
        except queue.Full as error:
            raise LinkError(
                f"{self._queue.maxsize} messages wait to be sent; the other side does not keep up: "
                "lower update_to_data, or end episodes sooner"
            ) from error

    def close(self) -> None:
        """Hang up and end the threads; what has not been sent by then is lost."""
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
        except PeerGoneError:
            pass  # the receiving thread reports it, after what the peer has still sent, such as its reason
        except RobotRLError as error:
            self._on_error(error)

    def _receive(self) -> None:
        try:
            while True:
                self._on_message(self._connection.receive())
        except RobotRLError as error:
            self._on_error(error)
