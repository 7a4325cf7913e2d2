"""Whether the tasks of a practice meet: each one has to end where the next one can begin."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from robot_rl.config.components import TrainConfig
from robot_rl.env.environment import Environment, SupportsDemonstration
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import ConfigError
from robot_rl.practice.stage import Stage
from robot_rl.run.deployment import Deployment, workcell_options
from robot_rl.seeding import Purpose, episode_seed

SAMPLES = 2
"""Ends of each task at which it is looked."""
ATTEMPTS = 6
"""Most episodes for them: an operator does not always succeed."""

logger = logging.getLogger(__name__)


def check_tasks_meet(configs: Mapping[str, TrainConfig], deployment: Deployment) -> None:
    """Let the operator do each task in simulation, and check that the next one can begin where it ended.

    Args:
        configs: Of their trainings, in turn.
        deployment: Where.

    Raises:
        ConfigError: if one cannot begin, naming why, or the operator cannot do a task; or one is no task of an arm.
    """
    stage = Stage()
    place = replace(deployment, workcell=stage.workcell(deployment.workcell))
    tasks = tuple(configs)
    with contextlib.ExitStack() as stack:
        envs = {task: stack.enter_context(place.environment(task, _options(configs[task]))) for task in tasks}
        if others := [task for task in tasks if task not in stage.places]:
            raise ConfigError(
                f"{' and '.join(others)} cannot be practised: an environment of others begins each episode with a reset"
            )
        if not all(isinstance(env, SupportsDemonstration) and env.can_demonstrate for env in envs.values()):
            logger.warning("nobody can demonstrate %s here, so it is not known whether they meet", " and ".join(tasks))
            return
        for number, task in enumerate(tasks):
            following = tasks[(number + 1) % len(tasks)]
            _check_meet(stage, envs[task], task, following, configs[task].seed)


def _options(config: TrainConfig) -> WorkcellOptions:
    return workcell_options(replace(config, observations="state", realtime=False, processes=1))


def _check_meet(stage: Stage, env: Environment, task: str, following: str, seed: int) -> None:
    """Check that one task ends where the following one can begin."""
    ends = 0
    for attempt in range(ATTEMPTS):
        stage.current = task
        stage.places[task].task.resets = True
        if not _demonstrated(env, episode_seed(Purpose.DEMONSTRATION, seed, attempt)):
            continue
        stage.clear(tidy=False)
        obstacle = stage.obstacles()[following]
        if obstacle is not None:
            who = f"{task} and {following} do not meet" if task != following else f"{task} does not end where it begins"
            raise ConfigError(f"{who}: after {task} has succeeded, {following} cannot begin: {obstacle}")
        ends += 1
        if ends == SAMPLES:
            return
    raise ConfigError(
        f"whether {task} and {following} meet is not known: the operator succeeded in {ends} of {ATTEMPTS} episodes of "
        f"{task}"
    )


def _demonstrated(env: Environment, seed: int) -> bool:
    """Let the operator lead an episode; return whether it succeeded."""
    env.start(seed, "meeting", demonstrate=True)
    rest = np.zeros(env.environment_spec.action_size, np.float32)
    while not (info := env.advance(rest)).ended:
        pass
    return info.success
