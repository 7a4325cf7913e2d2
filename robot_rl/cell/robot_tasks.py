"""Tasks on a real robot: one that a person judges, and one whose goal the arm can measure itself."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from robot_rl.cell.goal import TARGET, TARGET_SPEC, Goal
from robot_rl.clock import Clock
from robot_rl.env.robot_io import RobotIO, RobotState
from robot_rl.env.task import Outcome, StartPose, TaskSpec
from robot_rl.geometry import Pose
from robot_rl.spec import ArraySpec

TARE_TIME = 0.6
"""Time at rest before the wrench is tared [s]: the mean of its last half second is taken off."""


class PersonTask:
    """A task whose outcome a person decides, a classifier of frames, or labels that come later; a `Continues` too.

    Args:
        spec: Facts of the task.
        tare: Makes the present wrench zero.
        obstacle: Why it cannot begin where the arm is, or None; of a task in a practice.
    """

    home: StartPose | None = None
    """The start of an episode takes the arm to its start pose."""

    def __init__(
        self, spec: TaskSpec, tare: Callable[[], bool], obstacle: Callable[[], str | None] = lambda: None
    ) -> None:
        self.spec, self._tare, self.obstacle = spec, tare, obstacle

    def observation_specs(self) -> dict[str, ArraySpec]:
        """Return none: nothing is estimated."""
        return {}

    def reset(self, seed: int) -> None:
        """Tare the wrench; a person has made the scene ready."""
        del seed  # on a robot, nothing follows from it
        time.sleep(TARE_TIME)
        self._tare()

    def go_on(self, seed: int) -> None:
        """Begin in the scene as the last episode has left it; nobody has made it ready."""
        self.reset(seed)

    def tidy(self, io: RobotIO, clock: Clock) -> None:
        """Do nothing: nobody knows where things are."""

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
        goal: The point.
        obstacle: As of `PersonTask`.
    """

    def __init__(
        self,
        spec: TaskSpec,
        tare: Callable[[], bool],
        io: RobotIO,
        goal: Goal,
        obstacle: Callable[[], str | None] = lambda: None,
    ) -> None:
        super().__init__(spec, tare, obstacle)
        self._io, self._goal = io, goal

    def observation_specs(self) -> dict[str, ArraySpec]:
        """Return the spec of the goal in the tcp frame."""
        return {TARGET: TARGET_SPEC}

    def reset(self, seed: int) -> None:
        """Tare the wrench, and draw the goal around where the arm is."""
        super().reset(seed)
        self._goal.draw(seed, self._io.read().T_base_tcp)

    def observe(self, state: RobotState, T_base_reset: Pose) -> dict[str, np.ndarray]:
        """Return the goal in the tcp frame."""
        del T_base_reset  # it is relative to the tcp itself
        return {TARGET: self._goal.seen_from(state.T_base_tcp)}

    def evaluate(self, state: RobotState) -> Outcome:
        """Succeed when the measured tcp has been at the goal for some steps."""
        return self._goal.judge(state.T_base_tcp)


class GoalOperator:
    """Demonstrates `GoalTask`: straight to the goal. It never takes over.

    Args:
        spec: Facts of the task.
        goal: The point, which it knows.
    """

    def __init__(self, spec: TaskSpec, goal: Goal) -> None:
        self._spec, self._goal, self._demonstrate = spec, goal, False

    def reset(self, seed: int, demonstrate: bool) -> None:
        """Start an episode."""
        del seed  # nothing about it is random
        self._demonstrate = demonstrate

    def act(self, state: RobotState, T_base_reset: Pose) -> np.ndarray | None:
        """Return the action towards the goal, or None while the policy is in control."""
        del T_base_reset  # the goal is relative to the tcp itself
        return self._goal.towards(state.T_base_tcp, self._spec) if self._demonstrate else None
