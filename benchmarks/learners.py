"""Updates per second of several learners that learn as one, on random steps.

    python benchmarks/learners.py --learners 1 2 --observations pixels --batch 256
    python benchmarks/learners.py --learners 1 2 4 8 --observations pixels --batch 256 2048 8192 --device cuda

The whole learner is timed: memory, sampling, updates, what passes between the processes. Each has one thread, and a GPU
of its own with `--device cuda`. The batch is that of all of them together.
"""

from __future__ import annotations

import argparse
import os
import time
from contextlib import closing

import numpy as np
import torch

from robot_rl.bench.workload import ENCODER, TOOLS, cached_features
from robot_rl.config.components import EngineConfig, ReplayConfig, TrainConfig
from robot_rl.data.replay.percept import NO_TOOLS, Percept, PerceptSpec
from robot_rl.data.replay.transition import Transition
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.link.handshake import Agreement
from robot_rl.link.leading_learner import open_learner

STATE, ACTION, LENGTH = 24, 7, 50
TASK = EnvironmentSpec("random", max_steps=LENGTH, control_period=0.1, action_size=ACTION, return_range=(0.0, 1.0))


def main() -> None:
    """Time every combination, and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learners", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--observations", choices=("state", "pixels"), default="pixels")
    parser.add_argument("--batch", type=int, nargs="+", default=[256])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--steps", type=int, default=60, help="env steps that are timed")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("| learners | batch | updates/s | load |\n|---|---|---|---|", flush=True)
    for batch in arguments.batch:
        for learners in arguments.learners:
            rate = _rate(arguments, learners, batch)
            print(f"| {learners} | {batch} | {rate:.1f} | {os.getloadavg()[0]:.1f} |", flush=True)


def _rate(arguments: argparse.Namespace, learners: int, batch: int) -> float:
    """Return critic updates per second."""
    config = TrainConfig(
        observations=arguments.observations,
        device=arguments.device,
        learners=learners,
        processes=2,
        demonstrations=0,
        warmup_steps=4 * LENGTH,
        update_to_data=4,
        replay=ReplayConfig(capacity=10_000, batch_size=batch),
        engine=EngineConfig(precision="float32"),
    )
    images = cached_features(ENCODER) if arguments.observations == "pixels" else None
    percepts = PerceptSpec(STATE, images, TOOLS if images is not None else NO_TOOLS)
    rng = np.random.default_rng(0)

    def percept() -> Percept:
        features = rng.normal(size=images.shape).astype(np.float16) if images is not None else None
        return Percept(rng.normal(size=STATE).astype(np.float32), features)

    started, before = 0.0, 0
    with closing(open_learner(Agreement(TASK, percepts, config))) as learner:
        for number in range(config.warmup_steps + 20 + arguments.steps):
            if number == config.warmup_steps + 20:  # the first updates are slower
                started, before = _now(arguments.device), learner.updates
            if number % LENGTH == 0:
                learner.begin(percept(), f"episode-{number}")
            ends = number % LENGTH == LENGTH - 1
            action = rng.uniform(-1, 1, ACTION).astype(np.float32)
            learner.append(Transition(action, float(ends), ends, False, 0), percept())
            learner.catch_up()
        return (learner.updates - before) / (_now(arguments.device) - started)


def _now(device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    return time.monotonic()


if __name__ == "__main__":
    main()
