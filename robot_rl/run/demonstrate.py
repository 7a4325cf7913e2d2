"""Recording of demonstrations: the operator leads, every episode is stored, failures too."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_rl.data.episode_facts import CopiedFrom
from robot_rl.data.sparse_reward import SUCCESS_REWARD
from robot_rl.data.store.operator_labels import as_called, operator_labels, operator_words, rewarded_episodes
from robot_rl.data.store.store import EpisodeStore
from robot_rl.data.store.summary import EpisodeSummary
from robot_rl.env.environment import Environment, EnvironmentSpec, acts_otherwise, check_demonstrator
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import DataError, RobotLostError
from robot_rl.learn.actor import Rollout, StoreRecorder
from robot_rl.run.deployment import Deployment
from robot_rl.run.directory.calibrations import Calibrations
from robot_rl.run.episode_retry import EpisodeRetry
from robot_rl.seeding import Purpose, episode_seed
from robot_rl.statistics import mean
from robot_rl.system.progress import Progress


def demonstrate(
    task: str,
    path: Path,
    *,
    episodes: int,
    seed: int,
    observed: WorkcellOptions,
    deployment: Deployment | None = None,
    resume: bool = False,
    calibrations: Calibrations | None = None,
) -> dict[str, Any]:
    """Record demonstrations into a store and return a summary of them.

    Args:
        task: Name of the task.
        path: Directory of the store; must be new or empty, unless it is resumed.
        episodes: The number of episodes.
        seed: Resets and the scripted operator follow from it.
        observed: What is recorded of the robot.
        deployment: Where it takes place; None is this process.
        resume: Continue with what is in the store, if there is one.
        calibrations: The valid ones; the store gets copies of them.

    Raises:
        CalibrationError: if the store was begun with other calibrations.
    """
    deployment = deployment or Deployment()
    with contextlib.ExitStack() as stack:
        env = stack.enter_context(deployment.environment(task, observed))
        check_demonstrator(env)
        store = stack.enter_context(demonstration_store(path, task, seed, calibrations, resume=resume))
        progress = stack.enter_context(Progress(episodes, f"demonstrate {task}", unit="episodes", start=len(store)))
        for message in store.recovered:
            progress.log(message)
        record_demonstrations(
            env,
            store,
            episodes=episodes,
            seed=seed,
            on_episode=progress.update,
            retry=deployment.retry(progress.log),
            may_start=deployment.may_start,
            log=progress.log,
        )
        facts = demonstration_facts(store.summaries(), env.environment_spec.control_period)
    return {"task": task, **facts, "store": str(path)}


@contextlib.contextmanager
def demonstration_store(
    path: Path, task: str, seed: int, calibrations: Calibrations | None, *, resume: bool
) -> Iterator[EpisodeStore]:
    """Open a store for demonstrations, new or resumed, with its calibrations.

    Raises:
        DataError: if it holds demonstrations of another task.
        CalibrationError: if it was begun with other calibrations.
    """
    calibrations = calibrations or Calibrations(())
    facts = {"task": task, "seed": seed, "calibrations": calibrations.facts()}
    if resume:
        opened = EpisodeStore.open_or_create(path, facts, keep_interrupted=False)  # half a demonstration is none
    else:
        opened = EpisodeStore.create(path, facts)
    with opened as store:
        if store.metadata.get("task", task) != task:
            raise DataError(
                f"{path}: holds demonstrations of {store.metadata['task']}; choose another --out for {task}"
            )
        calibrations.check_same(store.metadata.get("calibrations", {}), path)
        calibrations.write(path)
        yield store


def record_demonstrations(
    env: Environment,
    store: EpisodeStore,
    *,
    episodes: int,
    seed: int,
    on_episode: Callable[[int], object] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
    retry: EpisodeRetry | None = None,
    may_start: Callable[[], bool] = lambda: True,
    log: Callable[[str], object] = lambda _: None,
) -> None:
    """Let the operator lead episodes named `demonstration-0000` and so on, until the store holds them all.

    Args:
        env: The environment.
        store: The store; the demonstrations that it holds already are not made again.
        episodes: How many there shall be.
        seed: Resets and the scripted operator follow from it.
        on_episode: Called after each with the number recorded.
        stop: Called before each; True ends the recording.
        retry: Retries of episodes in which the robot is lost; None raises the error.
        may_start: Called before each until it returns True; waits a moment while somebody holds the arm.
        log: Called with a message about each episode that is not kept.
    """
    retry = (retry or EpisodeRetry()).until(stop)
    rollout = Rollout(env, None, None, (0,), [StoreRecorder(store, cut_aside=True)])
    while len(store) < episodes and not stop():
        if not may_start():
            continue
        number = len(store)
        reset = episode_seed(Purpose.DEMONSTRATION, seed, number)
        try:
            result = rollout.play(reset, demonstration_id(number), deterministic=True, demonstrate=True)
        except RobotLostError as error:
            retry.lost(error)
            store.abandon()
            continue
        retry.done()
        if result.cut is not None:  # a person stopped it: that is no demonstration
            log(f"{demonstration_id(number)} was moved aside: {result.cut}")
            continue
        on_episode(len(store))


def check_demonstrations(path: Path, task: str, calibrations: Calibrations) -> None:
    """Check that a run of a task, with these calibrations, may learn from the demonstrations of a store.

    Raises:
        DataError: if there are none, or some are of another task; those that name no task, e.g. imported ones, pass.
        CalibrationError: if they were recorded with other calibrations.
    """
    with EpisodeStore.open(path) as source:
        if not len(source):
            raise DataError(f"{path}: holds no demonstrations; record some with `robot-rl demo {task} --out DIR`")
        if others := sorted({row.facts.task for row in source.summaries()} - {"", task}):
            raise DataError(
                f"{path}: holds demonstrations of {', '.join(others)}, not of {task}; name a store of {task}, or "
                f"record one: `robot-rl demo {task} --out DIR`"
            )
        for where, recorded in _recorded_calibrations(source.metadata, path):
            calibrations.check_demonstrations(recorded, where)


def _recorded_calibrations(metadata: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the path and the calibrations of a store and of each store that it was merged from."""
    yield path, metadata.get("calibrations", {})
    for source in metadata.get("merged_from", ()):
        yield from _recorded_calibrations(source, Path(source["path"]))


