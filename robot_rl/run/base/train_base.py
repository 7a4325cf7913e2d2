"""Train a base from recorded demonstrations, before any run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from robot_rl.base_policy.base_file import save_base
from robot_rl.base_policy.contract import BaseSetup, make_base
from robot_rl.config.components import TrainConfig
from robot_rl.data.schema import Episode
from robot_rl.data.store.layout import find_store
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.errors import DataError, RunDirectoryError
from robot_rl.run.base.base_environment import base_environment
from robot_rl.run.base.lessons import LearnFrom, lessons
from robot_rl.run.demonstrate import check_recorded_actions
from robot_rl.run.deployment import Deployment
from robot_rl.system.atomic_file import check_can_be_written
from robot_rl.system.progress import Progress


def train_base(
    config: TrainConfig,
    demos: Path,
    out: Path,
    learn_from: LearnFrom = "demonstrations",
    deployment: Deployment | None = None,
) -> dict[str, Any]:
    """Train a base from recorded episodes of a store or a run, and write its file.

    Args:
        config: Task, observations and settings of the base, with its kind.
        demos: The store, or the run directory.
        out: The file, which must not exist yet.
        learn_from: Which of the episodes; see `lessons`.
        deployment: The place whose task it is; None is this process. It is opened for its facts, then let go.

    Returns:
        Figures of the training, the file and the identity of the base.

    Raises:
        DataError: if there are no such episodes, or they are of another task, lack what the base observes, or their
            actions are others.
        ConfigError: if a base of this kind is not trained.
        RunDirectoryError: if the file exists or cannot be written.
    """
    if out.exists():
        raise RunDirectoryError(f"{out} exists already; choose another --out")
    check_can_be_written(out)
    with EpisodeStore.open(find_store(demos)) as store:
        with base_environment(config, deployment or Deployment(), played=False) as (config, env):
            spec, observed = env.environment_spec, env.observation_specs
        base = make_base(BaseSetup("", spec, observed, config))
        episodes = _fitting(lessons(store, learn_from), spec, observed, demos)
        with Progress(config.base.updates, f"base {config.base.kind}", unit="updates") as progress:

            def report(done: int, total: int, logs: Mapping[str, float]) -> None:
                del total
                progress.update(done, **logs)

            figures = base.train(episodes, report)
        save_base(out, config.base.kind, base, {**figures, "demonstrations": str(demos), "learn_from": learn_from})
        answer = {"task": config.task, "kind": config.base.kind, **figures, "identity": base.identity, "file": str(out)}
        base.close()
    return answer


def _fitting(
    episodes: Iterable[Episode], spec: EnvironmentSpec, observed: Iterable[str], demos: Path
) -> Iterator[Episode]:
    """Yield episodes as long as they are of the task, hold what is observed there, and their actions mean the same.

    Raises:
        DataError: naming the first one that does not fit.
    """
    for episode in episodes:
        where = f"{demos}: {episode.episode_id}"
        if episode.facts.task not in ("", spec.name):  # imported ones may name none
            raise DataError(f"{where} is of {episode.facts.task}, not of {spec.name}; name episodes of {spec.name}")
        if missing := sorted(set(observed) - episode.observations.keys()):
            raise DataError(
                f"{where} lacks {', '.join(missing)}, which the base would observe; record demonstrations with the "
                "same --obs and stages (reward.stages.order) as the base"
            )
        check_recorded_actions(episode.facts.actions, spec, where)
        yield episode
