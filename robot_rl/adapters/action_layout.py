"""From a policy's action in [-1, 1] to the action of a gymnasium environment, and back."""

from __future__ import annotations

import math
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces

from robot_rl.env.choice import GRIPPER_CHOICES, choice_of_entry, entry_of_choice
from robot_rl.errors import ActionError, SpecError

MOST_CHOICES = 1024
"""Most combinations of a space of choices; each is an output of the critics."""
NO_BOUND = 1e9
"""A bound as large as that stands for none: MuJoCo has 1e10 for an actuator without a range."""


class ActionLayout(Protocol):
    """Converts actions.

    Attributes:
        size: Length of the policy's action.
        choices: Of its last entry; 0 where that is no choice. See `EnvironmentSpec.choices`.
    """

    size: int
    choices: int

    def to_environment(self, action: np.ndarray) -> Any:
        """Return the environment's action for the policy's, of shape (size,)."""
        ...

    def to_policy(self, action: object) -> np.ndarray:
        """Return the policy's action for the environment's, float32, e.g. for that of an expert.

        Raises:
            SpecError: if it is no action of the environment.
        """
        ...

    def check(self, action: object) -> np.ndarray:
        """Return a policy's action as float32.

        Raises:
            ActionError: if it is not finite, in [-1, 1] and of the right shape.
        """
        ...


def make_action_layout(space: gymnasium.Space[Any], name: str, *, discrete_gripper: bool = False) -> ActionLayout:
    """Make the layout of a space of actions.

    Args:
        space: Of the environment's actions.
        name: Of the environment, for messages.
        discrete_gripper: Whether the last number of a box is one of three choices.

    Raises:
        SpecError: if the space is of a kind that is not supported.
    """
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        if discrete_gripper:
            raise SpecError(f"{name}: its actions are {space}, choices already; leave environment.discrete_gripper off")
        return ChoiceLayout(space, name)
    if not (isinstance(space, spaces.Box) and space.dtype.kind == "f" and np.prod(space.shape) > 0):
        raise SpecError(
            f"{name}: its actions are {space}; supported are a Box of real numbers, Discrete, MultiDiscrete and "
            "MultiBinary; wrap the environment so that it takes one of these"
        )
    if not space.is_bounded() or max(np.abs(space.low).max(), np.abs(space.high).max()) >= NO_BOUND:
        raise SpecError(
            f"{name}: its actions are {space}, without bounds below {NO_BOUND:.0e}, from which exploration could draw; "
            "wrap it, e.g. in gymnasium.wrappers.RescaleAction"
        )
    return BoxLayout(space, GRIPPER_CHOICES if discrete_gripper else 0)


class BoxLayout:
    """Scales actions to a bounded box of any shape; see `ActionLayout`.

    Args:
        space: Of the environment's actions.
        choices: Of the last number, evenly spaced over its range; 0: it is any number.
    """

    def __init__(self, space: spaces.Box, choices: int = 0) -> None:
        self.choices = choices
        low, high = space.low.astype(float), space.high.astype(float)
        self._middle, self._half = (high + low) / 2.0, (high - low) / 2.0
        self._dtype, self.size = space.dtype, int(np.prod(space.shape))

    def to_environment(self, action: np.ndarray) -> np.ndarray:
        """Return the environment's action for the policy's, of shape (size,)."""
        scaled = self._middle + self._half * action.reshape(self._middle.shape)
        return scaled.astype(self._dtype)

    def to_policy(self, action: object) -> np.ndarray:
        """Return the policy's action for the environment's, float32; what lies outside the box is clipped to it.

        Raises:
            SpecError: if it is no action of the environment.
        """
        try:
            given = np.asarray(action, dtype=float)
        except (TypeError, ValueError):  # no numbers at all
            given = np.array(np.nan)
        if given.shape != self._middle.shape or not np.isfinite(given).all():
            raise SpecError(f"an expert's action is {action}; expected {self._middle.shape} finite numbers")
        half = np.where(self._half > 0, self._half, 1.0)
        return self._chosen(((given - self._middle) / half).clip(-1.0, 1.0).astype(np.float32).ravel())

    def check(self, action: object) -> np.ndarray:
        """Return a policy's action as float32, a choice as the nearest one; see `ActionLayout.check`."""
        return self._chosen(_checked(action, self.size))

    def _chosen(self, action: np.ndarray) -> np.ndarray:
        if self.choices:
            action[-1] = entry_of_choice(choice_of_entry(float(action[-1]), self.choices), self.choices)
        return action


class ChoiceLayout:
    """One choice among all combinations of a discrete space, in the order of their indices; see `ActionLayout`.

    Args:
        space: Of the environment's actions.
        name: Of the environment, for messages.

    Raises:
        SpecError: if there are too many combinations.
    """

    size = 1

    def __init__(self, space: spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary, name: str) -> None:
        self._space = space
        self._counts: tuple[int, ...]
        if isinstance(space, spaces.Discrete):
            self._counts, self._start = (int(space.n),), np.array(space.start)
        elif isinstance(space, spaces.MultiDiscrete):
            self._counts, self._start = tuple(np.ravel(space.nvec).tolist()), np.asarray(space.start)
        else:
            self._counts = (2,) * int(np.prod(space.shape))
            self._start = np.zeros(space.shape, int)
        self.choices = math.prod(self._counts)
        if self.choices > MOST_CHOICES:
            raise SpecError(
                f"{name}: its actions are {space}, {self.choices} combinations; supported are up to {MOST_CHOICES}; "
                "wrap the environment so that it takes fewer"
            )

    def to_environment(self, action: np.ndarray) -> Any:
        """Return the environment's action for the policy's, of shape (1,): that of the nearest choice."""
        chosen = np.array(np.unravel_index(choice_of_entry(float(action[0]), self.choices), self._counts))
        value = chosen.reshape(self._start.shape) + self._start
        return value.astype(self._space.dtype)[()]

    def to_policy(self, action: object) -> np.ndarray:
        """Return the policy's action for the environment's, float32.

        Raises:
            SpecError: if it is no action of the environment.
        """
        given = np.asarray(action)
        if (
            given.shape != self._start.shape
            or given.dtype.kind not in "iub"
            or not self._space.contains(given.astype(self._space.dtype)[()])
        ):
            raise SpecError(f"an expert's action is {action}; expected one of {self._space}")
        index = np.ravel_multi_index(tuple(np.ravel(given - self._start)), self._counts)
        return np.array([entry_of_choice(int(index), self.choices)], np.float32)

    def check(self, action: object) -> np.ndarray:
        """Return the entry of the choice that is nearest to a policy's action, float32; see `ActionLayout.check`."""
        choice = choice_of_entry(float(_checked(action, 1)[0]), self.choices)
        return np.array([entry_of_choice(choice, self.choices)], np.float32)


def _checked(action: object, size: int) -> np.ndarray:
    """Return an action as float32, clipped to [-1, 1] where it is a rounding error beyond.

    Raises:
        ActionError: if it is not finite, in [-1, 1] and of the right shape.
    """
    try:
        array = np.asarray(action, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ActionError(f"action is not an array of numbers: {error}") from error
    if array.shape != (size,) or not np.abs(array).max() <= 1.0 + 1e-6:
        raise ActionError(f"action has shape {array.shape} and is {array.tolist()}; valid: ({size},), in [-1, 1]")
    return array.clip(-1.0, 1.0)
