"""An operator who strays: leads as well as another one does, but now and then somewhere else, and sometimes gives up.

Recordings need near misses as much as successes: from an operator who always succeeds, a classifier learns that to be
near is to be done.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import Operator, TaskSpec
from robot_rl.geometry import Pose


@dataclass(frozen=True)
class StrayHabit:
    """How often and how far.

    Attributes:
        chance: Per step, of beginning to stray.
        chance_when_done: The same where the task is done, so that it is undone and done again.
        move: Shortest and longest motion [steps].
        rest: Longest stay where that led to [steps].
        drop: Chance that a gripper opens with it.
        give_up: Chance that an episode is left to straying from some moment on.
    """

    chance: float = 0.06
    chance_when_done: float = 0.15
    move: tuple[int, int] = (1, 6)
    rest: int = 4
    drop: float = 0.15
    give_up: float = 0.35


class StrayingOperator:
    """Strays between what another operator does.

    Args:
        operator: The other one.
        spec: The task.
        habit: How often and how far.
    """

    def __init__(self, operator: Operator, spec: TaskSpec, habit: StrayHabit | None = None) -> None:
        self._operator, self._spec, self._habit = operator, spec, habit or StrayHabit()
        self.done = False
        """Whether the task is done at the moment; told by who records."""

    def reset(self, seed: int, demonstrate: bool) -> None:
        """A new episode starts."""
        self._operator.reset(seed, demonstrate)
        self._rng = np.random.default_rng([seed, 5])
        gives_up = self._rng.uniform() < self._habit.give_up
        self._patience = int(self._rng.integers(5, self._spec.max_steps // 2)) if gives_up else self._spec.max_steps
        self._steps = self._moving = self._resting = 0
        self.done = False

    def act(self, state: RobotState, T_base_reset: Pose) -> np.ndarray | None:
        """This step's action."""
        wanted = self._operator.act(state, T_base_reset)  # asked in any case, so that it goes on from where it is
        habit, rng = self._habit, self._rng
        self._steps += 1
        if self._moving == 0 and self._resting == 0:
            chance = habit.chance_when_done if self.done else habit.chance
            if self._steps <= self._patience and rng.uniform() >= chance:
                return wanted
            self._begin()
        if self._moving > 0:
            self._moving -= 1
            return self._direction
        self._resting -= 1
        return np.zeros(self._spec.action_size)

    def _begin(self) -> None:
        habit, rng, axes = self._habit, self._rng, len(self._spec.action_axes)
        direction = rng.normal(size=axes)
        direction *= rng.uniform(0.2, 1.0) / np.abs(direction).max()
        self._direction = np.append(direction, float(rng.uniform() < habit.drop)) if self._spec.gripper else direction
        self._moving = int(rng.integers(habit.move[0], habit.move[1] + 1))
        self._resting = int(rng.integers(habit.rest + 1))
