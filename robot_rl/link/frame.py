"""The frame, the unit of a lossy wire: a checked piece of one message, or an acknowledgement.

magic | version | kind | sender | receiver | number of the message | offset | size of the whole | checksum | piece
"""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum
from typing import NamedTuple

from robot_rl.errors import LinkError
from robot_rl.system.message_codec import MAX_MESSAGE

VERSION = 1
"""Of this file; both sides must have the same."""
PIECE = 256 * 2**10
"""Largest piece of a message [bytes]."""

_MAGIC = b"RRLF"
_HEAD = struct.Struct("<4sHBxQQQIII")


class WireFrameKind(IntEnum):
    """Purpose of a frame."""

    PIECE = 0
    PROGRESS = 1


class WireFrame(NamedTuple):
    """One frame.

    Attributes:
        kind: A piece of a message, or where the next piece has to begin.
        sender: Random number of the sender's process.
        receiver: That of the receiving process; 0 while the sender does not know it.
        number: Of the message, from 0 in each pair of processes.
        offset: Of the piece in the message.
        size: Of the whole message; 0 in a progress.
        piece: The bytes.
    """

    kind: WireFrameKind
    sender: int
    receiver: int
    number: int
    offset: int
    size: int = 0
    piece: bytes = b""


def pack(frame: WireFrame) -> bytes:
    """Return the bytes of a frame."""
    head = (frame.sender, frame.receiver, frame.number, frame.offset, frame.size)
    return _HEAD.pack(_MAGIC, VERSION, frame.kind, *head, zlib.crc32(frame.piece)) + frame.piece


def unpack(content: bytes) -> WireFrame:
    """Return the frame from which `pack` made these bytes.

    Raises:
        LinkError: if they are of another version, malformed or damaged.
    """
    if len(content) < _HEAD.size or not content.startswith(_MAGIC):
        raise LinkError(f"{len(content)} bytes on the link are no frame")
    _, version, kind, sender, receiver, number, offset, size, checksum = _HEAD.unpack_from(content)
    if version != VERSION:
        raise LinkError(
            f"the peer's frames are of version {version}, this program reads {VERSION}; run the same robot_rl on both"
        )
    piece = content[_HEAD.size :]
    if kind not in set(WireFrameKind) or zlib.crc32(piece) != checksum:
        raise LinkError(f"a frame of {len(content)} bytes is damaged")
    if len(piece) > PIECE or size > MAX_MESSAGE or (kind == WireFrameKind.PIECE and offset + len(piece) > size):
        raise LinkError(f"a frame claims {len(piece)} bytes at {offset} of {size}, allowed are {MAX_MESSAGE}")
    return WireFrame(WireFrameKind(kind), sender, receiver, number, offset, size, piece)
