"""Warnings about a demonstration, so that an operator can discard it while it is still fresh in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_rl.clock import NS_PER_S
from robot_rl.data.schema import Episode, Source

FEWEST_STEPS = 5
SATURATED_SHARE = 0.4
"""Share of led steps at full deflection from which a scale is too small for the hand."""
LONG_PAUSE = 1.5
"""Longest time without a command that passes without remark [s]."""
IRREGULAR = 2.0
"""Gap between two observations, of their median, from which control counts as irregular."""


def quality_warnings(episode: Episode, others: Sequence[int] = ()) -> list[str]:
    """Return warnings about a demonstration, a sentence each; none if it is fine.

    Args:
        episode: The demonstration.
        others: Lengths of those recorded before it [steps].
    """
    warnings = []
    steps, led = len(episode), episode.source != Source.HOLD
    period = np.diff(episode.stamp_obs) / NS_PER_S
    if not episode.facts.success:
        warnings.append("it did not end in success")
    if steps < FEWEST_STEPS:
        warnings.append(f"it is very short: {steps} steps")
    elif len(others) >= 3 and steps > 2.5 * (usual := float(np.median(others))):
        warnings.append(f"it took {steps} steps, the others about {usual:.0f}")
    if led.any():
        deflection = np.abs(episode.action[led]).max(axis=1)
        share = float((deflection >= 0.999).mean())
        if share > SATURATED_SHARE:
            warnings.append(f"the command was at its limit in {share:.0%} of the steps: raise the task's step size")
    pause = _longest_pause(~led, period)
    if pause > LONG_PAUSE:
        warnings.append(f"it has a pause of {pause:.1f} s")
    if steps > FEWEST_STEPS and float(period.max()) > IRREGULAR * float(np.median(period)):
        warnings.append(f"control was irregular: one step took {period.max():.2f} s")
    return warnings


def _longest_pause(idle: np.ndarray, period: np.ndarray) -> float:
    """Longest time of successive idle steps [s]."""
    longest = current = 0.0
    for at_rest, seconds in zip(idle.tolist(), period.tolist(), strict=True):
        current = current + seconds if at_rest else 0.0
        longest = max(longest, current)
    return longest
