"""Withholds what the task thinks of success, because a label will say it after the episode.

It knows the task's judgement of a step and passes on its failures; it does not know who labels, or what came of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from robot_rl.data.schema import LABEL_SOURCE, TASK_SUCCESS
from robot_rl.env.task import Outcome, TaskSpec


class LabelJudge:
    """A `Judge` of episodes that are labelled. Others, as demonstrations and evaluations, it leaves to the task.

    Args:
        knows_truth: Whether the task knows success, as it does in simulation. It is then kept as a metric, to tell how
            wrong labels are; nothing is learned from it.
        limit: Steps of an episode that is labelled; 0: as many as the task allows.
    """

    def __init__(self, *, knows_truth: bool, limit: int = 0) -> None:
        self._knows_truth, self._limit = knows_truth, limit
        self._withholds, self._steps = False, 0

    def begin(self) -> None:
        """A new episode starts; the task judges it, unless `withhold` is called."""
        self._withholds, self._steps = False, 0

    def withhold(self) -> None:
        """The running episode is one to be labelled: it goes on until a failure, the step limit or a person ends it."""
        self._withholds = True

    def judge(self, outcome: Outcome, observation: Mapping[str, np.ndarray], spec: TaskSpec) -> Outcome:
        """The task's outcome without its success and reward."""
        del observation, spec
        if not self._withholds:
            return outcome
        self._steps += 1
        cut = "to be labelled" if self._steps == self._limit else outcome.cut
        truth = {TASK_SUCCESS: float(outcome.success)} if self._knows_truth else {}
        metrics = {**outcome.metrics, **truth}
        return replace(outcome, success=False, reward=0.0, judge=LABEL_SOURCE, metrics=metrics, cut=cut)
