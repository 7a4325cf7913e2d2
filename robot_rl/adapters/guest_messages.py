"""Messages between us and a program in another interpreter, and the loop of such a program.

It runs there as well, so it needs numpy and msgpack alone, and imports nothing of ours. Messages are msgpack maps
behind their length (4 bytes, big-endian), over a socket whose file descriptor is the only argument of the program.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgpack
import numpy as np

MAX_MESSAGE = 1 << 28
"""Largest message [bytes]."""


class GuestError(Exception):
    """A guest cannot be made, or failed.

    Args:
        text: What was wrong, and how to cure it.
        near: Names like the one that is not known.
    """

    def __init__(self, text: str, near: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.text, self.near = text, tuple(near)


def pack(value: Any) -> bytes:
    """Return a message of nested plain values and numpy arrays."""
    body: bytes = msgpack.packb(value, default=_plain)
    return struct.pack(">I", len(body)) + body


def receive(connection: socket.socket) -> Any:
    """Return the next message.

    Raises:
        EOFError: if the other side is gone.
        ValueError: if it is larger than `MAX_MESSAGE`, or no message at all.
    """
    (length,) = struct.unpack(">I", _receive_exactly(connection, 4))
    if length > MAX_MESSAGE:
        raise ValueError(f"a message of {length} bytes; the limit is {MAX_MESSAGE}")
    return msgpack.unpackb(_receive_exactly(connection, length), object_hook=_from_plain, strict_map_key=False)


def _receive_exactly(connection: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        part = connection.recv(length - len(parts))
        if not part:
            raise EOFError("the other side is gone")
        parts += part
    return bytes(parts)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return {"__array__": [value.dtype.str, list(value.shape), np.ascontiguousarray(value).tobytes()]}
    raise TypeError(f"a {type(value).__name__} cannot be sent")


def _from_plain(value: dict[Any, Any]) -> Any:
    if "__array__" not in value:
        return value
    dtype, shape, data = value["__array__"]
    return np.frombuffer(data, np.dtype(dtype)).reshape(shape).copy()


def one_line(error: BaseException) -> str:
    """Return an error as one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"


def serve(
    connection: socket.socket, make: Callable[[Mapping[str, Any]], tuple[Any, Any]], calls: Sequence[str]
) -> None:
    """Make what the first message asks for, and do what the others ask of it, until the connection ends.

    Args:
        connection: To us.
        make: Returns a guest and what is answered to the first message.
        calls: Methods of the guest that may be called.
    """
    guest: Any = None
    while True:
        try:
            request = receive(connection)
        except EOFError:
            break
        try:
            if guest is None:
                guest, value = make(request)
            else:
                if request["call"] not in calls:
                    raise GuestError(f"unknown call {request['call']!r}; valid: {', '.join(calls)}")
                value = getattr(guest, request["call"])(*request["arguments"])
            reply = pack({"value": value})
        except GuestError as error:
            reply = pack({"error": error.text, "near": list(error.near)})
        except Exception as error:  # noqa: BLE001  (whatever it is, the other side has to know)
            reply = pack({"error": one_line(error), "near": []})
        connection.sendall(reply)
    if guest is not None:
        guest.close()
