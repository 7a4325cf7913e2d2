"""Who judges the episodes of a run: the task, or what the configuration puts in its place."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from robot_rl.clock import stands_still
from robot_rl.config.components import RewardConfig
from robot_rl.env.task import TaskSpec, Workcell, WorkcellOptions
from robot_rl.errors import ConfigError, RobotRLError, UnknownNameError
from robot_rl.reward.classifier.certificate import check_fit
from robot_rl.reward.classifier.classifier import ClassifierFile, RewardClassifier
from robot_rl.reward.classifier.reward_source import ClassifierReward
from robot_rl.reward.heads.progress_head import ProgressHeadFile
from robot_rl.reward.labels.labeller import labelled_view
from robot_rl.reward.labels.reward_source import LabelReward


def watched(
    options: WorkcellOptions,
    config: RewardConfig,
    classifier_file: ClassifierFile | None,
    shaping: ProgressHeadFile | None = None,
) -> WorkcellOptions:
    """What has to be observed, so that whoever judges can, and who shapes; the cameras of a policy come first.

    Args:
        options: What the policy observes.
        config: Who judges.
        classifier_file: The classifier, where one judges.
        shaping: By which rewards are shaped; None where they are not, or nothing is learned.

    Raises:
        ConfigError: if no store with labels is named.
        DataError: if it cannot be read.
    """
    needed: list[tuple[str, tuple[int, int]]] = []
    if config.kind == "labels":
        needed.append(labelled_view(_labels(config), config.labels))
    elif classifier_file is not None:
        classifier = classifier_file.classifier
        needed += [(camera, (classifier.size, classifier.size)) for camera in classifier.cameras]
    if shaping is not None:
        needed.append((shaping.head.camera, (shaping.head.size, shaping.head.size)))
    if not needed:
        return options
    cameras = tuple(dict.fromkeys((*options.cameras, *(camera for camera, _ in needed))))
    return replace(options, cameras=cameras, image_size=options.image_size if options.cameras else needed[0][1])


def rewarded(make: Callable[[], Workcell], config: RewardConfig, classifier_file: ClassifierFile | None) -> Workcell:
    """A workcell with its judge.

    Args:
        make: Makes the workcell; it is closed if the judge does not go with it.
        config: Who judges.
        classifier_file: The classifier, where one judges.

    Raises:
        ConfigError: if the classifier is of another task.
        UncertifiedError: if it is not fit to end episodes, and the configuration does not take the risk.
        UnknownNameError: if the scene lacks a camera that it needs.
    """
    if config.kind == "labels":
        cell = make()
        label_judge = LabelReward(knows_truth=cell.playback is not None, limit=config.episode_steps)
        return replace(cell, judges=(*cell.judges, label_judge))
    if classifier_file is None:
        return make()
    classifier = classifier_file.classifier
    warning = None if config.allow_unfit else check_fit(classifier_file)
    cell = make()
    try:
        _check_task(classifier, cell.task.spec, str(classifier_file.path))
    except RobotRLError:
        cell.close()
        raise
    if warning is not None:
        print(f"warning: {warning}", file=sys.stderr)
    judge = ClassifierReward(classifier, waits=stands_still(cell.clock))

    def close() -> None:
        judge.close()
        cell.close()

    return replace(cell, judges=(*cell.judges, judge), close=close)


def _check_task(classifier: RewardClassifier, spec: TaskSpec, path: str) -> None:
    if classifier.task != spec.name:
        raise ConfigError(f"reward.path={path}: trained for {classifier.task!r}, not for {spec.name!r}")
    for camera in classifier.cameras:
        if camera not in spec.cameras:
            raise UnknownNameError("camera", camera, spec.cameras)


def _labels(config: RewardConfig) -> Path:
    if not config.path:
        raise ConfigError("reward.kind=labels needs reward.path, a store or run with labels: see `robot-rl label run`")
    return Path(config.path)
