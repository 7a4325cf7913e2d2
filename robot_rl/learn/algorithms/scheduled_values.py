"""Settings of an algorithm that follow a schedule, as tensors that updates read, also compiled or recorded ones."""

from __future__ import annotations

import torch
from torch import Tensor

from robot_rl.config.schedule import Rate, value_at


class ScheduledValues:
    """The scheduled settings of one algorithm; plain numbers stay plain numbers.

    Args:
        device: Where the algorithm computes.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._followed: dict[str, tuple[dict[int, float], float, Tensor]] = {}

    def follow(self, name: str, setting: Rate, factor: float = 1.0) -> float | Tensor:
        """Return `factor` times a setting: a number, or for a schedule a scalar that `advance` changes in place.

        Args:
            name: For the logs; the same name always gives the same scalar.
            setting: The number or schedule.
            factor: The number that multiplies it.
        """
        if not isinstance(setting, dict):
            return factor * setting
        if name not in self._followed:
            scalar = torch.tensor(factor * value_at(setting, 0), device=self._device)
            self._followed[name] = setting, factor, scalar
        return self._followed[name][2]

    def advance(self, env_steps: int) -> dict[str, float]:
        """Set all scalars to their values after so many env steps; return them by name."""
        values = {}
        for name, (setting, factor, scalar) in self._followed.items():
            values[name] = factor * value_at(setting, env_steps)
            scalar.fill_(values[name])
        return values
