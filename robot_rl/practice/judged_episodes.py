"""Episodes of the final evaluation of a training, also where a labeller judges them after their end."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator

from robot_rl.data.store.store import EpisodeStore
from robot_rl.learn.actor import StoreRecorder
from robot_rl.run.conclude import OpenTraining
from robot_rl.run.evaluation import HeldOut
from robot_rl.run.label_rewards import EvaluationLabels, open_label_rewards
from robot_rl.system.atomic_file import writing

EVALUATION = "evaluation"
"""Store of a training with the episodes of its last evaluation that were labelled."""


@contextlib.contextmanager
def judged_episodes(opened: OpenTraining) -> Iterator[HeldOut]:
    """Open them; those that labels judge are recorded for the labeller, and wait for their label.

    Raises:
        RunDirectoryError: if they cannot be recorded.
        RobotRLError: if the labeller cannot be used.
    """
    training, assistance = opened.training, opened.deployment.assistance
    shown = () if assistance is None else tuple(assistance.observers)
    if opened.labels is None:
        yield training.held_out(shown)
        return
    path = opened.run.path / EVALUATION
    with contextlib.ExitStack() as stack:
        with writing(path):
            if path.exists():
                shutil.rmtree(path)  # of an evaluation that was stopped
        store = stack.enter_context(EpisodeStore.create(path, {"task": opened.config.task}))
        opening = open_label_rewards(opened.config.reward, opened.env, EvaluationLabels)
        if (labels := stack.enter_context(opening)) is None:
            yield training.held_out(shown)
            return
        labels.begin(store, opened.learner, training.record)
        yield training.held_out(
            (StoreRecorder(store), labels, *shown),
            lambda result: labels.judged(result, training.env_steps, lambda: training.stop_requested),
        )
