"""Evaluate a base alone, without a correction, on held-out resets."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from robot_rl.base_policy.run_base import open_base
from robot_rl.config.components import TrainConfig, world_of
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.environment import all_cameras
from robot_rl.errors import ConfigError
from robot_rl.learn.actor import StoreRecorder
from robot_rl.run.base.base_environment import base_environment
from robot_rl.run.deployment import Deployment
from robot_rl.run.evaluate_run import check_film, film
from robot_rl.run.evaluation import evaluate_policy


def evaluate_base(
    config: TrainConfig,
    video: Path | None = None,
    deployment: Deployment | None = None,
    record: Path | None = None,
) -> dict[str, Any]:
    """Evaluate the base of a configuration as it is.

    Args:
        config: Task, observations and base; `evaluation` says how many resets and which.
        video: File for a film of the first episodes; None makes none.
        deployment: Where it takes place, and the operator who judges, if one does; None is this process.
        record: Directory of a new store for the episodes; None records none.

    Returns:
        The summary of the evaluation, with the name and identity of the base.

    Raises:
        ConfigError: if there is no base, or one that has to be trained first; or there shall be a film of an arm.
        RunDirectoryError: if there is a store already, or it cannot be written.
        RobotRLError: if it cannot be made, or fails.
    """
    settings, deployment = config.evaluation, deployment or Deployment()
    check_film(video, deployment)
    with contextlib.ExitStack() as stack:
        config, env = stack.enter_context(base_environment(config, deployment, played=True))
        base = stack.enter_context(open_base(config, env, None))
        if base is None or not base.player.base.trained:
            raise ConfigError(
                "there is nothing to evaluate: name a base that can act, KIND or KIND:PATH; `robot-rl base train` "
                "makes the file of one"
            )
        if deployment.assistance is not None:
            stack.enter_context(deployment.assistance.evaluation())
        recorders = []
        if record is not None:
            facts = {"task": config.task, "seed": settings.seed, "base": base.facts(), "world": world_of(config)}
            recorders = [StoreRecorder(stack.enter_context(EpisodeStore.create(record, facts)), cut_aside=True)]
        summary = evaluate_policy(config, env, None, None, deployment, recorders, base.player).summary()
        answer = {"task": config.task, **base.facts(), **summary, "video": None}
        if video is not None:
            filmed, cameras = min(settings.video_episodes or 1, settings.episodes), all_cameras(env.environment_spec)
            if film(config, None, None, video, cameras, filmed, settings.seed, base.player):
                answer["video"] = str(video)
    return answer
