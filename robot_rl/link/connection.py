"""Whole messages over a stream socket: each is its size in four bytes, then its content.

One thread may send while another receives. Whoever holds the other end of the socket is trusted to be the peer: the
learner's process inherits it and nobody else can reach it. A socket that others can connect to needs authentication
before it becomes a `Connection`. There is no time limit here, because a peer that is stopped and continued (Ctrl-Z, a
debugger) is as good as before, and one that dies ends the stream; who waits for an answer sets the limit.
"""

from __future__ import annotations

import contextlib
import socket
import struct

from robot_rl.errors import LinkError
from robot_rl.link.messages import Message, check_size, decode, encode

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
