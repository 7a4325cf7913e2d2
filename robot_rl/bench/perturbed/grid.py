"""The grid: one evaluation of a run for each strength of each axis, and one in its own world."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot_rl.bench.perturbed.axes import Axis
from robot_rl.config.components import TrainConfig
from robot_rl.env.registry import make_environment
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import ConfigError
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.learn.networks.networks import policy_digest
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.system.checked_json import parse_json
from robot_rl.system.model_files import TRAINING


@dataclass(frozen=True)
class WorldEvaluation:
    """The evaluation of a run in one world; a job, see `robot_rl.bench.jobs`.

    Attributes:
        run: The run directory.
        label: Name of the run in the report.
        axis: What differs; None in its own world.
        strength: By how much, in the unit of the axis.
        episodes: How many.
        seed: Which resets.
        path: File of the result.
        device: Where to compute; None: as the run did.
    """

    run: Path
    label: str
    axis: Axis | None
    strength: float
    episodes: int
    seed: int
    path: Path
    device: str | None = None

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.label}, {'its own world' if self.axis is None else f'{self.axis.title} {self.strength:g}'}"

    @property
    def finished(self) -> bool:
        """Whether it has a result."""
        return self.path.is_file()

    def check(self) -> None:
        """Refuse a result of another evaluation; run and result may have been moved since.

        Raises:
            ConfigError: naming the file.
        """
        if not self.finished:
            return
        checkpoint = self.run / "checkpoint.pt"
        result, cure = self.result(), "choose another --out, or remove it"
        if (result.get("episodes"), result.get("evaluation_seed")) != (self.episodes, self.seed):
            raise ConfigError(f"{self.path} has other episodes than {self.episodes} of seed {self.seed}; {cure}")
        here = Path(result.get("run", "")).resolve() == self.run.resolve()
        if here and self.path.stat().st_mtime >= checkpoint.stat().st_mtime:
            return
        policy = result.get("policy")
        if policy is not None and policy == _policy(checkpoint, checkpoint.stat().st_mtime_ns):
            return
        if not here:
            raise ConfigError(f"{self.path} is of another run, {result.get('run')}; {cure}")
        raise ConfigError(f"{self.path} is of an earlier policy: the run went on since then; {cure}")

    def command(self) -> list[str]:
        """Return the command that makes it."""
        number = ["--episodes", str(self.episodes), "--seed", str(self.seed)]
        other = [] if self.axis is None else ["--set", self.axis.setting(self.strength)]
        evaluate = [sys.executable, "-m", "robot_rl", "eval", str(self.run), "--out", str(self.path)]
        return [*evaluate, *number, *other, *(() if self.device is None else ("--device", self.device))]

    def result(self) -> dict[str, Any]:
        """Return the answer of `robot-rl eval`.

        Raises:
            ConfigError: if the file is not one.
        """
        try:
            result = parse_json(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{self.path} is no result: {error}; remove it") from error
        if not isinstance(result, dict):
            raise ConfigError(f"{self.path} is no result; remove it")
        return result


@dataclass(frozen=True)
class Grid:
    """All evaluations of some runs of one task.

    Attributes:
        task: Name of the task.
        axes: Those that count for these runs.
        missing: Why another one does not, by its name.
        evaluations: The jobs.
    """

    task: str
    axes: tuple[Axis, ...]
    missing: dict[str, str]
    evaluations: tuple[WorldEvaluation, ...]


def make_grid(
    runs: Sequence[Path], axes: Sequence[Axis], out: Path, episodes: int, seed: int | None, device: str | None = None
) -> Grid:
    """Return the grid of some runs.

    Args:
        runs: Run directories.
        axes: Wanted axes.
        out: Directory of the results.
        episodes: Per evaluation.
        seed: Which resets, the same in all worlds; None takes that of the first run's configuration.
        device: Where to compute; None: as each run did.

    Raises:
        ConfigError: if the runs are of several tasks, or observe different things, or no axis counts for them.
        RobotRLError: if a run cannot be read.
    """
    configs = [RunDirectory.read_config(run) for run in runs]
    first = configs[0]
    for run, config in zip(runs, configs, strict=True):
        if (config.task, config.observations) != (first.task, first.observations):
            raise ConfigError(
                f"{run} learned {config.task} from {config.observations}, {runs[0]} {first.task} from "
                f"{first.observations}; compare runs of one kind"
            )
        if not (run / "checkpoint.pt").is_file():
            raise ConfigError(f"{run} has no policy yet; `robot-rl train --resume --out {run}` goes on")
    missing = _missing(first, axes)
    kept = tuple(axis for axis in axes if axis.name not in missing)
    if not kept:
        raise ConfigError(f"{first.task}: {'; '.join(f'{name}: {reason}' for name, reason in missing.items())}")
    seed = first.evaluation.seed if seed is None else seed
    points: list[tuple[Axis | None, float]] = [(None, 0.0)]
    points += [(axis, strength) for axis in kept for strength in axis.strengths]
    evaluations = [
        WorldEvaluation(run, label, axis, strength, episodes, seed, out / label / _file(axis, strength), device)
        for axis, strength in points
        for run, label in zip(runs, labels(runs), strict=True)
    ]
    return Grid(first.task, kept, missing, tuple(evaluations))


def labels(runs: Sequence[Path]) -> list[str]:
    """Return a short name for each run: as many of the last parts of its path as tell them apart.

    Raises:
        ConfigError: if one is given twice.
    """
    parts = [run.resolve().parts for run in runs]
    if len(set(parts)) < len(parts):
        raise ConfigError("a run is given twice; give each once")
    for count in range(1, max(map(len, parts)) + 1):
        short = ["_".join(part.strip("/") for part in one[-count:]) for one in parts]
        if len(set(short)) == len(short):
            break
    return short


@functools.lru_cache
def _policy(checkpoint: Path, changed_ns: int) -> str:
    """Return the digest of the policy in a checkpoint, which is read once for each time at which it was changed."""
    del changed_ns
    return policy_digest(load_checkpoint(checkpoint, kind=TRAINING.name)["deployed"]["policy"])


def _missing(config: TrainConfig, axes: Sequence[Axis]) -> dict[str, str]:
    env = make_environment(config.task, WorkcellOptions(environment=config.environment))
    has = env.environment_spec.world
    env.close()
    missing = {axis.name: "the task has no such setting" for axis in axes if axis.name not in has}
    if config.observations != "pixels":
        missing |= {axis.name: "the policy sees nothing" for axis in axes if axis.seen and axis.name in has}
    return missing


def _file(axis: Axis | None, strength: float) -> str:
    return "own-world.json" if axis is None else f"{axis.name}-{strength:g}.json"