def adopt_demonstrations(
    store: EpisodeStore, path: Path, env: Environment, rewards: str | None = None, *, of_run: bool = False
) -> int:
    """Copy the episodes of another store into a new run, as its demonstrations.

    Args:
        store: Of the run; still empty.
        path: The other store.
        env: Of the run; the episodes must hold what it observes.
        rewards: Name of an overlay with other rewards, episodes without it are left out; None: as recorded, or as a
            person called an episode later.
        of_run: The other store is that of a run, of which only the demonstrations are copied.

    Returns:
        The number of episodes.

    Raises:
        DataError: if something that the policy observes was not recorded, the rewards were made in another way, or an
            action meant something else.
    """
    made_by = env.environment_spec.rewards
    with EpisodeStore.open(path) as source:
        adopted = demonstrations_in(source) if of_run else rewarded_episodes(source, rewards)
        words, overlays = ({}, {}) if rewards else (operator_words(source, adopted), operator_labels(path))
        for number, episode in enumerate(source.read(name, rewards=rewards) for name in adopted):
            if missing := sorted(env.observation_specs.keys() - episode.observations.keys()):
                raise DataError(
                    f"{path}: {episode.episode_id} lacks {', '.join(missing)}, which the policy observes; record "
                    "demonstrations with the same --obs and stages (reward.stages.order) as the training"
                )
            check_recorded_actions(episode.facts.actions, env.environment_spec, f"{path}: {episode.episode_id}")
            recorded = episode.facts.rewards or made_by
            if rewards is None and made_by and recorded != made_by:
                raise DataError(
                    f"{path}: {episode.episode_id} was rewarded by {recorded}, this run is by {made_by}; set them "
                    "alike, or record the demonstrations anew"
                )
            kept = {name: episode.observations[name] for name in env.observation_specs}
            mark, by = source.fingerprint(episode.episode_id), rewards
            if (word := words.get(episode.episode_id)) is not None:
                worth = env.environment_spec.return_range
                by = overlays[mark]
                episode = as_called(episode, by, bool(word["success"]), worth[1] if worth else SUCCESS_REWARD)
            origin = CopiedFrom(
                store=str(path.absolute()),
                episode_id=episode.episode_id,
                fingerprint=mark,
                rewards=by,
            )
            facts = episode.facts.updated(demonstration=True, recorded_as=episode.episode_id, copied_from=origin)
            metadata = facts.metadata
            store.append(replace(episode, episode_id=demonstration_id(number), observations=kept, metadata=metadata))
        return len(adopted)


def check_recorded_actions(actions: str | None, spec: EnvironmentSpec, where: str) -> None:
    """Check that an action of a recorded episode means what it means where it is learned from.

    Args:
        actions: What the episode recorded of it, see `EnvironmentSpec`.
        spec: Of the environment that it is learned for.
        where: The store and the episode, for the message.

    Raises:
        DataError: naming both.
    """
    if acts_otherwise(actions, spec):
        raise DataError(
            f"{where}: its action is {actions}, and one of {spec.name} is {spec.actions} here; set axes, steps and "
            "period of the task as they were, or record the episodes anew"
        )


def demonstrations_in(store: EpisodeStore) -> list[str]:
    """Return the ids of the demonstrations in the store of a run."""
    return [row.episode_id for row in store.summaries() if row.facts.demonstration]


def demonstration_facts(rows: Sequence[EpisodeSummary], control_period: float) -> dict[str, Any]:
    """Return the number of episodes, the success rate, and the mean time of the successful ones [s] or None."""
    successes = [row for row in rows if row.success]
    return {
        "episodes": len(rows),
        "success_rate": len(successes) / len(rows),
        "cycle_time_s": mean(row.length * control_period for row in successes) if successes else None,
    }


def demonstration_id(number: int) -> str:
    """Return the name of a demonstration in its store."""
    return f"demonstration-{number:04d}"
