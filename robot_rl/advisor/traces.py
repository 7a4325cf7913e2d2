"""What the rules look at, of recorded episodes: the return that the critics of a run expected at each step."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from robot_rl.base_policy.run_base import open_base
from robot_rl.calling.rules import ValueTrace, expected_share
from robot_rl.data.schema import OPERATOR_SOURCES, Episode
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError
from robot_rl.learn.local_learner import LocalLearner
from robot_rl.learn.perception import make_perception
from robot_rl.run.deployment import Deployment, workcell_options
from robot_rl.run.directory.fleet_robot import check_learns
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.run.make_reward import RewardSetup
from robot_rl.run.resume import read_training

logger = logging.getLogger(__name__)


def read_traces(run: Path, store: Path) -> tuple[list[tuple[ValueTrace, bool]], float]:
    """Return what the critics of a run expect in the episodes of a store, each with whether it succeeded.

    Episodes in which an operator helped, or whose outcome is not known, are left out.

    Args:
        run: The run directory.
        store: Episodes of the same task that the run has not learned from, from `robot-rl eval RUN --record STORE`.

    Returns:
        The traces, and the control period [s].

    Raises:
        DataError: if the store is of another task, lacks what the policy observes, or has no episode to judge by; or if
            nothing can be predicted of this run, as its task has no success, or its critics have learned nothing.
        RobotRLError: if the run cannot be read.
    """
    config = RunDirectory.read_config(run)
    check_learns(run)
    checkpoint = read_training(run / "checkpoint.pt")
    with contextlib.ExitStack() as stack:
        deployment = Deployment()
        reward = RewardSetup.of_run(run, config.reward)
        observed = reward.observe(workcell_options(config))
        env = stack.enter_context(deployment.environment(config.task, observed, reward.staged, played=False))
        base = stack.enter_context(open_base(config, env, run))
        spec = env.environment_spec
        if not spec.success:
            raise DataError(f"{run}: {config.task} judges no success, so no failure of it can be predicted")
        proposal = None if base is None or config.steers else spec.action_size
        perception = make_perception(env.observation_specs, config, reward.potential(spec), proposal=proposal)
        learner = LocalLearner(spec, perception, config)
        learner.load_state_dict(checkpoint["learner"])
        traces: list[tuple[ValueTrace, bool]] = []
        for episode in _unassisted(store, config.task):
            if missing := sorted(env.observation_specs.keys() - episode.observations.keys()):
                raise DataError(
                    f"{store}: {episode.episode_id} lacks {', '.join(missing)}, which the policy, or what judges or "
                    "shapes its rewards, observes"
                )
            proposed = episode if base is None else base.with_proposals(episode)
            values = expected_share(_values(learner, proposed), spec)
            if np.isnan(values).any():
                raise DataError(
                    f"{run}: it has no critics that have learned (algorithm.name={config.algorithm.name}, "
                    f"{checkpoint['env_steps']} env steps); name a run of sac or iql, longer than its warm-up"
                )
            traces.append((ValueTrace(values, spec.max_steps), bool(episode.facts.success)))
        if not traces:
            raise DataError(
                f"{store} has no episode that the policy led alone, with a known outcome; record some: robot-rl eval "
                f"{run} --episodes 300 --record STORE"
            )
        return traces, spec.control_period


def _unassisted(path: Path, task: str) -> Iterator[Episode]:
    """Yield the episodes of a store that no operator led, with a known outcome."""
    left_out = 0
    with EpisodeStore.open(path) as store:
        for row in store.summaries():
            if row.facts.task != task:
                raise DataError(f"{path}: {row.episode_id} is of {row.facts.task or 'no task'}, not of {task}")
            led = np.isin(store.sources(row.episode_id), OPERATOR_SOURCES).any()
            if led or row.success is None:
                left_out += 1
                continue
            yield store.read(row.episode_id)
    if left_out:
        logger.info("%d episodes with help, or of unknown outcome, are left out", left_out)


def _values(learner: LocalLearner, episode: Episode) -> np.ndarray:
    """Return what the critics expect from each observation on, shape (T + 1,)."""
    learner.on_start(episode.episode_id, episode.seen(0))
    values = [learner.value]
    for row in range(len(episode)):
        learner.on_step(episode.step(row), episode.seen(row + 1))
        values.append(learner.value)
    return np.array([np.nan if value is None else value for value in values])
