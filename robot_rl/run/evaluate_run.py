"""Evaluation of the policy of a run, and films of its episodes."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch

from robot_rl.base_policy.run_base import check_base, open_base
from robot_rl.config.components import EvaluationConfig, TrainConfig, world_of
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.environment import all_cameras, check_cameras, check_fits, check_same_actions
from robot_rl.errors import ConfigError, EnvironmentFailedError, RenderError, RunDirectoryError
from robot_rl.learn.actor import Proposer, Rollout, StoreRecorder
from robot_rl.learn.engine.hardware import device_here
from robot_rl.learn.networks.networks import Policy, make_policy, policy_digest
from robot_rl.learn.perception import Perception, make_perception
from robot_rl.run.deployment import Deployment, workcell_options
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.run.evaluation import evaluate, evaluate_policy, frequency_average, steps_between
from robot_rl.run.make_reward import RewardSetup
from robot_rl.run.resume import check_crops, read_training
from robot_rl.viz.film import FilmRecorder

logger = logging.getLogger(__name__)

FILM_SIZE = (240, 320)
"""Height and width of each camera's picture in a film [px]."""


def evaluate_run(
    path: Path,
    *,
    episodes: int | None = None,
    seed: int | None = None,
    device: Literal["cpu", "cuda"] | None = None,
    video: Path | None = None,
    cameras: tuple[str, ...] = (),
    record: Path | None = None,
    deployment: Deployment | None = None,
    elsewhere: TrainConfig | None = None,
    decisions: tuple[float, ...] = (),
) -> dict[str, Any]:
    """Evaluate the policy in a run's checkpoint on held-out resets; the run is only read.

    Args:
        path: The run directory.
        episodes: Number of episodes; None takes the run's configuration, like `seed`.
        seed: Which resets.
        device: Where to compute; None takes the run's, or the CPU where this machine lacks it.
        video: File for a film of the first episodes; None makes none.
        cameras: Cameras of the film; none takes all of the scene.
        record: Directory of a new store for the episodes; None records none.
        deployment: Where it takes place, and the operator who judges, if one does; None is this process.
        elsewhere: The run's configuration in another world, see `in_other_world`; None is its own.
        decisions: Also evaluate it at these rates of its decisions [Hz], on the same resets, see `frequency_average`.

    Returns:
        The summary of the evaluation, `task`, `world` and its `changes` from the run's, `deployed_noise` as it was, the
        episodes' `results`, and `video`: its path, or None if there is none; with `decisions` also `frequency_average`.

    Raises:
        UnknownNameError: if the scene has no such camera.
        ConfigError: if there shall be a film and the scene has no camera, or is a real one; if the policy does not fit
            another world, or cannot decide at a rate.
        RobotRLError: if the run cannot be read.
    """
    trained = RunDirectory.read_config(path)
    config = elsewhere or trained
    if device is None and device_here(config.device) != config.device:
        logger.warning("%s learned on CUDA, which torch does not see here: its policy is evaluated on the CPU", path)
        device = "cpu"
    if device is not None:
        config = replace(config, device=device)
    Deployment().check(config)  # it computes here
    wanted = config.evaluation
    wanted = replace(wanted, episodes=episodes or wanted.episodes, seed=wanted.seed if seed is None else seed)
    checkpoint = read_training(path / "checkpoint.pt")
    deployment = deployment or Deployment()
    check_film(video, deployment)
    reward = RewardSetup.of_run(path, config.reward, shaped=record is not None)  # recorded is all that critics look at
    with contextlib.ExitStack() as stack:
        observed = reward.observe(workcell_options(config))
        if (config.task, config.environment) != (trained.task, trained.environment):
            _check_fits(trained, config)
        check_crops(path, deployment.facts, observed.cameras)
        env = stack.enter_context(deployment.environment(config.task, observed, reward))
        spec = env.environment_spec
        check_same_actions(RunDirectory.read_facts(path).get("actions"), spec, path)
        if video is not None:
            cameras = cameras or all_cameras(spec)
            check_cameras(cameras, spec)
        if decisions and config.has_base:
            decided = (
                "its noise is drawn for a whole chunk" if config.steers else "its corrections are decided in every step"
            )
            raise ConfigError(f"--decisions of a run with a base: {decided}; leave it out")
        every = {rate: steps_between(rate, spec.control_period) for rate in decisions}
        of_run = stack.enter_context(open_base(config, env, path))
        check_base(of_run, checkpoint)
        base = None if of_run is None else of_run.player
        proposal = None if of_run is None or config.steers else spec.action_size
        perception = make_perception(env.observation_specs, config, proposal=proposal)
        policy = make_policy(spec, perception.spec, config, torch.Generator(config.device))
        parameters = checkpoint["deployed"]["policy"]
        policy.load_policy_state({name: value.to(config.device) for name, value in parameters.items()})
        digest = policy_digest(parameters)
        recorders = []
        if record is not None:
            facts = {
                "task": config.task,
                "seed": wanted.seed,
                "evaluation_of": str(path.absolute()),
                "policy": digest,
                "world": world_of(config),
                "calibrations": RunDirectory.read_calibrations(path),
            }
            recorders = [StoreRecorder(stack.enter_context(EpisodeStore.create(record, facts)), cut_aside=True)]
        if deployment.assistance is not None:
            stack.enter_context(deployment.assistance.evaluation())
        settled = replace(config, evaluation=wanted)
        evaluation = evaluate_policy(settled, env, policy, perception, deployment, recorders, base)
        by_rate = {
            rate: evaluate_policy(settled, env, policy, perception, deployment, every=steps)
            for rate, steps in every.items()
        }
        if video is not None:
            filmed = min(wanted.video_episodes or EvaluationConfig().video_episodes, wanted.episodes)
            if not film(config, policy, perception, video, cameras, filmed, wanted.seed, base):
                video = None
    answer = {
        "task": config.task,
        "world": world_of(config),
        "changes": _changes(world_of(trained), world_of(config)),
        "policy": digest,
        "deployed_noise": config.sac.deployed_noise,
        **evaluation.summary(),
        "video": None if video is None else str(video),
        "results": evaluation.rows(),
        **({"frequency_average": frequency_average(by_rate)} if by_rate else {}),
    }
    return answer


