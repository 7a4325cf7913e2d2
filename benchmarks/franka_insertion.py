"""A policy that learns in contact on a Franka, in franky-sim: a round peg into a hole of which it knows an estimate.

    PYTHONPATH=.:benchmarks:tests/support/peers python benchmarks/franka_insertion.py --out DIR [--steps 6000]

Without ROS, over libfranka's protocol, in the simulation's real time. The arm starts 1 cm above the rim and beside the
hole, and is told where the hole is, with an error larger than the clearance. A scripted operator who sees the hole
demonstrates and takes over when progress stalls or the force grows, as for `peg_insert`. Success: the measured tcp is
deep in the hole for two steps. Then the policy is evaluated alone on other resets, beside two baselines: straight down
at the estimate, and the operator. Prints JSON; forces are those of the simulated contacts.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from franka_contact import DOWN, HIGH, LOW, TABLE
from franka_peer import HOLE_AT, PEG, PEG_LENGTH, WALL, FrankaPeer
from peer_process import real_time

from robot_rl.cell.robot_file import read_robot_file
from robot_rl.cell.robot_place import robot_deployment
from robot_rl.cell.robot_tasks import PersonTask
from robot_rl.config.load import load_config
from robot_rl.data.schema import Source
from robot_rl.data.sparse_reward import success_reward
from robot_rl.env.move_arm import Travel
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.robot_io import RobotIO, RobotState
from robot_rl.env.task import Outcome, TaskSpec, Workcell, WorkcellOptions
from robot_rl.geometry import Pose
from robot_rl.run.train import train
from robot_rl.spec import ArraySpec
from robot_rl.statistics import wilson_interval
from robot_rl.system.process import one_thread
from sim.operator import InsertionOperator

TASK = "franka_insert"
BESIDE, ABOVE = 0.003, 0.01
"""How far beside the hole and above its rim an episode begins, at most along x and y [m]."""
ESTIMATE_ERROR = 0.002
"""Largest error of the estimate [m], as for `peg_insert`."""
DEPTH, STEPS_IN = 0.7 * WALL, 2
"""How deep the peg is in [m], and for how many steps in a row."""
RIM = np.array([*HOLE_AT, TABLE + WALL + PEG_LENGTH])
"""Where the tcp is when the peg's tip is in the middle of the mouth [m]."""
TEST_SEED = 10_000
"""Of the first reset of an evaluation; those of training are below it."""
FACTS: dict[str, Any] = {
    "instruction": "put the peg into the hole",
    "max_steps": 100,
    "control_period": 0.1,
    "workspace": {"low": [-0.02, -0.02, -0.04], "high": [0.02, 0.02, 0.02], "yaw": 0.1, "tilt": 0.1},
    "action_axes": ["x", "y", "z"],
    "force_limit": 60.0,
    "start": {
        "position": [*RIM[:2].tolist(), float(RIM[2]) + ABOVE],
        "quaternion": DOWN.tolist(),
        "retreat": 0.04,
    },
}
LIMITS = {"box_low": list(LOW), "box_high": list(HIGH), "max_speed": 0.15, "max_force": 100.0, "max_age": 0.5}


class FrankaInsertion(PersonTask):
    """The task; `spec` and `tare` as for any task of a robot, `io` is the robot and `clock` its clock."""

    def __init__(self, spec: TaskSpec, tare: Callable[[], bool], io: RobotIO, clock: Any) -> None:
        super().__init__(spec, tare)
        self._io, self._clock = io, clock
        self._estimate, self._in = np.zeros(3), 0

    @property
    def T_base_hole(self) -> Pose:
        """Where the tcp is when the peg's tip is in the mouth."""
        return Pose(RIM, np.array([1.0, 0.0, 0.0, 0.0]))

    def observation_specs(self) -> dict[str, ArraySpec]:
        """Return the spec of the estimated mouth in the axes of the base, from the tcp."""
        return {"state/mouth": ArraySpec((3,), unit="m", scale=0.01)}

    def reset(self, seed: int) -> None:
        """Go beside the hole, tare the wrench, and draw the estimate."""
        rng = np.random.default_rng([seed, 1])
        start = RIM + np.array([*rng.uniform(-BESIDE, BESIDE, 2), ABOVE])
        Travel(self._io, self._clock, 0.1, 0.5).go(Pose(start, DOWN))
        super().reset(seed)
        radius, angle = ESTIMATE_ERROR * np.sqrt(rng.uniform()), rng.uniform(0.0, 2.0 * np.pi)
        self._estimate, self._in = RIM + radius * np.array([np.cos(angle), np.sin(angle), 0.0]), 0

    def observe(self, state: RobotState, T_base_reset: Pose) -> dict[str, np.ndarray]:
        """Return where the mouth is thought to be."""
        del T_base_reset  # it is relative to the tcp itself
        return {"state/mouth": self._estimate - state.T_base_tcp.position}

    def evaluate(self, state: RobotState) -> Outcome:
        """Succeed when the measured tcp has been deep in the hole for some steps."""
        depth = float(RIM[2] - state.T_base_tcp.position[2])
        beside = float(np.linalg.norm(state.T_base_tcp.position[:2] - RIM[:2]))
        self._in = self._in + 1 if depth > DEPTH and beside < PEG / 2 else 0
        success = self._in >= STEPS_IN
        return Outcome(success, success_reward(success), metrics={"depth": depth})


