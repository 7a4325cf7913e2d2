"""Whole messages over a stream socket: each is its size in four bytes, then its content.

One thread may send while another receives. Whoever holds the other end of the socket is trusted to be the peer: the
learner's process inherits it and nobody else can reach it. A socket that others can connect to needs authentication
before it becomes a `Connection`.
"""

from __future__ import annotations

import select
import socket
import struct

from robot_rl.errors import LinkError
from robot_rl.link.messages import Message, check_size, decode, encode

STALL_LIMIT = 120.0
"""Longest time that one message may take to get through [s]."""

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
        stream.settimeout(STALL_LIMIT)

    def send(self, message: Message) -> None:
        """Sends a message.

        Raises:
            PeerGoneError: if nobody is there any more.
            LinkError: if the message may not cross, or the peer takes nothing for `STALL_LIMIT`.
        """
        self.send_encoded(encode(message))

    def send_encoded(self, content: bytes) -> None:
        """Sends the bytes of a message; raises as `send` does."""
        try:
            self._stream.sendall(_SIZE.pack(len(content)) + content)
        except TimeoutError as error:
            raise LinkError(f"the {self._peer} has taken no data for {STALL_LIMIT:.0f} s") from error
        except OSError as error:
            raise self._gone(error) from error

    def receive(self) -> Message:
        """The next message, however long it takes until it begins to arrive.

        Raises:
            PeerGoneError: if nobody is there any more.
            LinkError: if what arrives is not a message, or stops in the middle of one.
        """
        self._wait()
        (size,) = _SIZE.unpack(self._read(_SIZE.size, "between two messages"))
        check_size(size, f"a message of the {self._peer}")
        return decode(self._read(size, "in the middle of a message"))

    def hang_up(self) -> None:
        """Ends the connection for both sides and wakes a thread that waits in `receive` or `send`."""
        try:
            self._stream.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # it had ended before

    def close(self) -> None:
        """Gives the socket back, once no thread uses it any more."""
        self.hang_up()
        self._stream.close()

    def _wait(self) -> None:
        """Returns when there is something to read, if only the end of the stream."""
        poll = select.poll()
        poll.register(self._stream, select.POLLIN)
        poll.poll()

    def _read(self, size: int, where: str) -> bytes:
        content = bytearray(size)
        left = memoryview(content)
        while left:
            try:
                count = self._stream.recv_into(left)
            except TimeoutError as error:
                raise LinkError(f"the {self._peer} has stopped {where} for {STALL_LIMIT:.0f} s") from error
            except OSError as error:
                raise self._gone(error) from error
            if count == 0:
                raise PeerGoneError(f"the {self._peer} has ended the connection {where}")
            left = left[count:]
        return bytes(content)

    def _gone(self, error: OSError) -> PeerGoneError:
        return PeerGoneError(f"the {self._peer} is gone: {error.strerror or error}")
