"""The discount that fits the length of an episode."""

from __future__ import annotations

from dataclasses import replace

from robot_rl.config.components import TrainConfig

LEAST, LARGEST = 0.96, 0.995
USUAL_STEPS = 100
"""Length of the episodes of most tasks of an arm."""
SHARE = 4.0
"""Episodes' length over the effective horizon 1 / (1 - discount)."""


def horizon_discount(max_steps: int) -> float:
    """Return the discount per step for episodes of up to `max_steps`.

    gamma = 1 - 4 / T, within [0.96, 0.995]: a success at the end of an episode is worth gamma^T = e^-4 at its start.
    The heuristic of TD-MPC2 (Hansen 2024, appendix) is 1 - 5 / T, within [0.95, 0.995].
    """
    return min(max(1.0 - SHARE / max_steps, LEAST), LARGEST)


def with_discount(config: TrainConfig, max_steps: int) -> TrainConfig:
    """Return the configuration with a number as its discount, that of the episodes' length where none is set."""
    if config.sac.discount is not None:
        return config
    return replace(config, sac=replace(config.sac, discount=horizon_discount(max_steps)))
