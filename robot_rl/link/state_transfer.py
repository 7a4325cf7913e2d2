"""The state of a learner as the bytes of a checkpoint, in parts that fit into messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from robot_rl.errors import LinkError
from robot_rl.learn.checkpoint import decode_checkpoint, encode_checkpoint
from robot_rl.link.messages import StatePart
from robot_rl.system.model_files import LEARNER

PART_SIZE = 8 * 2**20
"""Bytes in each part but the last."""

MAX_PARTS = 2048
"""Parts in a state; 16 GiB."""


def cut(state: Mapping[str, Any], part_size: int = PART_SIZE) -> Iterator[StatePart]:
    """Return the parts of a state.

    Raises:
        LinkError: if it is too large.
    """
    content = memoryview(b"".join(encode_checkpoint(state, kind=LEARNER.name)))
    count = -(-len(content) // part_size)
    if count > MAX_PARTS:
        raise LinkError(f"the learner's state has {len(content)} bytes, allowed are {MAX_PARTS * part_size}")
    for index in range(count):
        piece = content[index * part_size : (index + 1) * part_size]
        yield StatePart(index=index, count=count, content=bytes(piece))


class CheckpointAssembler:
    """Puts parts together as they arrive."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def add(self, part: StatePart) -> dict[str, Any] | None:
        """Add the next part; return the state with its last part, None before.

        Raises:
            LinkError: if parts are missing or too many.
            CheckpointError: if the whole is damaged.
        """
        if part.index != len(self._pieces) or not part.index < part.count <= MAX_PARTS:
            raise LinkError(
                f"part {part.index} of {part.count} of a state cannot follow {len(self._pieces)} parts; "
                f"at most {MAX_PARTS} are allowed"
            )
        self._pieces.append(part.content)
        if len(self._pieces) < part.count:
            return None
        content = b"".join(self._pieces)
        self._pieces.clear()
        return decode_checkpoint(content, kind=LEARNER.name, name="the learner's state")
