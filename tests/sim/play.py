"""Plays simulated tasks without a learner."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pytest

from robot_rl.data.schema import Step
from robot_rl.env.command_limits import CommandGuard
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.robot_io import Command
from robot_rl.env.task import Workcell

Policy = Callable[[dict[str, np.ndarray]], np.ndarray]


class Played(NamedTuple):
    """An episode: its steps, whether it succeeded, why it failed, and the largest force in it [N]."""

    steps: list[Step]
    success: bool
    failure: str | None
    force: float


def stage(task: str, *, interventions: bool = False) -> tuple[RobotEnv, Workcell]:
    cell = make_workcell(task)
    return RobotEnv(cell, interventions=interventions), cell


def always(env: RobotEnv, *action: float) -> Policy:
    """The same action every step; missing components are 0."""
    full = np.zeros(env.spec_task.action_size, np.float32)
    full[: len(action)] = action
    return lambda observation: full


def at_random(env: RobotEnv, seed: int) -> Policy:
    rng = np.random.default_rng(seed)
    return lambda observation: rng.uniform(-1.0, 1.0, env.spec_task.action_size).astype(np.float32)


def steps(env: RobotEnv, seed: int, policy: Policy, **options) -> Iterator[dict]:
    """`info` of each step, while the scene still stands as the step left it."""
    observation, _ = env.reset(seed=seed, options=options)
    ended = False
    while not ended:
        observation, _, terminated, truncated, info = env.step(policy(observation))
        ended = terminated or truncated
        yield info


def play(env: RobotEnv, seed: int, policy: Policy | None = None, **options) -> Played:
    infos = list(steps(env, seed, policy or always(env), **options))
    last = infos[-1]
    force = max(info["step"].force_peak for info in infos)
    return Played([info["step"].recorded for info in infos], last["step"].success, last["step"].failure, force)


def guarded_demonstration(
    env: RobotEnv, cell: Workcell, seed: int, monkeypatch: pytest.MonkeyPatch, guard: CommandGuard
) -> tuple[list[dict], set[str]]:
    """A demonstration whose commands pass a guard, as over topics: `info` of its steps, and the limits that cut one."""
    io, changed, told = cell.io, set(), -1
    send = io.command

    def guarded(command: Command) -> None:
        nonlocal told
        state = io.read()
        if state.stamp > told:
            guard.measured_pose(state.T_base_tcp, state.stamp)
            guard.measured_wrench(state.wrench, state.stamp)
            told = state.stamp
        made = guard.check(command, io.now())
        changed.update(made.limited)
        send(made.command)

    monkeypatch.setattr(io, "command", guarded)
    return list(steps(env, seed, always(env), demonstrate=True)), changed
