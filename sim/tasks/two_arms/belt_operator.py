"""The scripted operator of the task `belt`: two hands of one person, each of which leads an arm and sees to its pulley.

Each hand takes over its own arm when its part of the work stalls; meanwhile the policy keeps the other one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import TaskSpec
from robot_rl.geometry import Pose, quat_rotate
from sim.operator import InterventionHabit, OperatorSkill, ScriptedOperator
from sim.tasks.two_arms.belt_drive import PULLEY
from sim.tasks.two_arms.facing_arms import SIDES
from sim.tasks.two_arms.two_hands import TwoHands

OPEN = 0.009
"""Distance of the jaws from each other at which they are open [m]."""
IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])
STIFFNESS = 3000.0
"""Of the arms, by which it knows how far ahead of the tool it has to lead to make up for a force [N/m]."""


class BeltScene(Protocol):
    """What the operator sees of the scene."""

    @property
    def spec(self) -> TaskSpec:
        """The fixed facts of the task."""
        ...

    @property
    def T_cell_drive(self) -> Pose:
        """The pose of the drive, in the frame of the scene."""
        ...

    def tool(self, arm: str) -> np.ndarray:
        """Return the tcp of an arm in the frame of the drive [m]. Shape (3,)."""
        ...

    def holds(self, arm: str) -> bool:
        """Return whether a jaw of an arm touches the belt."""
        ...

    def seated(self, arm: str) -> bool:
        """Return whether the belt lies in the groove of an arm's pulley, all around its outer side."""
        ...

    def caught(self, arm: str) -> bool:
        """Return whether both strands are under the flange of an arm's pulley."""
        ...


class EndOperator(ScriptedOperator):
    """One hand: it pulls its end of the belt out over its pulley and down, and lets go of it.

    Args:
        scene: What it sees.
        T_cell_base: Where the base of its arm stands.
        arm: Name of the arm that it leads.
        number: Of the hand.
    """

    pull = 0.044
    """Distance of the tool from the axis of the pulley [m]."""
    hover, press, clear = 0.062, -0.013, 0.04
    """Height of the tool over the groove, before it goes down, when it is down, and when it is out [m]."""
    level_groove = 0.002
    """Height over or under the groove at which it lets go [m]."""
    descent = 0.008
    """Most that it goes up or down in a step, so that it pulls out at the same time [m]."""
    off = 0.006
    """Distance from over its place beyond which it goes no deeper [m]."""
    level = 0.006
    """Height of the other tool, while it has the belt, over its own at which it goes no deeper [m]."""
    aligned = 0.003
    """Distance from over its place at which it goes down [m]."""
    astray = 0.012
    """Distance on the way down at which it goes back up [m]."""
    patience = 30
    """Steps of pressing after which it goes back up."""

    def __init__(self, scene: BeltScene, T_cell_base: Pose, arm: str, number: int) -> None:
        skill = OperatorSkill(speed=(0.7, 0.9), action_noise=0.05)
        super().__init__(scene.spec.of_arm(arm), skill, InterventionHabit(stall_steps=10, progress=0.002))
        self._scene, self._T_base_cell, self._arm, self.hand = scene, T_cell_base.inverse(), arm, number
        self._axis, self._mirror = np.array([0.0, PULLEY.apart / 2, 0.0]), np.array([1.0, SIDES[arm], 1.0])

    def begin(self) -> None:
        """Discard the state of the work."""
        self._pressing, self._pressed, self._released = False, 0, False

    def waits(self, state: RobotState) -> bool:
        """Return whether its end of the belt is in place."""
        del state
        return self._done()

    def distance(self, state: RobotState) -> float:
        """Return the distance of the tool to its place beside the pulley, then to the height of the groove [m]."""
        if self._done():
            return 0.0
        here = self._relative(state, self._scene.T_cell_drive)
        if self._scene.caught(self._arm):
            return float(abs(here[2]))
        return 0.2 + float(np.linalg.norm(here - [0.0, self.pull, self.press]))

    def plan(self, state: RobotState) -> tuple[Pose, float, float]:
        """Plan a goal over the place beside the pulley, then down there, then level with the groove; let go there."""
        drive = self.perceived(self._scene.T_cell_drive)
        here = self._relative(state, drive)
        lateral = float(np.hypot(here[0], here[1] - self.pull))
        gripper = -1.0
        if self._done() or (self._released and not self._scene.holds(self._arm)):
            self._pressing, gripper, lateral = False, 1.0, 0.0
            goal = np.array([0.0, here[1], self.clear if state.gripper_width > OPEN else here[2]])
        elif self._scene.caught(self._arm) or self._released:
            self._pressing, lateral = False, 0.0
            self._released = self._released or abs(here[2]) < self.level_groove
            goal, gripper = np.array([0.0, self.pull, 0.0]), 1.0 if self._released else -1.0
        elif self._pressing and lateral < self.astray and self._pressed < self.patience:
            self._pressed += 1
            goal = np.array([0.0, self.pull, self.press])
        else:
            self._pressing, self._pressed = lateral < self.aligned and here[2] > 0.5 * self.hover, 0
            goal = np.array([0.0, self.pull, self.hover])
        (other,) = SIDES.keys() - {self._arm}
        ahead = self._scene.holds(other) and self._scene.tool(other)[2] > here[2] + self.level
        step = 0.0 if lateral > self.off or ahead else self.descent
        goal[2] = here[2] + min(max(goal[2] - here[2], -step), max(step, self.descent))
        there = self._T_base_cell @ drive @ Pose((goal + self._axis) * self._mirror, IDENTITY)
        force = quat_rotate(state.T_base_tcp.quaternion, state.wrench[:3]) if state.wrench is not None else np.zeros(3)
        return Pose(there.position - force / STIFFNESS, state.T_base_tcp.quaternion), 1.0, gripper

    def _done(self) -> bool:
        return self._scene.seated(self._arm) and not self._scene.holds(self._arm)

    def _relative(self, state: RobotState, drive: Pose) -> np.ndarray:
        """Return the tcp from the middle of its pulley's groove [m]: x, outwards, up."""
        here = drive.inverse() @ self._T_base_cell.inverse() @ state.T_base_tcp
        return here.position * self._mirror - self._axis


class BeltOperator(TwoHands):
    """Both hands.

    Args:
        scene: What they see.
        bases: Where the bases of the arms stand, by arm.
    """

    def __init__(self, scene: BeltScene, bases: Mapping[str, Pose]) -> None:
        super().__init__({arm: EndOperator(scene, base, arm, i) for i, (arm, base) in enumerate(bases.items())})
