"""Env steps per second of N simulations: in threads of one process, in processes, and what MuJoCo's rollout could do.

    python benchmarks/simulations.py --task peg_insert --numbers 1 2 4 --seconds 5 --rounds 3

Every simulation plays uniform actions, resets included, as fast as it can. The ways are timed in turn, and the best
round of each counts, because other programs can only take time. `mujoco.rollout` runs physics in threads of its own,
for torques that are given beforehand: a controller, which computes new ones for each physics step, cannot run in it, so
its figure is a bound for physics alone.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout

import sim  # noqa: F401
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from sim.mujoco_robot_io import MujocoRobotIO


def main() -> None:
    """Time each way with each number of simulations, and print a row for each number."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", default="peg_insert")
    parser.add_argument("--numbers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print("| simulations | threads | processes | physics alone, rollout | load |\n|---|---|---|---|---|", flush=True)
    for number in arguments.numbers:
        ways = in_threads, in_processes, in_rollout
        rounds = [[way(arguments.task, number, arguments.seconds) for way in ways] for _ in range(arguments.rounds)]
        cells = " | ".join(f"{max(rates):.0f} steps/s" for rates in zip(*rounds, strict=True))
        print(f"| {number} | {cells} | {os.getloadavg()[0]:.1f} |", flush=True)


def in_threads(task: str, number: int, seconds: float) -> float:
    """Return env steps per second of simulations in threads of this process."""
    counts = [0] * number
    barrier = threading.Barrier(number)

    def run(place: int) -> None:
        counts[place] = _play(task, place, seconds, barrier.wait)

    threads = [threading.Thread(target=run, args=(place,)) for place in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


def in_processes(task: str, number: int, seconds: float) -> float:
    """Return env steps per second of simulations in a process each."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(number), context.Queue()
    processes = [
        context.Process(target=_process, args=(task, place, seconds, barrier, results)) for place in range(number)
    ]
    for process in processes:
        process.start()
    counts = [results.get() for _ in processes]
    for process in processes:
        process.join()
    return sum(counts) / seconds


def in_rollout(task: str, number: int, seconds: float) -> float:
    """Return the env steps' worth of physics per second, without a controller, by `mujoco.rollout`."""
    cell = make_workcell(task, WorkcellOptions())
    env, io = RobotEnv(cell), cell.io
    if not isinstance(io, MujocoRobotIO):
        raise TypeError(f"{task} is not simulated by MuJoCo")
    env.reset(seed=0)
    model, substeps = io.model, round(env.spec_task.control_period / io.model.opt.timestep)
    state = np.zeros(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, io.data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    states, torques = np.tile(state, (number, 1)), np.zeros((number, substeps * 10, model.nu))
    done, started = 0, time.monotonic()
    with rollout.Rollout(nthread=number) as threads:
        data = [mujoco.MjData(model) for _ in range(number)]
        while time.monotonic() - started < seconds:
            threads.rollout([model] * number, data, states, torques)
            done += 10 * number
    return done / (time.monotonic() - started)


def _process(task: str, seed: int, seconds: float, barrier: Any, results: Any) -> None:
    results.put(_play(task, seed, seconds, barrier.wait))


def _play(task: str, seed: int, seconds: float, wait: Callable[[], object]) -> int:
    """Play for a while, from the moment at which all are ready; return the number of env steps."""
    env = RobotEnv(make_workcell(task, WorkcellOptions()))
    rng, steps = np.random.default_rng(seed), 0
    env.reset(seed=seed)
    wait()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        action = rng.uniform(-1, 1, env.spec_task.action_size).astype(np.float32)
        _, _, terminated, truncated, _ = env.step(action)
        steps += 1
        if terminated or truncated:
            env.reset(seed=seed + steps)
    env.close()
    return steps


if __name__ == "__main__":
    main()
