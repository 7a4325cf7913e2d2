"""Simulated arm in real time: it moves with the wall clock, like hardware."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from robot_rl.clock import NS_PER_S, Clock, SystemClock
from robot_rl.env.robot_io import Command, RobotState
from sim.mujoco_robot_io import MujocoRobotIO

LONGEST_GAP = 1 * NS_PER_S
"""Longest time between two calls that the simulation makes up for; longer ones, between episodes, are skipped [ns]."""

PIECE = NS_PER_S // 100
"""Longest time by which the physics lags behind the wall clock during a sleep [ns]."""


class RealTimeRobotIO:
    """`RobotIO` and clock over a simulated arm whose time follows the wall clock, up to a constant.

    Args:
        io: The simulated arm, on its own clock.
        wall: The wall clock.

    Attributes:
        simulated: The simulated arm.
    """

    def __init__(self, io: MujocoRobotIO, wall: Clock | None = None) -> None:
        self.simulated, self._wall = io, wall or SystemClock()
        self._offset = io.now() - self._wall.now()

    def now(self) -> int:
        """Return the simulated time [ns], after the physics has caught up with the wall clock."""
        due = self._wall.now() + self._offset
        if not 0 <= due - self.simulated.now() <= LONGEST_GAP:  # after a reset, or a long pause
            self._offset += self.simulated.now() - due
            due = self.simulated.now()
        self.simulated.sleep_until(due)
        return self.simulated.now()

    def sleep_until(self, stamp: int) -> None:
        """Wait for the wall clock, and advance the physics in small pieces, so that a stop takes effect in time."""
        while (now := self.now()) < stamp:
            self._wall.sleep_until(min(now + PIECE, stamp) - self._offset)

    def read(self, *, images: bool = True) -> RobotState:
        """Return the newest state that the sensors' delay allows."""
        self.now()
        return self.simulated.read(images=images)

    def frames(self) -> tuple[int, Mapping[str, np.ndarray]]:
        """Return the newest frames that the cameras' delay allows, and their stamp [ns]."""
        self.now()
        return self.simulated.frames()

    def camera_matrix(self, name: str) -> np.ndarray:
        """Return the camera matrix, shape (3, 3) [px]."""
        return self.simulated.camera_matrix(name)

    def command(self, command: Command) -> None:
        """Follow `command` from now on."""
        self.now()
        self.simulated.command(command)

    def stop(self) -> None:
        """Hold the arm at its pose."""
        self.simulated.stop()
