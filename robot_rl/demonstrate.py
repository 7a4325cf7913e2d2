"""Records demonstrations without training: the operator leads, every episode is stored, failures too."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from robot_rl.data.packing import ObservationPacker
from robot_rl.data.store import EpisodeStore
from robot_rl.env.robot_env import RobotEnv
from robot_rl.evaluate import mean
from robot_rl.learn.rollout import EpisodeResult, Rollout, StoreRecorder
from robot_rl.progress import Progress
from robot_rl.registry import make_workcell
from robot_rl.seeding import Purpose, episode_seed


def demonstrate(task: str, path: Path, *, episodes: int, seed: int) -> dict[str, Any]:
    """Records into a new store and says how it went.

    Args:
        task: Name of the task.
        path: Directory of the store; must be new or empty.
        episodes: How many.
        seed: Resets and the scripted operator follow from it.
    """
    env = RobotEnv(make_workcell(task))
    with (
        contextlib.closing(env),
        EpisodeStore.create(path, {"task": task, "seed": seed}) as store,
        Progress(episodes, f"demonstrate {task}", unit="episodes") as progress,
    ):
        results = record_demonstrations(env, store, episodes=episodes, seed=seed, progress=progress)
    successes = [result for result in results if result.success]
    return {
        "task": task,
        "episodes": len(results),
        "success_rate": len(successes) / len(results),
        "cycle_time_s": mean(result.cycle_time for result in successes) if successes else None,
        "store": str(path),
    }


def record_demonstrations(
    env: RobotEnv, store: EpisodeStore, *, episodes: int, seed: int, progress: Progress | None = None
) -> list[EpisodeResult]:
    """Lets the operator lead episodes named `demonstration-0000` and so on, into the store."""
    rollout = Rollout(env, None, ObservationPacker(env.observation_specs), (0,), [StoreRecorder(store)])
    results = []
    for number in range(episodes):
        reset = episode_seed(Purpose.DEMONSTRATION, seed, number)
        results.append(rollout.play(reset, demonstration_id(number), deterministic=True, demonstrate=True))
        if progress is not None:
            progress.update(len(results), success=mean(result.success for result in results))
    return results


def demonstration_id(number: int) -> str:
    """Name of a demonstration in its store."""
    return f"demonstration-{number:04d}"
