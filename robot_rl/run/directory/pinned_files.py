"""Files that a run pins: copies in its directory of the reward classifier and of the progress head that it uses.

A resumed run uses its own copies. The provenance of the run records the path and the SHA-256 of each original.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from robot_rl.config.reward import RewardConfig
from robot_rl.errors import ConfigError, RunDirectoryError
from robot_rl.reward.classifier.classifier import ClassifierFile, read_classifier_file
from robot_rl.reward.heads.head_file import ReadFile
from robot_rl.reward.heads.progress_head import ProgressHeadFile, read_progress_head_file
from robot_rl.reward.validation.certificate import certificate_path
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.system.atomic_file import replace_file, write_atomically, writing

logger = logging.getLogger(__name__)

F = TypeVar("F", bound=ReadFile)


@dataclass(frozen=True)
class PinnedFile(Generic[F]):
    """One kind of file that a run pins.

    Attributes:
        what: Name of the kind, for messages.
        copy: File name of the run's copy.
        fact: Name of the fact in a run's provenance: `path` of the original, and `sha256` of its content.
        setting: Key of the configuration that names the file.
        named: Returns the path that a configuration names.
        read: Reads one.
    """

    what: str
    copy: str
    fact: str
    setting: str
    named: Callable[[RewardConfig], str]
    read: Callable[[Path], F]

    @property
    def files(self) -> tuple[str, str]:
        """Names of the run's copy and of its report."""
        return self.copy, certificate_path(Path(self.copy)).name

    def of(self, config: RewardConfig) -> F:
        """Read the file that a configuration names.

        Raises:
            DataError: if it cannot be read.
        """
        return self.read(Path(self.named(config)))

    def of_run(self, path: Path, config: RewardConfig) -> F:
        """Read the file that a run was started with, from its directory.

        Args:
            path: The run directory.
            config: Configuration of the resumed run; it may name another file with the same content.

        Raises:
            ConfigError: if that file has other content; the error names both.
            RunDirectoryError: if the run's copy is missing or was changed.
            DataError: if a file cannot be read.
        """
        if (fact := RunDirectory.read_facts(path).get(self.fact)) is None:
            return self.of(config)  # the run ended before it pinned one
        pinned = path / self.copy
        if not pinned.is_file():
            raise RunDirectoryError(f"{pinned}, the {self.what} that the run was started with, is gone; {_cure(fact)}")
        own = self.read(pinned)
        if own.sha256 != fact["sha256"]:
            raise RunDirectoryError(
                f"{pinned} (sha256 {own.sha256}) is not the {self.what} that the run was started with (sha256 "
                f"{fact['sha256']}); {_cure(fact)}"
            )
        renamed = self.named(config) != self.named(RunDirectory.read_config(path).reward)
        named = Path(self.named(config)) if renamed else Path(fact["path"])
        if not (renamed or named.is_file()):
            return own  # the run has its own copy
        other = self.read(named)
        if other.sha256 == own.sha256:
            return own
        if not renamed:
            logger.info("%s was changed since; the run goes on with its own copy, %s", named, pinned)
            return own
        raise ConfigError(
            f"the run was started with the {self.what} {fact['path']} (sha256 {own.sha256}), not with {named} (sha256 "
            f"{other.sha256}); resume it without {self.setting}, or start a new run with the other one"
        )

    def pin(self, run: RunDirectory, file: F, config: RewardConfig) -> bool:
        """Copy the file into a run's directory and record its SHA-256; return False if it is that copy already.

        Raises:
            RunDirectoryError: if the copy cannot be written.
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


PINNED_HEAD: PinnedFile[ProgressHeadFile] = PinnedFile(
    "progress head",
    "progress_head.pt",
    "progress_head",
    "reward.shaping.head",
    lambda config: config.shaping.head,
    read_progress_head_file,
)
PINNED_CLASSIFIER: PinnedFile[ClassifierFile] = PinnedFile(
    "classifier", "classifier.pt", "classifier", "reward.path", lambda config: config.path, read_classifier_file
)


def pinned_stage(name: str) -> PinnedFile[ClassifierFile]:
    """Return how a run pins the classifier of a stage."""

    def named(config: RewardConfig) -> str:
        return dict(config.stages.classifiers)[name]

    return PinnedFile(
        f"classifier of the stage {name}",
        f"stage_{name}.pt",
        f"stage_{name}",
        "reward.stages.order",
        named,
        read_classifier_file,
    )


def pin_with_report(run: RunDirectory, pinned: PinnedFile[F], file: F, config: RewardConfig) -> None:
    """Copy a file and its report into a run's directory; see `PinnedFile.pin`."""
    report = certificate_path(file.path)
    if pinned.pin(run, file, config) and report.is_file():
        write_atomically(certificate_path(run.path / pinned.copy), report.read_text(encoding="utf-8"))
