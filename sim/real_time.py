"""The simulated arm in real time: it goes on moving while somebody thinks, as a robot does.

It knows the simulated arm and the wall clock; what stands on it cannot tell it from hardware.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from robot_rl.clock import NS_PER_S, Clock, SystemClock
from robot_rl.env.robot_io import Command, RobotState
from sim.mujoco_robot_io import MujocoRobotIO

LONGEST_GAP = 1 * NS_PER_S
"""After a longer time in which nobody asked, e.g. between episodes, the simulation goes on from where it was [ns]."""

PIECE = NS_PER_S // 100
"""Longest time by which the physics is behind the wall clock while somebody sleeps [ns]."""


class RealTimeRobotIO:
    """`RobotIO` and clock over a simulated arm whose time is kept equal to the wall's, up to a constant.

    Args:
        io: The simulated arm, on its own clock.
        wall: The wall clock.
    """

    def __init__(self, io: MujocoRobotIO, wall: Clock | None = None) -> None:
        self._io, self._wall = io, wall or SystemClock()
        self._offset = io.now() - self._wall.now()

    def now(self) -> int:
        """Simulated time [ns], after the physics has caught up with the wall clock."""
        due = self._wall.now() + self._offset
        if not 0 <= due - self._io.now() <= LONGEST_GAP:  # a reset took no wall time, or nobody asked for long
            self._offset += self._io.now() - due
            due = self._io.now()
        self._io.sleep_until(due)
        return self._io.now()

    def sleep_until(self, stamp: int) -> None:
        """Waits until the wall clock is there, the physics beside it in small pieces, so that a stop comes in time."""
        while (now := self.now()) < stamp:
            self._wall.sleep_until(min(now + PIECE, stamp) - self._offset)

    def read(self, *, images: bool = True) -> RobotState:
        """The newest state that the sensors' delay allows."""
        self.now()
        return self._io.read(images=images)

    def frames(self) -> tuple[int, Mapping[str, np.ndarray]]:
        """The newest frames that the cameras' delay allows, and when they were taken [ns]."""
        self.now()
        return self._io.frames()

    def camera_matrix(self, name: str) -> np.ndarray:
        """Camera matrix, shape (3, 3) [px]."""
        return self._io.camera_matrix(name)

    def command(self, command: Command) -> None:
        """Follows `command` from now on."""
        self.now()
        self._io.command(command)

    def stop(self) -> None:
        """Holds the arm where it is."""
        self._io.stop()
