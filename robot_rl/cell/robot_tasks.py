"""Tasks on a real robot: one that a person judges, and one whose goal the arm can measure itself."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from robot_rl.cell.robot_file import GoalConfig
from robot_rl.data.sparse_reward import success_reward
from robot_rl.env.action_mapping import AXES
from robot_rl.env.robot_io import RobotIO, RobotState
from robot_rl.env.task import Outcome, TaskSpec
from robot_rl.geometry import Pose, quat_conjugate, quat_rotate
from robot_rl.spec import ArraySpec

TARE_TIME = 0.6
"""Time at rest before the wrench is tared [s]: the mean of its last half second is taken off."""


class PersonTask:
    """A task whose outcome a person decides, a classifier of frames, or labels that come later.

    Args:
        spec: Facts of the task.
        tare: Makes the present wrench zero.
    """

    def __init__(self, spec: TaskSpec, tare: Callable[[], bool]) -> None:
        self.spec, self._tare = spec, tare

    def observation_specs(self) -> dict[str, ArraySpec]:
        """Return none: nothing is estimated."""
        return {}

    def reset(self, seed: int) -> None:
        """Tare the wrench; a person has made the scene ready."""
        del seed  # on a robot, nothing follows from it
        time.sleep(TARE_TIME)
        self._tare()

    def observe(self, state: RobotState, T_base_reset: Pose) -> dict[str, np.ndarray]:
        """Return nothing."""
        del state, T_base_reset
        return {}

    def evaluate(self, state: RobotState) -> Outcome:
        """Leave the step undecided."""
        del state
        return Outcome(False, 0.0)


class GoalTask(PersonTask):
    """Bring the tcp to a point near the start and keep it there: a first task for a new arm, without cameras.

    Args:
        spec: Facts of the task.
        tare: Makes the present wrench zero.
        io: The robot.
        goal: The distribution of the goal, and when the tcp is there.
    """

    def __init__(self, spec: TaskSpec, tare: Callable[[], bool], io: RobotIO, goal: GoalConfig) -> None:
        super().__init__(spec, tare)
        self._io, self._goal = io, goal
        self.target = np.zeros(3)
        """The goal in the base frame [m]."""
        self._held = 0

    def observation_specs(self) -> dict[str, ArraySpec]:
        """Return the spec of the goal in the tcp frame."""
        return {"state/target": ArraySpec((3,), unit="m", scale=0.02)}

    def reset(self, seed: int) -> None:
        """Draw the goal around where the arm is; the same seed gives the same offset."""
        super().reset(seed)
        offset = np.random.default_rng([seed, 1]).uniform(-1.0, 1.0, 3) * np.array(self._goal.spread)
        self.target = self._io.read().T_base_tcp.position + offset
        self._held = 0

    def observe(self, state: RobotState, T_base_reset: Pose) -> dict[str, np.ndarray]:
        """Return the goal in the tcp frame."""
        del T_base_reset  # it is relative to the tcp itself
        here = state.T_base_tcp
        return {"state/target": quat_rotate(quat_conjugate(here.quaternion), self.target - here.position)}

    def evaluate(self, state: RobotState) -> Outcome:
        """Succeed when the measured tcp has been at the goal for some steps."""
        distance = float(np.linalg.norm(state.T_base_tcp.position - self.target))
        self._held = self._held + 1 if distance <= self._goal.tolerance else 0
        success = self._held >= self._goal.steps
        return Outcome(success, success_reward(success), metrics={"distance": distance})


class GoalOperator:
    """Demonstrates `GoalTask`: straight to the goal, at most a full action in each axis. It never takes over.

    Args:
        task: The task, whose goal it knows.
    """

    def __init__(self, task: GoalTask) -> None:
        self._task, self._demonstrate = task, False
        spec = task.spec
        moves = [(number, AXES.index(axis)) for number, axis in enumerate(spec.action_axes) if axis in AXES[:3]]
        self._moves, self._scale, self._size = moves, spec.action_translation, spec.action_size

    def reset(self, seed: int, demonstrate: bool) -> None:
        """Start an episode."""
        del seed  # nothing about it is random
        self._demonstrate = demonstrate

    def act(self, state: RobotState, T_base_reset: Pose) -> np.ndarray | None:
        """Return the action towards the goal, or None while the policy is in control."""
        if not self._demonstrate:
            return None
        way = self._task.observe(state, T_base_reset)["state/target"] / self._scale
        action = np.zeros(self._size, np.float32)
        for number, axis in self._moves:
            action[number] = np.clip(way[axis], -1.0, 1.0)
        return action
