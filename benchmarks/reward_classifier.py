"""Accuracy of a reward classifier of peg_insert on episodes in other light, and learning from its rewards alone.

python benchmarks/reward_classifier.py episodes OUT [--episodes 200] [--looks 2]
    records held-out episodes: good, clumsy, beside the hole, not deep enough, stopped, wandering about; light,
    colours and camera poses vary so many times as widely as in the recording that the classifier is trained on.
python benchmarks/reward_classifier.py train CLASSIFIER --out DIR [--seeds 0 1 2]
    trains from state with the classifier as the only reward, and with the true one; prints the success of both,
    and how often the classifier and the truth disagree.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("MUJOCO_GL", "egl")

from mixed_operator import MixedOperator

from robot_rl.config.randomization import LooksConfig
from robot_rl.data.schema import Episode
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.episode_observer import EpisodeResult
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.learn.actor import Rollout
from robot_rl.reward.classifier.frames import shows_success
from robot_rl.reward.classifier.record import EveryStepReward
from robot_rl.reward.validation.ground_truth import NEAR_MISS, OUTCOME
from robot_rl.seeding import Purpose, episode_seed
from robot_rl.system.progress import Progress
from sim.render import MujocoCameras

TASK, SIZE, HELD_OUT_SEED = "peg_insert", 128, 77
KINDS = {"good": 0.4, "clumsy": 0.15, "aside": 0.15, "shallow": 0.2, "stops": 0.05, "wanders": 0.05}
"""Share of each kind of episode."""


class Keeper:
    """Observer that stores each episode with its outcome."""

    def __init__(self, store: EpisodeStore, operator: MixedOperator) -> None:
        self._store, self._operator = store, operator

    def on_start(self, episode_id: str, observation: Any) -> None:
        """Do nothing."""

    def on_step(self, step: Any, next_observation: Any) -> None:
        """Do nothing."""

    def on_end(self, episode: Episode, result: EpisodeResult) -> None:
        """Store the episode."""
        del result
        success, kind = bool(shows_success(episode).any()), self._operator.kind
        outcome = "success" if success else NEAR_MISS if kind in ("aside", "shallow") else kind
        metadata = {**episode.metadata, "success": success, OUTCOME: outcome, "led": kind}
        self._store.append(replace(episode, metadata=metadata))


def record(path: Path, episodes: int, looks: float) -> None:
    """Record the held-out episodes, every step labelled by the task."""
    observed = WorkcellOptions(cameras=("front", "wrist"), image_size=(SIZE, SIZE))
    cell = make_workcell(TASK)
    usual = LooksConfig()
    wider = LooksConfig(**{name: min(looks * value, 0.6) for name, value in vars(usual).items()})
    io: Any = cell.io
    cameras = MujocoCameras(io.model, io.data, observed.cameras, observed.image_size, io.sensing.pixel_noise, wider)
    io.attach_cameras(cameras)
    operator: Any = MixedOperator(cell, KINDS)
    env = RobotEnv(replace(cell, operator=operator, judges=(EveryStepReward(operator),)), options=observed)
    with EpisodeStore.create(path, {"task": TASK, "looks": looks}) as store, Progress(episodes, "record") as shown:
        rollout = Rollout(env, None, None, (0,), [Keeper(store, operator)])
        for number in range(episodes):
            reset = episode_seed(Purpose.FRAMES, HELD_OUT_SEED, number)
            rollout.play(reset, f"held-out-{number:04d}", deterministic=True, demonstrate=True)
            shown.update(number + 1)
        counts: dict[str, int] = {}
        for row in store.summaries():
            counts[str(row.metadata[OUTCOME])] = counts.get(str(row.metadata[OUTCOME]), 0) + 1
    cameras.close()
    print(json.dumps(counts))


def learn(classifier: Path, out: Path, seeds: list[int], episodes: int, more: list[str]) -> list[dict[str, Any]]:
    """Train with each reward, and compare each evaluation with the truth; `more` are further flags of the trainings."""
    judged = ["--set", "reward.kind=classifier", "--set", f"reward.path={classifier.resolve()}"]
    rows = []
    for seed in seeds:
        for name, flags in (("task", []), ("classifier", judged)):
            run = out / f"{name}-{seed}"
            if not (run / "summary.json").exists():
                again = ["--resume"] if run.exists() else [TASK, "--seed", str(seed), *flags, *more]
                _robot_rl("train", *again, "--out", str(run))
            found = json.loads(_robot_rl("eval", str(run), "--episodes", str(episodes), "--json"))
            results = found["results"]
            labelled = np.array([row["success"] for row in results])
            true = np.array([row["metrics"].get("task_success", float(row["success"])) > 0 for row in results])
            gap = 100.0 * float(labelled.mean() - true.mean())
            rows.append({"seed": seed, "reward": name, "true": true.mean(), "labelled": labelled.mean(), "gap": gap})
            print(
                f"seed {seed}, reward by {name}: true success {true.mean():.3f}, labelled {labelled.mean():.3f}",
                flush=True,
            )
    return rows


def _robot_rl(*arguments: str) -> str:
    command = [sys.executable, "-m", "robot_rl", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def _learn(a: argparse.Namespace) -> None:
    more = [] if a.steps is None else ["--steps", str(a.steps)]
    print(json.dumps(learn(a.classifier, a.out, a.seeds, a.episodes, more), indent=1))


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("episodes")
    one.add_argument("out", type=Path)
    one.add_argument("--episodes", type=int, default=200)
    one.add_argument("--looks", type=float, default=2.0)
    one.set_defaults(run=lambda a: record(a.out, a.episodes, a.looks))
    two = commands.add_parser("train")
    two.add_argument("classifier", type=Path)
    two.add_argument("--out", type=Path, required=True)
    two.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    two.add_argument("--episodes", type=int, default=100)
    two.add_argument("--steps", type=int)
    two.set_defaults(run=_learn)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
