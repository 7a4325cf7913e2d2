"""The directory that a training run writes: what lies where, who may use it, and where its results came from.

A run directory is known by its `provenance.json`. One process at a time uses it, under an exclusive lock that the
operating system drops when the process ends, however it ends.

Where a result came from: source revision, package versions, machine, command line.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from robot_rl.config.components import TrainConfig
from robot_rl.config.load import dump_config, load_run_config
from robot_rl.data.schema import READABLE_VERSIONS, SCHEMA_VERSION
from robot_rl.errors import ConfigError, RunDirectoryError
from robot_rl.run.directory.calibrations import Calibrations
from robot_rl.system.atomic_file import to_json, write_atomically, writing
from robot_rl.system.checked_json import parse_json
from robot_rl.system.directory_lock import Lock
from robot_rl.system.new_directory import NewDirectory
from robot_rl.system.printable import some
from robot_rl.system.regular_file import read_regular

PACKAGES = ("robot_rl", "torch", "numpy", "mujoco", "gymnasium", "zarr")
"""Packages whose versions can change a result."""

SHOWN = 8
"""How many of the runs in a directory are named at most."""

SOURCE_TREE = Path(__file__).resolve().parents[3]
"""The folder that holds the package: a checkout, or site-packages."""


def provenance(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Return facts about this process, as JSON values.

    Args:
        argv: Command line; None takes that of this process.
    """
    return {
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "argv": list(sys.argv if argv is None else argv),
        "pid": os.getpid(),
        "git": git_state(SOURCE_TREE),
        "versions": package_versions(),
        "platform": platform.platform(),
        "cpu": cpu_model(),
        "cpu_count": os.cpu_count(),
    }


