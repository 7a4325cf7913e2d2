"""From a policy's action in [-1, 1] to the action of a gymnasium environment, and back."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from robot_rl.errors import ActionError, SpecError


class ActionLayout:
    """Scales actions to a bounded box of any shape.

    Args:
        space: Of the environment's actions.
        name: Of the environment, for messages.

    Attributes:
        size: Length of the policy's action.

    Raises:
        SpecError: if the space is of another kind.
    """

    def __init__(self, space: gymnasium.Space[Any], name: str) -> None:
        if not (isinstance(space, gymnasium.spaces.Box) and space.dtype.kind == "f" and np.prod(space.shape) > 0):
            raise SpecError(
                f"{name}: its actions are {space}; supported is a Box of real numbers. For choices, wrap the "
                "environment so that it takes numbers"
            )
        if not space.is_bounded():
            raise SpecError(
                f"{name}: its actions are {space}, without bounds; wrap it, e.g. in gymnasium.wrappers.RescaleAction"
            )
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
        given = np.asarray(action, dtype=float)
        if given.shape != self._middle.shape or not np.isfinite(given).all():
            raise SpecError(f"an expert's action is {action}; expected {self._middle.shape} finite numbers")
        half = np.where(self._half > 0, self._half, 1.0)
        return ((given - self._middle) / half).clip(-1.0, 1.0).astype(np.float32).ravel()

    def check(self, action: object) -> np.ndarray:
        """Return a policy's action as float32.

        Raises:
            ActionError: if it is not finite, in [-1, 1] and of the right shape.
        """
        try:
            array = np.asarray(action, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise ActionError(f"action is not an array of numbers: {error}") from error
        if array.shape != (self.size,) or not np.abs(array).max() <= 1.0 + 1e-6:
            raise ActionError(
                f"action has shape {array.shape} and is {array.tolist()}; valid: ({self.size},), in [-1, 1]"
            )
        return array.clip(-1.0, 1.0)
