"""What the pages draw in three dimensions: links of the arm, box, set-point and cameras, in the base frame.

It knows where things are, not how they are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robot_rl.console.camera_views import Mounts
from robot_rl.env.robot_io import Links, RobotState
from robot_rl.env.supervision import Supervised
from robot_rl.geometry import Pose


@dataclass(frozen=True)
class Geometry:
    """What is known of the robot's parts.

    Attributes:
        mounts: Where the cameras are, of which that is known.
        links: Where the arm's links are; None where its kinematics are not known.
    """

    mounts: Mounts = field(default_factory=dict)
    links: Links | None = None


class SceneFacts:
    """The scene around the arm as it is now.

    Args:
        geometry: Of the robot.
        supervision: Of the robot.
    """

    def __init__(self, geometry: Geometry, supervision: Supervised) -> None:
        self._geometry, self._supervision = geometry, supervision

    def at(self, state: RobotState, arm: str | None = None) -> dict[str, Any]:
        """Return the scene for a page; positions in metres.

        Args:
            state: Of the robot.
            arm: Which of several arms is shown; None: there is one.
        """
        io = self._supervision.io
        start, target = io.start or state, io.target
        if arm is not None:
            start, state, target = start.arms[arm], state.arms[arm], io.targets.get(arm)
        mounts = tuple(self._geometry.mounts.items())
        return {
            "start": _rounded(start.T_base_tcp.position),
            "links": self._points(state),
            "target": None if target is None else _pose(target),
            "mounts": {name: _pose(mount.in_base(state.T_base_tcp)) for name, mount in mounts},
        }

    def _points(self, state: RobotState) -> list[list[float]] | None:
        links = self._geometry.links
        points = None if links is None else links(state.joint_position)
        return None if points is None else _rounded(points)


def _pose(pose: Pose) -> dict[str, list[float]]:
    return {"position": _rounded(pose.position), "quaternion": _rounded(pose.quaternion)}


def _rounded(values: np.ndarray) -> Any:
    """Return numbers to a tenth of a millimetre, as lists."""
    return np.round(values, 4).tolist()
