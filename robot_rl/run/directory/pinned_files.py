"""A file that a run uses, e.g. a reward classifier, kept in its directory, so that a resumed run uses the same one.

It knows run directories and the content of files; what they hold, and what is learned with it, it does not know.

The progress head by which the rewards of a run are shaped: the one that its configuration names, or its own copy.

The reward classifier of a run: the one that its configuration names, or that it was started with.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from robot_rl.config.components import RewardConfig
from robot_rl.env.task import TaskSpec
from robot_rl.errors import ConfigError, RunDirectoryError, UnknownNameError
from robot_rl.reward.classifier.certificate import certificate_path
from robot_rl.reward.classifier.classifier import ClassifierFile, read_classifier_file
from robot_rl.reward.heads.head_file import ReadFile
from robot_rl.reward.heads.progress_head import ProgressHeadFile, read_progress_head_file
from robot_rl.reward.heads.progress_potential import ProgressPotential
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.system.atomic_file import replace_file, write_atomically, writing

F = TypeVar("F", bound=ReadFile)


@dataclass(frozen=True)
class KeptFile(Generic[F]):
    """How a run keeps a file of some kind.

    Attributes:
        what: It is, in words.
        copy: Name of the run's copy.
        fact: Name of the fact in a run's provenance: `path`, where it was taken from, and `sha256`, of its content.
        setting: Key of the configuration that names the file.
        named: What the configuration names.
        read: Reads one.
    """

    what: str
    copy: str
    fact: str
    setting: str
    named: Callable[[RewardConfig], str]
    read: Callable[[Path], F]

    def of(self, config: RewardConfig) -> F:
        """The file that a configuration names.

        Raises:
            DataError: if it cannot be read.
        """
        return self.read(Path(self.named(config)))

    def of_run(self, path: Path, config: RewardConfig) -> F:
        """The file that a run was started with, from its directory.

        Args:
            path: The run directory.
            config: Of the run as it shall go on; it may name another file with the same content.

        Raises:
            ConfigError: if that file has another content; both are named.
            RunDirectoryError: if the run's own is missing, or not the one that it was started with.
            DataError: if a file cannot be read.
        """
        if (fact := RunDirectory.read_facts(path).get(self.fact)) is None:
            return self.of(config)  # of a run that was ended before it began
        kept = path / self.copy
        if not kept.is_file():
            raise RunDirectoryError(f"{kept}, the {self.what} that the run was started with, is gone; {_cure(fact)}")
        own = self.read(kept)
        if own.sha256 != fact["sha256"]:
            raise RunDirectoryError(
                f"{kept} (sha256 {own.sha256}) is not the {self.what} that the run was started with (sha256 "
                f"{fact['sha256']}); {_cure(fact)}"
            )
        asked_anew = self.named(config) != self.named(RunDirectory.read_config(path).reward)
        named = Path(self.named(config)) if asked_anew else Path(fact["path"])
        if not (asked_anew or named.is_file()):
            return own  # the run has what it needs
        other = self.read(named)
        if other.sha256 == own.sha256:
            return own
        if not asked_anew:
            print(f"note: {named} was changed since; the run goes on with its own copy, {kept}", file=sys.stderr)
            return own
        raise ConfigError(
            f"the run was started with the {self.what} {fact['path']} (sha256 {own.sha256}), not with {named} (sha256 "
            f"{other.sha256}); resume it without {self.setting}, or start a new run with the other one"
        )

    def keep(self, run: RunDirectory, file: F, config: RewardConfig) -> bool:
        """Copies the file into a run's directory, and records its content's hash; False if it came from there.

        Raises:
            RunDirectoryError: if that cannot be written.
        """
        copy = run.path / self.copy
        if file.path == copy:
            return False
        with writing(copy):
            replace_file(copy, [file.content])
        run.record(self.fact, {"path": str(Path(self.named(config)).absolute()), "sha256": file.sha256})
        return True


def _cure(fact: dict[str, Any]) -> str:
    return f"it was taken from {fact['path']}: bring it back, or start a new run"


PINNED_HEAD = KeptFile(
    "progress head",
    "progress_head.pt",
    "progress_head",
    "reward.shaping.head",
    lambda config: config.shaping.head,
    read_progress_head_file,
)


def shaping_head_of(config: RewardConfig) -> ProgressHeadFile | None:
    """The head that a configuration names; None if rewards are not shaped.

    Raises:
        DataError: if it cannot be read.
    """
    return PINNED_HEAD.of(config) if config.shaping.head else None


def shaping_head_of_run(path: Path, config: RewardConfig) -> ProgressHeadFile | None:
    """The head that a run was started with; None if its rewards are not shaped. See `KeptFile.of_run`."""
    return PINNED_HEAD.of_run(path, config) if config.shaping.head else None


def keep_shaping_head(run: RunDirectory, file: ProgressHeadFile, config: RewardConfig) -> None:
    """Copies the head into a run's directory. See `KeptFile.keep`."""
    PINNED_HEAD.keep(run, file, config)


def potential_of(file: ProgressHeadFile, config: RewardConfig, spec: TaskSpec) -> ProgressPotential:
    """The potential that shapes rewards of a task.

    Raises:
        ConfigError: if the head was trained for another task.
        UnknownNameError: if the scene lacks the camera that it needs.
    """
    head = file.head
    if head.task != spec.instruction:
        raise ConfigError(
            f"reward.shaping.head={file.path}: trained for {head.task!r}, the task {spec.name} is "
            f"{spec.instruction!r}; train one on episodes of this task"
        )
    if head.camera not in spec.cameras:
        raise UnknownNameError("camera", head.camera, spec.cameras)
    return ProgressPotential(head, config.shaping.scale)


PINNED_CLASSIFIER = KeptFile(
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
    return PINNED_CLASSIFIER.of(config)


def classifier_of_run(path: Path, config: RewardConfig) -> ClassifierFile | None:
    """The classifier that a run was started with, from its directory; None if none judges. See `KeptFile.of_run`."""
    return PINNED_CLASSIFIER.of_run(path, config) if config.kind == "classifier" else None


def keep_classifier(run: RunDirectory, classifier: ClassifierFile, config: RewardConfig) -> None:
    """Copies the classifier, and what a report found of it, into a run's directory. See `KeptFile.keep`."""
    report = certificate_path(classifier.path)
    if PINNED_CLASSIFIER.keep(run, classifier, config) and report.is_file():
        write_atomically(certificate_path(run.path / PINNED_CLASSIFIER.copy), report.read_text(encoding="utf-8"))
