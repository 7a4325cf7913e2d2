"""A reward classifier as a judge of the running episode: it ends it, and rewards its last step.

Looking takes longer than there is time in a control loop, so on a robot it is done beside it: the newest frame is
looked at, and what was found counts at the next step. Where time stands still meanwhile, as in a simulation that
waits for its user, the loop waits for the answer, so that a run can be repeated.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from robot_rl.data.schema import IMAGE_PREFIX, TASK_SUCCESS
from robot_rl.data.sparse_reward import success_reward
from robot_rl.env.task import Outcome, TaskSpec
from robot_rl.reward.classifier.classifier import FrameScorer, RewardClassifier
from robot_rl.reward.validation.ground_truth import CLASSIFIER_SOURCE

NICENESS = 10
"""Of the thread that looks at frames."""
PROBABILITY = "classifier_probability"
"""Metric of a step: the newest probability. `TASK_SUCCESS` says whether the task itself has seen a success in this
episode, which is the truth in simulation; a robot's task sees none."""


@dataclass(frozen=True, eq=False)
class _Look:
    """One observation to be looked at, or that was."""

    episode: int
    observation: Mapping[str, np.ndarray]
    score: float = 0.0


class ClassifierReward:
    """Judges by frames.

    Args:
        classifier: The classifier.
        waits: Whether the control loop waits for each answer.
    """

    def __init__(self, classifier: RewardClassifier, *, waits: bool) -> None:
        self._classifier, self._reader = classifier, FrameScorer(classifier)
        self._keys = [IMAGE_PREFIX + camera for camera in classifier.cameras] + [gate.key for gate in classifier.gates]
        self._changed = threading.Condition()
        self._waiting: _Look | None = None
        self._seen: list[_Look] = []
        self._error: Exception | None = None
        self._closed = False
        self._episode = self._agreeing = 0
        self._done, self._newest = False, 0.0
        self._worker = None if waits else threading.Thread(target=self._work, name="reward classifier", daemon=True)
        if self._worker is not None:
            self._worker.start()

    def begin(self) -> None:
        """A new episode starts; what is still being looked at belongs to the last one."""
        self._episode += 1
        self._agreeing, self._done, self._newest = 0, False, 0.0

    def judge(self, outcome: Outcome, observation: Mapping[str, np.ndarray], spec: TaskSpec) -> Outcome:
        """Success and reward by the classifier; the task keeps its word on failures.

        Raises:
            DataError: if a camera is not observed.
            ConfigError: if what a gate needs is not observed.
        """
        look = _Look(self._episode, {key: observation[key] for key in self._keys if key in observation})
        for score in self._answers(look):
            self._agreeing = self._agreeing + 1 if score >= self._classifier.threshold else 0
            self._newest = score
        success = self._agreeing >= self._classifier.consecutive and outcome.failure is None
        self._done |= outcome.success
        metrics = {**outcome.metrics, PROBABILITY: self._newest, TASK_SUCCESS: float(self._done)}
        reward = success_reward(success, spec.return_range[1])
        return replace(outcome, success=success, reward=reward, judge=CLASSIFIER_SOURCE, metrics=metrics)

    def _answers(self, look: _Look) -> list[float]:
        """Scores of this episode that are new, in the order of the frames."""
        if self._worker is None:
            return [self._score(look)]
        with self._changed:
            if self._error is not None:
                raise self._error
            seen, self._seen = self._seen, []
            self._waiting = look
            self._changed.notify()
        return [one.score for one in seen if one.episode == look.episode]

    def _score(self, look: _Look) -> float:
        return float(self._reader.score({key: value[None] for key, value in look.observation.items()})[0])

    def _work(self) -> None:
        if sys.platform == "linux":  # where threads have priorities of their own: control comes first
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting is not None or self._closed)
                look, self._waiting = self._waiting, None
            if look is None:
                return
            try:
                found = replace(look, score=self._score(look))
            except Exception as error:  # noqa: BLE001  (whatever it is, the control loop has to hear of it)
                with self._changed:
                    self._error = error
                return
            with self._changed:
                self._seen.append(found)

    def close(self) -> None:
        """Looks at nothing more."""
        with self._changed:
            self._closed = True
            self._waiting = None
            self._changed.notify()
        if self._worker is not None:
            self._worker.join()

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Closes."""
        self.close()
