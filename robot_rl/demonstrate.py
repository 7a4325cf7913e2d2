"""Records demonstrations: the operator leads, every episode is stored, failures too."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from robot_rl.data.store import EpisodeStore
from robot_rl.data.summary import EpisodeSummary
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import RobotLostError
from robot_rl.evaluate import mean
from robot_rl.learn.rollout import Rollout, StoreRecorder
from robot_rl.patience import Patience
from robot_rl.progress import Progress
from robot_rl.registry import make_workcell
from robot_rl.seeding import Purpose, episode_seed


def demonstrate(task: str, path: Path, *, episodes: int, seed: int, cameras: tuple[str, ...] = ()) -> dict[str, Any]:
    """Records into a new store and says how it went.

    Args:
        task: Name of the task.
        path: Directory of the store; must be new or empty.
        episodes: How many.
        seed: Resets and the scripted operator follow from it.
        cameras: Whose frames are recorded; none is faster.
    """
    options = WorkcellOptions(cameras=cameras)
    env = RobotEnv(make_workcell(task, options), options=options)
    with (
        contextlib.closing(env),
        EpisodeStore.create(path, {"task": task, "seed": seed}) as store,
        Progress(episodes, f"demonstrate {task}", unit="episodes") as progress,
    ):
        record_demonstrations(env, store, episodes=episodes, seed=seed, on_episode=progress.update)
        facts = demonstration_facts(store.summaries(), env.spec_task.control_period)
    return {"task": task, **facts, "store": str(path)}


def record_demonstrations(
    env: RobotEnv,
    store: EpisodeStore,
    *,
    episodes: int,
    seed: int,
    on_episode: Callable[[int], object] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
    patience: Patience | None = None,
) -> None:
    """Lets the operator lead episodes named `demonstration-0000` and so on, until the store holds them all.

    Args:
        env: Where.
        store: Where they go; those that it holds already are not made again.
        episodes: How many there shall be.
        seed: Resets and the scripted operator follow from it.
        on_episode: Told after each how many there are.
        stop: Asked before each whether to leave it at that.
        patience: What to do when the robot is lost; None raises the error.
    """
    patience = patience or Patience()
    rollout = Rollout(env, None, None, (0,), [StoreRecorder(store)])
    while len(store) < episodes and not stop():
        number = len(store)
        reset = episode_seed(Purpose.DEMONSTRATION, seed, number)
        try:
            rollout.play(reset, demonstration_id(number), deterministic=True, demonstrate=True)
        except RobotLostError as error:
            patience.lost(error)
            store.abandon()
            continue
        patience.done()
        on_episode(len(store))


def demonstration_facts(rows: Sequence[EpisodeSummary], control_period: float) -> dict[str, Any]:
    """How many there are, how many of them succeeded, and how long those took on average [s] (None if none did)."""
    successes = [row for row in rows if row.success]
    return {
        "episodes": len(rows),
        "success_rate": len(successes) / len(rows),
        "cycle_time_s": mean(row.length * control_period for row in successes) if successes else None,
    }


def demonstration_id(number: int) -> str:
    """Name of a demonstration in its store."""
    return f"demonstration-{number:04d}"
