"""The job of `actor_node` that records demonstrations, with the robot behind topics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from robot_rl.config.load import load_config
from robot_rl.config.nodes import ActorNodeConfig
from robot_rl.errors import ConfigError
from robot_rl.run.demonstrate import demonstrate
from robot_rl.run.deployment import workcell_options
from robot_rl.run.directory.calibrations import Calibrations
from robot_rl.run.make_reward import RewardSetup
from ros_nodes.jobs.site import Connect


def record(given: ActorNodeConfig, connect: Connect) -> list[str]:
    """Record demonstrations, or continue to; return the result, line by line.

    Args:
        given: The parameters of the node.
        connect: Connects to the robot.

    Raises:
        ConfigError: if a parameter is missing.
        RobotRLError: for whatever else a user can cause or cure.
    """
    if not given.out:
        raise ConfigError("job:=demo needs out:=DIRECTORY, of the store for the demonstrations")
    config = load_config(Path(given.config) if given.config else None, list(given.settings))
    count, path = given.episodes or config.demonstrations, Path(given.out)
    deployment = connect().deployment
    config = deployment.with_cameras(config)
    reward = RewardSetup.from_config(config.reward)
    observed, judging = reward.observe(workcell_options(config)), reward.staged.judging(deployment.workcell)
    calibrations = Calibrations.of(config, deployment.calibrations(observed.cameras))
    facts = demonstrate(
        config.task,
        path,
        episodes=count,
        seed=config.seed,
        observed=observed,
        deployment=replace(deployment, workcell=judging),
        resume=True,
        calibrations=calibrations,
    )
    return [f"{facts['episodes']} demonstrations, {facts['success_rate']:.0%} successful: {path}"]
