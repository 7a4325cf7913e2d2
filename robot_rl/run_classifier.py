"""The reward classifier of a run: the one that its configuration names, or that it was started with."""

from __future__ import annotations

from pathlib import Path

from robot_rl.config.components import RewardConfig
from robot_rl.errors import ConfigError
from robot_rl.files import write_atomically
from robot_rl.reward.certificate import certificate_path
from robot_rl.reward.classifier_file import ClassifierFile, read_classifier_file
from robot_rl.run_directory import RunDirectory
from robot_rl.run_files import KeptFile

KEPT = KeptFile(
    "classifier", "classifier.pt", "classifier", "reward.path", lambda config: config.path, read_classifier_file
)


def classifier_of(config: RewardConfig) -> ClassifierFile | None:
    """The classifier that a configuration names; None if none judges.

    Raises:
        ConfigError: if one judges, but none is named.
        DataError: if it cannot be read.
    """
    if config.kind != "classifier":
        return None
    if not config.path:
        raise ConfigError("reward.kind=classifier needs reward.path, the file of `robot-rl reward train`")
    return KEPT.of(config)


def classifier_of_run(path: Path, config: RewardConfig) -> ClassifierFile | None:
    """The classifier that a run was started with, from its directory; None if none judges. See `KeptFile.of_run`."""
    return KEPT.of_run(path, config) if config.kind == "classifier" else None


def keep_classifier(run: RunDirectory, classifier: ClassifierFile, config: RewardConfig) -> None:
    """Copies the classifier, and what a report found of it, into a run's directory. See `KeptFile.keep`."""
    report = certificate_path(classifier.path)
    if KEPT.keep(run, classifier, config) and report.is_file():
        write_atomically(certificate_path(run.path / KEPT.copy), report.read_text(encoding="utf-8"))
