"""An episode in which the arm stopped is cut: what the policy commanded was not done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from robot_rl.env.task import ArmStops, Outcome, TaskSpec


class ArmStopJudge:
    """Cuts the episode with the reason of the stop, and marks its last step as held.

    Args:
        stops: Stops of the arm.
    """

    def __init__(self, stops: ArmStops) -> None:
        self._stops = stops

    def begin(self) -> None:
        """Do nothing: an episode does not begin while the arm is stopped."""

    def judge(self, outcome: Outcome, observation: Mapping[str, np.ndarray], spec: TaskSpec) -> Outcome:
        """Return the outcome, cut if the arm is stopped."""
        del observation, spec
        if (reason := self._stops.stopped) is None:
            return outcome
        return replace(outcome, success=False, reward=0.0, cut=reason, held=True)
