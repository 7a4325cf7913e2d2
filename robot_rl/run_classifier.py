"""The reward classifier that a run uses, kept in its directory, so that a resumed run is judged by the same one.

It knows run directories and the file of a classifier; how that judges, and what is learned, it does not know.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from robot_rl.config.components import RewardConfig
from robot_rl.durable import replace_file
from robot_rl.errors import ConfigError, RunDirectoryError
from robot_rl.files import write_atomically, writing
from robot_rl.reward.certificate import certificate_path
from robot_rl.reward.classifier_file import ClassifierFile, read_classifier_file
from robot_rl.run_directory import RunDirectory

COPY = "classifier.pt"
FACT = "classifier"
"""Name of the fact in a run's provenance: `path`, where it was taken from, and `sha256`, of its content."""


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
    return read_classifier_file(Path(config.path))


def classifier_of_run(path: Path, config: RewardConfig) -> ClassifierFile | None:
    """The classifier that a run was started with, from its directory; None if none judges.

    Args:
        path: The run directory.
        config: Of the run as it shall go on; it may name another file with the same content.

    Raises:
        ConfigError: if that file is another classifier; both are named.
        RunDirectoryError: if the run's own is missing, or not the one that it was started with.
        DataError: if a file cannot be read.
    """
    if config.kind != "classifier" or (fact := RunDirectory.read_facts(path).get(FACT)) is None:
        return classifier_of(config)  # of a run that was ended before it began
    kept = path / COPY
    if not kept.is_file():
        raise RunDirectoryError(f"{kept}, the classifier that the run was started with, is gone; {_cure(fact)}")
    own = read_classifier_file(kept)
    if own.sha256 != fact["sha256"]:
        raise RunDirectoryError(
            f"{kept} (sha256 {own.sha256}) is not the classifier that the run was started with (sha256 "
            f"{fact['sha256']}); {_cure(fact)}"
        )
    asked_anew = config.path != RunDirectory.read_config(path).reward.path
    named = Path(config.path) if asked_anew else Path(fact["path"])
    if not (asked_anew or named.is_file()):
        return own  # the run has what it needs
    other = read_classifier_file(named)
    if other.sha256 == own.sha256:
        return own
    if not asked_anew:
        print(f"note: {named} was changed since; the run goes on with its own copy, {kept}", file=sys.stderr)
        return own
    raise ConfigError(
        f"the run was started with the classifier {fact['path']} (sha256 {own.sha256}), not with {config.path} (sha256 "
        f"{other.sha256}); resume it without reward.path, or start a new run with the other one"
    )


def keep_classifier(run: RunDirectory, classifier: ClassifierFile, config: RewardConfig) -> None:
    """Copies the classifier, and what a report found of it, into a run's directory, and records its content's hash.

    One that came from there is kept already.

    Raises:
        RunDirectoryError: if that cannot be written.
    """
    copy = run.path / COPY
    if classifier.path == copy:
        return
    with writing(copy):
        replace_file(copy, [classifier.content])
    report = certificate_path(classifier.path)
    if report.is_file():
        write_atomically(certificate_path(copy), report.read_text(encoding="utf-8"))
    run.record(FACT, {"path": str(Path(config.path).absolute()), "sha256": classifier.sha256})


def _cure(fact: dict[str, Any]) -> str:
    return f"it was taken from {fact['path']}: bring it back, or start a new run"
