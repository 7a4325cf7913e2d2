"""A reward classifier in the control loop: it ends the running episode, and rewards its last step.

A score takes longer than there is time in a control loop, so on a robot a thread computes it beside the loop: it scores
the newest frame, and the score counts at the next step. Where time stands still meanwhile, as in a simulation that
waits for its user, the loop waits for the score, so that a run can be repeated.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from robot_rl.data.schema import CLASSIFIER_PROBABILITY, IMAGE_PREFIX, TASK_SUCCESS
from robot_rl.data.sparse_reward import success_reward
from robot_rl.env.task import Outcome, TaskSpec
from robot_rl.reward.classifier.classifier import FrameScorer, RewardClassifier
from robot_rl.reward.validation.ground_truth import CLASSIFIER_SOURCE

NICENESS = 10
"""Of the thread that scores frames."""


@dataclass(frozen=True, eq=False)
class _Sample:
    """One observation, before or after it is scored."""

    episode: int
    observation: Mapping[str, np.ndarray]
    score: float = 0.0


class ClassifierReward:
    """Sets success and reward of a step by the classifier.

    Args:
        classifier: The classifier.
        waits: Whether the control loop waits for each score.
    """

    def __init__(self, classifier: RewardClassifier, *, waits: bool) -> None:
        self._classifier, self._reader = classifier, FrameScorer(classifier)
        self._keys = [IMAGE_PREFIX + camera for camera in classifier.cameras] + [gate.key for gate in classifier.gates]
        self._changed = threading.Condition()
        self._waiting: _Sample | None = None
        self._seen: list[_Sample] = []
        self._error: Exception | None = None
        self._closed = False
        self._episode = self._agreeing = 0
        self._done, self._newest = False, 0.0
        self._worker = None if waits else threading.Thread(target=self._work, name="reward classifier", daemon=True)
        if self._worker is not None:
            self._worker.start()

    def begin(self) -> None:
        """Start a new episode; a sample that is still being scored belongs to the last one."""
        self._episode += 1
        self._agreeing, self._done, self._newest = 0, False, 0.0

    def judge(self, outcome: Outcome, observation: Mapping[str, np.ndarray], spec: TaskSpec) -> Outcome:
        """Set success and reward by the classifier; failures remain those of the task.

        Raises:
            DataError: if a camera is not observed.
            ConfigError: if what a gate needs is not observed.
        """
        sample = _Sample(self._episode, {key: observation[key] for key in self._keys if key in observation})
        for score in self._new_scores(sample):
            self._agreeing = self._agreeing + 1 if score >= self._classifier.threshold else 0
            self._newest = score
        success = self._agreeing >= self._classifier.consecutive and outcome.failure is None
        self._done |= outcome.success
        metrics = {**outcome.metrics, CLASSIFIER_PROBABILITY: self._newest, TASK_SUCCESS: float(self._done)}
        reward = success_reward(success, spec.return_range[1])
        return replace(outcome, success=success, reward=reward, judge=CLASSIFIER_SOURCE, metrics=metrics)

    def _new_scores(self, sample: _Sample) -> list[float]:
        """Submit the sample, and return the new scores of this episode in the order of the frames."""
        if self._worker is None:
            return [self._score(sample)]
        with self._changed:
            if self._error is not None:
                raise self._error
            seen, self._seen = self._seen, []
            self._waiting = sample
            self._changed.notify()
        return [one.score for one in seen if one.episode == sample.episode]

    def _score(self, sample: _Sample) -> float:
        return float(self._reader.score({key: value[None] for key, value in sample.observation.items()})[0])

    def _work(self) -> None:
        if sys.platform == "linux":  # where threads have priorities of their own: control comes first
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting is not None or self._closed)
                sample, self._waiting = self._waiting, None
            if sample is None:
                return
            try:
                found = replace(sample, score=self._score(sample))
            except Exception as error:  # noqa: BLE001  (whatever it is, the control loop raises it)
                with self._changed:
                    self._error = error
                return
            with self._changed:
                self._seen.append(found)

    def close(self) -> None:
        """Score nothing more, and end the thread."""
        with self._changed:
            self._closed = True
            self._waiting = None
            self._changed.notify()
        if self._worker is not None:
            self._worker.join()

    def __enter__(self) -> Self:
        """Return the reward source."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close it."""
        self.close()
