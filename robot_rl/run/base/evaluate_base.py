"""Evaluate a base alone, without a correction, on held-out resets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robot_rl.base_policy.run_base import open_base
from robot_rl.config.components import TrainConfig
from robot_rl.env.environment import all_cameras
from robot_rl.errors import ConfigError
from robot_rl.run.base.base_environment import base_environment
from robot_rl.run.deployment import Deployment
from robot_rl.run.evaluate_run import film
from robot_rl.run.evaluation import evaluate_policy


def evaluate_base(config: TrainConfig, video: Path | None = None) -> dict[str, Any]:
    """Evaluate the base of a configuration as it is.

    Args:
        config: Task, observations and base; `evaluation` says how many resets and which.
        video: File for a film of the first episodes; None makes none.

    Returns:
        The summary of the evaluation, with the name and identity of the base.

    Raises:
        ConfigError: if there is no base, or one that has to be trained first.
        RobotRLError: if it cannot be made, or fails.
    """
    settings = config.evaluation
    with (
        base_environment(config, played=True) as (config, env),
        open_base(config, env, None) as base,
    ):
        if base is None or not base.player.base.trained:
            raise ConfigError(
                "there is nothing to evaluate: name a base that can act, KIND or KIND:PATH; `robot-rl base train` "
                "makes the file of one"
            )
        summary = evaluate_policy(config, env, None, None, Deployment(), base=base.player).summary()
        answer = {"task": config.task, **base.facts(), **summary, "video": None}
        if video is not None:
            filmed, cameras = min(settings.video_episodes or 1, settings.episodes), all_cameras(env.environment_spec)
            if film(config, None, None, video, cameras, filmed, settings.seed, base.player):
                answer["video"] = str(video)
    return answer
