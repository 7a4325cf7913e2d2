"""The codec of messages between processes: typed messages to bytes and back, checked field by field.

The learner's link and the labeller's process use it. A message is a pydantic dataclass with flat fields: numbers,
text, bytes, numpy arrays, and lists and dicts of these. Its bytes are msgpack of [protocol version, kind, fields]; an
array is an extension of dtype, shape and bytes.

It is written by hand for three reasons. `pickle` runs code of the sender. JSON has no arrays, and a step has frames.
Codecs with a schema language (protobuf, Cap'n Proto) need a compiler and a second definition of each message, and have
no numpy arrays either; here a message is defined once, as the dataclass that both sides use.
"""

from __future__ import annotations

import dataclasses
import math
import struct
from collections.abc import Iterable
from typing import IO, Any, Generic, TypeVar, cast

import msgpack
import numpy as np
from pydantic import ConfigDict, ValidationError

from robot_rl.errors import LinkError

MESSAGE = ConfigDict(strict=True, extra="forbid", arbitrary_types_allowed=True)
"""The pydantic configuration of a message."""

MAX_MESSAGE = 64 * 2**20
"""Largest message [bytes]. Larger things are sent in parts."""

_DTYPES = tuple(np.dtype(code) for code in ("?", "<i1", "<u1", "<i4", "<i8", "<f4", "<f8", "<f2"))
_MAX_DIMENSIONS = 8
_ARRAY = 1  # msgpack extension code
_HEAD = struct.Struct("<BB")  # place in _DTYPES, number of dimensions; then the dimensions, then the elements
_SIZE = struct.Struct("<I")  # before each message on a byte stream

_M = TypeVar("_M")


class MessageCodec(Generic[_M]):
    """Encodes and decodes the messages of one protocol.

    Args:
        protocol: Version of the protocol; both sides must have the same.
        kinds: Classes of messages; the name of a class is the kind on the wire.
    """

    def __init__(self, protocol: int, kinds: Iterable[type[_M]]) -> None:
        self.protocol = protocol
        self.kinds = {kind.__name__: kind for kind in kinds}

    def encode(self, message: _M) -> bytes:
        """Return the bytes of a message.

        Raises:
            LinkError: if it is too large, or holds an array or another value that has no encoding.
        """
        fields = {field.name: getattr(message, field.name) for field in dataclasses.fields(cast("Any", message))}
        kind = type(message).__name__
        try:
            content: bytes = msgpack.packb([self.protocol, kind, fields], default=_fold)
        except (TypeError, ValueError, OverflowError) as error:
            raise LinkError(f"message {kind} cannot be sent: {error}") from error
        check_size(len(content), f"message {kind}")
        return content

    def decode(self, content: bytes) -> _M:
        """Return the message from which `encode` made these bytes.

        Raises:
            LinkError: if they are too many, malformed, of another protocol version, or of an unknown kind.
        """
        check_size(len(content), "a message")
        try:
            envelope = msgpack.unpackb(content, ext_hook=_unfold)
        except (ValueError, msgpack.UnpackException) as error:
            raise LinkError(f"malformed message of {len(content)} bytes: {error}") from error
        if not isinstance(envelope, list) or not envelope or type(envelope[0]) is not int:
            raise LinkError(f"malformed message of {len(content)} bytes: it does not start with a protocol version")
        if envelope[0] != self.protocol:
            raise LinkError(
                f"the peer uses protocol version {envelope[0]}, this program {self.protocol}; run the same robot_rl on "
                "both"
            )
        if len(envelope) != 3 or not isinstance(envelope[1], str) or not isinstance(envelope[2], dict):
            raise LinkError(f"malformed message of {len(content)} bytes: expected version, kind and fields")
        kind = self.kinds.get(envelope[1])
        if kind is None:
            raise LinkError(f"unknown message {envelope[1][:40]!r}; valid: {', '.join(self.kinds)}")
        try:
            return kind(**envelope[2])
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()[:3])
            raise LinkError(f"malformed message {envelope[1]}: {faults}") from error

    def write(self, stream: IO[bytes], message: _M) -> None:
        """Write a message to a byte stream, its size first, and flush.

        Raises:
            LinkError: if it cannot be encoded.
            OSError: if the stream cannot be written.
        """
        content = self.encode(message)
        stream.write(_SIZE.pack(len(content)) + content)
        stream.flush()

    def read(self, stream: IO[bytes]) -> _M | None:
        """Read the next message from a byte stream; None at its end.

        Raises:
            LinkError: if the stream ends in the middle of a message, or the bytes are not a message.
        """
        head = stream.read(_SIZE.size)
        if not head:
            return None
        if len(head) == _SIZE.size:
            (size,) = _SIZE.unpack(head)
            check_size(size, "a message")
            content = stream.read(size)
            if len(content) == size:
                return self.decode(content)
        raise LinkError("the stream ended in the middle of a message")


def check_size(size: int, what: str) -> None:
    """Refuse more than `MAX_MESSAGE` bytes.

    Raises:
        LinkError: naming the size and the limit.
    """
    if size > MAX_MESSAGE:
        raise LinkError(f"{what} has {size} bytes, allowed are {MAX_MESSAGE}")


def _fold(value: object) -> msgpack.ExtType:
    """Convert an array to a msgpack extension."""
    if not isinstance(value, np.ndarray):
        raise TypeError(f"a {type(value).__name__} has no encoding")
    dtype = value.dtype.newbyteorder("<")
    if dtype not in _DTYPES or value.ndim > _MAX_DIMENSIONS:
        valid = ", ".join(known.name for known in _DTYPES)
        raise TypeError(
            f"an array of {value.dtype} in {value.ndim} dimensions has no encoding; valid: {valid}, {_MAX_DIMENSIONS}"
        )
    head = _HEAD.pack(_DTYPES.index(dtype), value.ndim) + struct.pack(f"<{value.ndim}Q", *value.shape)
    return msgpack.ExtType(_ARRAY, head + value.astype(dtype, copy=False).tobytes())


def _unfold(code: int, content: bytes) -> np.ndarray:
    """Invert `_fold`; the array is new and writeable."""
    if code != _ARRAY:
        raise LinkError(f"malformed message: extension {code} is unknown")
    try:
        number, dimensions = _HEAD.unpack_from(content)
        shape = struct.unpack_from(f"<{dimensions}Q", content, _HEAD.size)
    except struct.error as error:
        raise LinkError(f"malformed message: an array is cut short: {error}") from error
    if number >= len(_DTYPES) or dimensions > _MAX_DIMENSIONS:
        raise LinkError(f"malformed message: an array of dtype number {number} in {dimensions} dimensions")
    dtype, start = _DTYPES[number], _HEAD.size + 8 * dimensions
    if math.prod(shape) * dtype.itemsize != len(content) - start:
        raise LinkError(f"malformed message: an array {shape} of {dtype} in {len(content) - start} bytes")
    stored = np.uint8 if dtype == np.bool_ else dtype  # a bool may only be 0 or 1
    try:
        return np.frombuffer(content, stored, offset=start).reshape(shape).astype(dtype)
    except ValueError as error:
        raise LinkError(f"malformed message: an array of shape {shape}: {error}") from error
