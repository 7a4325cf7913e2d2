"""Where a task may send the tcp: its workspace around its start pose. Two tasks meet where both may.

It knows start poses, workspaces and limits, not the objects in the scene, which nobody measures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_rl.config.command_limits import CommandLimits
from robot_rl.env.task import StartPose, TaskSpec
from robot_rl.errors import ConfigError

MARGIN = 0.01
"""How far outside of it a tcp may be that is pushed, or behind its set-point [m]."""


@dataclass(frozen=True, eq=False)
class TcpRegion:
    """A box in the base frame.

    Attributes:
        low: Least x, y, z [m].
        high: Largest x, y, z [m].
    """

    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, spec: TaskSpec, start: StartPose) -> TcpRegion:
        """Return that of a task from its start pose."""
        position = np.array(start.position)
        return cls(position + np.array(spec.workspace.low), position + np.array(spec.workspace.high))

    def meets(self, other: TcpRegion) -> bool:
        """Return whether a point is in both."""
        return bool(np.all(self.low <= other.high) and np.all(other.low <= self.high))

    def beyond(self, position: np.ndarray) -> float:
        """Return how far outside a point is [m]; 0 within."""
        return float(np.linalg.norm(np.maximum(0.0, np.maximum(self.low - position, position - self.high))))


def check_start_in_box(spec: TaskSpec, limits: CommandLimits, where: str) -> None:
    """Check that the arm may go to the start pose of a task, if it has one; `where` says in what file it stands.

    Raises:
        ConfigError: if the pose is outside the box of the limits.
    """
    if spec.start is None:
        return
    low, high = limits.box_low, limits.box_high
    if not all(least <= at <= largest for least, at, largest in zip(low, spec.start.position, high, strict=True)):
        raise ConfigError(
            f"{where}: {spec.name} cannot begin: its start {list(spec.start.position)} is outside the box of the "
            f"limits, {list(low)} to {list(high)}; correct one of them"
        )


def check_regions_meet(first: TaskSpec, following: TaskSpec) -> None:
    """Check that a task can begin where the one before it ends, as far as their start poses show it.

    Args:
        first: The task that is practised, from its own start pose; it may be followed by itself.
        following: The task that leads back; one without a start pose begins where `first` has ended.

    Raises:
        ConfigError: if it cannot.
    """
    if first.start is None:
        raise ConfigError(
            f"{first.name} has no start pose: after a failure the arm would begin wherever it is; give its task a "
            "`start`. Only the task that leads back may do without, and then begins where the arm is"
        )
    there, back = TcpRegion.of(first, first.start), following.start
    if back is not None and not there.meets(TcpRegion.of(following, back)):
        raise ConfigError(
            f"{first.name} and {following.name} do not meet: no point is in the workspaces around both starts, so that "
            f"{following.name} cannot get at what {first.name} leaves behind; move a start, or widen a workspace"
        )
