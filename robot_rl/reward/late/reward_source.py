"""The reward of episodes that are labelled after their end: until then, the task's own success does not count.

A failure by the task still ends the episode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from robot_rl.data.schema import LABEL_SOURCE, TASK_SUCCESS
from robot_rl.env.task import Outcome, TaskSpec

TO_BE_LABELLED = "to be labelled"
"""Why an episode is cut at the step limit of labelled ones."""


class LabelReward:
    """Removes success and reward from the outcomes of an episode that will be labelled; others stay as they are.

    Args:
        knows_truth: Whether the task knows success, as it does in simulation. It is then kept as a metric, to
            measure the errors of labels; nothing is learned from it.
        limit: Steps of an episode that is labelled; 0: as many as the task allows.
    """

    def __init__(self, *, knows_truth: bool, limit: int = 0) -> None:
        self._knows_truth, self._limit = knows_truth, limit
        self._withholds, self._steps = False, 0

    def begin(self) -> None:
        """Start a new episode; its outcomes are the task's unless `withhold` is called."""
        self._withholds, self._steps = False, 0

    def withhold(self) -> None:
        """Have the running episode labelled: it goes on until a failure, the step limit or a person ends it."""
        self._withholds = True

    def judge(self, outcome: Outcome, observation: Mapping[str, np.ndarray], spec: TaskSpec) -> Outcome:
        """Return the task's outcome, without success and reward if the episode will be labelled."""
        del observation, spec
        if not self._withholds:
            return outcome
        self._steps += 1
        cut = TO_BE_LABELLED if self._steps == self._limit else outcome.cut
        truth = {TASK_SUCCESS: float(outcome.success)} if self._knows_truth else {}
        metrics = {**outcome.metrics, **truth}
        return replace(outcome, success=False, reward=0.0, judge=LABEL_SOURCE, metrics=metrics, cut=cut)