def git_state(tree: Path) -> dict[str, Any]:
    """Return the revision of a checkout and whether files differ from it.

    Returns:
        `revision` and `dirty`, both None with a `note` if `tree` is not the top of a git checkout.
    """
    try:
        top = _git(tree, "rev-parse", "--show-toplevel")
        if Path(top).resolve() != tree.resolve():
            return {"revision": None, "dirty": None, "note": "not a git checkout"}
        return {"revision": _git(tree, "rev-parse", "HEAD"), "dirty": bool(_git(tree, "status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError) as error:
        note = str(getattr(error, "stderr", None) or error).strip()
        return {"revision": None, "dirty": None, "note": note}


def package_versions() -> dict[str, str | None]:
    """Return the versions of Python and of `PACKAGES`; None for one that is not installed."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    return versions


def cpu_model() -> str:
    """Return the name of the processor, as far as the operating system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _git(tree: Path, *arguments: str) -> str:
    command = ["git", "-C", str(tree), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()


FORMAT = 1
"""Version of the layout of a run directory."""

_LOCK = "lock"
_UNFINISHED = ".unfinished_run_of_robot_rl"
"""A file that is there while a run directory is made; without `provenance.json` beside it, that was interrupted."""


def default_run_path(task: str, seed: int, now: datetime.datetime | None = None) -> Path:
    """Return `runs/<task>-seed<seed>-<date>-<time>`, below the working directory."""
    stamp = (now or datetime.datetime.now()).strftime("%Y%m%d-%H%M%S")
    return Path("runs") / f"{task}-seed{seed}-{stamp}"


class RunDirectory:
    """A locked run directory. Made by `create` or `resume`; `close` it, or use it in a `with` statement.

    Attributes:
        path: The directory.
        provenance: Facts about the process that uses it now.
        begun: Set this once there is something to keep: if the `with` block of a new run fails before, its directory
            goes again, and a run that was opened to be resumed forgets that start.
    """

    KEPT = "checkpoints"
    """Folder of the checkpoints that stay, named by their env steps."""

    def __init__(self, path: Path, lock: Lock) -> None:
        self.path = path
        self.begun = False
        self.provenance: dict[str, Any] = {}
        self._lock = lock
        self._on_exit = contextlib.ExitStack()
        self._on_exit.callback(self.close)

    @classmethod
    def create(
        cls,
        path: Path,
        config: TrainConfig,
        argv: Sequence[str] | None = None,
        calibrations: Calibrations | None = None,
        *,
        facts: Mapping[str, Any] | None = None,
        prepare: Callable[[Path], object] = lambda path: None,
    ) -> RunDirectory:
        """Make the directory of a new run and write its configuration, calibrations and provenance.

        It becomes a run with its provenance, which is written last. What a killed process left before is removed.

        Args:
            path: The directory.
            config: Configuration of the run.
            argv: Command line to record; None takes that of this process.
            calibrations: Those that hold in the run.
            facts: Other facts to be recorded, e.g. `origin`, the run that it begins from.
            prepare: Called with the directory, to write what else belongs to a new run.

        Raises:
            RunDirectoryError: if the directory is not empty, in use, or cannot be written.
        """
        with contextlib.ExitStack() as on_error, writing(path):
            new = NewDirectory(path)
            path.mkdir(parents=True, exist_ok=True)
            if not (path / _LOCK).exists():
                _check_unused(path)  # before the lock file is made, so that a folder that is not ours stays as it was
            run = cls(path, Lock(path / _LOCK))
            on_error.callback(run.close)
            _check_unused(path)
            _clear_unfinished(path)
            on_error.push(new.removed_on_error(lambda: run.begun))
            run.provenance = provenance(argv)
            (path / _UNFINISHED).touch()
            dump_config(config, run.config_path)
            run.episodes_path.mkdir()
            calibrations = calibrations or Calibrations(())
            calibrations.write(path)
            prepare(path)
            recorded = {
                "format": FORMAT,
                "schema_version": SCHEMA_VERSION,
                "task": config.task,
                "seed": config.seed,
                "calibrations": calibrations.facts(),
                "starts": [run.provenance],
                **(facts or {}),
            }
            run.write_json(run.provenance_path, recorded)
            (path / _UNFINISHED).unlink()
            run._on_exit = on_error.pop_all()
        return run

    @staticmethod
    def holds_run(path: Path) -> bool:
        """Return whether there is a run; a process that was killed as it made one leaves none."""
        return (path / "provenance.json").is_file()

    @staticmethod
    def check_free(path: Path) -> None:
        """Check that `create` could make a run there, as far as that is known without writing.

        Raises:
            RunDirectoryError: if something else is there.
        """
        try:
            str(path.absolute()).encode()
        except UnicodeEncodeError as error:
            raise RunDirectoryError(f"{path}: its name is not UTF-8; choose another directory") from error
        if path.exists():
            with writing(path):
                _check_unused(path)

    @classmethod
    def resume(cls, path: Path, task: str | None = None, argv: Sequence[str] | None = None) -> RunDirectory:
        """Open the directory of an earlier run; `config` is what that run was started with.

        Args:
            path: The directory.
            task: Task that the caller expects, or None to accept any.
            argv: Command line to record; None takes that of this process.

        Raises:
            RunDirectoryError: if it holds no run, a run of another task or version, is in use, or cannot be written.
        """
        if not cls.holds_run(path):
            raise missing_run(path)
        with contextlib.ExitStack() as on_error:
            run = cls(path, Lock(path / _LOCK))
            on_error.callback(run.close)
            facts = _read_facts(run.provenance_path)
            _check_facts(facts, path, task)
            run.provenance = provenance(argv)
            run.write_json(run.provenance_path, {**facts, "starts": [*facts["starts"], run.provenance]})
            on_error.push(run._forget_start)
            run._on_exit = on_error.pop_all()
        return run

    @property
    def config_path(self) -> Path:
        """The configuration that the run was started with."""
        return self.path / "config.yaml"

    @property
    def provenance_path(self) -> Path:
        """Where the run came from, one entry per start."""
        return self.path / "provenance.json"

    @property
    def checkpoint_path(self) -> Path:
        """The newest checkpoint."""
        return self.path / "checkpoint.pt"

    @property
    def episodes_path(self) -> Path:
        """Folder of recorded episodes."""
        return self.path / "episodes"

    @property
    def metrics_path(self) -> Path:
        """Metrics, one JSON object per line."""
        return self.path / "metrics.jsonl"

    @property
    def tensorboard_path(self) -> Path:
        """Folder of the same metrics for TensorBoard."""
        return self.path / "tensorboard"

    @property
    def learning_curve_path(self) -> Path:
        """Picture of the learning curve."""
        return self.path / "learning_curve.png"

    @property
    def video_path(self) -> Path:
        """Video of the evaluation."""
        return self.path / "evaluation.mp4"

    @property
    def summary_path(self) -> Path:
        """The result in numbers."""
        return self.path / "summary.json"

    @staticmethod
    def read_calibrations(path: Path) -> dict[str, Any]:
        """Read the recorded calibrations of the run in a directory, without taking its lock.

        Raises:
            RunDirectoryError: if there is no run.
        """
        return dict(RunDirectory.read_facts(path).get("calibrations", {}))

    @property
    def config(self) -> TrainConfig:
        """The configuration that the run was started with; see `read_config`."""
        return self.read_config(self.path)

    @staticmethod
    def read_config(path: Path) -> TrainConfig:
        """Read the configuration of the run in a directory, without taking its lock.

        Raises:
            RunDirectoryError: if there is no run, or its configuration was edited into something invalid.
        """
        if not RunDirectory.holds_run(path):
            raise missing_run(path)
        config = path / "config.yaml"
        if config.exists() and not config.is_file():
            raise RunDirectoryError(f"{path} cannot be used: config.yaml is no regular file")
        try:
            return load_run_config(config)
        except ConfigError as error:
            raise RunDirectoryError(f"{path} cannot be used: {error}") from error

    @staticmethod
    def read_facts(path: Path) -> dict[str, Any]:
        """Read the `provenance.json` of the run in a directory, without taking its lock.

        Raises:
            RunDirectoryError: if it cannot be read.
        """
        return _read_facts(path / "provenance.json")

    def record(self, name: str, fact: Any) -> None:
        """Add a fact about the run to its `provenance.json`.

        Raises:
            RunDirectoryError: if it cannot be written.
        """
        self.write_json(self.provenance_path, {**_read_facts(self.provenance_path), name: fact})

    def record_place(self, facts: Mapping[str, Any]) -> None:
        """Record where a run goes on; what was recorded of another place before stays in `earlier_places`.

        Args:
            facts: Of the place, as a new run records them, e.g. `robot_file`.

        Raises:
            RunDirectoryError: if it cannot be written.
        """
        recorded, now = _read_facts(self.provenance_path), parse_json(to_json(facts))
        before = {name: recorded[name] for name in now if name in recorded}
        if now == before:
            return
        earlier = [*recorded.get("earlier_places", []), {"until": self.provenance["started"], **before}]
        self.write_json(self.provenance_path, {**recorded, **now, "earlier_places": earlier})

    def write_json(self, path: Path, value: Mapping[str, Any]) -> None:
        """Write a JSON file in one piece; a reader sees the old file or the new one.

        Raises:
            RunDirectoryError: if it cannot be written.
        """
        write_atomically(path, to_json(value, indent=2) + "\n")

    def close(self) -> None:
        """Lets go of the directory; doing it twice is fine."""
        self._lock.close()

    def __enter__(self) -> RunDirectory:
        """Return the directory itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it; after an error, remove a new directory whose run has not begun."""
        self._on_exit.__exit__(kind, error, trace)

    def _forget_start(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Take this start out of the provenance after an error before the run has begun: it has done nothing."""
        del rest
        if kind is None or self.begun:
            return
        with contextlib.suppress(RunDirectoryError):  # the error itself is the one to be told
            self.record("starts", _read_facts(self.provenance_path)["starts"][:-1])  # the lock is still held


def runs_below(path: Path) -> list[Path]:
    """Return the runs in a directory, as a practice, a fleet, a suite or a sweep has them."""
    levels = ("*/", "*/*/", "*/*/*/")
    return sorted(facts.parent for level in levels for facts in path.glob(f"{level}provenance.json"))


def missing_run(path: Path) -> RunDirectoryError:
    """Return the error of a directory that is no run; of one with runs in it, as of a practice, it names them."""
    if not (runs := runs_below(path)):
        return RunDirectoryError(f"{path} holds no run (it has no provenance.json); check the path")
    names = some([str(run.relative_to(path)) for run in runs], SHOWN)
    return RunDirectoryError(
        f"{path} is no run itself, it holds {names}; name one of these, e.g. {shlex.quote(str(runs[0]))}"
    )


def _check_unused(path: Path) -> None:
    if (path / "provenance.json").exists():
        raise RunDirectoryError(f"{path} already holds a run; add --resume to continue it, or choose another directory")
    if (path / _UNFINISHED).exists():
        return
    if others := sorted(entry.name for entry in path.iterdir() if entry.name != _LOCK):
        shown = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
        raise RunDirectoryError(f"{path} is not empty ({shown}) and not a run; choose another directory")


def _clear_unfinished(path: Path) -> None:
    """Remove what a process left that was killed while it made a run here; call it with the lock held."""
    if not (path / _UNFINISHED).exists():
        return
    for entry in path.iterdir():
        if entry.name in (_LOCK, _UNFINISHED):
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _read_facts(path: Path) -> dict[str, Any]:
    try:
        facts = parse_json(read_regular(path))
    except (OSError, ValueError) as error:
        raise RunDirectoryError(f"cannot read {path}: {error}; the run cannot be resumed") from error
    missing = {"format", "schema_version", "task", "seed", "starts"} - (
        facts.keys() if isinstance(facts, dict) else set()
    )
    if missing:
        raise RunDirectoryError(f"{path} is not the provenance of a run: it lacks {', '.join(sorted(missing))}")
    return dict(facts)


def _check_facts(facts: Mapping[str, Any], path: Path, task: str | None) -> None:
    for name, readable in (("format", (FORMAT,)), ("schema_version", READABLE_VERSIONS)):
        if facts[name] not in readable:
            raise RunDirectoryError(
                f"{path} was written with {name} {facts[name]!r}, this program reads "
                f"{' and '.join(map(str, readable))}; "
                "resume it with the version of robot_rl that its provenance.json names"
            )
    if task is not None and facts["task"] != task:
        raise RunDirectoryError(f"{path} is a run of task {facts['task']!r}, not of {task!r}; choose another directory")
