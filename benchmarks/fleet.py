"""Fleets of simulated robots against one robot: env steps of all robots until the policy succeeds, and wall time.

    python benchmarks/fleet.py --out /tmp/fleet --task reach --robots 1 2 4 --seeds 0 1 2 --steps 3000

Each run keeps a checkpoint every so many env steps; the policy in each is evaluated on the same held-out resets. A run
that has a result is not played again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from robot_rl.learn.actor import Rollout
from robot_rl.learn.networks.networks import make_policy
from robot_rl.learn.perception import make_perception
from robot_rl.run.deployment import Deployment, workcell_options
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.run.evaluation import evaluate
from robot_rl.run.resume import read_training

WANTED = 0.95


def main() -> None:
    """Run what has no result yet, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--task", default="reach")
    parser.add_argument("--robots", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--every", type=int, default=250)
    parser.add_argument("--episodes", type=int, default=50)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for robots in [0, *arguments.robots]:
        rows = [_result(arguments, robots, seed) for seed in arguments.seeds]
        steps = [row["steps_to_wanted"] for row in rows]
        rates = [row["steps_per_s"] for row in rows]
        name = f"fleet of {robots}" if robots else "one robot, learner of its own"
        print(f"{name}: steps to {WANTED:.0%}: {steps}, steps/s {np.mean(rates):.1f}, wall {rows[0]['wall_s']:.0f} s")
        for row in rows:
            print(f"    load {row['load']}: {row['curve']}")


def _result(arguments: argparse.Namespace, robots: int, seed: int) -> dict[str, Any]:
    """Return the result of one run, from its file if it is there."""
    path = arguments.out / f"{arguments.task}-{robots}-{seed}"
    file = path.with_suffix(".json")
    if file.exists():
        return dict(json.loads(file.read_text()))
    kind = ["fleet", "train", arguments.task, "--robots", str(robots)] if robots else ["train", arguments.task]
    settings = {
        "keep_checkpoints": arguments.every,
        "checkpoint_interval": arguments.every,
        "evaluation.curve_interval": 0,
        "evaluation.video_episodes": 0,
        "processes": 2,
    }
    command = [sys.executable, "-m", "robot_rl", *kind, "--seed", str(seed), "--steps", str(arguments.steps)]
    command += ["--episodes", "20", "--out", str(path)]
    command += [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    started, load = time.monotonic(), os.getloadavg()[0]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    learner = path / "learner" if robots else path
    summary = json.loads((learner / "summary.json").read_text())
    curve = [
        (int(file.stem), _success(learner, file, arguments.episodes))
        for file in sorted((learner / RunDirectory.KEPT).glob("*.pt"))
    ]
    reached = [step for step, success in curve if success >= WANTED]
    wall = summary.get("learning_wall_s", summary["wall_s"])
    result = {
        "steps_to_wanted": reached[0] if reached else None,
        "curve": curve,
        "steps_per_s": summary["env_steps"] / wall,
        "wall_s": wall,
        "whole_s": time.monotonic() - started,
        "utd": summary["utd"],
        "load": f"{load:.1f}",
    }
    if robots:
        result["robots"] = json.loads((path / "summary.json").read_text())["robots"]
    file.write_text(json.dumps(result))
    return result


def _success(run: Path, checkpoint: Path, episodes: int) -> float:
    """Return the success rate of the deployed policy in a checkpoint."""
    config = RunDirectory.read_config(run)
    with Deployment().environment(config.task, workcell_options(config)) as env:
        perception = make_perception(env.observation_specs, config)
        policy = make_policy(env.environment_spec, perception.spec, config, torch.Generator())
        policy.load_policy_state(read_training(checkpoint)["deployed"]["policy"])
        rollout = Rollout(env, policy, perception, config.replay.history)
        return float(evaluate(rollout, episodes=episodes, seed=config.evaluation.seed).summary()["success_rate"])


if __name__ == "__main__":
    main()
