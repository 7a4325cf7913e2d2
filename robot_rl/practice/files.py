"""The files of a practice: its tasks, whose turn it is, the scene, and a line for each episode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from robot_rl.config.components import TrainConfig
from robot_rl.config.load import dump_config
from robot_rl.errors import RunDirectoryError
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.system.atomic_file import append_row, to_json, write_atomically, writing
from robot_rl.system.checked_json import read_object, read_rows

FORMAT = 1
"""Version of the files."""
PRACTICE, TURN, EPISODES, SUMMARY = "practice.json", "turn.json", "episodes.jsonl", "summary.json"
PICTURE = "practice.png"
SETTINGS = "settings"
"""Folder with the settings of each task, as the practice began."""


@dataclass(frozen=True)
class PracticePlan:
    """What is practised, and who is beside the robot.

    Attributes:
        tasks: Names of the tasks, in turn; one alone begins again where it ended.
        unattended: Nobody is there: nobody takes over, and the practice ends where only a person could help.
        patience: Robot time without a success after which the person is called [s].
        demos: Stores of demonstrations to begin with, by task; without one they are recorded.
    """

    tasks: tuple[str, ...]
    unattended: bool = False
    patience: float = 1800.0
    demos: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class PracticeState:
    """Where a practice stands between two episodes.

    Attributes:
        next: Whose turn it is; empty: that of the first task.
        current: Task whose episode has just ended, or is running; empty: the scene is not ready.
        scene: The simulated scene before the running episode; None on a robot.
        fruitless_s: Robot time since the last success [s].
        between_s: Time that the arm has moved between episodes [s].
        calls: How often the person was called.
        resets: How often the person made the scene ready because nobody else could go on.
        to_reset: The person has ended the last episode to make the scene ready, and has not done that yet.
    """

    next: str = ""
    current: str = ""
    scene: list[float] | None = None
    fruitless_s: float = 0.0
    between_s: float = 0.0
    calls: int = 0
    resets: int = 0
    to_reset: bool = False


class PracticeFiles:
    """The files of one practice; the trainings of its tasks lie in folders beside them.

    Args:
        path: Its directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @staticmethod
    def begun(path: Path) -> bool:
        """Return whether a practice has begun there; one that was killed before its first training began has not."""
        return (path / PRACTICE).exists() and any(RunDirectory.holds_run(folder) for folder in path.iterdir())

    @classmethod
    def check_free(cls, path: Path) -> None:
        """Check that a new practice can be made there.

        Raises:
            RunDirectoryError: if something is there.
        """
        if cls.begun(path):
            raise RunDirectoryError(
                f"{path} already holds a practice; add --resume to continue it, or choose another directory"
            )
        if (path / PRACTICE).exists():
            return
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RunDirectoryError(f"{path} is not empty and not a practice; choose another directory")

    @staticmethod
    def read_plan(path: Path) -> PracticePlan:
        """Return what is practised in a directory.

        Raises:
            RunDirectoryError: if there is no practice.
        """
        facts = _read(path / PRACTICE, f"{path} holds no practice to resume; check the path")
        try:
            if facts.pop("format") != FORMAT:
                raise ValueError("it is of another version")
            return PracticePlan(**{**facts, "tasks": tuple(facts["tasks"])})
        except (KeyError, TypeError, ValueError) as error:
            raise RunDirectoryError(f"{path / PRACTICE} is not that of a practice: {error}") from error

    @classmethod
    def create(cls, path: Path, plan: PracticePlan, configs: Mapping[str, TrainConfig]) -> PracticeFiles:
        """Make the files of a new practice, with the settings of each task, whose training may begin only later.

        Raises:
            RunDirectoryError: if the directory is not empty, or cannot be written.
        """
        cls.check_free(path)
        with writing(path):
            (path / SETTINGS).mkdir(parents=True, exist_ok=True)
        for task, config in configs.items():
            dump_config(config, path / SETTINGS / f"{task}.yaml")
        write_atomically(path / PRACTICE, to_json({"format": FORMAT, **asdict(plan)}, indent=2) + "\n")
        return cls(path)

    def settings(self, task: str) -> Path:
        """Return the file with the settings of a task: of its training, or those with which that will begin.

        Raises:
            RunDirectoryError: if no training has begun.
        """
        if not self.begun(self.path):
            raise RunDirectoryError(f"{self.path} ended before its first training began; begin it without --resume")
        return self.path / task / "config.yaml" if self.has_run(task) else self.path / SETTINGS / f"{task}.yaml"

    def has_run(self, task: str) -> bool:
        """Return whether the training of a task has begun."""
        return RunDirectory.holds_run(self.path / task)

    def state(self) -> PracticeState:
        """Return where the practice stands.

        Raises:
            RunDirectoryError: if its file cannot be read.
        """
        path = self.path / TURN
        if not path.exists():
            return PracticeState()
        facts = _read(path, f"cannot read {path}")
        try:
            return PracticeState(**facts)
        except TypeError as error:
            raise RunDirectoryError(f"{path} is not as a practice writes it: {error}") from error

    def save(self, state: PracticeState) -> None:
        """Write where the practice stands, in one piece."""
        write_atomically(self.path / TURN, to_json(asdict(state)) + "\n")

    def record(self, row: Mapping[str, Any]) -> None:
        """Add the line of an episode."""
        append_row(self.path / EPISODES, row)

    def episodes(self) -> list[dict[str, Any]]:
        """Return the lines of all episodes; one that a killed process left half is left out."""
        path = self.path / EPISODES
        return read_rows(path) if path.exists() else []

    def conclude(self, summary: Mapping[str, Any]) -> None:
        """Write the summary and the picture."""
        write_atomically(self.path / SUMMARY, to_json(summary, indent=2) + "\n")
        from robot_rl.viz.practice_curve import practice_curve  # here, as matplotlib takes half a second to import

        practice_curve(self.episodes(), self.path / PICTURE)


def _read(path: Path, trouble: str) -> dict[str, Any]:
    try:
        return read_object(path)
    except (OSError, ValueError) as error:
        raise RunDirectoryError(f"{trouble} ({error})") from error