def _check_fits(trained: TrainConfig, config: TrainConfig) -> None:
    """Check that a policy of one configuration can act in the environment of another, before any of it is loaded."""
    here, there = Deployment(), replace(workcell_options(config), cameras=())
    with (
        here.environment(trained.task, replace(workcell_options(trained), cameras=())) as ours,
        here.environment(config.task, there) as theirs,
    ):
        check_fits(ours, theirs)


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the settings that differ, by dotted key."""
    changes: dict[str, Any] = {}
    for key, value in after.items():
        if isinstance(value, Mapping):
            changes |= _changes(before[key], value, f"{prefix}{key}.")
        elif value != before[key]:
            changes[f"{prefix}{key}"] = value
    return changes


def check_film(path: Path | None, deployment: Deployment) -> None:
    """Check that a film that is wanted can be made where episodes are played; None: none is wanted.

    Raises:
        ConfigError: if it cannot.
    """
    if path is not None and not deployment.can_film:
        raise ConfigError(
            "a film shows a simulation, and here an arm moves; leave --video out. What its cameras saw is in recorded "
            "episodes (--record), and `robot-rl data export` makes videos of them"
        )


def film(
    config: TrainConfig,
    policy: Policy | None,
    perception: Perception | None,
    path: Path,
    cameras: tuple[str, ...],
    episodes: int,
    seed: int,
    base: Proposer | None = None,
) -> bool:
    """Film the first evaluation episodes in simulation; log a warning and return False if that fails.

    Args:
        config: The run's configuration; of its reward only stages are used, as others may need other frames.
        policy: The policy; None: the base alone acts.
        perception: Encodes its observations; None without a policy.
        path: The film, an MP4 file.
        cameras: Names of the cameras.
        episodes: Number of episodes.
        seed: Which resets.
        base: Proposes the actions that the policy corrects; both are in the caption.
    """
    if not cameras:
        logger.info("no video: %s has no cameras", config.task)
        return False
    if any(judge != "task" for _, judge in config.reward.stages.judges):
        logger.info("no video: in a film nobody but the task can judge stages, and here others do")
        return False
    reward = RewardSetup(config.reward).staged
    options = workcell_options(config)
    if options.cameras:  # a policy with cameras gets frames of its own size, and they are filmed
        options = replace(options, cameras=tuple(dict.fromkeys((*options.cameras, *cameras))))
    else:
        options = replace(options, cameras=cameras, image_size=FILM_SIZE)
    try:
        with (
            Deployment().environment(config.task, options, reward) as env,
            FilmRecorder(path, 1.0 / env.environment_spec.control_period, cameras) as recorder,
        ):
            rollout = Rollout(env, policy, perception, config.replay.history, [recorder], base=base)
            evaluate(rollout, episodes=episodes, seed=seed)
    except (RenderError, RunDirectoryError, EnvironmentFailedError) as error:
        logger.warning("no video: %s", error)
        return False
    return True
