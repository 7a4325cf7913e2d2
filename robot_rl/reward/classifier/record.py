"""Recording of frames for a reward classifier: every step has the label whether the task is done at that moment.

`StrayingOperator` leads the arm as another operator does, but now and then strays, and sometimes gives up: recordings
need near misses as much as successes. From an operator who always succeeds, a classifier learns that to be near is to
be done.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.data.schema import Episode, Observation, Step
from robot_rl.data.sparse_reward import success_reward
from robot_rl.data.store.operator_labels import EVERY_STEP
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.episode_observer import EpisodeResult
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import Operator, Outcome, Taken, TaskSpec, WorkcellOptions, check_one_arm
from robot_rl.errors import ConfigError, DataError
from robot_rl.geometry import Pose
from robot_rl.learn.actor import Rollout, StoreRecorder
from robot_rl.reward.classifier.frames import labels_of
from robot_rl.seeding import Purpose, episode_seed
from robot_rl.system.progress import Progress


@dataclass(frozen=True)
class StrayHabit:
    """How often and how far.

    Attributes:
        chance: Per step, of beginning to stray.
        chance_when_done: The same where the task is done, so that it is undone and done again.
        move: Shortest and longest motion [steps].
        rest: Longest stay where that led to [steps].
        drop: Chance that a gripper opens with it.
        give_up: Chance that an episode is left to straying from some moment on.
    """

    chance: float = 0.06
    chance_when_done: float = 0.15
    move: tuple[int, int] = (1, 6)
    rest: int = 4
    drop: float = 0.15
    give_up: float = 0.35


class StrayingOperator:
    """Strays between what another operator does.

    Args:
        operator: The other one.
        spec: The task.
        habit: How often and how far.
    """

    def __init__(self, operator: Operator, spec: TaskSpec, habit: StrayHabit | None = None) -> None:
        check_one_arm(spec, "the operator who records frames for a classifier")
        self._operator, self._spec, self._habit = operator, spec, habit or StrayHabit()
        self.done = False
        """Whether the task is done at the moment; set by `EveryStepReward`."""

    def reset(self, seed: int, demonstrate: bool) -> None:
        """Start a new episode."""
        self._operator.reset(seed, demonstrate)
        self._rng = np.random.default_rng([seed, 5])
        gives_up = self._rng.uniform() < self._habit.give_up
        half = max(2, self._spec.max_steps // 2)
        self._last_try = int(self._rng.integers(min(5, half - 1), half)) if gives_up else self._spec.max_steps
        self._steps = self._moving = self._resting = 0
        self.done = False

    def act(self, state: RobotState, T_base_reset: Pose) -> Taken | None:
        """Return the action of this step."""
        wanted = self._operator.act(state, T_base_reset)  # called in any case, so that it goes on from where it is
        habit, rng = self._habit, self._rng
        self._steps += 1
        if self._moving == 0 and self._resting == 0:
            chance = habit.chance_when_done if self.done else habit.chance
            if self._steps <= self._last_try and rng.uniform() >= chance:
                return wanted
            self._begin()
        if self._moving > 0:
            self._moving -= 1
            return self._direction
        self._resting -= 1
        return np.zeros(self._spec.action_size)

    def _begin(self) -> None:
        habit, rng, axes = self._habit, self._rng, len(self._spec.action_axes)
        direction = rng.normal(size=axes)
        direction *= rng.uniform(0.2, 1.0) / np.abs(direction).max(initial=1e-9)
        direction = np.append(direction, np.zeros(len(self._spec.wrench_axes)))
        self._direction = np.append(direction, float(rng.uniform() < habit.drop)) if self._spec.gripper else direction
        self._moving = int(rng.integers(habit.move[0], habit.move[1] + 1))
        self._resting = int(rng.integers(habit.rest + 1))


MOST_OF_EPISODE = (5, 15)
"""Frames of one episode that count towards those that are wanted, with success and without: frames of one episode are
much alike."""
UNCLEAR = 2
"""Frames before a success that count as neither."""


class EveryStepReward:
    """Rewards every step after which the task is done, and ends no episode for it.

    Args:
        operator: Its `done` is set after each step.
    """

    def __init__(self, operator: StrayingOperator) -> None:
        self._operator = operator

    def begin(self) -> None:
        """Start a new episode."""

    def judge(self, outcome: Outcome, observation: Mapping[str, np.ndarray], spec: TaskSpec) -> Outcome:
        """Reward the moment instead of the episode."""
        del observation, spec
        self._operator.done = outcome.success
        return replace(outcome, success=False, reward=success_reward(outcome.success))


class FrameCount:
    """An observer that records episodes with their outcome, and counts the frames that they offer.

    Args:
        store: Where they go.
    """

    def __init__(self, store: EpisodeStore) -> None:
        self._recorder = StoreRecorder(store)
        self.positives = self.negatives = self.episodes = 0

    def enough(self, wanted: tuple[int, int]) -> bool:
        """Return whether there are as many frames as are wanted, with success and without."""
        return self.positives >= wanted[0] and self.negatives >= wanted[1]

    def on_start(self, episode_id: str, observation: Observation) -> None:
        """Begin the episode's journal."""
        self._recorder.on_start(episode_id, observation)

    def on_step(self, step: Step, next_observation: Observation) -> None:
        """Append the step to the journal."""
        self._recorder.on_step(step, next_observation)

    def on_end(self, episode: Episode, result: EpisodeResult) -> None:
        """Store the episode; it is a success if the task was done at any moment."""
        labels = labels_of(episode, UNCLEAR)
        self.episodes += 1
        self.positives += min(int(labels.shows.sum()), MOST_OF_EPISODE[0])
        self.negatives += min(int(labels.negative.sum()), MOST_OF_EPISODE[1])
        metadata = episode.facts.updated(success=bool(labels.shows.any())).metadata
        self._recorder.on_end(replace(episode, metadata=metadata), result)