class FirmOperator(InsertionOperator):
    """An operator who pushes harder where the arm stays beside its set-point, as a Franka's friction makes it."""

    gain = 2.5

    def _motion(self, state: RobotState, goal: Pose, pace: float) -> np.ndarray:
        here = state.T_base_tcp
        return super()._motion(
            state, Pose(here.position + self.gain * (goal.position - here.position), goal.quaternion), pace
        )


@dataclass(frozen=True)
class Cell:
    """Makes the workcell of the robot file with this task and operator in it."""

    make: Callable[[str, WorkcellOptions], Workcell]

    def __call__(self, task: str, options: WorkcellOptions) -> Workcell:
        """Open it."""
        cell = self.make(task, options)
        insertion = FrankaInsertion(cell.task.spec, cell.io.tare, cell.io, cell.clock)  # type: ignore[attr-defined]
        operator = FirmOperator(cell.task.spec, lambda: insertion.T_base_hole, DEPTH)
        operator.use(options.intervention)
        return replace(cell, task=insertion, operator=operator, operator_source=Source.SCRIPT)


@contextlib.contextmanager
def franka(out: Path, clearance: float) -> Iterator[tuple[FrankaPeer, Path]]:
    """Start franky-sim with peg and hole; yield it, and the robot file for it."""
    peer = FrankaPeer(120.0, TABLE, PEG + clearance)
    real_time(peer._process)
    path = out / "robot.yaml"
    tree = {
        "arm": {"driver": "franka", "host": peer.address, "force_threshold": 100.0},
        "cell": {"judge": "goal", "scene": "none", "max_age": 0.5},
        "limits": LIMITS,
        "task": FACTS,
    }
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    try:
        yield peer, path
    finally:
        peer.close()


def baseline(cell: Workcell, episodes: int, operator: bool) -> dict[str, Any]:
    """Play resets of the evaluation by the operator, or straight down at the estimate."""
    successes = steps = 0
    with contextlib.closing(RobotEnv(cell)) as env:
        for number in range(episodes):
            seen, info = env.reset(seed=TEST_SEED + number, options={"demonstrate": operator})
            seen, over = info["start"].observation, False
            while not over:
                x, y, z = seen["state/mouth"]
                near = np.hypot(x, y) < 0.0007
                # The tcp points down: its y and z are opposite to those of the base.
                way = np.array([2.5 * x, -2.5 * y, 0.01 if near else -0.003 - z]) / 0.01
                seen, reward, over, truncated, _ = env.step(np.clip(way, -1.0, 1.0).astype(np.float32))
                over = over or truncated
                steps += 1
            successes += reward > 0.5
    return {
        "success": successes / episodes,
        "ci95": wilson_interval(successes, episodes),
        "steps": steps / episodes,
    }


def main() -> None:
    """Train, evaluate, and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--demonstrations", type=int, default=20)
    parser.add_argument("--episodes", type=int, default=50, help="of the evaluation")
    parser.add_argument("--baselines", type=int, default=50, help="episodes of each of the two")
    parser.add_argument("--clearance", type=float, default=0.001, help="of the peg in the hole, in diameter [m]")
    parser.add_argument("--seed", type=int, default=100)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True)
    one_thread()
    with franka(arguments.out, arguments.clearance) as (peer, path):
        place = robot_deployment(read_robot_file(path, TASK))
        cell = Cell(place.workcell)
        for name, led in (("straight down at the estimate", False), ("operator", True)) if arguments.baselines else ():
            peer.inject("mark")
            row = baseline(cell(TASK, WorkcellOptions()), arguments.baselines, led)
            print(json.dumps({name: row | {"peak": peer.report()["peak"]}}), flush=True)
        if not arguments.steps:
            return
        settings = [f"task={TASK}", f"seed={arguments.seed}", f"env_steps={arguments.steps}"]
        settings += [f"demonstrations={arguments.demonstrations}", "evaluation.curve_interval=0"]
        settings += [f"evaluation.episodes={arguments.episodes}"]
        config = replace(load_config(None, settings), processes=2, realtime=True)
        peer.inject("mark")
        summary = train(config, arguments.out / "run", resume=False, deployment=replace(place, workcell=cell))
        print(json.dumps({"policy": summary, "peak": peer.report()["peak"]}, indent=2, default=str))


if __name__ == "__main__":
    main()
