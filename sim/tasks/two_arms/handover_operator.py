"""The scripted operator of the task `handover`: two hands of one person, each of which leads an arm.

Each hand takes over its own arm when that arm's part of the work stalls; meanwhile the policy keeps the other one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import TaskSpec
from robot_rl.geometry import Pose, quat_conjugate, quat_multiply, quat_rotate, yaw_pose
from sim.operator import InterventionHabit, OperatorSkill, ScriptedOperator
from sim.scene import DOWNWARD
from sim.tasks.two_arms.two_hands import TwoHands

GIVER, TAKER = "left", "right"
MEETING = np.array([0.5, 0.0, 0.10])
"""Where the giver brings the middle of the bar [m]."""
GRASP = 0.08
"""From the middle of the bar to where each arm takes it, along its long axis [m]."""


class HandoverScene(Protocol):
    """What the operator sees of the scene."""

    @property
    def spec(self) -> TaskSpec:
        """The fixed facts of the task."""
        ...

    @property
    def place(self) -> np.ndarray:
        """Where the middle of the bar is wanted, in the frame of the scene [m]."""
        ...

    def bar_pose(self) -> Pose:
        """Return the pose of the bar, in the frame of the scene."""
        ...

    def holds(self, arm: str) -> bool:
        """Return whether both fingers of an arm touch the bar."""
        ...


class HandOperator(ScriptedOperator):
    """One hand: it grasps its end of the bar, and carries the bar to its goal.

    Args:
        scene: What it sees.
        T_cell_base: Where the base of its arm stands.
        start: Where its tcp starts, in the frame of the scene [m].
        arm: Name of the arm that it leads.
    """

    hover, aligned, low_enough = 0.05, 0.006, 0.006
    """Height over its end of the bar during alignment; lateral error and height at which it descends and grips [m]."""
    grip_steps = 4
    """Steps to wait for the fingers."""
    near = 0.015
    """Distance of the bar from where it is handed over at which the other hand grasps it [m]."""
    clear = 0.035
    """Height of the bar's middle to which it is lifted before it is carried [m]."""

    def __init__(self, scene: HandoverScene, T_cell_base: Pose, start: np.ndarray, arm: str) -> None:
        habit = InterventionHabit(stall_steps=8, progress=0.004)
        super().__init__(scene.spec.of_arm(arm), OperatorSkill(speed=(0.5, 0.7)), habit)
        self._scene, self._T_base_cell, self._arm = scene, T_cell_base.inverse(), arm
        self._start = self._T_base_cell @ Pose(start, np.array([1.0, 0.0, 0.0, 0.0]))
        self._gives = arm == GIVER
        self.hand = 0 if self._gives else 1
        self._end = np.array([0.0, GRASP if self._gives else -GRASP, 0.0])  # of the bar that it takes, in its frame

    def begin(self) -> None:
        """Discard the state of the grasp."""
        self._closing, self._waited = False, 0

    def waits(self, state: RobotState) -> bool:
        """Return whether the bar is the other hand's: not given yet, to be taken, or taken."""
        del state
        if self._gives:
            return not self._scene.holds(GIVER) if self._scene.holds(TAKER) else self._offered()
        return not self._scene.holds(TAKER) and not self._offered()

    def distance(self, state: RobotState) -> float:
        """Return the distance of the fingers to their end of the bar, plus that of the bar to its goal [m]."""
        bar = self._bar()
        if self._gives and self._scene.holds(TAKER):
            return 0.0
        to_bar = float(
            np.linalg.norm(state.T_base_tcp.position - (bar.position + quat_rotate(bar.quaternion, self._end)))
        )
        return to_bar + float(np.linalg.norm(bar.position - self._goal().position))

    def plan(self, state: RobotState) -> tuple[Pose, float, float]:
        """Plan the next goal, the relative speed and the gripper action."""
        here = state.T_base_tcp
        both = self._scene.holds(GIVER) and self._scene.holds(TAKER)
        if self._gives and self._scene.holds(TAKER):
            # Let go; once the fingers are open, back and out of the way.
            self._closing = False
            back = self._start if state.gripper_width > 0.06 else here
            return Pose(back.position, here.quaternion), 1.0, 1.0
        if not self._gives and not self._scene.holds(TAKER) and not self._offered():
            self._closing = False
            return Pose(self._start.position, here.quaternion), 1.0, 1.0
        bar = self.perceived(self._bar())
        end = bar.position + quat_rotate(bar.quaternion, self._end)
        downward = quat_multiply(bar.quaternion, quat_multiply(self._forward(), DOWNWARD))
        offset = here.position - end
        lateral = float(np.hypot(offset[0], offset[1]))
        if self._closing and (lateral > 0.03 or abs(offset[2]) > 0.03):
            self._closing = False  # lost the bar
        if not self._closing and lateral < self.aligned and abs(offset[2]) < self.low_enough:
            self._closing, self._waited = True, 0
        if not self._closing and self._scene.holds(self._arm):
            self._closing, self._waited = True, self.grip_steps  # a policy holds it
        if self._closing:
            self._waited += 1
            waiting = self._waited <= self.grip_steps or (both and not self._gives)
            return (Pose(here.position, downward) if waiting else self._carried(here)), 1.0, -1.0
        height = 0.0 if lateral < self.aligned else self.hover
        return Pose(end + np.array([0.0, 0.0, height]), downward), 1.0, 1.0

    def _bar(self) -> Pose:
        """Return the bar in the base frame."""
        return self._T_base_cell @ self._scene.bar_pose()

    def _offered(self) -> bool:
        """Return whether the giver holds the bar where it is handed over."""
        away = float(np.linalg.norm(self._scene.bar_pose().position - MEETING))
        return self._scene.holds(GIVER) and away < self.near

    def _goal(self) -> Pose:
        """Return where this hand brings the bar, in the base frame."""
        x, y, z = (MEETING if self._gives else self._scene.place).tolist()
        return self._T_base_cell @ yaw_pose(x, y, z, 0.0)

    def _carried(self, here: Pose) -> Pose:
        """Return where the tcp goes so that the bar, fixed in the fingers, comes to its goal; up at first."""
        bar, goal = self._bar(), self._goal()
        if bar.position[2] < self.clear:
            return Pose(here.position + np.array([0.0, 0.0, 0.05]), here.quaternion)
        return goal @ (here.inverse() @ bar).inverse()

    def _forward(self) -> np.ndarray:
        """Return the rotation from the bar's frame to that in which a downward tcp points away from the base."""
        # The bar lies along y of the scene, and the arms reach out along it.
        return quat_conjugate(self._T_base_cell.quaternion)


class HandoverOperator(TwoHands):
    """Both hands.

    Args:
        scene: What they see.
        bases: Where the bases of the arms stand, by arm.
        starts: Where their tcps start, in the frame of the scene [m], by arm.
    """

    def __init__(self, scene: HandoverScene, bases: Mapping[str, Pose], starts: Mapping[str, np.ndarray]) -> None:
        super().__init__({arm: HandOperator(scene, base, starts[arm], arm) for arm, base in bases.items()})
