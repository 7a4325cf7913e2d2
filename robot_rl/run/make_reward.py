"""The reward set-up of a run: who rewards its episodes, by which files, and how rewards are shaped."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from robot_rl.config.reward import RewardConfig
from robot_rl.env.environment import Environment, EnvironmentSpec
from robot_rl.env.task import Workcell, WorkcellOptions
from robot_rl.errors import ConfigError, RobotRLError, UnknownNameError
from robot_rl.reward.classifier.certificate import check_fit
from robot_rl.reward.classifier.classifier import ClassifierFile
from robot_rl.reward.labels.labeller import labelled_views
from robot_rl.reward.late.reward_source import LabelReward
from robot_rl.reward.potential.progress_potential import ProgressPotential
from robot_rl.reward.potential.shaping_certificate import ShapingHead
from robot_rl.reward.stages.judges import make_stage_judge, open_classifier
from robot_rl.run.directory.pinned_files import PINNED_CLASSIFIER, PINNED_HEAD, pin_with_report, pinned_stage
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.run.label_rewards import TrainingRewards, open_label_rewards

LABELLED = ("labels", "preferences")
"""Kinds of rewards that come later than their episode, from a labeller."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RewardSetup:
    """The reward of one run, made once by `from_config` or `of_run`.

    Attributes:
        config: The `reward` section of the configuration.
        classifier: The classifier that rewards the steps; None if none does.
        head: The progress head that shapes the rewards; None if they are not shaped.
        stages: Of the stages that one judges, the classifiers, by their names.
    """

    config: RewardConfig
    classifier: ClassifierFile | None = None
    head: ShapingHead | None = None
    stages: Mapping[str, ClassifierFile] = field(default_factory=dict)

    @classmethod
    def from_config(cls, config: RewardConfig) -> RewardSetup:
        """Read the files that a configuration names.

        Raises:
            ConfigError: if the configuration needs a file and names none, or its stages contradict each other.
            DataError: if a file cannot be read.
            UncertifiedError: if the head is not fit to shape rewards, and the configuration does not allow that.
        """
        _check_path(config)
        config.stages.check()
        head = PINNED_HEAD.of(config) if config.shaping.head else None
        return cls(
            config,
            PINNED_CLASSIFIER.of(config) if config.kind == "classifier" else None,
            ShapingHead.of(head, allowed=config.allow_unfit) if head is not None else None,
            {name: pinned_stage(name).of(config) for name, _ in config.stages.classifiers},
        )

    @property
    def staged(self) -> RewardSetup:
        """The stages alone, where the task itself judges the success: for what is recorded outside of a run."""
        mine, alone = self.config, TASK_REWARD.config
        config = replace(alone, stages=mine.stages, allow_unfit=mine.allow_unfit)
        return replace(TASK_REWARD, config=config, stages=self.stages)

    @classmethod
    def of_run(cls, path: Path, config: RewardConfig, *, shaped: bool = True) -> RewardSetup:
        """Read the files that a run was started with, from its directory.

        Args:
            path: The run directory.
            config: Configuration of the resumed run; it may name other files with the same content.
            shaped: Read the progress head too; only learning needs it.

        Raises:
            ConfigError: if a file that the configuration names has other content than the run's copy.
            RunDirectoryError: if a copy is missing or was changed.
            DataError: if a file cannot be read.
        """
        head = PINNED_HEAD.of_run(path, config) if shaped and config.shaping.head else None
        return cls(
            config,
            PINNED_CLASSIFIER.of_run(path, config) if config.kind == "classifier" else None,
            ShapingHead.of(head, allowed=True) if head is not None else None,  # decided when the run began
            {name: pinned_stage(name).of_run(path, config) for name, _ in config.stages.classifiers},
        )

    def observe(self, options: WorkcellOptions) -> WorkcellOptions:
        """Add the cameras that the reward needs to what is observed; the cameras of the policy stay first.

        Args:
            options: What the policy observes.

        Raises:
            ConfigError: if no store with labels is named.
            DataError: if that store cannot be read.
        """
        needed: list[tuple[str, tuple[int, int]]] = []
        if self.config.kind in LABELLED:
            _check_path(self.config)
            needed += labelled_views(Path(self.config.path), self.config.labels)
        for file in (self.classifier, *self.stages.values()):
            if file is not None:
                size = file.classifier.size, file.classifier.size
                needed += [(camera, size) for camera in file.classifier.cameras]
        if self.head is not None:
            head = self.head.head
            needed.append((head.camera, (head.size, head.size)))
        if not needed:
            return options
        cameras = tuple(dict.fromkeys((*options.cameras, *(camera for camera, _ in needed))))
        return replace(options, cameras=cameras, image_size=options.image_size if options.cameras else needed[0][1])

    def check_people(self, *, present: bool) -> None:
        """Check that a person is there if one judges a stage.

        Raises:
            ConfigError: if none is `present`.
        """
        if not present and (theirs := [name for name, judge in self.config.stages.judges if judge == "person"]):
            raise ConfigError(
                f"a person judges the stage {', '.join(theirs)}, and nobody is here: give --console or --teleop "
                "DEVICE, or the stage another judge (reward.stages.order)"
            )

    def workcell(self, make: Callable[[], Workcell]) -> Workcell:
        """Make a workcell whose outcomes are rewarded as configured, stage by stage where the task has stages.

        Args:
            make: Makes the workcell; it is closed if the reward does not fit it.

        Raises:
            ConfigError: if the classifier is for another task.
            UncertifiedError: if the classifier is not fit to end episodes, and the configuration does not allow that.
            UnknownNameError: if the scene lacks a camera that the classifier needs, or the task does not know a stage.
        """
        for file in (self.classifier, *self.stages.values()):
            if file is not None and not (verdict := check_fit(file, allowed=self.config.allow_unfit)).passed:
                logger.warning("%s: %s", file.path, verdict.explanation)
        cell = self._judged(make)
        if not self.config.stages.order:
            return cell
        with contextlib.ExitStack() as opened:
            opened.callback(cell.close)
            judge = make_stage_judge(self.config.stages, self.stages, cell)
            opened.callback(judge.close)
            close = opened.pop_all().close
            return replace(cell, judges=(*cell.judges, judge), person_stages=judge.by_person, close=close)

    def judging(self, make: Callable[[str, WorkcellOptions], Workcell]) -> Callable[[str, WorkcellOptions], Workcell]:
        """Return what makes workcells of tasks as `make` does, with outcomes that are rewarded as configured."""
        return lambda task, options: self.workcell(lambda: make(task, options))

    def _judged(self, make: Callable[[], Workcell]) -> Workcell:
        """Make a workcell whose success is judged as configured."""
        if self.config.kind in LABELLED:
            cell = make()
            label_judge = LabelReward(knows_truth=cell.playback is not None, limit=self.config.episode_steps)
            return replace(cell, judges=(*cell.judges, label_judge))
        if self.classifier is None:
            return make()
        cell = make()
        try:
            judge = open_classifier(self.classifier, cell, "reward.path")
        except RobotRLError:
            cell.close()
            raise

        def close() -> None:
            judge.close()
            cell.close()

        return replace(cell, judges=(*cell.judges, judge), close=close)

    def labels(self, env: Environment) -> contextlib.AbstractContextManager[TrainingRewards | None]:
        """Start the labeller of a training; None if labels do not reward it. See `open_label_rewards`."""
        return open_label_rewards(self.config, env)

    def potential(self, spec: EnvironmentSpec) -> ProgressPotential | None:
        """Return the potential that shapes the rewards of a task; None if they are not shaped.

        Raises:
            ConfigError: if the head was trained for another task.
            UnknownNameError: if the scene lacks the camera that the head needs.
        """
        if self.head is None:
            return None
        head = self.head.head
        if head.task != spec.instruction:
            raise ConfigError(
                f"reward.shaping.head={self.head.path}: trained for {head.task!r}, the task {spec.name} is "
                f"{spec.instruction!r}; train one on episodes of this task"
            )
        if head.camera not in spec.cameras:
            raise UnknownNameError("camera", head.camera, spec.cameras)
        if not self.head.verdict.passed:
            logger.warning("rewards shaped by %s: %s", self.head.path, self.head.verdict.explanation)
        return ProgressPotential(head, self.config.shaping.scale)

    def pin(self, run: RunDirectory) -> None:
        """Copy the classifier, its report and the head into a run's directory, so that a resumed run has the same.

        Raises:
            RunDirectoryError: if a copy cannot be written.
        """
        if self.classifier is not None:
            pin_with_report(run, PINNED_CLASSIFIER, self.classifier, self.config)
        for name, file in self.stages.items():
            pin_with_report(run, pinned_stage(name), file, self.config)
        if self.head is not None:
            pin_with_report(run, PINNED_HEAD, self.head, self.config)
            run.record("shaping", self.head.facts())


TASK_REWARD = RewardSetup(RewardConfig(overrule_s=0.0))
"""The task's own reward, which nobody overrules."""


def _check_path(config: RewardConfig) -> None:
    if config.path or config.kind == "task":
        return
    needed = {
        "classifier": "the file of `robot-rl classifier train`",
        "labels": "a store or run with labels: see `robot-rl label run`",
        "preferences": "a store or run with labels of pairs: see `robot-rl label run --kind preference`",
    }
    raise ConfigError(f"reward.kind={config.kind} needs reward.path, {needed[config.kind]}")
