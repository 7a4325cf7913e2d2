"""Episodes of mixed quality with the true progress of each moment; each frame shows the number of its moment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from mixed_operator import Distances, MixedOperator

from robot_rl.data.schema import Episode
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.episode_observer import EpisodeResult
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.learn.actor import Rollout
from robot_rl.seeding import Purpose, episode_seed
from robot_rl.system.progress import Progress

TASK = "peg_insert"
QUALITIES = {"good": 0.3, "clumsy": 0.2, "aside": 0.2, "stops": 0.15, "wanders": 0.15}
"""Share of each kind of episode."""
STAMP_BITS = 16


class RecordedDistances(Distances):
    """Observer that also keeps the newest episode."""

    episode: Episode | None = None

    def on_end(self, episode: Episode, result: EpisodeResult) -> None:
        """Keep the episode."""
        del result
        self.episode = episode


def stamped(number: int) -> np.ndarray:
    """Draw a frame that shows a number as sixteen fields, black or white."""
    bits = np.array([(number >> bit) & 1 for bit in range(STAMP_BITS)], np.uint8).reshape(4, 4) * 255
    return np.repeat(np.kron(bits, np.ones((16, 16), np.uint8))[:, :, None], 3, axis=2)


def stamp_of(frame: np.ndarray) -> int:
    """Return the number that a frame shows."""
    fields = frame[8::16, 8::16, 0].reshape(-1) > 127
    return int(sum(int(value) << bit for bit, value in enumerate(fields)))


def record(path: Path, episodes: int, seed: int) -> None:
    """Record the episodes, with stamps for frames, and the true progress of each observation."""
    cell = make_workcell(TASK)
    operator: Any = MixedOperator(cell, QUALITIES)
    env = RobotEnv(replace(cell, operator=operator))
    truth = RecordedDistances(cell.task)
    rollout = Rollout(env, None, None, (0,), [truth])
    distances: list[float] = []
    with EpisodeStore.create(path, {"task": TASK}) as store, Progress(episodes, "record", unit="episodes") as shown:
        for number in range(episodes):
            rollout.play(
                episode_seed(Purpose.DEMONSTRATION, seed, number), f"mixed-{number:04d}", deterministic=True,
                demonstrate=True,
            )  # fmt: skip
            episode = truth.episode
            frames = np.stack([stamped(len(distances) + row) for row in range(len(truth.rows))])
            metadata = {**episode.metadata, "first_stamp": len(distances), "quality": operator.kind}
            observations = {**episode.observations, "images/front": frames}
            store.append(replace(episode, observations=observations, metadata=metadata))
            distances += truth.rows
            shown.update(number + 1)
    np.save(path / "truth.npy", np.array(distances))
