"""Names of coordinate frames: what stands in `header.frame_id` of our topics, and in the transforms of TF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from robot_rl.errors import SpecError

BASE, TCP = "base", "tcp"
"""Roles of frames in the table of topics, and their names by default."""


@dataclass(frozen=True)
class FrameNames:
    """The frames of one arm.

    Attributes:
        base: Of its base.
        tcp: Of its tool, as it is measured.
        prefix: Put before the names of all frames, so that two arms can share TF.
    """

    base: str = BASE
    tcp: str = TCP
    prefix: str = ""

    def named(self, role: str) -> str:
        """Return the name of a frame.

        Args:
            role: `base`, `tcp`, or the name of another frame, such as a camera's; an empty text is no frame.
        """
        names = {BASE: self.base, TCP: self.tcp}
        return f"{self.prefix}{names.get(role, role)}" if role else ""

    def check(self, role: str, message: Any) -> None:
        """Check the frame of a message on a topic whose frame is the base's or the tcp's; cameras name theirs.

        Raises:
            SpecError: if it is another one.
        """
        if role not in (BASE, TCP):
            return
        given, expected = message.header.frame_id, self.named(role)
        if given != expected:
            raise SpecError(
                f"its frame is {given!r}, expected {expected!r}; give all nodes the same {role}_frame and "
                "frame_prefix, or correct who publishes it"
            )
