"""A motion that was recorded, and the contract of what moves it again: how a simulation is compared with a robot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from robot_rl.config.components import SimulationConfig
from robot_rl.geometry import Pose


@dataclass(frozen=True, eq=False)
class Motion:
    """A recorded motion of an arm in free space, from rest.

    Attributes:
        name: What to call it.
        stamps: When the tcp was measured [ns], rising; shape (n,). The arm is at rest at the first.
        poses: T_base_tcp then, n of them.
        command_stamps: When set-points were sent [ns], rising; shape (m,).
        targets: T_base_target of each.
    """

    name: str
    stamps: np.ndarray
    poses: tuple[Pose, ...]
    command_stamps: np.ndarray
    targets: tuple[Pose, ...]


class Playback(Protocol):
    """A simulated arm to which the commands of a motion are given again, at the times at which they were sent."""

    @property
    def own(self) -> SimulationConfig:
        """Default settings of the arm; no entry is None."""
        ...

    def __call__(self, motion: Motion, simulation: SimulationConfig) -> list[Pose]:
        """Where the tcp is at `motion.stamps`, from the first measured pose on.

        Raises:
            ConfigError: if the arm does not reach that pose.
        """
        ...
