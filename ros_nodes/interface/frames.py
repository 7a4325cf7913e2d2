"""Names of coordinate frames: what stands in `header.frame_id` of our topics, and in the transforms of TF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from robot_rl.errors import SpecError

BASE, TCP = "base", "tcp"
"""Roles of frames in the table of topics, and their names by default."""
CELL = "cell"
"""The frame that the bases of several arms share."""


def of_arm(role: str, arm: str) -> str:
    """Return the role of a frame of one of several arms, e.g. `left_base`; empty are: no frame, and a single arm."""
    return f"{arm}_{role}" if arm and role else role


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
            role: `base`, `tcp`, the same of one of several arms, or the name of another frame, such as a camera's; an
                empty text is no frame.
        """
        arm, _, last = role.rpartition("_")
        named = {BASE: self.base, TCP: self.tcp}.get(last)
        return f"{self.prefix}{role if named is None else of_arm(named, arm)}" if role else ""

    def check(self, role: str, message: Any) -> None:
        """Check the frame of a message on a topic whose frame is a base's, a tcp's or the cell's; cameras name theirs.

        Raises:
            SpecError: if it is another one.
        """
        last = role.rpartition("_")[2]
        if last not in (BASE, TCP, CELL):
            return
        given, expected = message.header.frame_id, self.named(role)
        if given == expected:
            return
        if last == CELL or given == self.named(CELL):
            raise SpecError(
                f"its frame is {given!r}, expected {expected!r}: one of the two nodes is for several arms; give "
                "safety_node their names (arms)"
            )
        raise SpecError(
            f"its frame is {given!r}, expected {expected!r}; give all nodes the same {last}_frame and frame_prefix, or "
            "correct who publishes it"
        )
