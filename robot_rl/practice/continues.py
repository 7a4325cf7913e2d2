"""The contract of a task that can be practised without resets."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from robot_rl.clock import Clock
from robot_rl.env.robot_io import RobotIO
from robot_rl.env.task import StartPose


@runtime_checkable
class Continues(Protocol):
    """A task that can begin in the scene as the last episode left it, so that nobody has to make the scene ready."""

    @property
    def home(self) -> StartPose | None:
        """How the arm goes to its start pose after an episode that may have ended anywhere; None: the next one does."""
        ...

    def obstacle(self) -> str | None:
        """Return why it cannot begin in the scene as it is; None if it can."""
        ...

    def tidy(self, io: RobotIO, clock: Clock) -> None:
        """Move what a failed episode has left where a policy cannot get at it; the arm is at its start pose before."""
        ...

    def go_on(self, seed: int) -> None:
        """Make the task ready as `reset` does, but leave the scene as it is; the arm rests at its start pose."""
        ...
