"""Which of the quantities that the policy is not told makes `peg_hard` hard: the scripted operator, told less and less.

    python benchmarks/hidden_quantities.py [--episodes 100] [--seed 100]

The operator knows the hole, and errs by 0.6 mm and 0.5 degrees. Here it plays whole episodes with an error in one
quantity more: the share of the estimate's error, which is up to 3 mm and 5 degrees, or the tilt, up to 2 degrees, of
which an estimate says nothing. It searches around where it believes the hole to be, as in every demonstration.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np

from robot_rl.config.load import load_config
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.geometry import Pose, quat_from_rotvec, quat_multiply, swing_twist_z, yaw_pose
from robot_rl.learn.actor import Rollout
from robot_rl.run.deployment import workcell_options
from robot_rl.statistics import wilson_interval
from sim.operator import InsertionOperator
from sim.tasks.insertion import Insertion
from sim.tasks.peg_insert import HARD, HARD_SPEC

TOLD_LESS = {
    "nothing more": (0.0, 0.0, True),
    "a third of the position": (1 / 3, 0.0, True),
    "half of the position": (0.5, 0.0, True),
    "the position": (1.0, 0.0, True),
    "half of the yaw": (0.0, 0.5, True),
    "the yaw": (0.0, 1.0, True),
    "the tilt": (0.0, 0.0, False),
    "all of them": (1.0, 1.0, False),
}
"""Shares of the estimate's error in position and in yaw, and whether the tilt is known."""


def believed(task: Insertion, position: float, yaw: float, tilt: bool) -> Callable[[], Pose]:
    """Return what tells where the hole is, with these shares of the estimate's error."""

    def hole() -> Pose:
        truth, estimate = task.T_base_hole, task.T_base_estimate
        true_yaw, told_yaw = swing_twist_z(truth.quaternion)[0], swing_twist_z(estimate.quaternion)[0]
        turn = yaw * (told_yaw - true_yaw)
        place = truth.position + position * (estimate.position - truth.position)
        if tilt:
            return Pose(place, quat_multiply(truth.quaternion, quat_from_rotvec(np.array([0.0, 0.0, turn]))))
        return Pose(place, yaw_pose(0.0, 0.0, 0.0, true_yaw + turn).quaternion)

    return hole


def main() -> None:
    """Print one JSON line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=100, help="of the first reset")
    arguments = parser.parse_args()
    options = workcell_options(load_config(None, ["task=peg_hard"]))
    workcell = make_workcell("peg_hard", options)
    task = cast(Insertion, workcell.task)
    for name, shares in TOLD_LESS.items():
        operator = InsertionOperator(HARD_SPEC, believed(task, *shares), HARD.success_depth)
        rollout = Rollout(RobotEnv(replace(workcell, operator=operator), options=options), None, None, (0,))
        results = []
        for seed in range(arguments.seed, arguments.seed + arguments.episodes):
            rollout.begin(seed, f"episode-{seed}", demonstrate=True)
            while (result := rollout.step(deterministic=True)) is None:
                pass
            results.append(result)
        successes = sum(result.success for result in results)
        low, high = wilson_interval(successes, len(results))
        print(
            json.dumps(
                {
                    "estimated": name,
                    "success_rate": successes / len(results),
                    "success_ci95": [round(low, 3), round(high, 3)],
                    "steps": round(float(np.mean([result.steps for result in results]))),
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
