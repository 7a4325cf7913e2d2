"""Benchmark of the simulated environment against the cost of its physics and its renderer alone."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import Workcell, WorkcellOptions
from robot_rl.errors import RenderError
from sim.mujoco_robot_io import MujocoRobotIO
from sim.render import MujocoCameras
from sim.scene import CAMERAS
from sim.tasks import relocate
from sim.tasks.peg_insert import make
from sim.tasks.two_arms import handover

IMAGE_SIZE = (128, 128)


def bench_env(*, episodes: int = 6, rounds: int = 7, frames: int = 100) -> dict[str, Any]:
    """Time `RobotEnv.step` on `peg_insert` against bare physics, and our cameras against the cheapest rendering.

    The steps replay scripted demonstrations, so that free motion and contact have the proportion of the task. Before
    each step the simulation's state is copied. From the copy, one call of `mj_step` takes the same number of physics
    steps, with the torques of that moment. The two are timed in turn. Every round replays the same steps, and the least
    time of each step counts, because other processes can only add time.

    The cheapest rendering is MuJoCo's own, into an existing array: same geoms, same cameras, every flag off except
    the culling of back faces, which saves time; no kinematics, no sensor noise.

    Args:
        episodes: Number of demonstrations to replay.
        rounds: Number of replays.
        frames: Number of image pairs to render.

    Returns:
        `env_steps_per_s`, `physics_ms_per_env_step` (bare), `env_ratio` (time of the environment over time of bare
        physics), the same ratio over the steps without and with contact: `env_ratio_free`, `env_ratio_contact`;
        `two_arms_ratio`, the time of a step of two arms with grippers and an object, `handover`, over that of one,
        `relocate`; `image_pair_ms`, `image_pair_bound_ms` and `image_ratio`, None where this machine cannot render.
    """
    env_times, physics_times, contact = _time_steps(episodes, rounds)

    def ratio(rows: np.ndarray) -> float | None:
        return float(env_times[rows].sum() / physics_times[rows].sum()) if rows.any() else None

    return {
        "env_steps": len(env_times),
        "env_steps_per_s": float(1.0 / env_times.mean()),
        "physics_ms_per_env_step": float(1e3 * physics_times.mean()),
        "env_ratio": ratio(np.ones_like(contact)),
        "env_ratio_free": ratio(~contact),
        "env_ratio_contact": ratio(contact),
        "two_arms_ratio": _time_demonstration(handover.make, rounds) / _time_demonstration(relocate.make, rounds),
        **_time_images(frames),
    }


def _time_demonstration(make_cell: Callable[[WorkcellOptions], Workcell], rounds: int) -> float:
    """Return the mean time of the processor for a step of a demonstration [s]; the least of each step counts."""
    env, times = RobotEnv(make_cell(WorkcellOptions())), list[list[float]]()
    actions = _demonstrated_actions(env, seed=0)
    for _ in range(rounds):
        env.reset(seed=0)
        times.append([_seconds(functools.partial(env.step, action), time.process_time) for action in actions])
    env.close()
    return float(np.array(times).min(axis=0).mean())


def _time_steps(episodes: int, rounds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the least times of each environment step and of its bare physics [s], and a mask of steps with contact."""
    cell = make(WorkcellOptions())
    env, io = RobotEnv(cell), cell.io
    if not isinstance(io, MujocoRobotIO):
        raise TypeError(f"the benchmark needs the simulated arm, got {type(io).__name__}")
    model, copy = io.model, mujoco.MjData(io.model)
    substeps = round(env.spec_task.control_period / model.opt.timestep)
    demonstrations = [_demonstrated_actions(env, seed) for seed in range(episodes)]
    times: list[list[tuple[float, float]]] = []
    touching: list[bool] = []
    for _ in range(rounds):
        times.append([])
        touching.clear()
        for seed, actions in enumerate(demonstrations):
            env.reset(seed=seed)
            for action in actions:
                touching.append(io.data.ncon > 0)
                mujoco.mj_copyData(copy, model, io.data)
                physics = _seconds(functools.partial(mujoco.mj_step, model, copy, substeps))
                times[-1].append((_seconds(functools.partial(env.step, action)), physics))
    env_times, physics_times = np.array(times).min(axis=0).T
    return env_times, physics_times, np.array(touching)


def _demonstrated_actions(env: RobotEnv, seed: int) -> list[np.ndarray]:
    """Return the actions of the scripted operator; replayed from the same seed, they visit the same states."""
    actions, done = [], False
    env.reset(seed=seed, options={"demonstrate": True})
    while not done:
        _, _, terminated, truncated, info = env.step(np.zeros(env.spec_task.action_size, np.float32))
        actions.append(info["step"].recorded.action)
        done = terminated or truncated
    return actions


def _time_images(frames: int) -> dict[str, float | None]:
    """Return the median times of a pair of images, by our cameras and by the cheapest rendering [ms]."""
    try:
        cell = make(WorkcellOptions(CAMERAS, IMAGE_SIZE))
    except RenderError:
        return {"image_pair_ms": None, "image_pair_bound_ms": None, "image_ratio": None}
    io = cell.io
    if not isinstance(io, MujocoRobotIO):
        raise TypeError(f"the benchmark needs the simulated arm, got {type(io).__name__}")
    cell.task.reset(0)
    cameras = MujocoCameras(io.model, io.data, CAMERAS, IMAGE_SIZE, io.sensing.pixel_noise)
    cheapest = mujoco.Renderer(io.model, *IMAGE_SIZE)
    image, rng, qpos = np.empty((*IMAGE_SIZE, 3), np.uint8), np.random.default_rng(0), io.data.qpos.copy()

    def bound() -> None:
        for name in CAMERAS:
            cheapest.update_scene(io.data, camera=name)
            cheapest.scene.flags[:] = 0
            cheapest.scene.flags[mujoco.mjtRndFlag.mjRND_CULL_FACE] = 1
            cheapest.render(out=image)

    ours, bounds = [], []
    for _ in range(frames):
        ours.append(_seconds(lambda: cameras.render(qpos, rng)))
        bounds.append(_seconds(bound))
    for resource in (cheapest, cameras, cell):
        resource.close()
    pair, pair_bound = statistics.median(ours), statistics.median(bounds)
    return {"image_pair_ms": 1e3 * pair, "image_pair_bound_ms": 1e3 * pair_bound, "image_ratio": pair / pair_bound}


def _seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    work()
    return clock() - start
