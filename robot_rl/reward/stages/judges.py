"""The judges that a configuration names: classifiers of frames, of the whole or of a stage, and that of all stages."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import numpy as np

from robot_rl.clock import stands_still
from robot_rl.config.reward import StagesConfig
from robot_rl.data.schema import CLASSIFIER_PROBABILITY
from robot_rl.env.task import Outcome, TaskSpec, Workcell
from robot_rl.errors import ConfigError, UnknownNameError
from robot_rl.reward.classifier.classifier import ClassifierFile
from robot_rl.reward.classifier.reward_source import ClassifierReward
from robot_rl.reward.stages.stage_judge import Condition, JudgedStage, StageJudge, judged_by_person, judged_by_task


def open_classifier(file: ClassifierFile, cell: Workcell, setting: str) -> ClassifierReward:
    """Return a classifier that judges the steps of a workcell.

    Args:
        file: Of the classifier.
        cell: Whose frames it sees.
        setting: Key of the configuration that names the file.

    Raises:
        ConfigError: if it is for another task.
        UnknownNameError: if the scene lacks a camera that it needs.
    """
    classifier, spec = file.classifier, cell.task.spec
    if classifier.task != spec.name:
        raise ConfigError(f"{setting}={file.path}: trained for {classifier.task!r}, not for {spec.name!r}")
    for camera in classifier.cameras:
        if camera not in spec.cameras:
            raise UnknownNameError("camera", camera, spec.cameras)
    return ClassifierReward(classifier, waits=stands_still(cell.clock))


def make_stage_judge(stages: StagesConfig, files: Mapping[str, ClassifierFile], cell: Workcell) -> StageJudge:
    """Return the judge of the stages that a configuration names.

    Args:
        stages: What the configuration says of them.
        files: The classifiers among their judges, by the names of the stages.
        cell: Whose steps are judged.

    Raises:
        UnknownNameError: if the task itself is to judge a stage that it does not know.
        RobotRLError: as `open_classifier`.
    """
    known = cell.task.spec.stages
    with contextlib.ExitStack() as opened:
        made = []
        for name, judge in stages.judges:
            lasting = name in stages.lasting
            if name in files:
                classifier = open_classifier(files[name], cell, "reward.stages.order")
                opened.callback(classifier.close)
                holds = _judged_by(classifier)
                lasts = _lasting_by(classifier, files[name].classifier.threshold)
                made.append(JudgedStage(name, holds, False, lasting, lasts, classifier.begin, classifier.close))
            elif judge == "person":
                made.append(JudgedStage(name, judged_by_person, by_person=True, lasting=False))
            elif name in known:
                made.append(JudgedStage(name, judged_by_task(name), lasting=lasting))
            else:
                raise UnknownNameError(f"stage of {cell.task.spec.name}", name, known)
        opened.pop_all()
    return StageJudge(made, steps=stages.steps, retries=stages.retries)


def _judged_by(classifier: ClassifierReward) -> Condition:
    def holds(outcome: Outcome, observation: Mapping[str, np.ndarray], spec: TaskSpec) -> bool:
        return classifier.judge(Outcome(False, 0.0), observation, spec).success

    return holds


def _lasting_by(classifier: ClassifierReward, threshold: float) -> Condition:
    """Return whether the newest frame is so: one that is not must not count as many as are wanted in a row."""

    def lasts(outcome: Outcome, observation: Mapping[str, np.ndarray], spec: TaskSpec) -> bool:
        judged = classifier.judge(Outcome(False, 0.0), observation, spec)
        return judged.metrics[CLASSIFIER_PROBABILITY] >= threshold

    return lasts
