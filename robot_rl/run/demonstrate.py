"""Records demonstrations: the operator leads, every episode is stored, failures too."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_rl.data.store.operator_labels import rewarded_episodes
from robot_rl.data.store.store import EpisodeStore
from robot_rl.data.store.summary import EpisodeSummary
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import DataError, RobotLostError
from robot_rl.learn.actor import Rollout, StoreRecorder
from robot_rl.run.deployment import Site
from robot_rl.run.directory.calibrations import Calibrations
from robot_rl.run.episode_retry import Patience
from robot_rl.run.evaluation import mean
from robot_rl.seeding import Purpose, episode_seed
from robot_rl.system.progress import Progress


def demonstrate(
    task: str,
    path: Path,
    *,
    episodes: int,
    seed: int,
    observed: WorkcellOptions,
    site: Site | None = None,
    resume: bool = False,
    calibrations: Calibrations | None = None,
) -> dict[str, Any]:
    """Records into a store and says how it went.

    Args:
        task: Name of the task.
        path: Directory of the store; must be new or empty, unless it is resumed.
        episodes: How many.
        seed: Resets and the scripted operator follow from it.
        observed: What is recorded of the robot.
        site: Where it takes place; None is here.
        resume: Go on with what is in the store, if there is one.
        calibrations: Those that hold; the store has copies of them.

    Raises:
        CalibrationError: if the store was begun with other calibrations.
    """
    site = site or Site()
    env = site.environment(site.workcell(task, observed), observed)
    with (
        contextlib.closing(env),
        demonstration_store(path, task, seed, calibrations, resume=resume) as store,
        Progress(episodes, f"demonstrate {task}", unit="episodes", start=len(store)) as progress,
    ):
        for message in store.recovered:
            progress.log(message)
        waits = Patience(site.lost_episodes, progress.log)
        record_demonstrations(
            env,
            store,
            episodes=episodes,
            seed=seed,
            on_episode=progress.update,
            patience=waits,
            free=site.free,
            log=progress.log,
        )
        facts = demonstration_facts(store.summaries(), env.spec_task.control_period)
    return {"task": task, **facts, "store": str(path)}


@contextlib.contextmanager
def demonstration_store(
    path: Path, task: str, seed: int, calibrations: Calibrations | None, *, resume: bool
) -> Iterator[EpisodeStore]:
    """A store for demonstrations, new or, if it may be resumed, gone on with; it knows its calibrations.

    Raises:
        CalibrationError: if it was begun with other calibrations.
    """
    calibrations = calibrations or Calibrations(())
    facts = {"task": task, "seed": seed, "calibrations": calibrations.facts()}
    if resume:
        opened = EpisodeStore.open_or_create(path, facts, keep_interrupted=False)  # half a demonstration is none
    else:
        opened = EpisodeStore.create(path, facts)
    with opened as store:
        calibrations.check_same(store.metadata.get("calibrations", {}), path)
        calibrations.write(path)
        yield store


def record_demonstrations(
    env: RobotEnv,
    store: EpisodeStore,
    *,
    episodes: int,
    seed: int,
    on_episode: Callable[[int], object] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
    patience: Patience | None = None,
    free: Callable[[], bool] = lambda: True,
    log: Callable[[str], object] = lambda _: None,
) -> None:
    """Lets the operator lead episodes named `demonstration-0000` and so on, until the store holds them all.

    Args:
        env: Where.
        store: Where they go; those that it holds already are not made again.
        episodes: How many there shall be.
        seed: Resets and the scripted operator follow from it.
        on_episode: Told after each how many there are.
        stop: Asked before each whether to leave it at that.
        patience: What to do when the robot is lost; None raises the error.
        free: Asked before each whether it may begin, until it may; waits a moment while somebody holds the arm.
        log: Told of what is not kept.
    """
    patience = patience or Patience()
    rollout = Rollout(env, None, None, (0,), [StoreRecorder(store)])
    while len(store) < episodes and not stop():
        if not free():
            continue
        number = len(store)
        reset = episode_seed(Purpose.DEMONSTRATION, seed, number)
        try:
            rollout.play(reset, demonstration_id(number), deterministic=True, demonstrate=True)
        except RobotLostError as error:
            patience.lost(error)
            store.abandon()
            continue
        patience.done()
        newest = store.summaries()[-1]
        if newest.facts.cut is not None:  # a person stopped it: that is no demonstration
            store.set_aside([newest.episode_id], f"a demonstration that was cut: {newest.facts.cut}")
            log(f"{newest.episode_id} was moved aside: {newest.facts.cut}")
            continue
        on_episode(len(store))


def check_calibrations(path: Path | None, calibrations: Calibrations) -> None:
    """Nothing, if the demonstrations of a store, or None, may teach a run that has these calibrations.

    Raises:
        CalibrationError: if they were recorded with others.
    """
    if path is None:
        return
    with EpisodeStore.open(path) as source:
        for where, recorded in _recorded_calibrations(source.metadata, path):
            calibrations.check_demonstrations(recorded, where)


def _recorded_calibrations(metadata: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """What a store, or each of those that it was merged from, says of its calibrations."""
    yield path, metadata.get("calibrations", {})
    for source in metadata.get("merged_from", ()):
        yield from _recorded_calibrations(source, Path(source["path"]))


def adopt_demonstrations(store: EpisodeStore, path: Path, env: RobotEnv, rewards: str | None = None) -> int:
    """Copies the episodes of another store into a new run, as its demonstrations.

    Args:
        store: Of the run; still empty.
        path: The other store.
        env: Of the run; what it observes has to be recorded.
        rewards: Name of the overlay that says what they are worth, those without are left; None: as recorded.

    Returns:
        How many.

    Raises:
        DataError: if something that the policy observes was not recorded, or there are none.
    """
    with EpisodeStore.open(path) as source:
        adopted = rewarded_episodes(source, rewards)
        for number, episode in enumerate(source.read(name, rewards=rewards) for name in adopted):
            if missing := sorted(env.observation_specs.keys() - episode.observations.keys()):
                raise DataError(
                    f"{path}: {episode.episode_id} lacks {', '.join(missing)}, which the policy observes; record "
                    "demonstrations with the same --obs as the training"
                )
            kept = {name: episode.observations[name] for name in env.observation_specs}
            metadata = episode.facts.updated(demonstration=True, recorded_as=episode.episode_id).metadata
            store.append(replace(episode, episode_id=demonstration_id(number), observations=kept, metadata=metadata))
        if not adopted:
            raise DataError(f"{path}: holds no demonstrations; record some with `robot-rl demo`")
        return len(adopted)


def demonstration_facts(rows: Sequence[EpisodeSummary], control_period: float) -> dict[str, Any]:
    """How many there are, how many of them succeeded, and how long those took on average [s] (None if none did)."""
    successes = [row for row in rows if row.success]
    return {
        "episodes": len(rows),
        "success_rate": len(successes) / len(rows),
        "cycle_time_s": mean(row.length * control_period for row in successes) if successes else None,
    }


def demonstration_id(number: int) -> str:
    """Name of a demonstration in its store."""
    return f"demonstration-{number:04d}"
