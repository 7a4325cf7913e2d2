"""Frames that are fixed to each other, and the pose of one in another."""

from __future__ import annotations

from collections import deque

from robot_rl.geometry import Pose


class FrameTree:
    """Fixed transforms between named frames; a newer one between the same two replaces the older."""

    def __init__(self) -> None:
        self._edges: dict[str, dict[str, Pose]] = {}

    def add(self, parent: str, child: str, T_parent_child: Pose) -> None:
        """Fix a frame to another."""
        self._edges.setdefault(parent, {})[child] = T_parent_child
        self._edges.setdefault(child, {})[parent] = T_parent_child.inverse()

    def pose(self, frame: str, of: str) -> Pose | None:
        """Return the pose of the frame `of` in `frame`; None where no fixed transforms lead there."""
        known, waiting = {frame: Pose.identity()}, deque([frame])
        while waiting:
            here = waiting.popleft()
            if here == of:
                return known[here]
            for there, T in self._edges.get(here, {}).items():
                if there not in known:
                    known[there] = known[here] @ T
                    waiting.append(there)
        return None
