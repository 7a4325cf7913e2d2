"""Where a base alone is trained, evaluated or served for: the simulation of its task, or an arm."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from robot_rl.config.components import TrainConfig
from robot_rl.env.environment import Environment
from robot_rl.run.deployment import Deployment, workcell_options
from robot_rl.run.make_reward import RewardSetup


@contextlib.contextmanager
def base_environment(
    config: TrainConfig, deployment: Deployment, *, played: bool
) -> Iterator[tuple[TrainConfig, Environment]]:
    """Open the environment of a base, with its stages; return the configuration with all cameras that it sees, and it.

    Args:
        config: Task, observations and base.
        deployment: The place.
        played: Episodes are played in it; otherwise only its facts are looked at.

    Raises:
        RobotRLError: if the environment cannot be made, or a file of its stages cannot be read.
    """
    config, reward = deployment.with_cameras(config), RewardSetup.from_config(config.reward).staged
    observed = reward.observe(workcell_options(config))
    with deployment.environment(config.task, observed, reward, played=played) as env:
        yield config, env