def record_frames(
    task: str, path: Path, *, positives: int, negatives: int, seed: int, observed: WorkcellOptions
) -> dict[str, Any]:
    """Record the straying scripted operator until there are enough frames; the task itself labels them.

    Args:
        task: Name of the task.
        path: Directory of the new store.
        positives: Frames that show success, at most some of each episode.
        negatives: Frames that do not.
        seed: Resets and the operator follow from it.
        observed: Cameras and size of the frames; no cameras takes all of the scene.

    Raises:
        ConfigError: if the task has no scripted operator.
        DataError: if the operator does not succeed often enough.
    """
    cell = make_workcell(task, observed)
    with contextlib.ExitStack() as stack:
        stack.callback(cell.close)
        if cell.operator is None:
            raise ConfigError(f"task {task} has no scripted operator; lead the arm yourself: --console or --teleop")
        operator = StrayingOperator(cell.operator, cell.task.spec)
        env = RobotEnv(replace(cell, operator=operator, judges=(EveryStepReward(operator),)), options=observed)
        store = stack.enter_context(EpisodeStore.create(path, {"task": task, "seed": seed, **EVERY_STEP}))
        count = FrameCount(store)
        rollout = Rollout(env, None, None, (0,), [count])
        most = 10 * (1 + positives // MOST_OF_EPISODE[0] + negatives // MOST_OF_EPISODE[1])
        with Progress(positives + negatives, f"record {task}", unit="frames") as shown:
            while not count.enough((positives, negatives)):
                if len(store) == most:
                    raise DataError(
                        f"{path}: {most} episodes gave {count.positives} frames with success and {count.negatives} "
                        f"without; the scripted operator of {task} does not do it often enough for this"
                    )
                reset = episode_seed(Purpose.FRAMES, seed, len(store))
                rollout.play(reset, f"frames-{len(store):04d}", deterministic=True, demonstrate=True)
                shown.update(min(count.positives, positives) + min(count.negatives, negatives))
        return frame_facts(task, store, count)


def frame_facts(task: str, store: EpisodeStore, count: FrameCount) -> dict[str, Any]:
    """Return the numbers of the recording."""
    return {
        "task": task,
        "episodes": len(store),
        "successes": sum(bool(row.success) for row in store.summaries()),
        "positives": count.positives,
        "negatives": count.negatives,
        "store": str(store.path),
    }
