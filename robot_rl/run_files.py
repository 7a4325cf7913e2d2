"""A file that a run uses, e.g. a reward classifier, kept in its directory, so that a resumed run uses the same one.

It knows run directories and the content of files; what they hold, and what is learned with it, it does not know.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from robot_rl.config.components import RewardConfig
from robot_rl.durable import replace_file
from robot_rl.errors import ConfigError, RunDirectoryError
from robot_rl.files import writing
from robot_rl.reward.head_file import ReadFile
from robot_rl.run_directory import RunDirectory

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
