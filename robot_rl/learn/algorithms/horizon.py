"""What fits the length of an episode: the discount, and how long demonstrations are imitated."""

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


def horizon_imitation(max_steps: int) -> dict[int, float]:
    """Return the schedule of `sac.imitation` for episodes of up to `max_steps`.

    Critics know more after each episode, not after each step, so the weight falls over episodes: to 0.2 in the time of
    10 of them, to 0.03 in that of 80.
    """
    longest = max(max_steps, USUAL_STEPS)
    return {0: 1.0, 10 * longest: 0.2, 80 * longest: 0.03}


def with_horizon(config: TrainConfig, max_steps: int) -> TrainConfig:
    """Return the configuration with discount and imitation, those of the episodes' length where none are set."""
    sac = config.sac
    if sac.discount is None:
        sac = replace(sac, discount=horizon_discount(max_steps))
    if sac.imitation is None:
        sac = replace(sac, imitation=horizon_imitation(max_steps))
    return replace(config, sac=sac)
